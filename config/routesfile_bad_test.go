package config_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/queuehook/queuehook/config"
)

// One fault at a time: one problem, with its line and its key.
func TestRoutesFileRefuses(t *testing.T) {
	const at = "routes[0].%s (queue a): "
	missing := t.TempDir() + "/missing"
	tests := []struct {
		file string // a route begins on line 2, its first key of interest on line 4
		line int
		key  string // of the route, for the prefix above; empty = text has it
		text string
	}{
		{webRoute + "  method: GET", 4, "method", `"GET" is not accepted; want POST, PUT, PATCH`},
		{webRoute + "  method: post", 4, "method", `"post" is not accepted`},
		{webRoute + "  content_type: \"a\\nb\"", 4, "content_type", "is not a legal header value"},
		{webRoute + "  content_type:", 4, "content_type", "has no value; want a media type"},
		{webRoute + "  content_type: ''", 4, "content_type", "has no value"},
		{webRoute + "  content_type: ~", 4, "content_type", "has no value"},
		{webRoute + "  content_type: [a]", 4, "content_type", "is not a single value"},
		{webRoute + "  headers: x", 4, "", "routes[0].headers (queue a): is not a mapping"},
		{webRoute + "  headers:", 4, "headers", "has no value"},
		{webRoute + "  headers:\n    X-A: ${NONE}", 5, "headers.X-A", `names the variable "NONE", which is not set`},
		{webRoute + "  headers:\n    X-A: ${EMPTY}", 5, "headers.X-A", `names the variable "EMPTY", which is set but empty`},
		{webRoute + "  headers:\n    X-A: ${BROKEN}", 5, "headers.X-A", "is not a legal header value"},
		{webRoute + "  headers:\n    X-A: $" + marker, 5, "headers.X-A", "has a $ that begins no ${NAME}"},
		{webRoute + "  headers:\n    X-A: a${TOKEN", 5, "headers.X-A", "has a $ that begins no ${NAME}"},
		{webRoute + "  headers:\n    X-A: a$", 5, "headers.X-A", "has a $ that begins no ${NAME}"},
		{webRoute + "  headers:\n    '${TOKEN}': a", 5, "headers", "has an illegal name"},
		{webRoute + "  headers:\n    X-A: 1\n    x-a: 2", 6, "headers.x-a", "is given twice"},
		{webRoute + "  headers:\n    dispatch-x: 1", 5, "headers.dispatch-x", "is not for a route to set"},
		{webRoute + "  headers:\n    Host: 1", 5, "headers.Host", "is not for a route to set"},
		{webRoute + "  headers:\n    X-A: [" + marker + "]", 5, "headers.X-A", "is not a single value"},
		{webRoute + "  authorization_file: " + missing, 4, "authorization_file", "can't be read: no such file or directory; want "},
		{webRoute + "  authorization_file: " + writeFile(t, ""), 4, "authorization_file", "names an empty file"},
		{webRoute + "  authorization_file: " + writeFile(t, "\n"), 4, "authorization_file", "names a file whose content is not a legal"},
		{webRoute + "  authorization_file: " + writeFile(t, marker+"\n"+marker), 4, "authorization_file", "names a file whose content is not a legal"},
		{webRoute + "  authorization_file: /dev/zero", 4, "authorization_file", "can't be read: larger than 1 MiB"},
		{webRoute + "  basic_auth: u:" + marker, 4, "", "routes[0].basic_auth (queue a): is not a mapping"},
		{webRoute + "  basic_auth: {password: " + marker + "}", 4, "basic_auth.username", "is missing"},
		{webRoute + "  basic_auth: {username: 'u:v'}", 4, "basic_auth.username", "has a colon"},
		{webRoute + "  basic_auth: {username: u, pasword: " + marker + "}", 4, "basic_auth.pasword", "no such key; did you mean password?"},
		{webRoute + "  bearer: Bearer " + marker, 4, "bearer", "is not a token"},
		{webRoute + "  bearer: *" + marker, 4, "", "has an alias without an anchor"},
		{webRoute + "  bearer: !" + marker, 4, "", "has a tag; want no tags"},
		{webRoute + "  bearer: abc\n  authorization_file: " + writeFile(t, "x"), 5, "authorization_file", "does not go with bearer; want only one of the two"},
		{webRoute + "  bearer: abc\n  headers: {authorization: x}", 4, "bearer", "does not go with a header Authorization"},
		{strings.Replace(webRoute, "h.ex", "u:"+marker+"@h.ex", 1) + "  bearer: abc", 4, "bearer", "does not go with a user in the URL"},
		{strings.Replace(webRoute, "h.ex", "u:"+marker+"@h.ex", 1) + "  headers: {Authorization: abc}", 4, "headers", "has an Authorization beside a user"},
		{webRoute + "  signing_secrets_file: " + missing, 4, "signing_secrets_file", "can't be read"},
		{webRoute + "  signing_secrets_file: " + writeFile(t, signingSecret+" "+marker), 4, "signing_secrets_file", "names a file that has no whsec_ before secret 2"},
		{webRoute + "  tls:\n    ca_file: " + missing, 5, "tls.ca_file", "can't be read"},
		{webRoute + "  tls:\n    ca_file: " + writeFile(t, marker), 5, "tls.ca_file", "names a file without a certificate in it"},
		{webRoute + "  tls:\n    cert_file: " + writeFile(t, "x"), 5, "tls.cert_file", "is given without key_file"},
		{webRoute + "  tls:\n    cert_file: " + writeFile(t, "x") + "\n    key_file: " + writeFile(t, marker), 5, "tls.cert_file", "does not go with key_file"},
		{webRoute + "  tls: {min_version: 1.1}", 4, "tls.min_version", `"1.1" is not accepted; want 1.2, 1.3`},
		{strings.Replace(webRoute, "https", "http", 1) + "  tls: {server_name: n}", 4, "tls", "is for an https URL"},
		{webRoute + "  proxy: proxy:3128", 4, "proxy", "is not a URL with a host"},
		{webRoute + "  proxy: http://u:" + marker + "@:1", 4, "proxy", "is not a URL with a host"},
		{webRoute + "  proxy: ftp://" + marker, 4, "proxy", "has a URL of an unknown kind"},
		{webRoute + "  proxy: http://h/" + marker, 4, "proxy", "has more than user, host and port"},
		{webRoute + "  proxy: http://h:99999", 4, "proxy", "is not a URL with a host"},
		{webRoute + "  proxy: http://h\n  deny_private: true", 5, "deny_private", "does not go with proxy"},
		{strings.Replace(webRoute, "h.example", "127.1", 1) + "  deny_private: true", 3, "url", "has a host that is an address in an unusual form, which deny_private forbids; want a public address"},
		{strings.Replace(webRoute, "h.example", "2130706433", 1) + "  deny_private: true", 3, "url", "has a host that is an address in an unusual form"},
		{strings.Replace(webRoute, "h.example", "[::ffff:127.0.0.1]", 1) + "  deny_private: true", 3, "url", "has a host that is a private address"},
		{strings.Replace(webRoute, "h.example", "u:"+marker+"@localhost.", 1) + "  deny_private: true", 3, "url", "has a host that is this host"},
		{"defaults: {deny_private: true}\n" + strings.Replace(webRoute, "h.example", "10.0.0.1", 1), 4, "url", "has a host that is a private address"},
		{webRoute + "  deny_private: true\n  proxy: http://h", 5, "proxy", "does not go with deny_private"},
		{"defaults: {deny_private: true}\n" + webRoute + "  proxy: http://h", 5, "proxy", "does not go with deny_private of the defaults"},
		{"defaults: {proxy: 'http://h'}\n" + webRoute + "  deny_private: true", 5, "deny_private", "does not go with proxy of the defaults"},
		{"defaults: {proxy: 'http://h', deny_private: true}\n" + webRoute, 1, "", "defaults.deny_private: does not go with proxy"},
		{webRoute + "  deny_private: yes", 4, "deny_private", `"yes" is neither true nor false`},
		{webRoute + "  deny_private: on", 4, "deny_private", `"on" is neither true nor false`},
		{webRoute + "  deny_private: True", 4, "deny_private", `"True" is neither true nor false`},
		{webRoute + "  concurrency: 0", 4, "concurrency", `"0" is out of range; want a decimal number from 1 to 65535`},
		{webRoute + "  concurrency: 010", 4, "concurrency", `"010" is not a decimal number`},
		{webRoute + "  concurrency: 0o10", 4, "concurrency", "is not a decimal number"},
		{webRoute + "  concurrency: 1_000", 4, "concurrency", "is not a decimal number"},
		{webRoute + "  concurrency: +5", 4, "concurrency", "is not a decimal number"},
		{webRoute + "  concurrency: 1e3", 4, "concurrency", "is not a decimal number"},
		{webRoute + "  concurrency: 99999999999999999999", 4, "concurrency", "is out of range"},
		{webRoute + "  concurrency: -1", 4, "concurrency", "is out of range"},
		{webRoute + "  rate: 100", 4, "", "routes[0].rate (queue a): is not a mapping"},
		{webRoute + "  rate: {per: 1s}", 4, "rate.limit", "is missing"},
		{webRoute + "  rate: {limit: 0}", 4, "rate.limit", "is out of range"},
		{webRoute + "  rate: {limit: 1, per: 25h}", 4, "rate.per", "is out of range"},
		{webRoute + "  rate: {limit: 1, burst: 0}", 4, "rate.burst", "is out of range"},
		{webRoute + "  timeout: 20", 4, "timeout", `"20" has no unit; want a Go duration such as 20s or 1h30m, at least 1ms`},
		{webRoute + "  timeout: abc", 4, "timeout", `"abc" is not a duration`},
		{webRoute + "  timeout: 0s", 4, "timeout", `"0s" is out of range`},
		{webRoute + "  timeout: 1:30", 4, "timeout", `"1:30" is not a duration`},
		{webRoute + "  timout: 20s", 4, "timout", "no such key; did you mean timeout?"},
		{webRoute + "  frobnicate: 20s", 4, "frobnicate", "no such key; want one of authorization_file, basic_auth, batch, "},
		{webRoute + "  'x y': 20s", 4, `"x y"`, "no such key"},
		{webRoute + "  ordered: 1", 4, "ordered", "is neither true nor false"},
		{webRoute + "  connect_timeout: -1s", 4, "connect_timeout", "is out of range"},
		{webRoute + "  quick_retries: 11", 4, "quick_retries", "is out of range"},
		{webRoute + "  retry: {max_attempts: -1}", 4, "retry.max_attempts", "is out of range"},
		{webRoute + "  retry: {max_age: 1us}", 4, "retry.max_age", "is out of range"},
		{webRoute + "  retry: {base: 2h}", 4, "retry", "has a base of 2h0m0s above the cap of 1h0m0s"},
		{webRoute + "  retry: {base: 1s, schedule: [1s]}", 4, "retry.base", "does not go with schedule"},
		{webRoute + "  retry:\n    cap: 1s\n    schedule: [1s]", 6, "retry.schedule", "does not go with cap"},
		{webRoute + "  retry: {schedule: 1s}", 4, "retry.schedule", "is not a list"},
		{webRoute + "  retry: {schedule: []}", 4, "retry.schedule", "has 0 delays"},
		{webRoute + "  retry:\n    schedule:\n    - 1s\n    - 5", 7, "retry.schedule[1]", `"5" has no unit`},
		{webRoute + "  retry:\n    schedule:\n    - [1s]", 6, "retry.schedule[0]", "is not a single value"},
		{webRoute + "  success: 200-299", 4, "success", "is not a list; want a list of statuses from 200 to 999 and ranges such as 200-299"},
		{webRoute + "  success: []", 4, "success", "is an empty list"},
		{webRoute + "  success: [299-200]", 4, "success[0]", `"299-200" is not a status`},
		{webRoute + "  success: [100]", 4, "success[0]", "is not a status"},
		{webRoute + "  success: [20x]", 4, "success[0]", "is not a status"},
		{webRoute + "  success: [200 - 299]", 4, "success[0]", "is not a status"},
		{webRoute + "  success:\n  - 200\n  - ~", 6, "success[1]", "is not a single value"},
		{webRoute + "  reject: [400-499]", 4, "reject[0]", `"400-499" is not a status`},
		{webRoute + "  reject: [204]", 4, "reject", "makes 204 a success and a rejection"},
		{webRoute + "  success: [200-499]\n  reject: [410]", 5, "reject", "makes 410 a success and a rejection"},
		{webRoute + "  breaker: false", 4, "breaker", `"false" is not off; want off, or a mapping`},
		{webRoute + "  breaker: {consecutive: 0}", 4, "breaker.consecutive", "is out of range"},
		{webRoute + "  breaker: {pause: 1}", 4, "breaker.pause", "has no unit"},
		{webRoute + "  require_ack: ok", 4, "require_ack", "is neither true nor false"},
		{webRoute + "  compat: sqsd", 4, "compat", `"sqsd" is not accepted; want aws-sqsd, cloudevents`},
		{webRoute + "  lambda: f", 4, "lambda", "does not go with url; want only one of the two"},
		{webRoute + "  region: eu-west-1", 4, "region", "is for a Lambda function; want it with lambda only"},
		{webRoute + "  batch: {size: 1}", 4, "batch", "is for a Lambda function"},

		{lambdaRoute + "  method: POST", 4, "method", "is for an HTTP endpoint; want it with url only"},
		{lambdaRoute + "  proxy: http://h", 4, "proxy", "is for an HTTP endpoint"},
		{lambdaRoute + "  region: Ireland", 4, "region", `"Ireland" is not a region`},
		{"routes:\n- queue: a\n  lambda: arn:aws:lambda:eu-west-3:123456789012:function:f\n  region: eu-west-1", 4, "region", "is not the one of the ARN"},
		{lambdaRoute + "  invoke: later", 4, "invoke", "is not accepted; want sync, async"},
		{lambdaRoute + "  payload: sqs", 4, "payload", "is not accepted"},
		{lambdaRoute + "  batch: {size: 2}", 4, "batch", "is for one form of payload; want payload: sqs-event with it"},
		{lambdaRoute + "  payload: sqs-event\n  batch: {wait: 1s}", 5, "batch.size", "is missing"},
		{lambdaRoute + "  payload: sqs-event\n  batch: {size: 10001}", 5, "batch.size", "is out of range"},
		{lambdaRoute + "  payload: sqs-event\n  ordered: true\n  batch: {size: 2}", 6, "batch", "is above 1 in an ordered route"},

		{"routes:\n- url: https://h", 2, "", "routes[0].queue: is missing"},
		{"routes:\n- queue: a", 2, "", "routes[0] (queue a): has no target; want url or lambda"},
		{"routes:\n- queue: a b\n  url: https://h", 2, "", `routes[0].queue (queue "a b"): bad queue name`},
		{"routes:\n- queue: [a]\n  url: https://h", 2, "", "routes[0].queue: is not a single value"},
		{"routes:\n- queue: a\n  url: ftp://" + marker, 3, "url", "is not an http or https URL"},
		{"routes:\n- queue: a\n  url: lambda:f", 3, "url", "is not an http or https URL"},
		{"routes:\n- queue: a\n  url: https://h/${TOKEN}", 3, "url", "has a URL with characters in it that must be"},
		{"routes:\n- queue: a\n  url: https://h/?t=${TOKEN}", 3, "url", "has a URL with characters in it that must be"},
		{"routes:\n- queue: a\n  url: https://u:" + marker + "/@h", 3, "url", "has a bad URL"},
		{"routes:\n- queue: a\n  url: https://h:0x50/", 3, "url", "has a bad URL"},
		{"routes:\n- queue: a\n  lambda: a/b", 3, "lambda", "has a bad Lambda function name"},
		{"routes:\n- queue: a\n  url: https://h\n- queue: a\n  url: https://i", 4, "", "routes[1].queue (queue a): has a route in routes[0] (line 2), too; want one route per queue"},
		{"routes:\n- a", 2, "", "routes[0]: is not a mapping"},
		{"routes:\n  a: b", 1, "", "routes: is not a list; want a list of routes, or [] for none"},
		{"routes:", 1, "", "routes: has no value"},
		{"defaults: {timeout: 5s}", 1, "", "routes: is missing"},
		{"defaults: {url: 'https://h'}\nroutes: []", 1, "", "defaults.url: is not for all routes"},
		{"defaults: {timout: 5s}\nroutes: []", 1, "", "defaults.timout: no such key; did you mean timeout?"},
		{"defaults: {retry: {base: 2h}}\nroutes: [{queue: a, url: 'http://h', retry: {max_age: 1h}}]", 1, "", "defaults.retry: has a base"},
		{"routes: []\nroute: []", 2, "", "route: no such key; did you mean routes?"},
	}
	d := base(t)
	for _, tt := range tests {
		where := ""
		if tt.key != "" {
			where = fmt.Sprintf(at, tt.key)
		}
		_, err := config.ParseRoutes("routes.yaml", []byte(tt.file), d, environment)
		got := problems(t, err)
		if len(got) != 1 || got[0].Name != fmt.Sprintf("routes.yaml:%d", tt.line) || !strings.HasPrefix(got[0].Text, where) ||
			!strings.Contains(got[0].Text, tt.text) {
			t.Errorf("%s\n got %v\nwant routes.yaml:%d: %s%s", tt.file, err, tt.line, where, tt.text)
		}
		if err != nil && strings.Contains(err.Error(), marker) {
			t.Errorf("%s\nshows a secret: %v", tt.file, err)
		}
	}
}

