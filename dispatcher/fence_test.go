package dispatcher_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/dispatcher"
	"github.com/queuehook/queuehook/task"
)

// TestTasksThatAwaitABeatWhenItsFenced has a dispatcher whose own clock lets it start nothing with what it has just
// leased, as when it was suspended while a lease's reply was on its way. It then learns that it was given up.
func TestTasksThatAwaitABeatWhenItsFenced(t *testing.T) {
	t.Parallel()
	const slots = 3
	r := newRig(t)
	var done, unfit atomic.Int64
	var first atomic.Value
	d, quiet := r.serve(dispatcher.Config{
		Concurrency: slots, NoJanitor: true,
		Target: dispatcher.TargetFunc(func(ctx context.Context, task *task.Task) error {
			if held, err := r.rdb.HExists(ctx, r.keys.Worker(first.Load().(string)), task.ID()).Result(); held || err != nil {
				unfit.Add(1)
			}
			done.Add(1)
			return nil
		}),
	})
	id := r.only()
	first.Store(id)
	quiet.on.Store(true)
	r.eventually("silence noticed", func() bool { return errors.Is(d.Ready(), dispatcher.ErrSilent) })
	r.setTick(id, time.Now().Add(time.Hour).UnixMilli())
	r.push(slots)
	r.eventually("leased", func() bool { return r.held(id) == slots })
	if n := done.Load(); n > 0 {
		t.Errorf("%d attempts without a beat", n)
	}
	r.setTick(id, -1)
	quiet.on.Store(false)
	r.eventually("delivered", func() bool { return done.Load() == slots })
	if n := unfit.Load(); n > 0 {
		t.Errorf("%d attempts under the id that was given up", n)
	}
}

// TestFencedDispatcherLeavesTasksToOthers has a dispatcher whose attempts still fill its slots when it registers anew.
func TestFencedDispatcherLeavesTasksToOthers(t *testing.T) {
	t.Parallel()
	const slots = 3
	r := newRig(t)
	var hanging, done atomic.Int64
	d, _ := r.serve(dispatcher.Config{
		Concurrency: slots, NoJanitor: true, Timeout: time.Hour,
		Target: dispatcher.TargetFunc(func(ctx context.Context, _ *task.Task) error {
			hanging.Add(1)
			<-ctx.Done()
			return ctx.Err()
		}),
	})
	first := r.only()
	r.push(slots)
	r.eventually("hanging", func() bool { return hanging.Load() == slots })
	r.setTick(first, -1)
	r.successor(d, first)
	r.push(slots)
	r.serve(dispatcher.Config{
		Concurrency: slots, NoJanitor: true,
		Target: dispatcher.TargetFunc(func(context.Context, *task.Task) error {
			done.Add(1)
			return nil
		}),
	})
	r.eventually("delivered by the other", func() bool { return done.Load() == slots })
}

// warnings is a log handler that counts warnings.
type warnings struct {
	slog.Handler
	count map[string]*atomic.Int64
}

func (w warnings) Enabled(context.Context, slog.Level) bool { return true }

func (w warnings) WithAttrs([]slog.Attr) slog.Handler { return w }

func (w warnings) Handle(_ context.Context, r slog.Record) error {
	if n := w.count[r.Message]; n != nil {
		n.Add(1)
	}
	return nil
}

// TestFencedDispatcherSaysSoOnce has dispatchers that learn that they are fenced from a lease, from the heart, or from
// both at once.
func TestFencedDispatcherSaysSoOnce(t *testing.T) {
	t.Parallel()
	for name, interval := range map[string]time.Duration{"lease": time.Hour, "heart or lease": 10 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			var told atomic.Int64
			d, _ := r.serve(dispatcher.Config{
				NoJanitor: true, Interval: interval,
				Target: dispatcher.TargetFunc(func(context.Context, *task.Task) error { return nil }),
				Logger: slog.New(warnings{count: map[string]*atomic.Int64{"dispatcher was given up by the others": &told}}),
			})
			for times := int64(1); times <= 3; times++ {
				first := r.only()
				r.setTick(first, -1)
				r.successor(d, first)
				r.eventually("the fenced one is forgotten", func() bool {
					return errors.Is(r.rdb.ZScore(r.Context(), r.keys.Ticks, first).Err(), redis.Nil)
				})
				if got := told.Load(); got != times {
					t.Fatalf("told %d times, want %d", got, times)
				}
			}
		})
	}
}

// TestFencedDispatcherSaysSoAtItsStop has a fenced dispatcher that is told to stop before its next lease and beat. It
// learns of the fence only when it deregisters, and must say so, since its tasks may have been delivered again.
func TestFencedDispatcherSaysSoAtItsStop(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var told atomic.Int64
	attempts, goOn := make(chan struct{}), make(chan struct{})
	d, _ := r.serve(dispatcher.Config{
		Concurrency: 1, NoJanitor: true, Interval: time.Hour,
		Target: dispatcher.TargetFunc(func(context.Context, *task.Task) error {
			close(attempts)
			<-goOn
			return nil
		}),
		Logger: slog.New(warnings{count: map[string]*atomic.Int64{"dispatcher was given up by the others": &told}}),
	})
	r.push(1)
	<-attempts // the one slot is taken: no lease tells it
	r.setTick(r.only(), -1)
	stopping, hasten := context.WithCancel(t.Context())
	hasten()
	if err := d.Close(stopping); !errors.Is(err, context.Canceled) {
		t.Fatalf("Close = %v, want that it goes on", err)
	}
	close(goOn)
	if err := d.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := told.Load(); got != 1 {
		t.Errorf("told %d times, want once", got)
	}
}

// TestFencedDispatcherProbesOnce has a dispatcher that registers anew while its probe of a held-back route is under
// way. If it leased meanwhile, it could only give the tasks back, again and again.
func TestFencedDispatcherProbesOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var attempts atomic.Int64
	r.serve(dispatcher.Config{
		Concurrency: 3, NoJanitor: true, Timeout: time.Hour,
		Breaker: dispatcher.Breaker{Consecutive: 1, Pause: time.Millisecond},
		Retry:   dispatcher.Retry{Schedule: []time.Duration{time.Hour}},
		Target: dispatcher.TargetFunc(func(ctx context.Context, _ *task.Task) error {
			if attempts.Add(1) == 1 {
				return delivery.Errorf(delivery.Connect, "nobody there")
			}
			<-ctx.Done()
			return ctx.Err()
		}),
	})
	first := r.only()
	r.push(1)
	r.eventually("held back", func() bool { return attempts.Load() == 1 && r.held(first) == 0 })
	r.push(4)
	r.eventually("probing", func() bool { return attempts.Load() == 2 })
	r.setTick(first, -1)
	start := time.Now()
	r.eventually("registered anew, and beating", func() bool {
		ticks := r.rdb.ZRevRangeWithScores(t.Context(), r.keys.Ticks, 0, 0).Val()
		return len(ticks) == 1 && int64(ticks[0].Score) > start.Add(10*beat).UnixMilli()
	})
	if n := r.rdb.HGet(t.Context(), r.keys.Stats, "released").Val(); n != "" {
		t.Errorf("given back %s times", n)
	}
}
