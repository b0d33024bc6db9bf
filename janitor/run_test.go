package janitor_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queuehook/queuehook/janitor"
)

// run starts a janitor and returns a function that ends it and waits for it.
func run(t *testing.T, cfg janitor.Config) (stop func()) {
	t.Helper()
	j, err := janitor.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- j.Run(ctx) }()
	return func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run = %v", err)
		}
	}
}

func TestRunLooksEveryIntervalWithJitter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &queue{}
		cfg := q.config()
		cfg.Interval = 4 * time.Second
		start := time.Now()
		stop := run(t, cfg)
		time.Sleep(10 * time.Minute) // of the bubble's clock
		stop()

		if first := q.passes[0].Sub(start); first >= cfg.Interval {
			t.Errorf("first pass after %s, want it within the interval", first)
		}
		gaps := map[time.Duration]bool{}
		for i, at := range q.passes[1:] {
			gap := at.Sub(q.passes[i])
			if gap < 3*time.Second || gap >= 5*time.Second {
				t.Errorf("%s between two passes, want 3s to 5s", gap)
			}
			gaps[gap] = true
		}
		if len(gaps) < 100 {
			t.Errorf("%d different gaps in %d passes: no jitter", len(gaps), len(q.passes))
		}
	})
}

func TestRunLooksAtNobodyWhileNotAlive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &queue{dead: map[string]*dispatcher{"a": {tasks: 1}}}
		back := time.Now().Add(time.Minute)
		cfg := q.config()
		cfg.Alive = func() bool { return !time.Now().Before(back) }
		stop := run(t, cfg)
		time.Sleep(2 * time.Minute)
		stop()
		if len(q.passes) == 0 || q.passes[0].Before(back) {
			t.Errorf("passes at %v, want none before %s", q.passes, back)
		}
	})
}

func TestRunStopsTakingWhenNoLongerAlive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		alive := true
		q := &queue{dead: map[string]*dispatcher{"a": {tasks: 150}}}
		q.during = func() { alive = false }
		cfg := q.config()
		cfg.Alive = func() bool { return alive }
		stop := run(t, cfg)
		time.Sleep(time.Minute)
		stop()
		if q.dead["a"].tasks != 50 {
			t.Errorf("%d tasks left, want the 50 of the second batch", q.dead["a"].tasks)
		}
	})
}

func TestRunSurvivesFaultsAndTells(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var reports []janitor.Report
		q := &queue{dead: map[string]*dispatcher{"a": {tasks: 3, grace: 10 * time.Second}}, detectErr: errStub}
		cfg := q.config()
		cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		cfg.Observe = func(r janitor.Report) { reports = append(reports, r) }
		stop := run(t, cfg)
		time.Sleep(time.Minute)
		q.mu.Lock()
		q.detectErr = nil
		q.mu.Unlock()
		time.Sleep(time.Minute)
		stop()

		if n := strings.Count(log.String(), "sweep failed"); n != 1 {
			t.Errorf("%d warnings for one outage:\n%s", n, &log)
		}
		if !strings.Contains(log.String(), "recovered=3") {
			t.Errorf("the log does not tell what was recovered:\n%s", &log)
		}
		if len(reports) != 1 || reports[0].Recovered != 3 {
			t.Errorf("observed %+v, want one report of 3 tasks", reports)
		}
	})
}

func TestRunTriesAFailedHookAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &queue{dead: map[string]*dispatcher{"a": {tasks: 3}}}
		h := &hooks{q: q, pre: errStub}
		cfg := q.config()
		cfg.Hooks = h
		cfg.Logger = slog.New(slog.DiscardHandler)
		stop := run(t, cfg)
		time.Sleep(time.Minute)
		q.mu.Lock()
		h.pre = nil
		q.mu.Unlock()
		time.Sleep(time.Minute)
		stop()
		if len(q.dead) != 0 {
			t.Errorf("still there after the hook agreed: %q", q.log)
		}
	})
}
