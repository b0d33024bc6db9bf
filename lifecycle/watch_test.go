package lifecycle_test

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/queuehook/queuehook/heartbeat"
	"github.com/queuehook/queuehook/internal/redistest"
	"github.com/queuehook/queuehook/lifecycle"
)

func TestWatch(t *testing.T) {
	t.Parallel()
	for name, client := range map[string]func(*testing.T) *redis.Client{
		"redis":     func(t *testing.T) *redis.Client { return redistest.Start(t, redistest.Config{}).Client(t) },
		"miniredis": func(t *testing.T) *redis.Client { return redistest.Mini(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			watch(t, client(t))
		})
	}
}

func watch(t *testing.T, rdb *redis.Client) {
	ctx, queue := t.Context(), redistest.Queue(t)
	q, err := lifecycle.Open(rdb, queue)
	if err != nil {
		t.Fatal(err)
	}
	w := lifecycle.NewWatch(q)
	see := func(when string, ready int64, waits bool) {
		t.Helper()
		d, err := w.Depth(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if d.Ready != ready || d.HeadSeen > 0 != waits || d.OldestReady() != max(d.HeadSeen, d.OldestDue) {
			t.Errorf("%s: %d ready, head seen for %v; want %d, waiting = %v", when, d.Ready, d.HeadSeen, ready, waits)
		}
	}
	push := func(payloads ...any) {
		t.Helper()
		if err := rdb.LPush(ctx, queue, payloads...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	heart, err := heartbeat.New(rdb, queue, heartbeat.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := heart.Register(ctx); err != nil {
		t.Fatal(err)
	}
	l, err := lifecycle.New(rdb, queue, heart.ID(), lifecycle.Config{})
	if err != nil {
		t.Fatal(err)
	}
	complete := func() {
		t.Helper()
		tasks, err := l.Lease(ctx, 1)
		if err != nil || len(tasks) != 1 {
			t.Fatalf("lease: %d tasks, %v", len(tasks), err)
		}
		if err := l.Complete(ctx, tasks[0]); err != nil {
			t.Fatal(err)
		}
	}

	see("empty", 0, false)
	see("empty again", 0, false)
	ends := strings.Repeat("x", 2048)
	push(ends+"1"+ends, ends+"2"+ends+"2", "", "same", "same", "same")
	see("first look", 6, false)
	see("second look", 6, true)
	push("behind")
	see("one more behind", 7, true)
	if err := rdb.RPop(ctx, queue).Err(); err != nil {
		t.Fatal(err)
	}
	see("another head", 6, false)
	see("another head, seen twice", 6, true)

	complete() // the second long one
	complete() // the empty one; the head now is the first of the equal ones
	see("two are done", 4, false)
	see("standing", 4, false)
	see("standing still", 4, true)
	complete()
	see("an equal one, after one was done", 3, false)
	see("the equal one", 3, false)
	see("the equal one again", 3, true)

	// What the idle wait has moved to the landing list is next, before the list.
	if err := rdb.LMove(ctx, queue, "{"+queue+"}:in", "RIGHT", "LEFT").Err(); err != nil {
		t.Fatal(err)
	}
	see("landed", 3, true)

	// A large head is not looked at each time.
	if err := rdb.Del(ctx, queue, "{"+queue+"}:in").Err(); err != nil {
		t.Fatal(err)
	}
	see("emptied", 0, false)
	push(strings.Repeat("y", 2_000_000))
	see("large", 1, false)
	see("large, not looked at", 1, true)
	if err := rdb.Del(ctx, queue).Err(); err != nil {
		t.Fatal(err)
	}
	see("emptied again", 0, false)
}