// What YAML itself does not allow, and what we do not.
func TestRoutesFileIsPlainYAML(t *testing.T) {
	tests := []struct{ file, want string }{
		{"", "routes.yaml:1: is empty; want routes: with a list, or routes: [] for none"},
		{"# nothing\n", "routes.yaml:1: is empty; want routes: with a list, or routes: [] for none"},
		{"~", "routes.yaml:1: is not a mapping; want key: value pairs"},
		{"[]", "routes.yaml:1: is not a mapping; want key: value pairs"},
		{"routes: []\nroutes: []", "routes.yaml:2: routes: stands at line 1, too; want each key once"},
		{"routes: []\n---\nroutes: []", "routes.yaml:2: begins another document; want one document"},
		{"routes: []\n---\n", "routes.yaml:2: begins another document; want one document"},
		{"routes: []\n--- [", "routes.yaml:2: is not YAML: did not find expected node content; want YAML, indented by spaces"},
		{"routes:\n- queue: a\n\turl: b", "routes.yaml:3: is not YAML: found a tab character that violates indentation, in what begins at line 2; want YAML, indented by spaces"},
		{"routes:\n- queue: a\n  url: b\n lambda: c", "routes.yaml:4: is not YAML: did not find expected key, in what begins at line 1; want YAML, indented by spaces"},
		{"routes:\n- queue: 'a", "routes.yaml:2: is not YAML: found unexpected end of stream; want YAML, indented by spaces"},
		{"routes: []\na: \xff", "routes.yaml:2: is not plain UTF-8 text; want UTF-8 without control characters"},
		{"routes: []\na: \x00", "routes.yaml:2: is not plain UTF-8 text; want UTF-8 without control characters"},
		{"\xff\xfer\x00", "routes.yaml:1: is not plain UTF-8 text; want UTF-8 without control characters"},
		{"a: &x [1]\nroutes: []", "routes.yaml:1: has an anchor; want no anchors: what routes share goes into defaults"},
		{
			"a: &x [1]\nroutes: *x",
			"routes.yaml:1: has an anchor; want no anchors: what routes share goes into defaults\n" +
				"routes.yaml:2: has an alias; want no aliases: what routes share goes into defaults",
		},
		{"routes: !!seq []", "routes.yaml:1: has a tag; want no tags, and quotes around a text that begins with !"},
		{"routes: []\n? [a]\n: b", "routes.yaml:2: has a key that is not text; want key: value pairs"},
		{"routes: []\n<<: {a: b}", `routes.yaml:2: "<<": no such key; want one of defaults, routes`},
		{
			"a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nroutes: []",
			"routes.yaml:1: has an anchor; want no anchors: what routes share goes into defaults\n" +
				"routes.yaml:2: has an anchor; want no anchors: what routes share goes into defaults" +
				strings.Repeat("\nroutes.yaml:2: has an alias; want no aliases: what routes share goes into defaults", 9),
		},
	}
	for _, tt := range tests {
		_, err := config.ParseRoutes("routes.yaml", []byte(tt.file), config.Dispatcher{}, environment)
		if err == nil {
			t.Errorf("%q: accepted", tt.file)
			continue
		}
		if d := cmp.Diff(tt.want, err.Error()); d != "" {
			t.Errorf("%q (-want +got)\n%s", tt.file, d)
		}
	}
}

