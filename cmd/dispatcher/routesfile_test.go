package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/queuehook/queuehook/config"
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

func TestServeRefusesAFunctionInNoRegion(t *testing.T) {
	path := filepath.Join(t.TempDir(), "routes.yaml")
	if err := os.WriteFile(path, []byte("routes:\n- queue: a\n  lambda: f\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	environment(t, "redis://"+nobody(t), "ROUTES_FILE="+path)
	noAWS(t)
	fails(t, call(t), exitUsage, "queue a: new lambda target: no region is known; the route's region or AWS_REGION is accepted")
}
