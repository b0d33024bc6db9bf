package heartbeat

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/redis/go-redis/v9"

	"github.com/queuehook/queuehook/internal/redistest"
	"github.com/queuehook/queuehook/keyspace"
)

// patience is for what happens at once unless it is broken, on a machine that is busy with other things.
const patience = 20 * time.Second

var errAway = errors.New("redis is away")

// outage is a hook that makes calls of some commands fail while it is on, and counts them.
type outage struct {
	on     atomic.Bool
	only   string // the command that fails
	failed atomic.Int64
}

func (o *outage) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (o *outage) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (o *outage) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if o.on.Load() && cmd.Name() == o.only {
			o.failed.Add(1)
			cmd.SetErr(errAway)
			return errAway
		}
		return next(ctx, cmd)
	}
}

// beating is a bench with a heart whose connection to Redis can be cut.
func beating(t *testing.T, interval time.Duration, only string) (*bench, *Heart, *outage) {
	t.Helper()
	b := newBench(t, redistest.Shared(t).Client(t))
	through, away := redistest.Shared(t).Client(t), &outage{only: only}
	through.AddHook(away)
	h, err := New(through, b.keys.Source, Config{
		Interval: interval, Info: Info{Host: "host", PID: 7}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return b, h, away
}

func (b *bench) register(h *Heart) {
	b.Helper()
	if err := h.Register(b.ctx); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) eventually(what string, ok func() bool) {
	b.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			b.Fatalf("%s: not within %s", what, patience)
		case <-tick.C:
		}
	}
}

// run lets the heart beat; the returned function stops it and returns what Run returned.
func (b *bench) beat(h *Heart) (stop func() error) {
	ctx, cancel := context.WithCancel(b.ctx)
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx) }()
	return func() error {
		cancel()
		select {
		case err := <-ended:
			return err
		case <-time.After(patience):
			b.Fatalf("Run did not end within %s", patience)
			return nil
		}
	}
}

func TestRegister(t *testing.T) {
	t.Parallel()
	b, h, _ := beating(t, time.Second, "")
	b.register(h)
	first := h.ID()
	d, err := NewDetector(b.rdb, b.keys.Source)
	if err != nil {
		t.Fatal(err)
	}
	seen, err := d.List(b.ctx)
	if err != nil {
		t.Fatal(err)
	}
	want := []Seen{{ID: first, Info: Info{Host: "host", PID: 7, Interval: 1000, TTL: 3000, Grace: 2000}}}
	b.equal("List", cmp.Diff(want, seen, cmpopts.IgnoreFields(Seen{}, "Left")), "")
	if left := seen[0].Left; left <= 0 || left > 3*time.Second {
		b.Errorf("left %s, want up to 3 s", left)
	}
	b.equal("listed", b.do("sismember", keyspace.Queues, b.keys.Source), any(int64(1)))

	b.register(h) // a second life has an id of its own
	if h.ID() == first {
		b.Error("the id was used again")
	}
	b.equal("known", b.do("zcard", b.keys.Ticks), any(int64(2)))
}

func TestRunKeepsTheDispatcherAlive(t *testing.T) {
	t.Parallel()
	b, h, _ := beating(t, 20*time.Millisecond, "")
	b.register(h)
	stop := b.beat(h)
	for range 3 {
		before, fresh := b.tick(h.ID()), h.Fresh()
		select {
		case <-fresh:
		case <-time.After(patience):
			b.Fatalf("no beat within %s", patience)
		}
		b.eventually("a later tick", func() bool { return b.tick(h.ID()) > before })
	}
	if err := stop(); err != nil {
		b.Errorf("Run = %v, want nil after its context's end", err)
	}
}

