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

	"github.com/queuehook/queuehook/dispatcher"
	"github.com/queuehook/queuehook/internal/redistest"
	"github.com/queuehook/queuehook/keyspace"
	"github.com/queuehook/queuehook/redisconn"
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

// successor waits until a fenced dispatcher has registered anew, and returns its new id.
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
