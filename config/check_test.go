package config_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/queuehook/queuehook/config"
)

// One variable at a time: which values are accepted, and what the problem's text says about the others.
func TestValues(t *testing.T) {
	tests := []struct{ name, value, wrong string }{
		{"TIMEOUT", "20s", ""},
		{"TIMEOUT", "1ms", ""},
		{"TIMEOUT", "20", `"20" has no unit`},
		{"TIMEOUT", "-1", `"-1" has no unit`},
		{"TIMEOUT", "-1s", `"-1s" is out of range`},
		{"TIMEOUT", "abc", `"abc" is not a duration`},
		{"TIMEOUT", "", "is set but empty"},
		{"TIMEOUT", " 20s", `" 20s" is not a duration`},
		{"TIMEOUT", "0", `"0" is out of range`},
		{"TIMEOUT", "1us", `"1us" is out of range`},
		{"TIMEOUT", "9999999h", "is not a duration"},
		{"MAX_AGE", "0", ""},
		{"MAX_AGE", "500us", "is out of range"},
		{"MAX_AGE", "-1h", "is out of range"},
		{"BACKOFF_BASE", "1h", ""},
		{"BACKOFF_BASE", "2h", "2h0m0s is above DISPATCHER_BACKOFF_CAP, which is 1h0m0s"},
		{"BACKOFF_CAP", "0s", "is out of range"},
		{"MAX_RETRY_AFTER", "0", "is out of range"},
		{"HEARTBEAT_INTERVAL", "10ms", ""},
		{"HEARTBEAT_INTERVAL", "9ms", "from 10ms to 1h0m0s"},
		{"HEARTBEAT_INTERVAL", "61m", "is out of range"},
		{"SHUTDOWN_GRACE", "0", ""},
		{"SHUTDOWN_GRACE", "-0.5s", "is out of range"},

		{"CONCURRENCY", "65535", ""},
		{"CONCURRENCY", "0", `"0" is out of range; want a decimal number from 1 to 65535`},
		{"CONCURRENCY", "65536", "is out of range"},
		{"CONCURRENCY", "99999999999999999999", "is out of range"},
		{"CONCURRENCY", "0x10", "is not a decimal number"},
		{"CONCURRENCY", "1e3", "is not a decimal number"},
		{"CONCURRENCY", strings.Repeat("9x", 500), `9x"... is not a decimal number`},
		{"MAX_ATTEMPTS", "0", ""},
		{"MAX_ATTEMPTS", "-1", "is out of range"},
		{"CRASH_LIMIT", "0", "is out of range"},

		{"JANITOR", "1", ""},
		{"JANITOR", "no", `"no" is neither true nor false; want true or false`},
		{"JANITOR", "", "is set but empty"},

		{"ADMIN_ADDR", "", ""},
		{"ADMIN_ADDR", "[::1]:0", ""},
		{"ADMIN_ADDR", "localhost:65535", ""},
		{"ADMIN_ADDR", "8080", `"8080" is not an address`},
		{"ADMIN_ADDR", "http://localhost:8080", "is not an address"},
		{"ADMIN_ADDR", ":http", "has a bad port"},
		{"ADMIN_ADDR", ":65536", "has a bad port"},
		{"ADMIN_ADDR", ":", "has a bad port"},

		{"LOG_LEVEL", "warn", ""},
		{"LOG_LEVEL", "WARN", `"WARN" is not a level; want debug, info, warn or error`},
		{"LOG_LEVEL", "", "is set but empty"},
		{"LOG_FORMAT", "yaml", "is not a format; want json or text"},
		{"LOG_FORMAT", "", "is set but empty"},

		{"SIGNING_SECRET", signingSecret, ""},
		{"SIGNING_SECRET", signingSecret + "\n" + signingSecret + "\n", ""},
		{"SIGNING_SECRET", " ", "has no secret"},
		{"SIGNING_SECRET", marker, "has no whsec_ before secret 1"},
		{"SIGNING_SECRET", signingSecret + " " + marker, "has no whsec_ before secret 2"},
		{"SIGNING_SECRET", "whsec_" + marker, "has a secret 1 that is not base64"},
		{"SIGNING_SECRET", "whsec_", "has a secret 1 of 0 bytes"},
		{"SIGNING_SECRET", "whsec_SHVudGVyMk1BUktFUg==", "has a secret 1 of 13 bytes"},
		{"SIGNING_SECRET", "whsec_" + strings.Repeat("AAAA", 21) + "AAA=", "has a secret 1 of 65 bytes"},

		{"DEAD_MAX_AGE", "0", ""},
		{"DEAD_MAX_AGE", "30d", `"30d" is not a duration`},
		{"DEAD_MAX_COUNT", "-1", "is out of range"},

		{"ROUTES", "", ""},
		{"ROUTES", " \n ", ""},
		{"ROUTES", "a=http://x b=https://y", ""},
		{"ROUTES", "a=http://x,b=http://x", ""},
		{"ROUTES", "a:dead=http://x", ""},
		{"ROUTES", "{a}:dead=http://x", "ends like a key"},
		{"ROUTES", strings.Repeat("q", 201) + "=http://x", "bad queue name"},
	}
	for _, tt := range tests {
		name := "DISPATCHER_" + tt.name
		setenv(t, map[string]string{name: tt.value})
		_, err := config.LoadDispatcher()
		got := problems(t, err)
		switch {
		case tt.wrong == "" && err != nil:
			t.Errorf("%s=%q: %v", name, tt.value, err)
		case tt.wrong == "":
		case len(got) != 1 || got[0].Name != name:
			t.Errorf("%s=%q: problems %v, want one, of that variable", name, tt.value, got)
		case strings.Contains(err.Error(), marker):
			t.Errorf("%s=%q: %v shows a secret", name, tt.value, err)
		case !strings.Contains(got[0].Text, tt.wrong) || !strings.Contains(got[0].Text, "; want "):
			t.Errorf("%s=%q: %q lacks %q or what is wanted", name, tt.value, got[0].Text, tt.wrong)
		}
	}
}

