package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/internal/script"
	"github.com/queuehook/queuehook/task"
)

// settlements are the four ways to end an attempt, each with the script that it runs.
func settlements() map[string]struct {
	script script.Script
	settle func(ctx context.Context, l *DefaultLifecycle, t *task.Task) error
} {
	return map[string]struct {
		script script.Script
		settle func(ctx context.Context, l *DefaultLifecycle, t *task.Task) error
	}{
		"complete": {completeScript, func(ctx context.Context, l *DefaultLifecycle, t *task.Task) error { return l.Complete(ctx, t) }},
		"abandon": {abandonScript, func(ctx context.Context, l *DefaultLifecycle, t *task.Task) error {
			return l.Abandon(ctx, t, time.Hour)
		}},
		"bury": {buryScript, func(ctx context.Context, l *DefaultLifecycle, t *task.Task) error {
			return l.Bury(ctx, t, delivery.Rejected)
		}},
		"release": {releaseScript, func(ctx context.Context, l *DefaultLifecycle, t *task.Task) error { return l.Release(ctx, t) }},
	}
}

// leased pushes and leases one task.
func (b *bench) leased(l *DefaultLifecycle, payload string) *task.Task {
	b.Helper()
	b.push(payload)
	tasks, err := l.Lease(b.ctx, 1)
	if err != nil || len(tasks) != 1 {
		b.Fatalf("Lease = %v, %v", tasks, err)
	}
	return tasks[0]
}

func TestASettlementIsRepeatedUntilItIsAnswered(t *testing.T) {
	t.Parallel()
	for name, way := range settlements() {
		for fault, arm := range map[string]func(w *wire){
			"reply lost":   func(w *wire) { w.lose(way.script, 2) },
			"request lost": func(w *wire) { w.fail(way.script, 2) },
			"refused":      func(w *wire) { w.refuse(way.script, 2) },
		} {
			t.Run(name+", "+fault, func(t *testing.T) {
				t.Parallel()
				b, l, w := live(t, Config{})
				other := b.leased(l, "other")
				one := b.leased(l, "x")
				b.delivered(took{ID: one.ID(), Payload: "x"})
				b.trial.Causes = map[string]string{one.ID(): "it is settled in four ways here"}
				arm(w)
				if err := way.settle(b.ctx, l, one); err != nil {
					b.Errorf("%v, want no error", err)
				}
				b.equal("calls", w.calls(way.script), 3)
				b.equal("out", l.Out(), 1)
				b.equal("the other", b.places().Of()[other.ID()], []string{"in flight at w"})
				for _, place := range b.places().Of()[one.ID()] {
					if place == "in flight at w" {
						b.Error("still in flight")
					}
				}
			})
		}
	}
}

func TestASettlementByWhoLostTheLease(t *testing.T) {
	t.Parallel()
	for name, way := range settlements() {
		if name == "release" { // passes over what is not held any more
			continue
		}
		for _, refusals := range []int{0, 2} { // that Redis refused before is no excuse: it carried nothing out
			t.Run(fmt.Sprintf("%s, refused %d times", name, refusals), func(t *testing.T) {
				t.Parallel()
				b, l, w := live(t, Config{})
				one := b.leased(l, "x")
				b.kill("w")
				b.equal("sweep", b.sweep(look{batch: 10}), "SWEPT 1 0 0")
				w.refuse(way.script, refusals)
				before := b.places()
				if err := way.settle(b.ctx, l, one); !errors.Is(err, task.ErrNotFound) {
					b.Errorf("%v, want ErrNotFound", err)
				}
				b.equal("places", b.places(), before)
				b.equal("out", l.Out(), 0)
				if err := way.settle(b.ctx, l, one); !errors.Is(err, task.ErrNotFound) {
					b.Errorf("again: %v, want ErrNotFound", err)
				}
			})
		}
	}
}

