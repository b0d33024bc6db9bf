package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/internal/redistest"
	"github.com/queuehook/queuehook/task"
)

// live is a bench with the lifecycle of a living dispatcher, and the network between.
func live(t *testing.T, cfg Config) (*bench, *DefaultLifecycle, *wire) {
	t.Helper()
	rdb := redistest.Shared(t).Client(t)
	b := newBench(t, rdb)
	through := redistest.Shared(t).Client(t)
	w := newWire()
	through.AddHook(w)
	// Otherwise NOSCRIPT would be the reply that is lost, in whichever test is the first to run the script.
	for _, source := range []string{leaseSource, adoptSource, completeSource, abandonSource, burySource, releaseSource} {
		b.do("script", "load", source)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	b.alive("w")
	l, err := New(through, b.keys.Source, "w", cfg)
	if err != nil {
		t.Fatal(err)
	}
	return b, l, w
}

func (b *bench) receive(tasks <-chan *task.Task) *task.Task {
	b.Helper()
	select {
	case t, ok := <-tasks:
		if !ok {
			b.Fatal("channel is closed")
		}
		return t
	case <-time.After(patience):
		b.Fatalf("no task within %s", patience)
	}
	return nil
}

// ends waits for a call that must return.
func (b *bench) ends(what string, f func()) {
	b.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(patience):
		b.Fatalf("%s: not within %s", what, patience)
	}
}

func TestListenUntilStopped(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"StopListening", "context"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			b, l, _ := live(t, Config{Concurrency: 3})
			ctx, cancel := context.WithCancel(b.ctx)
			defer cancel()
			tasks, errs := l.Listen(ctx)
			b.push("a", "b")
			for _, want := range []string{"a", "b"} {
				got := b.receive(tasks)
				b.equal("payload", string(got.Bytes()), want)
				b.delivered(took{ID: got.ID(), Payload: want})
				if err := got.Succeed(); err != nil {
					b.Error(err)
				}
			}
			if how == "context" {
				cancel()
			} else {
				b.ends("StopListening", l.StopListening)
			}
			b.ends("the end of both channels", func() {
				for range tasks {
					b.Error("a task after the end")
				}
				for err := range errs {
					b.Error(err)
				}
			})
			l.StopListening() // again, and after the end: no matter
			b.push("c")
			b.equal("in flight", len(b.places().InFlight), 0)
		})
	}
}

func TestStopListeningReleasesWhatNobodyTook(t *testing.T) {
	t.Parallel()
	b, l, _ := live(t, Config{Concurrency: 5})
	b.push("a", "b", "c")
	tasks, _ := l.Listen(b.ctx)
	taken := b.receive(tasks)
	b.ends("StopListening", l.StopListening)
	p := b.places()
	b.equal("in flight", p.Of()[taken.ID()], []string{"in flight at w"})
	b.equal("given back", len(p.Delayed)+len(p.Source), 2)
	b.equal("metadata of what nobody touched", len(p.Meta), 0)
	b.equal("out", l.Out(), 1)
}

func TestStopListeningAwaitsTheLeaseUnderWay(t *testing.T) {
	t.Parallel()
	b, l, w := live(t, Config{Concurrency: 5})
	open := w.hold(leaseScript)
	b.push("a")
	tasks, _ := l.Listen(b.ctx)
	b.eventually("a lease under way", func() bool { return w.calls(leaseScript) > 0 })
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.StopListening()
	}()
	select {
	case <-done:
		b.Error("StopListening did not wait for the lease")
	case <-tasks:
		b.Error("a task, or the end, before the lease's reply")
	case <-time.After(20 * time.Millisecond):
	}
	open()
	b.ends("StopListening", func() { <-done })
	b.equal("in flight", len(b.places().InFlight), 0)
}

func TestPushesAtTheMomentOfStopping(t *testing.T) {
	// An idle wait is under way when the listener stops; what is pushed then lands and is never lost.
	t.Parallel()
	b, l, _ := live(t, Config{Concurrency: 5})
	for i := range 10 {
		l, err := New(l.rdb, b.keys.Source, "w", Config{Concurrency: 5})
		if err != nil {
			b.Fatal(err)
		}
		tasks, _ := l.Listen(b.ctx)
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			l.StopListening()
		}()
		b.push(fmt.Sprint(i))
		b.ends("StopListening", func() { <-stopped })
		for t := range tasks {
			b.Errorf("%s came after the end", t)
		}
	}
	b.law()
}

func TestAnOrderedQueueGoesOnWhenItsTaskIsSettled(t *testing.T) {
	// If the listener slept for its whole wait instead, this would take half a minute.
	t.Parallel()
	const total = 30
	b, l, _ := live(t, Config{Concurrency: 5, Ordered: true})
	for i := range total {
		b.push(fmt.Sprint(i))
	}
	tasks, _ := l.Listen(b.ctx)
	b.ends("all tasks", func() {
		for i := range total {
			got := b.receive(tasks)
			b.equal("payload", string(got.Bytes()), fmt.Sprint(i))
			b.delivered(took{ID: got.ID(), Payload: string(got.Bytes())})
			if err := got.Succeed(); err != nil {
				b.Error(err)
			}
		}
	})
	b.ends("StopListening", l.StopListening)
}