func TestSetButEmpty(t *testing.T) {
	for _, v := range config.DispatcherVariables() {
		setenv(t, map[string]string{v.Name: ""})
		_, err := config.LoadDispatcher()
		mayBeEmpty := v.Name == "DISPATCHER_ADMIN_ADDR" || v.Name == "DISPATCHER_ROUTES"
		if mayBeEmpty != (err == nil) {
			t.Errorf("%s set to nothing: %v", v.Name, err)
		}
		if err != nil && !strings.HasPrefix(err.Error(), v.Name+": is set but empty; want ") {
			t.Errorf("%s set to nothing: %v", v.Name, err)
		}
	}
	for _, v := range config.JanitorVariables() {
		setenv(t, map[string]string{v.Name: ""})
		if _, err := config.LoadJanitor(); err == nil {
			t.Errorf("%s set to nothing is accepted", v.Name)
		}
	}
}

func TestAllProblemsAtOnce(t *testing.T) {
	setenv(t, map[string]string{
		"DISPATCHER_LOG_LEVEL":   "loud",
		"DISPATCHER_ZZZ":         marker,
		"DISPATCHER_TIMEUOT":     marker,
		"DISPATCHER_CONCURRENCY": "many",
		"DISPATCHER_ROUTES":      "a=http://x a=http://y b c=ftp://" + marker,
		"DISPATCHER_REDIS_URL":   "http://" + marker,
		"DISPATCHER_TIMEOUT":     "20",
	})
	_, err := config.LoadDispatcher()
	want := []string{
		"DISPATCHER_REDIS_URL",
		"DISPATCHER_ROUTES", "DISPATCHER_ROUTES", "DISPATCHER_ROUTES",
		"DISPATCHER_CONCURRENCY",
		"DISPATCHER_TIMEOUT",
		"DISPATCHER_LOG_LEVEL",
		"DISPATCHER_TIMEUOT",
		"DISPATCHER_ZZZ",
	}
	all := problems(t, err)
	if d := cmp.Diff(want, names(all)); d != "" {
		t.Fatalf("(-want +got)\n%s", d)
	}
	if lines := strings.Split(err.Error(), "\n"); len(lines) != len(want) {
		t.Errorf("%d lines for %d problems:\n%s", len(lines), len(want), err)
	}
	if strings.Contains(err.Error(), marker) {
		t.Errorf("shows a secret:\n%s", err)
	}
	if !strings.Contains(err.Error(), "DISPATCHER_TIMEUOT: no such variable; did you mean DISPATCHER_TIMEOUT?") {
		t.Errorf("does not say what was meant:\n%s", err)
	}
}