// TestATaskIsOutAgainBeforeItsSettlementIsRead parks a task that is due at once, and leases it anew while the reply of
// the parking is on its way. That reply must end the old lease, not the new one.
func TestATaskIsOutAgainBeforeItsSettlementIsRead(t *testing.T) {
	t.Parallel()
	for name, way := range map[string]struct {
		script script.Script
		settle func(ctx context.Context, l *DefaultLifecycle, t *task.Task) error
	}{
		"abandon": {abandonScript, func(ctx context.Context, l *DefaultLifecycle, t *task.Task) error { return l.Abandon(ctx, t, 0) }},
		"release": {releaseScript, func(ctx context.Context, l *DefaultLifecycle, t *task.Task) error { return l.Release(ctx, t) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, l, w := live(t, Config{})
			one := b.leased(l, "x")
			var again []*task.Task
			var err error
			w.before(way.script, func() { again, err = l.Lease(b.ctx, 1) })
			b.settled(way.settle, l, one)
			if err != nil || len(again) != 1 {
				b.Fatalf("Lease meanwhile = %v, %v", again, err)
			}
			b.equal("out", l.Out(), 1)
			if err := l.Complete(b.ctx, again[0]); err != nil {
				b.Errorf("complete: %v", err)
			}
			b.equal("out", l.Out(), 0)
			b.delivered(took{ID: one.ID(), Payload: "x"})
		})
	}
}

func (b *bench) settled(
	settle func(ctx context.Context, l *DefaultLifecycle, t *task.Task) error, l *DefaultLifecycle, t *task.Task,
) {
	b.Helper()
	if err := settle(b.ctx, l, t); err != nil {
		b.Fatal(err)
	}
}

func TestASettlementGivesUpWithItsContext(t *testing.T) {
	t.Parallel()
	for name, way := range settlements() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, l, w := live(t, Config{})
			one := b.leased(l, "x")
			w.fail(way.script, 1000)
			ctx, cancel := context.WithCancel(b.ctx)
			done := make(chan error, 1)
			go func() { done <- way.settle(ctx, l, one) }()
			b.eventually("two tries", func() bool { return w.calls(way.script) >= 2 })
			cancel()
			if err := <-done; !errors.Is(err, errLost) {
				b.Errorf("%v, want the last try's error", err)
			}
			// The outcome is unknown, so the task keeps its slot and is not adopted.
			b.equal("out", l.Out(), 1)
			b.equal("known", l.out.ids(), []string{one.ID()})
			w.fail(way.script, 0)
			if err := way.settle(b.ctx, l, one); err != nil {
				b.Errorf("tried again: %v", err)
			}
			b.equal("out", l.Out(), 0)
			if name == "complete" {
				b.delivered(took{ID: one.ID(), Payload: "x"})
			}
		})
	}
}

// said counts log lines by their text.
type said struct {
	slog.Handler

	mu    sync.Mutex
	lines map[string]int
}

func (s *said) Enabled(context.Context, slog.Level) bool { return true }

func (s *said) Handle(_ context.Context, r slog.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines[r.Message]++
	return nil
}

func TestStuckSettlementsAreToldOnce(t *testing.T) {
	t.Parallel()
	log := &said{lines: map[string]int{}}
	b, l, w := live(t, Config{Concurrency: 8, Logger: slog.New(log)})
	var settling sync.WaitGroup
	w.fail(abandonScript, 1000)
	for i := range 3 {
		one := b.leased(l, strconv.Itoa(i))
		settling.Go(func() {
			if err := l.Abandon(b.ctx, one, 0); err != nil {
				b.Error(err)
			}
		})
	}
	b.eventually("two tries of each", func() bool { return w.calls(abandonScript) >= 6 && l.stuck.Load() == 3 })
	w.fail(abandonScript, 0)
	settling.Wait()
	b.equal("log lines", log.lines, map[string]int{
		"settling failed, going on trying": 1, "no settlement waits for Redis any more": 1,
	})
}