func TestRunGoesOnAfterFailures(t *testing.T) {
	t.Parallel()
	b, h, away := beating(t, 20*time.Millisecond, "evalsha")
	b.register(h)
	stop := b.beat(h)
	for range 2 { // the second failure is no end either
		away.failed.Store(0)
		away.on.Store(true)
		b.eventually("failed beats", func() bool { return away.failed.Load() >= 3 })
		fresh := h.Fresh()
		away.on.Store(false)
		select {
		case <-fresh:
		case <-time.After(patience):
			b.Fatalf("no beat within %s of Redis's return", patience)
		}
	}
	away.on.Store(true)
	b.eventually("a failed beat", func() bool { return away.failed.Load() >= 1 })
	if err := stop(); err != nil {
		b.Errorf("Run = %v, want nil while Redis is away", err)
	}
}

// lives beats until Alive is true afterwards. That is so at once, unless the machine is too busy to ask in time.
func (b *bench) lives(h *Heart) {
	b.Helper()
	b.eventually("alive after a beat", func() bool {
		if err := h.Beat(b.ctx); err != nil {
			b.Fatal(err)
		}
		return h.Alive()
	})
}

func TestRunEndsWhenFenced(t *testing.T) {
	t.Parallel()
	for name, fence := range map[string]func(b *bench, id string){
		"condemned": func(b *bench, id string) { b.do("zadd", b.keys.Ticks, -1, id) },
		"forgotten": func(b *bench, id string) { b.do("zrem", b.keys.Ticks, id) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, h, _ := beating(t, 20*time.Millisecond, "")
			b.register(h)
			fence(b, h.ID())
			if err := h.Run(b.ctx); !errors.Is(err, ErrFenced) {
				b.Errorf("Run = %v, want ErrFenced", err)
			}
			old := h.ID()
			b.register(h)
			if h.ID() == old {
				b.Errorf("registered as %s again", old)
			}
			b.lives(h)
		})
	}
}

func TestAliveEndsBeforeAnybodyMaySuspect(t *testing.T) {
	t.Parallel()
	b, h, away := beating(t, 40*time.Millisecond, "evalsha")
	b.register(h)
	if !h.Alive() && sinceBeat(h) < 100*time.Millisecond {
		b.Error("not alive after its registration")
	}
	away.on.Store(true)
	if err := h.Beat(b.ctx); !errors.Is(err, errAway) {
		b.Errorf("Beat = %v", err)
	}
	b.eventually("the end", func() bool { return !h.Alive() })
	// Server and test share a clock here, so what Alive says can be compared with the tick.
	if since := sinceBeat(h); since < 100*time.Millisecond {
		b.Errorf("given up %s after its last good beat, want 2.5 intervals", since)
	}
	away.on.Store(false)
	b.lives(h)
	// The margin leaves two and a half of the three intervals.
	for _, tt := range []struct {
		ago  time.Duration
		want bool
	}{{0, true}, {60 * time.Millisecond, true}, {101 * time.Millisecond, false}, {time.Hour, false}} {
		h.good.Store(int64(sinceBoot() - tt.ago))
		got := h.Alive()
		if tt.want && sinceBeat(h) > 90*time.Millisecond {
			continue // this machine was too slow to ask
		}
		if got != tt.want {
			b.Errorf("%s after the beat: alive %v", tt.ago, got)
		}
	}
}

func sinceBeat(h *Heart) time.Duration { return sinceBoot() - time.Duration(h.good.Load()) }

func TestAHeartThatNeverRegisteredIsNotAlive(t *testing.T) {
	t.Parallel()
	_, h, _ := beating(t, 1000*time.Hour, "")
	if h.Alive() {
		t.Error("alive without a beat")
	}
}

func TestTheQueueIsListedWithTheNextBeat(t *testing.T) {
	t.Parallel()
	b, h, away := beating(t, time.Second, "sadd")
	away.on.Store(true)
	b.register(h)
	b.equal("while SADD fails", b.do("sismember", keyspace.Queues, b.keys.Source), any(int64(0)))
	if err := h.Beat(b.ctx); err != nil {
		b.Errorf("a beat failed with the list: %v", err)
	}
	away.on.Store(false)
	if err := h.Beat(b.ctx); err != nil {
		b.Error(err)
	}
	b.equal("then", b.do("sismember", keyspace.Queues, b.keys.Source), any(int64(1)))
	away.on.Store(true)
	before := away.failed.Load()
	if err := h.Beat(b.ctx); err != nil || away.failed.Load() != before {
		b.Errorf("%v, listed once more", err)
	}
}