func TestSlotsAreNeverExceeded(t *testing.T) {
	t.Parallel()
	const slots, total = 4, 300
	b, l, w := live(t, Config{Concurrency: slots})
	for i := range total {
		b.push(fmt.Sprint(i))
	}
	w.lose(leaseScript, 3)
	tasks, _ := l.Listen(b.ctx)
	var working, done atomic.Int64
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 2 * slots {
		all.Go(func() {
			for t := range tasks {
				if n := working.Add(1); n > slots {
					b.Errorf("%d work at once, at most %d may", n, slots)
				}
				held, err := b.rdb.HLen(b.ctx, b.keys.Worker("w")).Result()
				// Tasks of a lost lease are in flight in Redis, but take no slot.
				if err != nil || held > slots*4 || l.Out() > slots {
					b.Errorf("%d in flight, %d out, %v", held, l.Out(), err)
				}
				mu.Lock()
				b.delivered(took{ID: t.ID(), Payload: string(t.Bytes())})
				mu.Unlock()
				working.Add(-1)
				if err := t.Succeed(); err != nil {
					b.Error(err)
				}
				done.Add(1)
			}
		})
	}
	b.eventually("all done", func() bool { return done.Load() == total })
	b.ends("StopListening", l.StopListening)
	all.Wait()
}

func TestPayloadBytesTakeSlotsToo(t *testing.T) {
	t.Parallel()
	b, l, _ := live(t, Config{Concurrency: 10, MaxOut: 10})
	b.push("aaaa", "bbbb", "cccc", "dddd", "eeee")
	lease := func(want ...string) []*task.Task {
		t.Helper()
		tasks, err := l.Lease(b.ctx, 10)
		if err != nil {
			b.Fatal(err)
		}
		var got []string
		for _, tk := range tasks {
			got = append(got, string(tk.Bytes()))
		}
		slices.Sort(got)
		b.equal("leased", strings.Join(got, " "), strings.Join(want, " "))
		return tasks
	}
	first := lease("aaaa", "bbbb", "cccc") // the third goes beyond
	lease()
	for _, tk := range first[:2] {
		b.delivered(took{ID: tk.ID(), Payload: string(tk.Bytes())})
		if err := tk.Succeed(); err != nil {
			b.Fatal(err)
		}
	}
	lease("dddd", "eeee")
	lease()
}

func TestAFencedListenerSaysSoAndEnds(t *testing.T) {
	t.Parallel()
	b, l, w := live(t, Config{})
	w.fail(leaseScript, 1) // its error fills the channel, and nobody reads it
	tasks, errs := l.Listen(b.ctx)
	b.eventually("the fault", func() bool { return w.calls(leaseScript) >= 2 })
	b.tick("w", -1)
	b.ends("the end", func() {
		for range tasks {
			b.Error("a task")
		}
	})
	var last error
	for err := range errs {
		last = err
	}
	if !errors.Is(last, ErrFenced) {
		b.Errorf("last error %v, want ErrFenced", last)
	}
	b.ends("StopListening", l.StopListening)
}

func TestAListenerGoesOnAfterFaults(t *testing.T) {
	t.Parallel()
	b, l, w := live(t, Config{})
	w.refuse(leaseScript, 2)
	tasks, errs := l.Listen(b.ctx)
	b.push("a")
	got := b.receive(tasks)
	b.equal("payload", string(got.Bytes()), "a")
	select {
	case err := <-errs:
		if err == nil {
			b.Error("no error")
		}
	default:
		b.Error("the fault was not told")
	}
	b.ends("StopListening", l.StopListening)
}

func TestListenWaitsForALateHeart(t *testing.T) {
	t.Parallel()
	b, l, w := live(t, Config{})
	b.tick("w", b.now()-1)
	b.push("a")
	tasks, _ := l.Listen(b.ctx)
	b.eventually("two looks", func() bool { return w.calls(leaseScript) >= 2 })
	b.alive("w")
	b.receive(tasks)
	b.ends("StopListening", l.StopListening)
}

func TestAwait(t *testing.T) {
	t.Parallel()
	b, l, _ := live(t, Config{})
	if err := l.Await(b.ctx); err != nil {
		b.Errorf("Await with nothing out: %v", err)
	}
	b.push("a", "b")
	tasks, err := l.Lease(b.ctx, 10)
	if err != nil || len(tasks) != 2 {
		b.Fatalf("Lease = %v, %v", tasks, err)
	}
	why := errors.New("out of patience")
	ctx, cancel := context.WithCancelCause(b.ctx)
	cancel(why)
	if err := l.Await(ctx); !errors.Is(err, why) {
		b.Errorf("Await = %v, want the context's cause", err)
	}
	awaited := make(chan error, 1)
	go func() { awaited <- l.Await(b.ctx) }()
	if err := l.Abandon(b.ctx, tasks[0], time.Hour); err != nil {
		b.Error(err)
	}
	select {
	case <-awaited:
		b.Error("Await returned while a task was out")
	case <-time.After(10 * time.Millisecond):
	}
	if err := l.Bury(b.ctx, tasks[1], delivery.Rejected); err != nil {
		b.Error(err)
	}
	b.ends("Await", func() {
		if err := <-awaited; err != nil {
			b.Error(err)
		}
	})
}

