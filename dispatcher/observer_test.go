package dispatcher_test

import (
	"context"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/dispatcher"
	"github.com/queuehook/queuehook/metrics"
	"github.com/queuehook/queuehook/redisconn"
	"github.com/queuehook/queuehook/task"
)

// hollow is an Observer that counts the tasks that were buried without a body.
type hollow struct {
	*metrics.Route
	tasks atomic.Int64
}

func (h *hollow) Buried(r delivery.Reason) {
	if r == delivery.BodyMissing {
		h.tasks.Add(1)
	}
}

// faults is an Observer that notes what failed calls were for.
type faults struct {
	*metrics.Route
	ops chan string
}

func (f *faults) RedisError(op string) { f.ops <- op }

// blind is a hook that makes every look for dead dispatchers fail.
type blind struct{ silence }

func (*blind) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if len(cmd.Args()) == 4 { // of all scripts that a dispatcher sends, only that one has a key and no argument
			cmd.SetErr(net.ErrClosed)
			return net.ErrClosed
		}
		return next(ctx, cmd)
	}
}

func TestALookForTheDeadThatFailsIsCounted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.rdb.AddHook(new(blind))
	failed := &faults{Route: metrics.New("test").Route(r.keys.Source, "nowhere"), ops: make(chan string, 1000)}
	d, err := dispatcher.New(dispatcher.Config{
		Queue: r.keys.Source, Interval: beat, Observer: failed, Logger: slog.New(slog.DiscardHandler),
		Redis: redisconn.Conn{Commands: r.rdb, Waits: r.rdb, Beats: r.rdb},
	})
	if err != nil {
		t.Fatal(err)
	}
	d.Start(t.Context())
	select {
	case op := <-failed.ops:
		if op != "sweep" {
			t.Errorf("counted as %s", op)
		}
	case <-time.After(20 * time.Second):
		t.Error("not counted within 20 s")
	}
	if err := d.Halt(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestATaskWithoutABodyIsCounted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	seen := &hollow{Route: metrics.New("test").Route(r.keys.Source, "nowhere")}
	if err := r.rdb.ZAdd(t.Context(), r.keys.Delayed, redis.Z{Score: 1, Member: "hollow"}).Err(); err != nil {
		t.Fatal(err)
	}
	r.serve(dispatcher.Config{
		NoJanitor: true, Observer: seen,
		Target: dispatcher.TargetFunc(func(context.Context, *task.Task) error { return nil }),
	})
	r.eventually("counted", func() bool { return seen.tasks.Load() == 1 })
}