func TestCompletionsTravelTogether(t *testing.T) {
	t.Parallel()
	const n = 50
	b, l, w := live(t, Config{Concurrency: n})
	tasks := make([]*task.Task, 0, n)
	for i := range n {
		tasks = append(tasks, b.leased(l, fmt.Sprint(i)))
	}
	// One of them is no longer ours, which must not affect the others.
	b.do("hset", b.keys.Worker("w"), tasks[7].ID(), "of another lease")
	open := w.hold(completeScript)
	errs := make([]error, n)
	var all sync.WaitGroup
	for i, t := range tasks {
		if i != 7 {
			b.delivered(took{ID: t.ID(), Payload: string(t.Bytes())})
		}
		all.Go(func() { errs[i] = l.Complete(b.ctx, t) })
	}
	b.eventually("all but the first wait", func() bool {
		l.batch.mu.Lock()
		defer l.batch.mu.Unlock()
		return len(l.batch.waiting) == n-1
	})
	w.refuse(completeScript, 1) // the second call is refused to everybody, and everybody tries again
	open()
	b.ends("all", all.Wait)
	for i, err := range errs {
		if i == 7 != errors.Is(err, task.ErrNotFound) || (i != 7 && err != nil) {
			b.Errorf("task %d: %v", i, err)
		}
	}
	if calls := w.calls(completeScript); calls < 3 || calls > n {
		b.Errorf("%d calls for %d tasks", calls, n)
	}
	b.equal("out", l.Out(), 0)
	b.equal("completed", b.do("hget", b.keys.Stats, "completed"), any("49"))
}

func TestOneCallCarriesAllThatWait(t *testing.T) {
	t.Parallel()
	const n = 50
	b, l, w := live(t, Config{Concurrency: n})
	tasks := make([]*task.Task, 0, n)
	for range n {
		tasks = append(tasks, b.leased(l, "x"))
	}
	open := w.hold(completeScript)
	var all sync.WaitGroup
	for _, t := range tasks {
		b.delivered(took{ID: t.ID(), Payload: "x"})
		all.Go(func() {
			if err := l.Complete(b.ctx, t); err != nil {
				b.Error(err)
			}
		})
	}
	b.eventually("all but the first wait", func() bool {
		l.batch.mu.Lock()
		defer l.batch.mu.Unlock()
		return len(l.batch.waiting) == n-1
	})
	open()
	b.ends("all", all.Wait)
	b.equal("calls", w.calls(completeScript), 2)
}

func TestTwoCompletionsOfOneTask(t *testing.T) {
	t.Parallel()
	b, l, w := live(t, Config{})
	first, one := b.leased(l, "first"), b.leased(l, "x")
	b.delivered(took{ID: first.ID(), Payload: "first"})
	b.delivered(took{ID: one.ID(), Payload: "x"})
	open := w.hold(completeScript)
	errs := make(chan error, 2)
	var all sync.WaitGroup
	all.Go(func() { _ = l.Complete(b.ctx, first) })
	b.eventually("the first call", func() bool { return w.calls(completeScript) == 1 })
	for range 2 {
		all.Go(func() { errs <- l.Complete(b.ctx, one) })
	}
	b.eventually("both wait", func() bool {
		l.batch.mu.Lock()
		defer l.batch.mu.Unlock()
		return len(l.batch.waiting) == 2
	})
	open()
	b.ends("all", all.Wait)
	if a, c := <-errs, <-errs; (a == nil) == (c == nil) {
		b.Errorf("%v and %v, want one of them to have completed the task", a, c)
	}
}

func TestALostLeaseIsAdopted(t *testing.T) {
	t.Parallel()
	b, l, w := live(t, Config{Concurrency: 10})
	known := b.leased(l, "known")
	b.push("a", "b", "c")
	w.lose(leaseScript, 1)
	if _, err := l.Lease(b.ctx, 2); !errors.Is(err, errLost) {
		b.Fatalf("Lease = %v, want the loss", err)
	}
	b.equal("in flight", len(b.places().InFlight["w"]), 3)
	b.equal("out", l.Out(), 1)
	w.lose(adoptScript, 1) // its reply may be lost as well
	if _, err := l.Lease(b.ctx, 10); !errors.Is(err, errLost) {
		b.Fatalf("Lease = %v, want the loss", err)
	}
	tasks, err := l.Lease(b.ctx, 10)
	if err != nil || len(tasks) != 2 {
		b.Fatalf("Lease = %v, %v, want the two lost ones", tasks, err)
	}
	b.equal("payloads", string(tasks[0].Bytes())+string(tasks[1].Bytes()), "ab")
	b.equal("redelivered: nobody had begun", tasks[0].Redelivered(), false)
	more, err := l.Lease(b.ctx, 10)
	if err != nil || len(more) != 1 {
		b.Fatalf("Lease = %v, %v, want the third", more, err)
	}
	calls := w.calls(adoptScript)
	if _, err := l.Lease(b.ctx, 10); err != nil {
		b.Error(err)
	}
	b.equal("adoptions once it is sure", w.calls(adoptScript), calls)
	for _, t := range append(append(tasks, more...), known) {
		b.delivered(took{ID: t.ID(), Payload: string(t.Bytes())})
		if err := t.Succeed(); err != nil {
			b.Error(err)
		}
	}
	b.equal("waiting", b.places().Waiting(), 0)
}

