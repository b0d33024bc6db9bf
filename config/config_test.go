package config_test

import (
	"errors"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queuehook/queuehook/config"
	"github.com/queuehook/queuehook/signing"
)

// marker stands for every secret of these tests.
const marker = "Hunter2MARKER"

// signingSecret is a signing secret of the least length.
const signingSecret = "whsec_SHVudGVyMk1BUktFUkh1bnRlcjJNQVJL"

// setenv sets exactly these of our variables, and unsets the others, until the test ends.
func setenv(t *testing.T, env map[string]string) {
	t.Helper()
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, "DISPATCHER_") || strings.HasPrefix(name, "JANITOR_") {
			t.Setenv(name, "") // restores the old value at the end
			if err := os.Unsetenv(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, value := range env {
		t.Setenv(name, value)
	}
}

// secrets parses secrets to compare with, which sameSecrets allows.
func secrets(t *testing.T, text string) []signing.Secret {
	t.Helper()
	all, err := signing.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func sameSecrets() cmp.Option { return cmp.AllowUnexported(signing.Secret{}) }

func writeFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func problems(t *testing.T, err error) []config.Problem {
	t.Helper()
	if err == nil {
		return nil
	}
	all, ok := errors.AsType[*config.Error](err)
	if !ok {
		t.Fatalf("error is a %T: %v", err, err)
	}
	return all.Problems
}

func names(all []config.Problem) []string {
	var names []string
	for _, p := range all {
		names = append(names, p.Name)
	}
	return names
}

func TestDispatcherDefaults(t *testing.T) {
	setenv(t, nil)
	got, err := config.LoadDispatcher()
	if err != nil {
		t.Fatal(err)
	}
	got.Settings = nil
	want := config.Dispatcher{
		Redis:       config.Redis{URL: "redis://127.0.0.1:6379/0"},
		Concurrency: 32,
		Timeout:     20 * time.Second,
		Retry: config.Retry{
			MaxAttempts:   40,
			MaxAge:        24 * time.Hour,
			BackoffBase:   time.Second,
			BackoffCap:    time.Hour,
			MaxRetryAfter: time.Hour,
		},
		CrashLimit:        5,
		HeartbeatInterval: 5 * time.Second,
		Janitor:           true,
		ShutdownGrace:     25 * time.Second,
		AdminAddr:         ":8080",
		Log:               config.Log{Level: slog.LevelInfo, Format: config.LogJSON},
		DeadMaxAge:        720 * time.Hour,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestDispatcherEverythingSet(t *testing.T) {
	setenv(t, map[string]string{
		"DISPATCHER_REDIS_URL":               "redis://sentinel:26379/3?master_name=main",
		"DISPATCHER_REDIS_CLUSTER":           "false",
		"DISPATCHER_REDIS_USERNAME":          "user",
		"DISPATCHER_REDIS_PASSWORD":          "a b",
		"DISPATCHER_REDIS_SENTINEL_PASSWORD": "c",
		"DISPATCHER_ROUTES":                  "orders=https://a.example/hook?x=1%2C2 thumbs=lambda:thumbs:live",
		"DISPATCHER_CONCURRENCY":             "1",
		"DISPATCHER_TIMEOUT":                 "1m30s",
		"DISPATCHER_MAX_ATTEMPTS":            "0",
		"DISPATCHER_MAX_AGE":                 "0",
		"DISPATCHER_BACKOFF_BASE":            "10ms",
		"DISPATCHER_BACKOFF_CAP":             "10ms",
		"DISPATCHER_MAX_RETRY_AFTER":         "5m",
		"DISPATCHER_CRASH_LIMIT":             "1",
		"DISPATCHER_SIGNING_SECRET":          signingSecret + " " + signingSecret,
		"DISPATCHER_HEARTBEAT_INTERVAL":      "100ms",
		"DISPATCHER_JANITOR":                 "false",
		"DISPATCHER_SHUTDOWN_GRACE":          "0s",
		"DISPATCHER_ADMIN_ADDR":              "",
		"DISPATCHER_LOG_LEVEL":               "debug",
		"DISPATCHER_LOG_FORMAT":              "text",
		"DISPATCHER_DEAD_MAX_AGE":            "0",
		"DISPATCHER_DEAD_MAX_COUNT":          "1000",
	})
	got, err := config.LoadDispatcher()
	if err != nil {
		t.Fatal(err)
	}
	got.Settings = nil
	retry := config.Retry{
		BackoffBase:   10 * time.Millisecond,
		BackoffCap:    10 * time.Millisecond,
		MaxRetryAfter: 5 * time.Minute,
	}
	breaker := config.Breaker{Consecutive: 20, Pause: 30 * time.Second}
	signs := secrets(t, signingSecret+" "+signingSecret)
	want := config.Dispatcher{
		Redis: config.Redis{
			URL:              "redis://sentinel:26379/3?master_name=main",
			Username:         "user",
			Password:         "a b",
			SentinelPassword: "c",
		},
		Routes: []config.Route{
			{
				Queue: "orders",
				Target: config.Target{
					URL: &url.URL{Scheme: "https", Host: "a.example", Path: "/hook", RawQuery: "x=1%2C2"},
				},
				Concurrency: 1, Timeout: 90 * time.Second, Retry: retry, Breaker: breaker,
				HTTP: config.HTTP{
					Method: "POST", ContentType: "application/json", SigningSecrets: signs,
					ConnectTimeout: 5 * time.Second, QuickRetries: 1,
				},
			},
			{
				Queue:       "thumbs",
				Target:      config.Target{Lambda: config.Lambda{Function: "thumbs", Qualifier: "live"}},
				Concurrency: 1, Timeout: 90 * time.Second, Retry: retry, Breaker: breaker,
				Invocation: config.Invocation{Payload: config.PayloadRaw, BatchSize: 1},
			},
		},
		Concurrency:       1,
		Timeout:           90 * time.Second,
		Retry:             retry,
		CrashLimit:        1,
		SigningSecrets:    signs,
		HeartbeatInterval: 100 * time.Millisecond,
		Log:               config.Log{Level: slog.LevelDebug, Format: config.LogText},
		DeadMaxCount:      1000,
		Warnings: []string{
			"DISPATCHER_TIMEOUT: 1m30s is above DISPATCHER_SHUTDOWN_GRACE (0s): a slow attempt can be cut at shutdown and repeated",
		},
	}
	if d := cmp.Diff(want, got, sameSecrets()); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestJanitor(t *testing.T) {
	setenv(t, nil)
	got, err := config.LoadJanitor()
	if err != nil {
		t.Fatal(err)
	}
	got.Settings = nil
	want := config.Janitor{
		Redis: config.Redis{URL: "redis://127.0.0.1:6379/0"},
		Grace: 10 * time.Second,
		Batch: 100,
		Log:   config.Log{Level: slog.LevelInfo, Format: config.LogJSON},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("defaults (-want +got)\n%s", d)
	}

	setenv(t, map[string]string{
		"JANITOR_REDIS_URL":                 "unix:///run/redis.sock",
		"JANITOR_REDIS_PASSWORD_SECRET_ARN": "arn:aws:secretsmanager:eu-west-1:123456789012:secret:redis-AbCdEf",
		"JANITOR_QUEUES":                    "orders, thumbs\nmail",
		"JANITOR_GRACE":                     "1s",
		"JANITOR_BATCH":                     "1",
		"JANITOR_LEGACY":                    "true",
		"JANITOR_LOG_LEVEL":                 "error",
		"DISPATCHER_MISSPELT":               "is not the janitor's business",
		"JANITORIAL_EQUIPMENT":              "does not have our prefix",
		"JANITOR_REDIS_CLUSTER":             "0",
	})
	got, err = config.LoadJanitor()
	if err != nil {
		t.Fatal(err)
	}
	got.Settings = nil
	want = config.Janitor{
		Redis: config.Redis{URL: "unix:///run/redis.sock"},
		RedisPasswordSecret: config.SecretID{
			ARN: "arn:aws:secretsmanager:eu-west-1:123456789012:secret:redis-AbCdEf", Region: "eu-west-1",
		},
		Queues: []string{"orders", "thumbs", "mail"},
		Grace:  time.Second,
		Batch:  1,
		Legacy: true,
		Log:    config.Log{Level: slog.LevelError, Format: config.LogJSON},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("set (-want +got)\n%s", d)
	}

	bad := map[string]string{
		"JANITOR_QUEUES": "", "JANITOR_GRACE": "0", "JANITOR_BATCH": "101", "JANITOR_ROUTES": "orders=http://a",
	}
	for name, value := range bad {
		setenv(t, map[string]string{name: value})
		if _, err := config.LoadJanitor(); len(problems(t, err)) != 1 {
			t.Errorf("%s=%q: %v", name, value, err)
		}
	}
	for _, queues := range []string{"a b a", ",", "a {a}:dead"} {
		setenv(t, map[string]string{"JANITOR_QUEUES": queues})
		if _, err := config.LoadJanitor(); len(problems(t, err)) != 1 {
			t.Errorf("queues %q: %v", queues, err)
		}
	}
}

func TestVariablesAndSettingsAgree(t *testing.T) {
	setenv(t, nil)
	d, err := config.LoadDispatcher()
	if err != nil {
		t.Fatal(err)
	}
	j, err := config.LoadJanitor()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		prefix    string
		variables []config.Variable
		settings  config.Settings
	}{
		{"DISPATCHER_", config.DispatcherVariables(), d.Settings},
		{"JANITOR_", config.JanitorVariables(), j.Settings},
	} {
		var defaults config.Settings
		for _, v := range tt.variables {
			defaults = append(defaults, config.Setting{Name: v.Name, Value: v.Default})
			if !strings.HasPrefix(v.Name, tt.prefix) || v.Doc == "" || strings.ContainsAny(v.Doc, "\n\t") {
				t.Errorf("bad entry %+v", v)
			}
		}
		if d := cmp.Diff(defaults, tt.settings); d != "" {
			t.Errorf("%s: settings by default differ from the table (-table +settings)\n%s", tt.prefix, d)
		}
	}
}

// The names are an interface: this list changes only together with the documentation.
func TestNames(t *testing.T) {
	redis := []string{
		"REDIS_URL", "REDIS_URL_FILE", "REDIS_CLUSTER", "REDIS_USERNAME", "REDIS_PASSWORD", "REDIS_PASSWORD_FILE",
		"REDIS_SENTINEL_PASSWORD", "REDIS_SENTINEL_PASSWORD_FILE", "REDIS_CA_FILE", "REDIS_CERT_FILE", "REDIS_KEY_FILE",
	}
	dispatcher := append(slices.Clip(redis),
		"ROUTES", "ROUTES_FILE", "CONCURRENCY", "TIMEOUT", "MAX_ATTEMPTS", "MAX_AGE", "BACKOFF_BASE", "BACKOFF_CAP", "MAX_RETRY_AFTER",
		"CRASH_LIMIT", "SIGNING_SECRET", "SIGNING_SECRET_FILE", "HEARTBEAT_INTERVAL", "JANITOR", "SHUTDOWN_GRACE", "ADMIN_ADDR",
		"LOG_LEVEL", "LOG_FORMAT", "DEAD_MAX_AGE", "DEAD_MAX_COUNT")
	janitor := append(slices.Clip(redis), "REDIS_PASSWORD_SECRET_ARN", "QUEUES", "GRACE", "BATCH", "LEGACY", "LOG_LEVEL", "LOG_FORMAT")
	short := func(prefix string, all []config.Variable) []string {
		var names []string
		for _, v := range all {
			names = append(names, strings.TrimPrefix(v.Name, prefix))
		}
		return names
	}
	if d := cmp.Diff(dispatcher, short("DISPATCHER_", config.DispatcherVariables())); d != "" {
		t.Errorf("dispatcher (-want +got)\n%s", d)
	}
	if d := cmp.Diff(janitor, short("JANITOR_", config.JanitorVariables())); d != "" {
		t.Errorf("janitor (-want +got)\n%s", d)
	}
}

func TestPrint(t *testing.T) {
	setenv(t, map[string]string{
		"DISPATCHER_REDIS_URL":           "redis://user:" + marker + "@h:1/2?db=3&master_name=m&username=" + marker + "&addr=u:" + marker + "@h",
		"DISPATCHER_REDIS_USERNAME":      "line\nbreak",
		"DISPATCHER_REDIS_PASSWORD_FILE": writeFile(t, marker),
		"DISPATCHER_ROUTES":              "orders=https://" + marker + "@a.example:444/hook?token=" + marker + " thumbs=lambda:thumbs",
	})
	d, err := config.LoadDispatcher()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := d.Settings.Print(&b); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), marker) {
		t.Errorf("shows a secret:\n%s", b.String())
	}
	for _, line := range []string{
		"DISPATCHER_REDIS_URL=redis://(redacted)@h:1/2?db=3&master_name=m&username=(redacted)&addr=(redacted)\n",
		`DISPATCHER_REDIS_USERNAME="line\nbreak"` + "\n",
		"DISPATCHER_REDIS_PASSWORD=(redacted)\n",
		"DISPATCHER_REDIS_SENTINEL_PASSWORD=\n",
		"DISPATCHER_ROUTES=orders=https://(redacted)@a.example:444/hook?(redacted) thumbs=lambda:thumbs\n",
		"DISPATCHER_TIMEOUT=20s\n",
	} {
		if !strings.Contains(b.String(), line) {
			t.Errorf("lacks %q:\n%s", line, b.String())
		}
	}
}
