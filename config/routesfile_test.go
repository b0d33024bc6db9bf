package config_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queuehook/queuehook/config"
)

// base is the configuration of an environment without variables.
func base(t *testing.T) config.Dispatcher {
	t.Helper()
	setenv(t, nil)
	d, err := config.LoadDispatcher()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// environment holds what the routes files of these tests look up.
func environment(name string) (string, bool) {
	value, found := map[string]string{"TOKEN": marker, "OTHER": "x", "EMPTY": "", "BROKEN": "a\nb"}[name]
	return value, found
}

const (
	webRoute    = "routes:\n- queue: a\n  url: https://h.example/p\n"
	lambdaRoute = "routes:\n- queue: a\n  lambda: f\n"
)

// Every key, one at a time, on a route that has nothing else.
func TestRoutesFileKeys(t *testing.T) {
	second := 20 * time.Second
	tests := []struct {
		file string
		want func(*config.Route)
	}{
		{webRoute, func(*config.Route) {}},
		{webRoute + "  method: PUT", func(r *config.Route) { r.HTTP.Method = "PUT" }},
		{webRoute + "  content_type: text/plain; charset=utf-8", func(r *config.Route) { r.HTTP.ContentType = "text/plain; charset=utf-8" }},
		{webRoute + "  headers: {x-team: a b, X-Token: 'k $$1 ${TOKEN}/${OTHER}'}", func(r *config.Route) {
			r.HTTP.Headers = map[string]config.Secret{"X-Team": "a b", "X-Token": "k $1 " + marker + "/x"}
		}},
		{webRoute + "  headers: {Authorization: '${TOKEN}'}", func(r *config.Route) {
			r.HTTP.Headers = map[string]config.Secret{"Authorization": marker}
		}},
		{webRoute + "  authorization_file: " + writeFile(t, "Key abc\r\n"), func(r *config.Route) { r.HTTP.Authorization = "Key abc" }},
		{webRoute + "  basic_auth: {username: u, password: '${TOKEN}'}", func(r *config.Route) { r.HTTP.Authorization = "Basic dTpIdW50ZXIyTUFSS0VS" }},
		{webRoute + "  basic_auth: {username: u}", func(r *config.Route) { r.HTTP.Authorization = "Basic dTo=" }},
		{webRoute + "  bearer: ${TOKEN}", func(r *config.Route) { r.HTTP.Authorization = "Bearer " + marker }},
		{webRoute + "  signing_secrets_file: " + writeFile(t, signingSecret+"\n"+signingSecret+"\n"), func(r *config.Route) {
			r.HTTP.SigningSecrets = secrets(t, signingSecret+" "+signingSecret)
		}},
		{webRoute + "  tls: {server_name: n, min_version: 1.3}", func(r *config.Route) {
			r.HTTP.TLS = config.TLS{ServerName: "n", MinVersion: 0x304}
		}},
		{webRoute + "  proxy: http://u:p@proxy:3128/", func(r *config.Route) { r.HTTP.Proxy = "http://u:p@proxy:3128/" }},
		{webRoute + "  deny_private: true", func(r *config.Route) { r.HTTP.DenyPrivate = true }},
		{webRoute + "  concurrency: 64", func(r *config.Route) { r.Concurrency = 64 }},
		{webRoute + "  concurrency: '64'", func(r *config.Route) { r.Concurrency = 64 }},
		{webRoute + "  rate: {limit: 100}", func(r *config.Route) { r.Rate = config.Rate{Limit: 100, Per: time.Second, Burst: 100} }},
		{webRoute + "  rate: {limit: 100, per: 1m, burst: 20}", func(r *config.Route) { r.Rate = config.Rate{Limit: 100, Per: time.Minute, Burst: 20} }},
		{webRoute + "  timeout: 1m30s", func(r *config.Route) { r.Timeout = 90 * time.Second }},
		{webRoute + "  ordered: true", func(r *config.Route) { r.Ordered, r.Concurrency = true, 1 }},
		{webRoute + "  ordered: true\n  concurrency: 64", func(r *config.Route) { r.Ordered, r.Concurrency = true, 1 }},
		{webRoute + "  connect_timeout: 20s", func(r *config.Route) { r.HTTP.ConnectTimeout = second }},
		{webRoute + "  quick_retries: 0", func(r *config.Route) { r.HTTP.QuickRetries = 0 }},
		{webRoute + "  retry: {max_attempts: 0, max_age: 0, base: 20s, cap: 20s}", func(r *config.Route) {
			r.Retry.MaxAttempts, r.Retry.MaxAge, r.Retry.BackoffBase, r.Retry.BackoffCap = 0, 0, second, second
		}},
		{webRoute + "  retry: {schedule: [0s, 20s, 2h]}", func(r *config.Route) {
			r.Retry.Schedule = []time.Duration{0, second, 2 * time.Hour}
		}},
		{webRoute + "  success: [200-299, 304]", func(r *config.Route) {
			r.HTTP.Success = []config.StatusRange{{Low: 200, High: 299}, {Low: 304, High: 304}}
		}},
		{webRoute + "  reject: [400, 410]", func(r *config.Route) { r.HTTP.Reject = []int{400, 410} }},
		{webRoute + "  reject: []", func(*config.Route) {}},
		{webRoute + "  breaker: off", func(r *config.Route) { r.Breaker = config.Breaker{} }},
		{webRoute + "  breaker: {consecutive: 1}", func(r *config.Route) { r.Breaker.Consecutive = 1 }},
		{webRoute + "  breaker: {pause: 20s}", func(r *config.Route) { r.Breaker.Pause = second }},
		{webRoute + "  require_ack: true", func(r *config.Route) { r.HTTP.RequireAck = true }},
		{webRoute + "  compat: aws-sqsd", func(r *config.Route) { r.HTTP.Compat = config.CompatSQSD }},
		{webRoute + "  compat: cloudevents", func(r *config.Route) { r.HTTP.Compat = config.CompatCloudEvents }},

		{lambdaRoute, func(*config.Route) {}},
		{lambdaRoute + "  region: eu-west-1", func(r *config.Route) { r.Target.Lambda.Region = "eu-west-1" }},
		{lambdaRoute + "  invoke: async", func(r *config.Route) { r.Invocation.Async = true }},
		{lambdaRoute + "  payload: envelope", func(r *config.Route) { r.Invocation.Payload = config.PayloadEnvelope }},
		{lambdaRoute + "  payload: sqs-event\n  batch: {size: 10, wait: 100ms}", func(r *config.Route) {
			r.Invocation = config.Invocation{Payload: config.PayloadSQSEvent, BatchSize: 10, BatchWait: 100 * time.Millisecond}
		}},
		{lambdaRoute + "  timeout: 20s\n  rate: {limit: 1}", func(r *config.Route) { r.Rate = config.Rate{Limit: 1, Per: time.Second, Burst: 1} }},

		// What is neither a number nor a boolean is taken as the text that was written.
		{strings.Replace(webRoute, "queue: a", "queue: 010", 1), func(r *config.Route) { r.Queue = "010" }},
		{strings.Replace(webRoute, "queue: a", "queue: no", 1), func(r *config.Route) { r.Queue = "no" }},
		{strings.Replace(webRoute, "queue: a", "queue: 'null'", 1), func(r *config.Route) { r.Queue = "null" }},
		{strings.Replace(webRoute, "queue: a", "queue: a # first", 1), func(*config.Route) {}},
		{"\ufeff" + webRoute, func(*config.Route) {}},
		{"---\r\n" + strings.ReplaceAll(webRoute, "\n", "\r\n"), func(*config.Route) {}},
	}
	d := base(t)
	target := map[bool]config.Target{}
	for _, file := range []string{webRoute, lambdaRoute} {
		all, err := config.ParseRoutes("routes.yaml", []byte(file), d, environment)
		if err != nil {
			t.Fatal(err)
		}
		target[all[0].Target.URL == nil] = all[0].Target
	}
	for _, tt := range tests {
		got, err := config.ParseRoutes("routes.yaml", []byte(tt.file), d, environment)
		if err != nil {
			t.Errorf("%s\n%v", tt.file, err)
			continue
		}
		want := d.NewRoute("a", target[strings.Contains(tt.file, "lambda:")])
		tt.want(&want)
		if d := cmp.Diff([]config.Route{want}, got, sameSecrets()); d != "" {
			t.Errorf("%s\n(-want +got)\n%s", tt.file, d)
		}
	}
}

// The file's defaults win over the environment, and the route's own values over both.
func TestRoutesFileDefaults(t *testing.T) {
	setenv(t, map[string]string{
		"DISPATCHER_CONCURRENCY": "5", "DISPATCHER_TIMEOUT": "7s", "DISPATCHER_MAX_ATTEMPTS": "3",
		"DISPATCHER_BACKOFF_BASE": "2s", "DISPATCHER_SIGNING_SECRET": signingSecret,
	})
	d, err := config.LoadDispatcher()
	if err != nil {
		t.Fatal(err)
	}
	all, err := config.ParseRoutes("routes.yaml", []byte(`
defaults:
  timeout: 8s
  method: PUT
  region: eu-west-1
  bearer: abc
  headers: {X-A: a, X-B: b}
  retry: {max_age: 1h, base: 3s}
  success: [204]
  breaker: off
  payload: envelope
  tls: {server_name: n}
  batch: {size: 2}
routes:
- {queue: a, url: https://h}
- queue: b
  url: http://u:p@h
  timeout: 9s
  headers: {x-b: c, X-C: d}
  retry: {schedule: [1s]}
  success: [200-299]
  breaker: {pause: 1s}
- {queue: c, url: https://h, headers: {Authorization: z}, method: POST}
- {queue: d, lambda: "f:1", region: us-east-1, payload: sqs-event}
- {queue: e, lambda: f, ordered: true}
- {queue: f, lambda: "arn:aws:lambda:eu-west-3:123456789012:function:f"}
- {queue: g, url: https://h, headers: {X-B: e}}
`), d, environment)
	if err != nil {
		t.Fatal(err)
	}
	a, b, c, fd, fe, ff, g := all[0], all[1], all[2], all[3], all[4], all[5], all[6]
	for _, check := range []struct {
		name      string
		got, want any
	}{
		{"a", []any{a.Concurrency, a.Timeout, a.HTTP.Method}, []any{5, 8 * time.Second, "PUT"}},
		{"a retry", a.Retry, config.Retry{
			MaxAttempts: 3, MaxAge: time.Hour, BackoffBase: 3 * time.Second, BackoffCap: time.Hour, MaxRetryAfter: time.Hour,
		}},
		{"a headers", a.HTTP.Headers, map[string]config.Secret{"X-A": "a", "X-B": "b"}},
		{"a authorization", a.HTTP.Authorization, config.Secret("Bearer abc")},
		{"a signing", a.HTTP.SigningSecrets, secrets(t, signingSecret)},
		{"a others", []any{a.Breaker, a.HTTP.TLS.ServerName, a.Invocation}, []any{config.Breaker{}, "n", config.Invocation{}}},
		{"b", []any{b.Timeout, b.Retry.Schedule, b.HTTP.Success}, []any{
			9 * time.Second, []time.Duration{time.Second}, []config.StatusRange{{Low: 200, High: 299}},
		}},
		{"b headers", b.HTTP.Headers, map[string]config.Secret{"X-A": "a", "X-B": "c", "X-C": "d"}},
		{"b authorization", b.HTTP.Authorization, config.Secret("")},
		{"b others", []any{b.Breaker, b.HTTP.TLS}, []any{config.Breaker{Consecutive: 20, Pause: time.Second}, config.TLS{}}},
		{"c", []any{c.HTTP.Authorization, c.HTTP.Headers["Authorization"], c.HTTP.Method}, []any{config.Secret(""), config.Secret("z"), "POST"}},
		{"d", []any{fd.Target.Lambda, fd.Invocation, fd.HTTP.Method}, []any{
			config.Lambda{Function: "f", Qualifier: "1", Region: "us-east-1"},
			config.Invocation{Payload: config.PayloadSQSEvent, BatchSize: 2},
			"",
		}},
		{"e", []any{fe.Target.Lambda.Region, fe.Invocation, fe.Concurrency}, []any{
			"eu-west-1", config.Invocation{Payload: config.PayloadEnvelope, BatchSize: 1}, 1,
		}},
		{"f", ff.Target.Lambda.Region, "eu-west-3"},
		{"g", g.HTTP.Headers, map[string]config.Secret{"X-A": "a", "X-B": "e"}},
	} {
		if d := cmp.Diff(check.want, check.got, sameSecrets()); d != "" {
			t.Errorf("%s (-want +got)\n%s", check.name, d)
		}
	}
}

func TestRoutesFileWithoutRoutes(t *testing.T) {
	got, err := config.ParseRoutes("routes.yaml", []byte("routes: []"), base(t), environment)
	if err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
}

// The example that people start from is accepted, except that the files that it names do not exist.
func TestRoutesFileOfTheREADME(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(readme), "```yaml\n")
	example, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("no example")
	}
	_, err = config.ParseRoutes("README.md", []byte(example), base(t), func(string) (string, bool) { return "x", true })
	for _, p := range problems(t, err) {
		if !strings.Contains(p.Text, "_file (queue orders): can't be read: no such file") {
			t.Errorf("%s: %s", p.Name, p.Text)
		}
	}
	if len(problems(t, err)) != 4 {
		t.Errorf("other files than the four that it names: %v", err)
	}
}

// A route's own authorization replaces that of the defaults, whichever way either of them says it.
func TestRoutesFileAuthorizationReplaced(t *testing.T) {
	all, err := config.ParseRoutes("routes.yaml", []byte(`
defaults: {headers: {Authorization: theirs, X-A: a}}
routes:
- {queue: a, url: https://h, bearer: own}
- {queue: b, url: "https://u:p@h"}
- {queue: c, url: https://h}
`), base(t), environment)
	if err != nil {
		t.Fatal(err)
	}
	kept := map[string]config.Secret{"X-A": "a"}
	want := []config.HTTP{
		{Authorization: "Bearer own", Headers: kept},
		{Headers: kept},
		{Headers: map[string]config.Secret{"X-A": "a", "Authorization": "theirs"}},
	}
	var got []config.HTTP
	for _, r := range all {
		got = append(got, config.HTTP{Authorization: r.HTTP.Authorization, Headers: r.HTTP.Headers})
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}
