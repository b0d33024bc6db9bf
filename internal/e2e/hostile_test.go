package e2e_test

import (
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/queuehook/queuehook/internal/fleet"
	"github.com/queuehook/queuehook/internal/receiver"
	"github.com/queuehook/queuehook/internal/redistest"
	"github.com/queuehook/queuehook/lifecycle"
)

// TestRedirects points each kind of redirect to a listener that must see nothing.
func TestRedirects(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	elsewhere, err := receiver.Start(receiver.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer elsewhere.Close()
	q := fleet.NewQueue(t, server, receiver.Config{Script: func(r receiver.Request) receiver.Answer {
		code, _ := strconv.Atoi(r.TaskID)
		return receiver.Redirect(code, elsewhere.URL()+"/secret?token=x")
	}})
	d := serve(t, server.URL(), routes(route(q, "retry: {max_attempts: 2}")))
	for _, code := range []string{"301", "302", "303", "307", "308"} {
		q.Enqueue(t, []byte(code), lifecycle.EnqueueOptions{ID: code})
	}
	q.AwaitDrained(t)
	d.Stop(t)
	if n := elsewhere.Connections().Accepted; n != 0 {
		t.Errorf("%d connections to where the redirects pointed", n)
	}
	for _, r := range q.Receiver.Log() {
		if r.Method != "POST" {
			t.Errorf("task %s came by %s", r.TaskID, r.Method)
		}
	}
	dead := q.Dead(t)
	if len(dead) != 5 {
		t.Errorf("%d dead letters, want 5", len(dead))
	}
	for _, letter := range dead {
		for _, h := range letter.Meta.History {
			if h.Reason != "redirect" || strconv.Itoa(h.Status) != letter.ID || !strings.Contains(h.Error, elsewhere.URL()) ||
				strings.Contains(h.Error, "secret") {
				t.Errorf("task %s failed with %+v, want a redirect to %s", letter.ID, h, elsewhere.URL())
			}
		}
	}
	q.Law(t)
}

// TestDenyPrivate has URLs that name this machine in every spelling. Names that change between look-ups need a resolver
// of the test's own; the tests of package webhook have one.
func TestDenyPrivate(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	q := fleet.NewQueue(t, server, receiver.Config{})
	_, port, err := net.SplitHostPort(q.Receiver.Addr())
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{
		"127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "2130706433", "127.1", "0x7f.1", "localhost", "localhost.",
		"169.254.169.254", "0.0.0.0",
	} {
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			path := write(t, "routes.yaml", routes(routeTo(q, "http://"+host+":"+port+"/t0ken", "deny_private: true")))
			code, _, stderr := fleet.Run(t, fleet.Dispatcher, nil, []string{
				"DISPATCHER_REDIS_URL=" + server.URL(), "DISPATCHER_ROUTES_FILE=" + path, "DISPATCHER_ADMIN_ADDR=",
			})
			if code != 2 || !strings.Contains(stderr, "deny_private") || !strings.Contains(stderr, q.Name) ||
				strings.Contains(stderr, "t0ken") {
				t.Errorf("exit code %d, want 2: %s", code, stderr)
			}
		})
	}
	t.Cleanup(func() {
		if n := q.Receiver.Connections().Accepted; n != 0 {
			t.Errorf("%d connections", n)
		}
	})
	q.Law(t)
}
