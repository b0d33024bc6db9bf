package config_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/queuehook/queuehook/config"
)

// FuzzEnvironment sets two variables, of ours where the numbers say so, beside secrets. Whatever they hold, the result
// is a configuration or an *Error with one line for each problem, and no secret shows.
func FuzzEnvironment(f *testing.F) {
	f.Add(uint8(3), "", "true", uint8(11), "", "a=http://x")
	f.Add(uint8(0), "", "redis://h:1/2", uint8(5), "", "x\n")
	f.Add(uint8(13), "", "20s", uint8(13), "", "20")
	f.Add(uint8(255), "PORT", "tcp://10.0.0.1:1", uint8(255), "TIMEUOT", "1s")
	f.Add(uint8(255), "A\nB", "x", uint8(24), "", "warn")
	f.Add(uint8(1), "", "redis://h?master_name=m", uint8(23), "", ":0")
	f.Fuzz(func(t *testing.T, which1 uint8, name1, value1 string, which2 uint8, name2, value2 string) {
		variables := config.DispatcherVariables()
		env := map[string]string{
			"DISPATCHER_REDIS_PASSWORD":          marker,
			"DISPATCHER_REDIS_SENTINEL_PASSWORD": marker,
			"DISPATCHER_REDIS_URL":               "redis://user:" + marker + "@h",
			"DISPATCHER_ROUTES":                  "orders=https://user:" + marker + "@h/?token=" + marker,
		}
		add := func(which uint8, name, value string) {
			name = "DISPATCHER_" + name
			if int(which) < len(variables) {
				name = variables[which].Name
			}
			if strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") ||
				strings.Contains(name+value, marker) {
				t.Skip("not to be had in an environment, or the secret in a public place")
			}
			if strings.HasSuffix(name, "_FILE") && value != "" {
				value = writeFile(t, value)
			}
			env[name] = value
		}
		add(which1, name1, value1)
		add(which2, name2, value2)
		setenv(t, env)

		d, err := config.LoadDispatcher()
		if err != nil {
			all, ok := errors.AsType[*config.Error](err)
			if !ok {
				t.Fatalf("%T: %v", err, err)
			}
			if lines := strings.Split(err.Error(), "\n"); len(lines) != len(all.Problems) {
				t.Errorf("%d lines for %d problems:\n%s", len(lines), len(all.Problems), err)
			}
			if strings.Contains(err.Error(), marker) {
				t.Errorf("shows a secret:\n%s", err)
			}
			return
		}
		var b strings.Builder
		if err := d.Settings.Print(&b); err != nil {
			t.Fatal(err)
		}
		if lines := strings.Count(b.String(), "\n"); lines != len(variables) {
			t.Errorf("%d lines for %d variables:\n%s", lines, len(variables), b.String())
		}
		if strings.Contains(b.String(), marker) || strings.Contains(strings.Join(d.Warnings, ""), marker) {
			t.Errorf("shows a secret:\n%s\n%q", b.String(), d.Warnings)
		}
	})
}
