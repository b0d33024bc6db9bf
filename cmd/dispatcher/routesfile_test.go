package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/queuehook/queuehook/config"
	"github.com/queuehook/queuehook/internal/redistest"
	"github.com/queuehook/queuehook/webhook"
)

// Headers that package webhook would refuse are refused by the configuration already, with file and line.
func TestConfigurationKnowsWhatHeadersARouteMaySet(t *testing.T) {
	for _, name := range []string{
		"Host", "Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive", "Te", "Trailer", "Upgrade",
		"Http2-Settings", "Expect", "Accept-Encoding", "User-Agent", "Content-Type", "Traceparent", "Tracestate",
		"Dispatch-Queue", "webhook-id", "Proxy-Authorization",
		"Authorization", "Cookie", "X-Team", "Idempotency-Key", "Accept", "Date", "Origin", "Ce-Id", "X-Aws-Sqsd-Msgid",
	} {
		file := "routes: [{queue: a, url: 'http://h', headers: {" + name + ": x}}]"
		_, config := config.ParseRoutes("routes.yaml", []byte(file), config.Dispatcher{}, os.LookupEnv)
		target, maker := webhook.New(webhook.Config{URL: "http://h", Headers: map[string]string{name: "x"}})
		if maker == nil {
			target.Close()
		}
		if (config == nil) != (maker == nil) {
			t.Errorf("%s: config says %v, webhook %v", name, config, maker)
		}
	}
}

func TestServeRefusesABadRoutesFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "routes.yaml")
	file := "routes:\n- queue: a\n  url: http://h\n  timeout: 20\n"
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	environment(t, "redis://"+nobody(t), "ROUTES_FILE="+path)
	want := path + `:4: routes[0].timeout (queue a): "20" has no unit; want `
	if s := call(t); s.code != exitUsage || !strings.HasPrefix(s.err, want) || strings.Count(s.err, "\n") != 1 {
		t.Errorf("exit %d, standard error %q, want %q", s.code, s.err, want)
	}
}

// TestVerbsWorkBesideABadRoutesFile is of the time when the routes file was replaced by a bad one: the dispatcher that runs goes
// on with the old routes, and whoever looks after its queues must be able to.
func TestVerbsWorkBesideABadRoutesFile(t *testing.T) {
	url := redistest.Start(t, redistest.Config{}).URL()
	for name, path := range map[string]string{
		"bad": fileOf(t, "routes: [{queue: a, url: nowhere}]"), "gone": filepath.Join(t.TempDir(), "routes.yaml"),
	} {
		environment(t, url, "ROUTES_FILE="+path, "ROUTES=b=http://h")
		ok(t, call(t, "enqueue", "b", "--data", "x"))
		if out := ok(t, call(t, "queues", "--json")); !strings.HasPrefix(out, `[{"queue":"b",`) {
			t.Errorf("%s: queues %s", name, out)
		}
		ok(t, call(t, "pause", "b"))
		ok(t, call(t, "dead", "list", "b"))
		for _, verb := range []string{"run", "check"} {
			if s := call(t, verb); s.code != exitUsage {
				t.Errorf("%s: %s exits %d, %q", name, verb, s.code, s.err)
			}
		}
		environment(t, url, "ROUTES_FILE="+path, "CONCURRENCY=0")
		if s := call(t, "queues"); s.code != exitUsage || strings.Contains(s.err, path) || !strings.Contains(s.err, "CONCURRENCY") {
			t.Errorf("%s, and another mistake: exit %d, %q", name, s.code, s.err)
		}
	}
	environment(t, url, "ROUTES_FILE=")
	if s := call(t, "queues"); s.code != exitUsage || !strings.HasPrefix(s.err, "DISPATCHER_ROUTES_FILE: is set but empty") {
		t.Errorf("an empty name: exit %d, %q", s.code, s.err)
	}
}

func TestServeRefusesAFunctionInNoRegion(t *testing.T) {
	path := filepath.Join(t.TempDir(), "routes.yaml")
	if err := os.WriteFile(path, []byte("routes:\n- queue: a\n  lambda: f\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	environment(t, "redis://"+nobody(t), "ROUTES_FILE="+path)
	noAWS(t)
	fails(t, call(t), exitUsage, "queue a: new lambda target: no region is known; the route's region or AWS_REGION is accepted")
}
