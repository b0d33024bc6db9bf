package config_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// everything is a routes file with every key, and with the marker wherever a secret can be.
func everything(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf(`defaults: {concurrency: 32, timeout: 20s}
routes:
- queue: orders
  url: https://api.example.com/hooks/orders?token=%[1]s
  method: POST
  content_type: application/json
  headers: {X-Team: payments, X-Token: "${TOKEN}"}
  bearer: ${TOKEN}
  signing_secrets_file: %[2]s
  tls: {server_name: api.example.com, min_version: "1.2"}
  proxy: http://user:%[1]s@proxy:3128
  concurrency: 64
  rate: {limit: 100, per: 1s, burst: 20}
  retry: {max_attempts: 40, max_age: 24h, base: 1s, cap: 1h}
  success: [200-299, 304]
  reject: [400, 410, 422]
  breaker: {consecutive: 20, pause: 30s}
  require_ack: true
  compat: aws-sqsd
- queue: inside
  url: http://user:%[1]s@h.example
  deny_private: true
  ordered: true
  connect_timeout: 5s
  quick_retries: 0
  retry: {schedule: [5s, 5m, 30m, 2h]}
  breaker: off
- queue: thumbs
  lambda: thumbs:live
  region: eu-west-1
  invoke: async
  payload: sqs-event
  batch: {size: 10, wait: 100ms}
`, marker, writeFile(t, signingSecret))
}

func TestPrintRoutes(t *testing.T) {
	d, _ := watched(t, everything(t))
	var b strings.Builder
	if err := d.Print(&b); err != nil {
		t.Fatal(err)
	}
	_, routes, _ := strings.Cut(b.String(), "\n\n")
	want, err := os.ReadFile("testdata/routes.golden")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), routes); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if strings.Contains(b.String(), marker) || strings.Contains(b.String(), signingSecret) {
		t.Errorf("shows a secret:\n%s", b.String())
	}
}

// However a route is shown, logged or marshalled, even by mistake, its secrets do not show.
func TestRoutesNeverShowSecrets(t *testing.T) {
	d, _ := watched(t, everything(t))
	for _, r := range d.Routes {
		if r.HTTP.DenyPrivate && r.Redacted().Breaker != "off" {
			t.Errorf("a breaker that is off shows as %v", r.Redacted().Breaker)
		}
		var log strings.Builder
		slog.New(slog.NewJSONHandler(&log, nil)).Info("route", "route", r)
		whole, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		view, err := json.Marshal(r.Redacted())
		if err != nil {
			t.Fatal(err)
		}
		for _, shown := range []string{
			fmt.Sprint(r), fmt.Sprintf("%+v", r), fmt.Sprintf("%#v", r), log.String(), string(whole), string(view),
		} {
			if strings.Contains(shown, marker) || strings.Contains(shown, signingSecret) {
				t.Errorf("shows a secret: %s", shown)
			}
		}
	}
}
