package config_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/queuehook/queuehook/config"
)

// watched loads a configuration with a routes file of this content, and returns a function that replaces the content.
func watched(t *testing.T, content string) (config.Dispatcher, func(string)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "routes.yaml")
	replace := func(content string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	replace(content)
	setenv(t, map[string]string{
		"DISPATCHER_ROUTES": "inline=http://h", "DISPATCHER_ROUTES_FILE": path, "DISPATCHER_CONCURRENCY": "3", "TOKEN": marker,
	})
	d, err := config.LoadDispatcher()
	if err != nil {
		t.Fatal(err)
	}
	return d, replace
}

func queues(routes []config.Route) string {
	var names []string
	for _, r := range routes {
		names = append(names, r.Queue)
	}
	return strings.Join(names, " ")
}

func TestRoutesFileBesideRoutes(t *testing.T) {
	d, _ := watched(t, webRoute+"  bearer: ${TOKEN}\n  timeout: 1h\n")
	if got := queues(d.Routes); got != "inline a" {
		t.Errorf("routes %s", got)
	}
	if r := d.Routes[1]; r.Concurrency != 3 || r.HTTP.Authorization != "Bearer "+marker {
		t.Errorf("%+v", r.Redacted())
	}
	want := []string{"DISPATCHER_ROUTES_FILE: queue a: a timeout of 1h0m0s is above DISPATCHER_SHUTDOWN_GRACE (25s): " +
		"a slow attempt can be cut at shutdown and repeated"}
	if d := cmp.Diff(want, d.Warnings); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestRoutesFileInTheEnvironment(t *testing.T) {
	twice := writeFile(t, "routes:\n- queue: a\n  url: http://h\n  timeout: 5\n")
	setenv(t, map[string]string{
		"DISPATCHER_ROUTES": "a=http://h", "DISPATCHER_ROUTES_FILE": twice, "DISPATCHER_LOG_LEVEL": "x", "DISPATCHER_REDIS_URL": "x",
	})
	_, err := config.LoadDispatcher()
	want := []string{"DISPATCHER_REDIS_URL", twice + ":2", twice + ":4", "DISPATCHER_LOG_LEVEL"}
	if d := cmp.Diff(want, names(problems(t, err))); d != "" {
		t.Errorf("(-want +got)\n%s\n%v", d, err)
	}
	if !strings.Contains(err.Error(), "routes[0].queue (queue a): has a route in DISPATCHER_ROUTES, too") {
		t.Error(err)
	}

	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	large := writeFile(t, "routes: []\n#"+strings.Repeat("x", 10<<20))
	for path, want := range map[string]string{
		"/does/not/exist": "can't be read: no such file or directory; want the path of a YAML file",
		t.TempDir():       "can't be read: is a directory; want the path of a YAML file",
		pipe:              "can't be read: not a file that can be read again; want the path of a YAML file",
		large:             "can't be read: larger than 1 MiB; want the path of a YAML file",
	} {
		setenv(t, map[string]string{"DISPATCHER_ROUTES_FILE": path})
		_, err := config.LoadDispatcher()
		if err == nil || err.Error() != "DISPATCHER_ROUTES_FILE: "+want {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// The life of a routes file: unchanged, changed, bad, still bad, good again, gone, back.
func TestRoutesFileCheck(t *testing.T) {
	other := strings.Replace(webRoute, "queue: a", "queue: b", 1)
	d, replace := watched(t, webRoute)
	check := func(step, want string, changed bool, fault string) {
		t.Helper()
		routes, got, err := d.RoutesFile.Check(t.Context())
		if queues(routes) != want || got != changed {
			t.Errorf("%s: routes %s, changed %t", step, queues(routes), got)
		}
		switch {
		case fault == "" && err != nil:
			t.Errorf("%s: %v", step, err)
		case fault != "" && len(problems(t, err)) == 0 || err != nil && !strings.Contains(err.Error(), fault):
			t.Errorf("%s: error %v, want %q", step, err, fault)
		}
	}
	check("unchanged", "inline a", false, "")
	replace(other)
	check("changed", "inline b", true, "")
	check("unchanged again", "inline b", false, "")
	replace(webRoute + "  timeout: 5")
	check("bad", "inline b", true, "routes.yaml:4: routes[0].timeout (queue a)")
	check("still bad", "inline b", false, "routes.yaml:4: routes[0].timeout (queue a)")
	replace("")
	check("empty", "inline b", true, "is empty")
	replace(other)
	check("good again", "inline b", true, "")
	replace(strings.Replace(webRoute, "queue: a", "queue: inline", 1))
	check("a queue of ROUTES", "inline b", true, "has a route in DISPATCHER_ROUTES, too")
	replace("routes: []")
	check("no routes", "inline", true, "")

	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, changed, err := d.RoutesFile.Check(cancelled); !errors.Is(err, context.Canceled) || changed {
		t.Errorf("cancelled: %t, %v", changed, err)
	}
}

// Kubernetes changes a mounted ConfigMap by renaming a link to the folder that holds it.
func TestRoutesFileCheckFollowsLinks(t *testing.T) {
	dir := t.TempDir()
	folder := func(name, content string) {
		t.Helper()
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "routes.yaml"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{
			os.Symlink(name, filepath.Join(dir, "..new")), os.Rename(filepath.Join(dir, "..new"), filepath.Join(dir, "..data")),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	folder("..1", webRoute)
	if err := os.Symlink("..data/routes.yaml", filepath.Join(dir, "routes.yaml")); err != nil {
		t.Fatal(err)
	}
	setenv(t, map[string]string{"DISPATCHER_ROUTES_FILE": filepath.Join(dir, "routes.yaml")})
	d, err := config.LoadDispatcher()
	if err != nil {
		t.Fatal(err)
	}
	folder("..2", strings.Replace(webRoute, "queue: a", "queue: b", 1))
	routes, changed, err := d.RoutesFile.Check(t.Context())
	if err != nil || !changed || queues(routes) != "b" {
		t.Errorf("routes %s, changed %t, %v", queues(routes), changed, err)
	}
}

// A secret that is rotated in its own file changes the routes too.
func TestRoutesFileCheckReadsWhatItNames(t *testing.T) {
	secret := writeFile(t, "Key one")
	d, _ := watched(t, webRoute+"  authorization_file: "+secret)
	if _, changed, err := d.RoutesFile.Check(t.Context()); changed || err != nil {
		t.Fatal(changed, err)
	}
	if err := os.WriteFile(secret, []byte("Key two"), 0o600); err != nil {
		t.Fatal(err)
	}
	routes, changed, err := d.RoutesFile.Check(t.Context())
	if err != nil || !changed || routes[1].HTTP.Authorization != "Key two" {
		t.Errorf("changed %t, %v", changed, err)
	}
	if err := os.Remove(secret); err != nil {
		t.Fatal(err)
	}
	routes, changed, err = d.RoutesFile.Check(t.Context())
	if err == nil || !changed || routes[1].HTTP.Authorization != "Key two" {
		t.Errorf("gone: changed %t, %v", changed, err)
	}
}