// TestAbandonAllCompletesWhatWasDelivered stops while Redis has not yet been told of a delivery, which must not be
// repeated.
func TestAbandonAllCompletesWhatWasDelivered(t *testing.T) {
	t.Parallel()
	b, l, w := live(t, Config{})
	done, open := b.leased(l, "done"), b.leased(l, "open")
	b.delivered(took{ID: done.ID(), Payload: "done"})
	w.fail(completeScript, 3)
	impatient, cancel := context.WithCancel(b.ctx)
	cancel()
	if err := l.Complete(impatient, done); err == nil || errors.Is(err, task.ErrNotFound) {
		b.Fatalf("Complete without Redis = %v", err)
	}
	if err := l.AbandonAll(b.ctx); err != nil {
		b.Fatal(err)
	}
	b.equal("out", l.Out(), 0)
	b.equal("places", b.places().Of(), map[string][]string{open.ID(): {"delayed"}})
}

// TestAbandonAllCompletesWhatIsBeingCompleted stops while a completion is on its way: whichever of the two Redis carries
// out first, the task is not given back.
func TestAbandonAllCompletesWhatIsBeingCompleted(t *testing.T) {
	t.Parallel()
	b, l, w := live(t, Config{})
	done, open := b.leased(l, "done"), b.leased(l, "open")
	b.delivered(took{ID: done.ID(), Payload: "done"})
	answer := w.hold(completeScript)
	completed, abandoned := make(chan error, 1), make(chan error, 1)
	go func() { completed <- l.Complete(b.ctx, done) }()
	b.eventually("a completion on its way", func() bool { return w.calls(completeScript) == 1 })
	go func() { abandoned <- l.AbandonAll(b.ctx) }()
	b.eventually("another one", func() bool { return w.calls(completeScript) == 2 })
	answer()
	b.ends("both", func() {
		if err := errors.Join(<-completed, <-abandoned); err != nil {
			b.Error(err)
		}
	})
	b.equal("out", l.Out(), 0)
	b.equal("places", b.places().Of(), map[string][]string{open.ID(): {"delayed"}})
}

func TestAbandonAllReleasesUncharged(t *testing.T) {
	t.Parallel()
	b, l, _ := live(t, Config{})
	b.push("a", "b", "c")
	tasks, err := l.Lease(b.ctx, 10)
	if err != nil || len(tasks) != 3 {
		b.Fatalf("Lease = %v, %v", tasks, err)
	}
	tasks[2].Record(task.Result{At: tasks[2].Now(), Reason: "connect", Charged: true})
	if err := l.AbandonAll(b.ctx); err != nil {
		b.Fatal(err)
	}
	b.equal("out", l.Out(), 0)
	for _, t := range tasks {
		if !errors.Is(context.Cause(t.Context()), delivery.ErrShutdown) {
			b.Errorf("%s: context's cause %v, want ErrShutdown", t, context.Cause(t.Context()))
		}
		if err := l.Complete(b.ctx, t); !errors.Is(err, task.ErrNotFound) {
			b.Errorf("a settlement afterwards: %v, want ErrNotFound", err)
		}
	}
	again, err := New(b.rdb, b.keys.Source, "w", Config{})
	if err != nil {
		b.Fatal(err)
	}
	tasks, err = again.Lease(b.ctx, 10)
	if err != nil || len(tasks) != 3 {
		b.Fatalf("Lease = %v, %v, want all three at once", tasks, err)
	}
	for i, want := range []struct {
		attempt     int
		redelivered bool
	}{{1, true}, {1, true}, {2, false}} { // an attempt whose end was recorded keeps it
		b.equal("attempt", tasks[i].Attempt(), want.attempt)
		b.equal("redelivered", tasks[i].Redelivered(), want.redelivered)
	}
}

func TestListenersLeaveNothingBehind(t *testing.T) {
	b, _, _ := live(t, Config{})
	rdb := redistest.Shared(t).Client(t)
	cycle := func() {
		l, err := New(rdb, b.keys.Source, "w", Config{Concurrency: 4})
		if err != nil {
			b.Fatal(err)
		}
		b.push("x")
		tasks, _ := l.Listen(b.ctx)
		var users sync.WaitGroup
		users.Go(func() { // stopping from two sides at once, while somebody receives
			for t := range tasks {
				if err := t.Fail(); err != nil {
					b.Error(err)
				}
			}
		})
		users.Go(l.StopListening)
		b.ends("StopListening", l.StopListening)
		users.Wait()
		if err := l.AbandonAll(b.ctx); err != nil {
			b.Error(err)
		}
	}
	cycle()
	before := runtime.NumGoroutine()
	for range 10 {
		cycle()
	}
	b.eventually("as few goroutines as before", func() bool { return runtime.NumGoroutine() <= before })
}

var _ redis.Hook = (*wire)(nil)
