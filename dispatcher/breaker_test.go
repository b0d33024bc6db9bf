package dispatcher

import (
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queuehook/queuehook/delivery"
)

// watched is an Observer that notes when the route was held back.
type watched struct {
	nobody
	mu     sync.Mutex
	causes map[string]bool
}

func (w *watched) Paused(cause string, on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.causes[cause] = on
}

func newTestGate(t *testing.T, cfg Config) (*gate, *watched) {
	t.Helper()
	w := &watched{causes: map[string]bool{}}
	cfg.Queue, cfg.Observer, cfg.Lifecycle = "orders", w, struct{ Lifecycle }{}
	cfg.Logger = slog.New(slog.DiscardHandler)
	if err := cfg.validate(); err != nil {
		t.Fatal(err)
	}
	return newGate(cfg, cfg.Logger), w
}

// attempt makes one attempt, unless the gate refuses it, and returns whether it did.
func (g *gate) attempt(r delivery.Reason) bool {
	leave, ok := g.enter()
	if ok {
		leave(delivery.Of(r))
	}
	return ok
}

func (g *gate) room(out int) int {
	n, _ := g.admit(out, 64)
	return n
}

func TestBreakerOpensProbesAndReopensGently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, w := newTestGate(t, Config{Concurrency: 64, Breaker: Breaker{Consecutive: 5, Pause: 30 * time.Second}})
		for range 5 {
			if g.room(0) != 64 || !g.attempt(delivery.Connect) {
				t.Fatal("closed too soon")
			}
		}
		if g.room(0) != 0 || g.attempt(delivery.OK) {
			t.Error("open, and yet something is let in")
		}
		if diff := cmp.Diff(map[string]bool{"breaker": true}, w.causes); diff != "" {
			t.Error(diff)
		}

		time.Sleep(time.Minute)
		if n := g.room(0); n != 1 {
			t.Errorf("room for %d probes, want 1", n)
		}
		probe, ok := g.enter()
		if !ok || g.room(1) != 0 || g.attempt(delivery.OK) {
			t.Error("a second probe")
		}
		probe(delivery.Of(delivery.Timeout))
		if g.room(0) != 0 {
			t.Error("the probe failed, and yet there is room")
		}

		time.Sleep(time.Minute)
		g.attempt(delivery.Status) // a 500 is the task's trouble: the target is there, and this the first step
		var widths []int
		for width := g.room(0); ; width = g.room(0) {
			widths = append(widths, width)
			if width == 64 {
				break
			}
			for range width {
				g.attempt(delivery.OK)
			}
		}
		if diff := cmp.Diff([]int{2, 4, 8, 16, 32, 64}, widths); diff != "" {
			t.Error(diff)
		}
		if w.causes["breaker"] {
			t.Error("still said to be held back")
		}
	})
}

// TestBreakerCountsFaultsInARowHoweverSlow has so few attempts, or such long ones, that no minute has twenty.
func TestBreakerCountsFaultsInARowHoweverSlow(t *testing.T) {
	for name, pace := range map[string]struct{ took, between time.Duration }{
		"rare": {took: time.Second, between: 10 * time.Second},
		"long": {took: 90 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, w := newTestGate(t, Config{Concurrency: 64})
				fault := func() {
					leave, ok := g.enter()
					if !ok {
						t.Fatal("held back too soon")
					}
					time.Sleep(pace.took)
					leave(delivery.Of(delivery.Timeout))
					time.Sleep(pace.between)
				}
				for range 19 {
					fault()
				}
				g.attempt(delivery.OK)
				for range 19 {
					fault()
				}
				if len(w.causes) != 0 {
					t.Error("held back after 19 faults in a row")
				}
				fault()
				if !w.causes["breaker"] {
					t.Error("not held back after 20 faults in a row")
				}
			})
		})
	}
}