func TestRoutesFileAllProblemsAtOnce(t *testing.T) {
	_, err := config.ParseRoutes("routes.yaml", []byte(`defaults:
  timeout: 20
routes:
- queue: a
  url: ftp://x
  method: GET
- queue: b
  lambda: f
  method: POST
  colour: red
- queue: a
  url: https://h
  retry:
    schedule: [1, 2s]
    cap: 1s
- queue: c
  url: http://127.1
  deny_private: true
`), base(t), environment)
	want := `routes.yaml:2: defaults.timeout: "20" has no unit; want a Go duration such as 20s or 1h30m, at least 1ms
routes.yaml:5: routes[0].url (queue a): is not an http or https URL; want an absolute http or https URL
routes.yaml:6: routes[0].method (queue a): "GET" is not accepted; want POST, PUT, PATCH
routes.yaml:9: routes[1].method (queue b): is for an HTTP endpoint; want it with url only
routes.yaml:10: routes[1].colour (queue b): no such key; want one of `
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Fatalf("got\n%v\nwant\n%s", err, want)
	}
	tail := strings.Split(err.Error(), "\n")[5:]
	wantTail := []string{
		"routes.yaml:11: routes[2].queue (queue a): has a route in routes[0] (line 4), too; want one route per queue",
		`routes.yaml:14: routes[2].retry.schedule[0] (queue a): "1" has no unit; want a Go duration such as 20s or 1h30m, 0 or at least 1ms`,
		"routes.yaml:15: routes[2].retry.cap (queue a): does not go with schedule; want only one of the two",
		"routes.yaml:17: routes[3].url (queue c): has a host that is an address in an unusual form, which deny_private forbids; want " +
			"a public address as four decimal numbers or IPv6, or a name, which is judged at each connection",
	}
	if d := cmp.Diff(wantTail, tail); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}
