package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// match waits until each of the patterns was written.
func (l *lines) match(t *testing.T, patterns ...string) {
	t.Helper()
	deadline := time.After(time.Minute)
	for _, pattern := range patterns {
		for wanted := regexp.MustCompile(pattern); !wanted.MatchString(l.String()); {
			select {
			case <-l.wrote:
			case <-deadline:
				t.Fatalf("no %s in:\n%s", pattern, l)
			}
		}
	}
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text
}

func TestDevShowsTheMainJob(t *testing.T) {
	closing, stop := context.WithCancel(t.Context())
	defer stop()
	out, errs := &lines{wrote: make(chan struct{}, 1)}, new(bytes.Buffer)
	code := make(chan int, 1)
	go func() {
		code <- run(closing, t.Context(), []string{"dev", "--admin-addr", "127.0.0.1:0"}, stdio{in: strings.NewReader(""), out: out, err: errs})
	}()
	out.match(
		t,
		`redis-cli -p \d+ LPUSH orders hello`,
		`orders +pushed +\{"order":\d+`,
		`orders +delivered +\.\.\w{8} +in `,
		`orders +pushed +reminder-\d+ .*due in 3\.0 s`,
		`orders +delivered +reminder-\d+ `,
		`invoices +failed +\S+ +500, retry 2/3 in `,
		`invoices +failed +\S+ +500, retry 3/3 in `,
		`invoices +delivered .*, attempt 3\n`,
		`refunds +dead +\S+ +after 3 attempts, the last answered 500\n`,
		`reports +delivered +\S+ +in 2\.\d s\n`,
		`messages +throttled +\S+ +429, not counted, again in `,
		`messages +total +delivered \d+ `,
	)
	stop()
	if got := <-code; got != exitOK {
		t.Errorf("exit code %d, standard error:\n%s", got, errs)
	}
	text := out.String()
	if !regexp.MustCompile(`\nStopped\. Tasks delivered: [1-9]\d*; .*\n$`).MatchString(text) {
		t.Errorf("no farewell at the end of:\n%s", text)
	}
	for what, part := range map[string]string{"colour": "\x1b", "a warning": "warning"} {
		if strings.Contains(text, part) {
			t.Errorf("%s in:\n%s", what, text)
		}
	}
	if errs.String() != "" {
		t.Errorf("standard error:\n%s", errs)
	}
}

func TestDevRefusesWhatItCannotUse(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		want int
	}{
		{[]string{"dev", "--for", "-1s"}, exitUsage},
		{[]string{"dev", "--for", "soon"}, exitUsage},
		{[]string{"dev", "now"}, exitUsage},
		{[]string{"dev", "--admin-addr", "8080"}, exitFailure},
	} {
		var errs bytes.Buffer
		if got := run(t.Context(), t.Context(), tt.args, stdio{in: strings.NewReader(""), out: io.Discard, err: &errs}); got != tt.want || errs.Len() == 0 {
			t.Errorf("%v: exit code %d, error %q, want %d", tt.args, got, errs.String(), tt.want)
		}
	}
}

// TestMakeRun is what somebody with a fresh clone types.
func TestMakeRun(t *testing.T) {
	t.Parallel()
	limit, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // it may have to build everything
	defer cancel()
	cmd := exec.CommandContext(limit, "make", "-C", "../..", "run", "RUNFLAGS=--for 1s --admin-addr 127.0.0.1:0")
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "MAKE") { // of a make that runs these tests
			cmd.Env = append(cmd.Env, variable)
		}
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "\nStopped. ") {
		t.Errorf("%v:\n%s", err, out)
	}
}
