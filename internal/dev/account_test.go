package dev

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queuehook/queuehook/lifecycle"
)

// record logs one message as the dispatcher does, and returns the line without its time.
func record(t *testing.T, a *account, level slog.Level, msg string, args ...any) string {
	t.Helper()
	var out bytes.Buffer
	a.out = &out
	a.logger().With("target", "http://127.0.0.1:8090").With("queue", "orders").
		Log(t.Context(), level, msg, args...) //nolint:sloglint // the messages are the tests'
	text := out.String()
	if text == "" {
		return ""
	}
	at, rest, _ := strings.Cut(text, "  ")
	if _, err := time.Parse("15:04:05.000", at); err != nil {
		t.Errorf("line %q does not begin with a time: %v", text, err)
	}
	return rest
}

func TestAttemptsBecomeLines(t *testing.T) {
	t.Parallel()
	const id = "01JABCDEFGHJKMNPQRSTVWX000"
	tests := []struct {
		name string
		args []any
		want string
	}{
		{
			"delivered",
			[]any{"attempt", 1, "outcome", "completed", "reason", "ok", "duration_ms", 3, "status", 204},
			"orders    delivered  ..STVWX000    204 in 3 ms\n",
		},
		{
			"delivered late",
			[]any{"attempt", 3, "outcome", "completed", "reason", "ok", "duration_ms", 0},
			"orders    delivered  ..STVWX000    in <1 ms, attempt 3\n",
		},
		{
			"failed",
			[]any{
				"attempt", 1, "max_attempts", 3, "outcome", "abandoned", "reason", "status", "duration_ms", 1, "status", 500,
				"delay_ms", 1234,
			},
			"orders    failed     ..STVWX000    500, retry 2/3 in 1.2 s\n",
		},
		{
			"no answer, no limit",
			[]any{
				"attempt", 1, "outcome", "abandoned", "reason", "connect", "duration_ms", 1, "detail", "refused", "delay_ms", 90_000,
			},
			"orders    failed     ..STVWX000    connect (refused), retry 2 in 1m30s\n",
		},
		{
			"throttled",
			[]any{
				"attempt", 2, "max_attempts", 3, "outcome", "abandoned", "reason", "throttled", "status", 429, "delay_ms", 2000,
			},
			"orders    throttled  ..STVWX000    429, not counted, again in 2.0 s\n",
		},
		{
			"not counted",
			[]any{"attempt", 1, "outcome", "abandoned", "reason", "stale_connection", "delay_ms", 0},
			"orders    failed     ..STVWX000    stale_connection, not counted, again in <1 ms\n",
		},
		{
			"dead",
			[]any{"attempt", 3, "max_attempts", 3, "outcome", "buried", "reason", "exhausted", "status", 500},
			"orders    dead       ..STVWX000    after 3 attempts, the last answered 500\n",
		},
		{
			"dead at once",
			[]any{"attempt", 1, "outcome", "buried", "reason", "rejected", "status", 400},
			"orders    dead       ..STVWX000    rejected, 400\n",
		},
		{
			"dead unsent",
			[]any{"attempt", 1, "outcome", "buried", "reason", "unsendable", "detail", "bad\nheader"},
			"orders    dead       ..STVWX000    unsendable (bad\uFFFDheader)\n",
		},
		{
			"released",
			[]any{"attempt", 1, "outcome", "released", "reason", "shutdown", "duration_ms", 40},
			"orders    released   ..STVWX000    cut off after 40 ms, given back\n",
		},
		{
			"not settled",
			[]any{"attempt", 1, "outcome", "completed", "reason", "ok", "error", "task not found"},
			"orders    unsettled  ..STVWX000    completed, ok, but not written down: task not found\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := newAccount(nil, false)
			got := record(t, a, slog.LevelDebug, attemptFinished, append([]any{"task", id}, tt.args...)...)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOtherRecordsShowFromInfoOn(t *testing.T) {
	t.Parallel()
	a := newAccount(nil, false)
	if got := record(t, a, slog.LevelDebug, "go-redis"); got != "" {
		t.Errorf("debug record shown: %q", got)
	}
	want := "orders    warning                  heartbeat failed error=gone\n"
	if diff := cmp.Diff(want, record(t, a, slog.LevelWarn, "heartbeat failed", "error", "gone")); diff != "" {
		t.Error(diff)
	}
	var out bytes.Buffer
	a.out = &out
	a.logger().InfoContext(t.Context(), "dispatcher started", "routes", 5)
	if got := out.String(); !strings.HasSuffix(got, "  dispatcher started routes=5\n") {
		t.Errorf("got %q", got)
	}
}

func TestColourOnlyWhereItIsAskedFor(t *testing.T) {
	t.Parallel()
	args := []any{"task", "1", "outcome", "buried", "reason", "rejected", "detail", "\x1b[2J"}
	if got := record(t, newAccount(nil, false), slog.LevelInfo, attemptFinished, args...); strings.Contains(got, "\x1b") {
		t.Errorf("colour in %q", got)
	}
	got := record(t, newAccount(nil, true), slog.LevelInfo, attemptFinished, args...)
	if !strings.Contains(got, "\x1b[31mdead     \x1b[0m") || strings.Contains(got, "\x1b[2J") {
		t.Errorf("want a red event, and no one else's escapes: %q", got)
	}
}

func TestTotalsAndFarewellCount(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	a := newAccount(&out, false)
	a.pushed(orders, "", "hello")
	for _, outcome := range []string{"abandoned", "abandoned", "completed"} {
		a.logger().InfoContext(t.Context(), attemptFinished, "queue", orders, "task", "1", "outcome", outcome, "reason", "status")
	}
	depths := make([]lifecycle.Depth, len(samples()))
	depths[0] = lifecycle.Depth{Ready: 2, Delayed: 3, InFlight: 4, Dead: 5}
	out.Reset()
	a.totals(depths)
	first, _, _ := strings.Cut(out.String(), "\n")
	want := "orders    total                    delivered 1    retries 2    dead 5    waiting 5    in flight 4"
	if !strings.HasSuffix(first, "  "+want) {
		t.Errorf("got %q, want %q", first, want)
	}
	out.Reset()
	a.farewell(depths)
	for _, want := range []string{"orders            1         1         2         5         9", "Tasks delivered: 1; the 9 left"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
}