func TestDeregister(t *testing.T) {
	t.Parallel()
	b, h, _ := beating(t, time.Second, "")
	b.register(h)
	b.do("hset", b.keys.Worker(h.ID()), "task", "token")
	if err := h.Deregister(b.ctx); !errors.Is(err, ErrBusy) {
		b.Errorf("Deregister = %v, want ErrBusy", err)
	}
	if err := h.Beat(b.ctx); err != nil {
		b.Errorf("a beat after a refused deregistration: %v", err)
	}
	d, err := NewDetector(b.rdb, b.keys.Source)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Purge(b.ctx, h.ID()); !errors.Is(err, ErrBusy) {
		b.Errorf("Purge = %v, want ErrBusy", err)
	}
	b.do("del", b.keys.Worker(h.ID()))
	if err := h.Deregister(b.ctx); err != nil {
		b.Error(err)
	}
	if err := h.Beat(b.ctx); !errors.Is(err, ErrFenced) {
		b.Errorf("Beat = %v, want ErrFenced", err)
	}
	if err := h.Deregister(b.ctx); !errors.Is(err, ErrFenced) {
		b.Errorf("Deregister again = %v, want ErrFenced", err)
	}
	if err := d.Purge(b.ctx, h.ID()); err != nil {
		b.Errorf("Purge of one that is forgotten = %v", err)
	}
}

func TestDetect(t *testing.T) {
	t.Parallel()
	b, h, _ := beating(t, time.Second, "")
	b.register(h)
	b.do("zadd", b.keys.Ticks, 1, "late", -1, "condemned")
	d, err := NewDetector(b.rdb, b.keys.Source)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := d.Detect(b.ctx)
	if err != nil {
		t.Fatal(err)
	}
	b.equal("Detect", ids, []string{"condemned", "late"})
	seen, err := d.List(b.ctx)
	if err != nil || len(seen) != 3 {
		b.Fatalf("List = %v, %v", seen, err)
	}
	b.equal("condemned", []bool{seen[0].Condemned, seen[1].Condemned, seen[2].Condemned}, []bool{true, false, false})
	if seen[1].Left >= 0 || seen[2].Left <= 0 {
		b.Errorf("left %s and %s, want below and above zero", seen[1].Left, seen[2].Left)
	}
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	rdb := redistest.Mini(t)
	if _, err := New(rdb, "q", Config{Interval: time.Millisecond}); err == nil || !strings.Contains(err.Error(), "10ms") {
		t.Errorf("New = %v, want the least interval", err)
	}
	if _, err := New(rdb, "", Config{}); !errors.Is(err, keyspace.ErrName) {
		t.Errorf("New = %v, want ErrName", err)
	}
	if _, err := NewDetector(rdb, ""); !errors.Is(err, keyspace.ErrName) {
		t.Errorf("NewDetector = %v, want ErrName", err)
	}
}

// Containers are often all called alike, and their one process is number 1.
func TestTwoOfTheSameHostAndProcess(t *testing.T) {
	t.Parallel()
	b, one, _ := beating(t, time.Minute, "")
	other, err := New(b.rdb, b.keys.Source, Config{Interval: time.Minute, Info: one.cfg.Info, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range []*Heart{one, other} {
		if err := h.Register(b.ctx); err != nil {
			t.Fatal(err)
		}
	}
	if one.ID() == other.ID() {
		t.Fatalf("both are %s", one.ID())
	}
	if err := one.Deregister(b.ctx); err != nil {
		t.Fatal(err)
	}
	if err := other.Beat(b.ctx); err != nil {
		t.Errorf("the other one's beat: %v", err)
	}
}
