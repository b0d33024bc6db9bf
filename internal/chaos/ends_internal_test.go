package chaos

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/heartbeat"
	"github.com/queuehook/queuehook/internal/fleet"
	"github.com/queuehook/queuehook/internal/receiver"
	"github.com/queuehook/queuehook/internal/redistest"
	"github.com/queuehook/queuehook/lifecycle"
	"github.com/queuehook/queuehook/task"
)

// TestCauses ends leases in every way there is, with Redis killed in between, and asks what each end explains of an attempt
// that was accepted: the first, that the lease was for, and another.
func TestCauses(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Config{AppendOnly: true})
	q := fleet.NewQueue(t, server, receiver.Config{})
	keys, ctx := q.Keys(t), t.Context()
	const pid = 4711
	heart, err := heartbeat.New(q.Redis, q.Name, heartbeat.Config{
		Interval: heartbeat.MinInterval, Info: heartbeat.Info{PID: pid},
	})
	try(t, err)
	try(t, heart.Register(ctx))
	lives := func(until time.Time) {
		try(t, q.Redis.ZAdd(ctx, keys.Ticks, redis.Z{Member: heart.ID(), Score: float64(until.UnixMilli())}).Err())
	}
	lives(time.Now().Add(4 * time.Minute))
	life, err := lifecycle.New(q.Redis, q.Name, heart.ID(), lifecycle.Config{})
	try(t, err)

	abandon := func(r delivery.Reason) func(*task.Task) error {
		return func(tk *task.Task) error { return life.Abandon(ctx, ended(tk, r), time.Hour) }
	}
	release := func(r delivery.Reason) func(*task.Task) error {
		return func(tk *task.Task) error { return life.Release(ctx, ended(tk, r)) }
	}
	ways := []struct {
		name   string
		settle func(*task.Task) error
		want   []string
	}{
		{"complete", func(tk *task.Task) error { return life.Complete(ctx, tk) }, nil},
		{"timeout", abandon(delivery.Timeout), []string{"timeout", ""}},
		{"reset", abandon(delivery.Reset), []string{"reset", ""}},
		{"stale connection", abandon(delivery.StaleConnection), []string{"stale_connection", ""}},
		{"status", abandon(delivery.Status), []string{"", ""}},
		{"ok, but abandoned", abandon(delivery.OK), []string{"", ""}},
		{
			"timeout for the last time", func(tk *task.Task) error {
				return life.Bury(ctx, ended(tk, delivery.Timeout), delivery.Exhausted)
			}, []string{"timeout", ""},
		},
		{"stop before the attempt", func(tk *task.Task) error { return life.Release(ctx, tk) }, []string{"", ""}},
		{"stop in the attempt", release(delivery.Shutdown), []string{"shutdown", ""}},
		{"stop after the attempt", release(delivery.OK), []string{"stopped while redis was away", ""}},
		{"sweep", func(*task.Task) error { return nil }, []string{"lease lost", "dispatcher killed"}},
	}
	leased := make([]*task.Task, len(ways))
	for i, way := range ways {
		id, err := life.Enqueue(ctx, nil, lifecycle.EnqueueOptions{})
		try(t, err)
		tasks, err := life.Lease(ctx, 1)
		if err != nil || len(tasks) != 1 || tasks[0].ID() != id {
			t.Fatalf("%s: leased %v, %v", way.name, tasks, err)
		}
		leased[i] = tasks[0]
	}
	for i, way := range ways {
		if i == len(ways)/2 {
			server.Kill(t)
			server.Start(t)
			fleet.Await(t, fleet.Patience, "the client's connection", func() error { return q.Redis.Ping(ctx).Err() })
		}
		try(t, way.settle(leased[i]))
	}
	lives(time.UnixMilli(1))
	fleet.Await(t, fleet.Patience, "the sweep", func() error {
		swept, err := life.Sweep(ctx, heart.ID(), lifecycle.Sweep{Grace: time.Millisecond, Batch: 10})
		if err == nil && swept.State != lifecycle.Taken {
			err = fmt.Errorf("%+v", swept)
		}
		return err
	})

	ends := endsOf(t, server, q)
	for i, way := range ways {
		var got []string
		for _, e := range ends[leased[i].ID()] {
			if e.pid != pid {
				t.Errorf("%s: ended at %d, want %d", way.name, e.pid, pid)
			}
			got = append(got, e.cause(1, false), e.cause(2, true))
		}
		if diff := cmp.Diff(way.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", way.name, diff)
		}
	}
	try(t, q.Redis.FlushAll(ctx).Err()) // what the law would ask for
	q.Law(t)
}

func ended(tk *task.Task, r delivery.Reason) *task.Task {
	tk.Record(task.Result{At: tk.Now(), Reason: r.String(), Charged: true})
	return tk
}

func try(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