func TestUnknownNames(t *testing.T) {
	tests := []struct{ name, near string }{
		{"DISPATCHER_TIMEUOT", "DISPATCHER_TIMEOUT"},
		{"DISPATCHER_CONCURENCY", "DISPATCHER_CONCURRENCY"},
		{"DISPATCHER_REDIS_URI", "DISPATCHER_REDIS_URL"},
		{"DISPATCHER_REDISURL", "DISPATCHER_REDIS_URL"},
		{"DISPATCHER_REDIS_PASWORD_FILE", "DISPATCHER_REDIS_PASSWORD_FILE"},
		{"DISPATCHER_timeout", ""},
		{"DISPATCHER_", ""},
		{"DISPATCHER_TOTALLY_DIFFERENT", ""},
		{"DISPATCHER_TIMEOUT_FILE", ""},
		{"DISPATCHER_PORTS", ""},
		{"DISPATCHER_SERVICE_HOSTS", ""},
		{"DISPATCHER_PORT_X_TCP", ""},
		{"DISPATCHER_PORT_80_HTTP", ""},
		{"DISPATCHER_SERVICE_PORTAL", ""},
		{"DISPATCHER_" + strings.Repeat("A", 5000), ""},
	}
	for _, name := range []string{"ADMIN_TOKEN", "BREAKER", "RATE", "JANITOR_LEGACY"} {
		tests = append(tests, struct{ name, near string }{"DISPATCHER_" + name, ""})
	}
	for _, tt := range tests {
		setenv(t, map[string]string{tt.name: marker})
		_, err := config.LoadDispatcher()
		all := problems(t, err)
		if len(all) != 1 {
			t.Errorf("%s: %v, want one problem", tt.name, err)
			continue
		}
		if len(tt.name) < 100 && all[0].Name != tt.name || len(err.Error()) > 200 || strings.Contains(err.Error(), marker) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if tt.near != "" && !strings.HasSuffix(all[0].Text, "did you mean "+tt.near+"?") {
			t.Errorf("%s: %q does not name %s", tt.name, all[0].Text, tt.near)
		}
	}
}

func TestKubernetesServiceLinks(t *testing.T) {
	links := map[string]string{
		"DISPATCHER_SERVICE_HOST":            "10.0.0.1",
		"DISPATCHER_SERVICE_PORT":            "8080",
		"DISPATCHER_SERVICE_PORT_ADMIN":      "8080",
		"DISPATCHER_PORT":                    "tcp://10.0.0.1:8080",
		"DISPATCHER_PORT_8080_TCP":           "tcp://10.0.0.1:8080",
		"DISPATCHER_PORT_8080_TCP_PROTO":     "tcp",
		"DISPATCHER_PORT_8080_TCP_PORT":      "8080",
		"DISPATCHER_PORT_8080_TCP_ADDR":      "10.0.0.1",
		"DISPATCHER_PORT_53_UDP":             "udp://10.0.0.1:53",
		"DISPATCHER_PORT_99_SCTP":            "sctp://10.0.0.1:99",
		"DISPATCHER_REDIS_SERVICE_HOST":      "10.0.0.2",
		"DISPATCHER_REDIS_SERVICE_PORT_MAIN": "6379",
		"DISPATCHER_REDIS_PORT":              "tcp://10.0.0.2:6379",
		"DISPATCHER_REDIS_PORT_6379_TCP":     "tcp://10.0.0.2:6379",
	}
	setenv(t, links)
	d, err := config.LoadDispatcher()
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Warnings) > 0 {
		t.Errorf("warns about what Kubernetes does: %q", d.Warnings)
	}
	for _, v := range append(config.DispatcherVariables(), config.JanitorVariables()...) {
		if strings.HasSuffix(v.Name, "_PORT") || strings.Contains(v.Name, "_SERVICE_") {
			t.Errorf("%s looks like Kubernetes's", v.Name)
		}
	}

	setenv(t, map[string]string{"DISPATCHER_ADMIN_PORT": "9090"})
	d, err = config.LoadDispatcher()
	if err != nil || len(d.Warnings) != 1 || !strings.HasPrefix(d.Warnings[0], "DISPATCHER_ADMIN_PORT: is not a setting") {
		t.Errorf("a port of someone's own: %v, warnings %q", err, d.Warnings)
	}

	setenv(t, map[string]string{"JANITOR_SERVICE_HOST": "10.0.0.1", "JANITOR_GRACES": "1s"})
	if _, err := config.LoadJanitor(); err == nil || err.Error() != "JANITOR_GRACES: no such variable; did you mean JANITOR_GRACE?" {
		t.Errorf("janitor: %v", err)
	}
	setenv(t, map[string]string{"JANITOR_XYZZY": ""})
	if _, err := config.LoadJanitor(); err == nil || !strings.Contains(err.Error(), "want one of those that `lambda-janitor --help` lists") {
		t.Errorf("janitor, nothing near: %v", err)
	}
}

// An *Error, and nothing else, is what the commands answer with exit status 2.
func TestErrorType(t *testing.T) {
	setenv(t, map[string]string{"DISPATCHER_TIMEOUT": "abc", "JANITOR_BATCH": "x"})
	_, dispatcher := config.LoadDispatcher()
	_, janitor := config.LoadJanitor()
	for _, err := range []error{dispatcher, janitor} {
		if _, ok := errors.AsType[*config.Error](err); !ok {
			t.Errorf("%T: %v", err, err)
		}
	}
}