func TestAdoptionFillsNoMoreThanTheFreeSlots(t *testing.T) {
	t.Parallel()
	b, l, w := live(t, Config{Concurrency: 2})
	b.push("a", "b")
	w.lose(leaseScript, 1)
	_, _ = l.Lease(b.ctx, 2)
	tasks, err := l.Lease(b.ctx, 1)
	if err != nil || len(tasks) != 1 {
		b.Fatalf("Lease = %v, %v", tasks, err)
	}
	tasks, err = l.Lease(b.ctx, 5)
	if err != nil || len(tasks) != 1 || l.Out() != 2 {
		b.Fatalf("Lease = %v, %v with %d out, want the second", tasks, err, l.Out())
	}
	tasks, err = l.Lease(b.ctx, 5)
	if err != nil || len(tasks) != 0 {
		b.Fatalf("Lease = %v, %v, want none without a slot", tasks, err)
	}
}

func TestARefusedLeaseIsNoLostOne(t *testing.T) {
	t.Parallel()
	b, l, w := live(t, Config{})
	w.refuse(leaseScript, 1)
	if _, err := l.Lease(b.ctx, 1); err == nil {
		b.Fatal("no error")
	}
	if _, err := l.Lease(b.ctx, 1); err != nil {
		b.Error(err)
	}
	b.equal("adoptions", w.calls(adoptScript), 0)
}

func TestListenAdoptsALostLease(t *testing.T) {
	t.Parallel()
	b, l, w := live(t, Config{})
	b.push("a")
	w.lose(leaseScript, 1)
	tasks, _ := l.Listen(b.ctx)
	got := b.receive(tasks)
	b.equal("payload", string(got.Bytes()), "a")
	b.delivered(took{ID: got.ID(), Payload: "a"})
	if err := got.Succeed(); err != nil {
		b.Error(err)
	}
	b.ends("StopListening", l.StopListening)
}

func TestListenLooksForLostTasksNowAndThen(t *testing.T) {
	// A request may be carried out long after its sender gave up, and after an adoption found nothing.
	t.Parallel()
	b, l, _ := live(t, Config{})
	b.push("a")
	b.take(leaseCall{}, "a") // in our name, without our knowing
	l.adopted = time.Now().Add(-adoptEvery)
	tasks, _ := l.Listen(b.ctx)
	b.equal("payload", string(b.receive(tasks).Bytes()), "a")
	b.ends("StopListening", l.StopListening)
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	b, _, _ := live(t, Config{})
	for name, cfg := range map[string]Config{
		"concurrency": {Concurrency: -1}, "max bytes": {MaxBytes: -1},
		"limit": {Rate: Rate{Limit: -1, Per: time.Second}}, "per": {Rate: Rate{Limit: 1}},
		"short per": {Rate: Rate{Limit: 1, Per: time.Microsecond}}, "burst": {Rate: Rate{Limit: 1, Per: time.Second, Burst: -1}},
	} {
		if _, err := New(b.rdb, b.keys.Source, "w", cfg); err == nil {
			b.Errorf("%s: %+v was accepted", name, cfg)
		}
	}
	if _, err := New(b.rdb, b.keys.Source, "", Config{}); err == nil {
		b.Error("no id was accepted")
	}
}
