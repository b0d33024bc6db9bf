package config_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/queuehook/queuehook/config"
)

// FuzzParseRoutesFile: whatever a file holds, the result is complete routes, or an *Error in which each problem is one
// line with the file's name and a line number of the file; the values of variables show nowhere.
func FuzzParseRoutesFile(f *testing.F) {
	for _, seed := range []string{
		webRoute, lambdaRoute, webRoute + "  bearer: ${TOKEN}", webRoute + "  headers: {X-A: 'a ${TOKEN}'}\n  timeout: 5",
		webRoute + "  basic_auth: {username: u, password: '${TOKEN}'}\n  breaker: off\n  success: [200-299, 304]",
		webRoute + "  retry: {schedule: [1s, 2s]}\n  rate: {limit: 1, per: 1s}\n  tls: {server_name: x}\n  proxy: http://h",
		lambdaRoute + "  payload: sqs-event\n  batch: {size: 10, wait: 100ms}\n  region: eu-west-1",
		"defaults: {timeout: 5s, headers: {A: b}}\nroutes: []", "a: &x [*x]", "a: *x", "? [a]\n: b", "--- a\n--- b", "a: |\n  b", "{", "\t",
		"routes:\n- queue: a\n  url: \"https://h\"\n  reject: [410]\n  success:\n  - 20", "%YAML 1.1\n---\nroutes: []", "a: b\rc: d",
	} {
		f.Add(seed)
	}
	base := config.Dispatcher{Concurrency: 1, Timeout: 1, Retry: config.Retry{BackoffBase: 1, BackoffCap: 1}}
	f.Fuzz(func(t *testing.T, file string) {
		if strings.Contains(file, "_file") || strings.Contains(file, "secrets") {
			t.Skip("would read any file there is")
		}
		parse := func() ([]config.Route, error) {
			return config.ParseRoutes("f", []byte(file), base, func(string) (string, bool) { return marker, true })
		}
		routes, err := parse()
		again, errAgain := parse()
		if !reflect.DeepEqual(routes, again) || !reflect.DeepEqual(err, errAgain) {
			t.Errorf("two answers for one file: %v and %v, %v and %v", routes, again, err, errAgain)
		}
		if strings.Contains(file, marker) {
			return
		}
		if err != nil {
			all := problems(t, err)
			if len(routes) > 0 || len(all) == 0 || len(strings.Split(err.Error(), "\n")) != len(all) {
				t.Errorf("%d routes, %d problems:\n%v", len(routes), len(all), err)
			}
			if strings.Contains(err.Error(), marker) {
				t.Errorf("shows a secret: %v", err)
			}
			return
		}
		seen := make(map[string]bool)
		for _, r := range routes {
			if r.Queue == "" || seen[r.Queue] || (r.Target.URL == nil) == (r.Target.Lambda.Function == "") {
				t.Errorf("incomplete, or twice: %+v", r)
			}
			seen[r.Queue] = true
			if r.Concurrency < 1 || r.Timeout <= 0 || r.Retry.Schedule == nil && r.Retry.BackoffBase > r.Retry.BackoffCap {
				t.Errorf("cannot be served: %+v", r)
			}
			if (r.Target.URL == nil) != (r.HTTP.Method == "") || (r.Target.URL == nil) != (r.Invocation.Payload != "") {
				t.Errorf("of two kinds: %+v", r)
			}
		}
	})
}
