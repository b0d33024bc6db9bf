package dispatcher_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/dispatcher"
	"github.com/queuehook/queuehook/internal/redistest"
	"github.com/queuehook/queuehook/keyspace"
	"github.com/queuehook/queuehook/redisconn"
	"github.com/queuehook/queuehook/task"
)

const beat = 100 * time.Millisecond

// silence is a hook that keeps heartbeats from Redis while it is on.
type silence struct{ on atomic.Bool }

func (s *silence) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s *silence) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (s *silence) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if s.on.Load() {
			cmd.SetErr(net.ErrClosed)
			return net.ErrClosed
		}
		return next(ctx, cmd)
	}
}

// rig is a queue on real Redis and the dispatchers that serve it.
type rig struct {
	*testing.T
	rdb  *redis.Client
	keys keyspace.Keys
}

func newRig(t *testing.T) *rig {
	t.Helper()
	keys, err := keyspace.New(redistest.Queue(t))
	if err != nil {
		t.Fatal(err)
	}
	return &rig{T: t, rdb: redistest.Shared(t).Client(t), keys: keys}
}

// serve runs a dispatcher until the test ends; its beats fail while the silence is on.
func (r *rig) serve(cfg dispatcher.Config) (*dispatcher.Dispatcher, *silence) {
	r.Helper()
	server, quiet := redistest.Shared(r.T), new(silence)
	beats := server.Client(r.T)
	beats.AddHook(quiet)
	cfg.Queue = r.keys.Source
	if cfg.Interval == 0 {
		cfg.Interval = beat
	}
	if cfg.Grace == 0 {
		cfg.Grace = time.Millisecond
	}
	cfg.Redis = redisconn.Conn{Commands: server.Client(r.T), Waits: server.Client(r.T), Beats: beats}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	d, err := dispatcher.New(cfg)
	if err != nil {
		r.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- d.Run(context.WithoutCancel(r.Context())) }()
	r.Cleanup(func() {
		if err := errors.Join(d.Halt(context.Background()), <-ended); err != nil {
			r.Error(err)
		}
	})
	r.eventually("ready", func() bool { return d.Ready() == nil })
	return d, quiet
}

func (r *rig) push(n int) {
	r.Helper()
	for i := range n {
		if err := r.rdb.LPush(r.Context(), r.keys.Source, strconv.Itoa(i)).Err(); err != nil {
			r.Fatal(err)
		}
	}
}

// only is the id of the one dispatcher that Redis knows.
func (r *rig) only() string {
	r.Helper()
	ids, err := r.rdb.ZRange(r.Context(), r.keys.Ticks, 0, -1).Result()
	if err != nil || len(ids) != 1 {
		r.Fatalf("dispatchers %v, %v; want one", ids, err)
	}
	return ids[0]
}

// successor waits until a fenced dispatcher has registered anew, and answers its id.
func (r *rig) successor(d *dispatcher.Dispatcher, fenced string) (id string) {
	r.Helper()
	r.eventually("registered anew", func() bool {
		ids, err := r.rdb.ZRange(r.Context(), r.keys.Ticks, 0, -1).Result()
		if err != nil {
			r.Fatal(err)
		}
		i := slices.IndexFunc(ids, func(id string) bool { return id != fenced })
		if i >= 0 {
			id = ids[i]
		}
		return i >= 0 && d.Ready() == nil
	})
	return id
}

func (r *rig) setTick(id string, at int64) {
	r.Helper()
	if err := r.rdb.ZAdd(r.Context(), r.keys.Ticks, redis.Z{Member: id, Score: float64(at)}).Err(); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) held(id string) int {
	r.Helper()
	n, err := r.rdb.HLen(r.Context(), r.keys.Worker(id)).Result()
	if err != nil {
		r.Fatal(err)
	}
	return int(n)
}

func (r *rig) eventually(what string, ok func() bool) {
	r.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			r.Fatalf("%s: not within 20 s", what)
		case <-tick.C:
		}
	}
}

// TestTasksThatAwaitABeatWhenItsFenced has a dispatcher that leased while its own clock told it to start nothing: as one
// that was suspended with a lease's reply on its way. What it then learns is that it was given up.
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

// TestTheHeartBeatsWhileADispatcherDrains has an attempt that goes on for longer than a dispatcher counts as alive after
// its last beat.
func TestTheHeartBeatsWhileADispatcherDrains(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	begun, answer := make(chan struct{}), make(chan struct{})
	d, _ := r.serve(dispatcher.Config{
		NoJanitor: true, Timeout: time.Hour, Grace: time.Hour,
		Target: dispatcher.TargetFunc(func(ctx context.Context, _ *task.Task) error {
			close(begun)
			select {
			case <-answer:
			case <-ctx.Done():
			}
			return ctx.Err()
		}),
	})
	id := r.only()
	r.push(1)
	<-begun
	closed := make(chan error, 1)
	go func() { closed <- d.Close(context.WithoutCancel(t.Context())) }()
	r.eventually("draining", func() bool { return errors.Is(d.Ready(), dispatcher.ErrDraining) })
	tick := func() float64 { return r.rdb.ZScore(t.Context(), r.keys.Ticks, id).Val() }
	last := tick() + 10*float64(beat.Milliseconds())
	r.eventually("beats go on", func() bool { return tick() > last })
	close(answer)
	if err := <-closed; err != nil || r.held(id) > 0 {
		t.Errorf("Close = %v, %d tasks held", err, r.held(id))
	}
}

// TestFencedDispatcherLeavesTasksToOthers has one whose attempts still fill its slots when it registers anew.
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

// warnings counts those that it is told.
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

// TestFencedDispatcherSaysSoOnce learns of it by its lease, by its heart, or by both at once.
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

// TestATargetThatHeedsNothingIsNoReasonToBeSuspected has a dispatcher stop while its target goes on: it holds no task.
func TestATargetThatHeedsNothingIsNoReasonToBeSuspected(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	begun, end := make(chan struct{}), make(chan struct{})
	defer close(end)
	d, _ := r.serve(dispatcher.Config{
		NoJanitor: true,
		Target: dispatcher.TargetFunc(func(context.Context, *task.Task) error {
			close(begun)
			<-end
			return nil
		}),
	})
	r.push(1)
	<-begun
	if err := d.Halt(context.Background()); err != nil {
		t.Error(err)
	}
	if left := r.rdb.ZRange(t.Context(), r.keys.Ticks, 0, -1).Val(); len(left) != 0 {
		t.Errorf("still registered: %v", left)
	}
}

// TestFencedDispatcherProbesOnce has one whose probe of a route that was held back goes on when it registers anew: what
// it leased meanwhile it could only give back, again and again.
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