// TestBreakerJudgesByWhatHasEnded has many attempts under way when the first one fails.
func TestBreakerJudgesByWhatHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, w := newTestGate(t, Config{Concurrency: 64})
		var under []func(delivery.Outcome)
		for range 64 {
			leave, ok := g.enter()
			if !ok {
				t.Fatal("not let in")
			}
			under = append(under, leave)
		}
		under[0](delivery.Of(delivery.Connect))
		if g.room(0) == 0 {
			t.Error("one target fault opened the breaker")
		}
		for _, leave := range under[1:] {
			leave(delivery.Of(delivery.OK))
		}
		if len(w.causes) != 0 {
			t.Errorf("held back: %v", w.causes)
		}
	})
}

// TestBreakerCountsACallOnce has a call fail with a hundred tasks in it.
func TestBreakerCountsACallOnce(t *testing.T) {
	for _, reason := range []delivery.Reason{delivery.Timeout, delivery.Rejected} {
		g, w := newTestGate(t, Config{Concurrency: 100, Breaker: Breaker{Consecutive: 2}})
		call := func() {
			var leave []func(delivery.Outcome)
			for range 100 {
				tell, ok := g.enter()
				if !ok {
					t.Fatalf("%s: not let in", reason)
				}
				leave = append(leave, tell)
			}
			for i, tell := range leave {
				o := delivery.Of(reason)
				o.Shared = i > 0
				tell(o)
			}
		}
		call()
		if len(w.causes) > 0 || g.room(0) == 0 {
			t.Errorf("%s: one call holds the route back: %v", reason, w.causes)
		}
		call()
		if open := w.causes[causeBreaker]; open != (reason == delivery.Timeout) {
			t.Errorf("%s: after two calls, open: %v", reason, open)
		}
	}
}

func TestBreakerOpensWhenNearlyAllOfAMinuteFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := newTestGate(t, Config{})
		for i := range 200 {
			r := delivery.Timeout
			if i%15 == 0 {
				r = delivery.OK
			}
			if !g.attempt(r) {
				return
			}
		}
		t.Error("it never opened")
	})
}

func TestBreakerStaysClosedWhileOthersAreAtFault(t *testing.T) {
	for _, r := range []delivery.Reason{delivery.Status, delivery.Unsendable, delivery.Shutdown, delivery.Failed} {
		g, _ := newTestGate(t, Config{})
		for range 500 {
			if !g.attempt(r) {
				t.Errorf("opened by %s", r)
				break
			}
		}
	}
	g, _ := newTestGate(t, Config{Breaker: Breaker{Consecutive: -1}})
	for range 500 {
		if !g.attempt(delivery.Connect) || g.room(0) != 64 {
			t.Fatal("a breaker that is off opened")
		}
	}
}

func TestMassRejectionSavesTheBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, w := newTestGate(t, Config{})
		buried := 0
		for i := range 1000 {
			r := delivery.Rejected
			if i%4 == 0 {
				r = delivery.OK
			}
			if g.attempt(r) && r == delivery.Rejected {
				buried++
			}
		}
		if buried > 26 || !w.causes["rejections"] {
			t.Errorf("%d tasks rejected, told: %v", buried, w.causes)
		}
		time.Sleep(time.Minute)
		if !g.attempt(delivery.OK) || w.causes["rejections"] {
			t.Error("the probe got through, and yet the route is held back")
		}
	})
}

func TestThrottleHoldsTheRoute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, w := newTestGate(t, Config{Concurrency: 64, Retry: Retry{Base: time.Second, Cap: time.Minute}})
		leave, _ := g.enter()
		o := delivery.Of(delivery.Throttled)
		o.RetryAfter = 30 * time.Second
		leave(o)
		if n, wait := g.admit(0, 64); n != 0 || wait != 30*time.Second || !w.causes["throttled"] {
			t.Errorf("admit = %d, %s", n, wait)
		}
		time.Sleep(30 * time.Second)
		if n := g.room(0); n != 64 || w.causes["throttled"] {
			t.Errorf("room for %d after the wait", n)
		}
		for range 3 {
			_, wait := g.admit(0, 64)
			time.Sleep(wait)
			for range 10 { // which were under way together
				g.attempt(delivery.Throttled)
			}
		}
		if _, wait := g.admit(0, 64); wait < 4*time.Second || wait > 8*time.Second {
			t.Errorf("after four throttles in a row the route waits %s, want its backoff", wait)
		}
	})
}
