package deploy

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
)

// Compose's own loader accepts every key, and finds every name that one part uses of another.
func TestCompose(t *testing.T) {
	options, err := cli.NewProjectOptions([]string{root + "/compose.yaml"}, cli.WithProfiles([]string{"*"}))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"dispatcher", "janitor"} {
		s, err := project.GetService(name)
		if err != nil {
			t.Fatal(err)
		}
		if !s.ReadOnly || len(s.CapDrop) != 1 || s.CapDrop[0] != "ALL" {
			t.Errorf("%s: read_only %t, cap_drop %v", name, s.ReadOnly, s.CapDrop)
		}
	}
	redis := strings.Join(project.Services["redis"].Command, " ")
	for _, want := range []string{"--appendonly yes", "--maxmemory-policy noeviction"} {
		if !strings.Contains(redis+" ", want+" ") {
			t.Errorf("redis runs as %q, without %s", redis, want)
		}
	}
	dispatcher := project.Services["dispatcher"]
	_, target, _ := strings.Cut(*dispatcher.Environment["DISPATCHER_ROUTES"], "=")
	to, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := project.GetService(to.Hostname()); err != nil {
		t.Errorf("the route leads to %s: %v", target, err)
	}
	grace, err := time.ParseDuration(*dispatcher.Environment["DISPATCHER_SHUTDOWN_GRACE"])
	if err != nil {
		t.Fatal(err)
	}
	if dispatcher.StopGracePeriod == nil || time.Duration(*dispatcher.StopGracePeriod) != grace+10*time.Second {
		t.Errorf("stop_grace_period %v, want the grace and 10 s", dispatcher.StopGracePeriod)
	}
}
