package e2e_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/queuehook/queuehook/internal/fleet"
	"github.com/queuehook/queuehook/internal/receiver"
	"github.com/queuehook/queuehook/internal/redistest"
)

// TestSecretsOfURLs has credentials wherever a URL can hold them, the receivers' redirects included. Whatever goes
// wrong, only scheme and host may show.
func TestSecretsOfURLs(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	failing := fleet.NewQueue(t, server, receiver.Config{Script: receiver.Sequence(
		receiver.Text(500, "hunter2 tok3n"), receiver.HangUp(receiver.Reset, receiver.BeforeRead), receiver.Never(),
		receiver.Redirect(302, "http://carol:hunter2@127.0.0.1:1/p4th?token=tok3n"), receiver.Redirect(302, "/p4th?token=tok3n"),
		receiver.HangUp(receiver.Close, receiver.AfterRead),
	)})
	refused, noTLS, proxied := fleet.NewQueue(t, server, receiver.Config{}), fleet.NewQueue(t, server, receiver.Config{}),
		fleet.NewQueue(t, server, receiver.Config{})
	nowhere := fleet.NewQueue(t, server, receiver.Config{})
	const credentials, rest, printed = "carol:hunter2@", "/p4th?token=tok3n", "print-config"
	closed := closedPort(t)
	file := routes(
		routeTo(failing, "http://"+credentials+failing.Receiver.Addr()+rest, "timeout: 1s"),
		routeTo(refused, "http://"+credentials+closed+rest),
		routeTo(noTLS, "https://"+credentials+noTLS.Receiver.Addr()+rest),
		routeTo(nowhere, "http://"+credentials+"no..such.host"+rest),
		routeTo(proxied, "http://"+credentials+"example.com"+rest, "proxy: 'http://"+credentials+closed+"'"),
	)
	path := write(t, "routes.yaml", file)
	env := []string{"MAX_ATTEMPTS=6", "LOG_LEVEL=debug", "ROUTES_FILE=" + path}
	d := fleet.StartDispatcher(t, server.URL(), "", env...)
	queues := []*fleet.Queue{failing, refused, noTLS, nowhere, proxied}
	for _, q := range queues {
		q.Push(t, []byte("x"))
	}
	for _, q := range queues {
		q.AwaitDrained(t)
	}
	told := map[string]string{"metrics": d.Page(t, "/metrics"), "readiness": d.Page(t, "/readyz")}
	d.Stop(t)
	told["log"] = d.Log()

	r := failing.Receiver.Log()[0]
	user, password, ok := (&http.Request{Header: r.Header}).BasicAuth()
	if !ok || user != "carol" || password != "hunter2" || r.Path+"?"+r.Query != rest {
		t.Errorf("the receiver got %s?%s from %q", r.Path, r.Query, user)
	}
	for _, q := range queues {
		dead := q.Dead(t)
		if len(dead) != 1 {
			t.Fatalf("%d dead letters, want 1", len(dead))
		}
		told["dead list "+q.Name] = command(t, server.URL(), "dead", "list", q.Name, "--json")
		told["dead show "+q.Name] = command(t, server.URL(), "dead", "show", q.Name, dead[0].ID, "--json") +
			command(t, server.URL(), "dead", "show", q.Name, dead[0].ID)
		fields, err := q.Redis.HVals(t.Context(), q.Keys(t).Meta).Result()
		if err != nil || len(fields) != 1 {
			t.Errorf("metadata %q, %v", fields, err)
		}
		told["metadata "+q.Name] = strings.Join(fields, "\n")
		q.Law(t)
	}
	code, stdout, stderr := fleet.Run(t, fleet.Dispatcher, []string{"--print-config"}, []string{"DISPATCHER_ROUTES_FILE=" + path})
	if code != 0 {
		t.Errorf("--print-config: exit code %d: %s", code, stderr)
	}
	told[printed] = stdout + stderr
	for where, text := range told {
		for _, secret := range []string{"carol", "hunter2", "p4th", "tok3n", "token"} {
			if where == printed && secret == "p4th" {
				continue // which operators have to see
			}
			for line := range strings.Lines(text) {
				if strings.Contains(line, secret) {
					t.Errorf("%s tells %s: %s", where, secret, line)
				}
			}
		}
	}
	for where, form := range map[string]string{"metrics": "http://%s", "log": "http://%s", printed: "http://(redacted)@%s"} {
		if want := fmt.Sprintf(form, failing.Receiver.Addr()); !strings.Contains(told[where], want) {
			t.Errorf("%s does not tell %s", where, want)
		}
	}
	var reasons []string
	for _, q := range queues {
		for _, h := range q.Dead(t)[0].Meta.History {
			reasons = append(reasons, h.Reason)
		}
	}
	for _, want := range []string{"status", "reset", "timeout", "redirect", "connect", "tls", "dns"} {
		if !slices.Contains(reasons, want) {
			t.Errorf("no attempt failed as %s: the test shows less than it says", want)
		}
	}
}
