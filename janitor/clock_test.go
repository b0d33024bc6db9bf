package janitor_test

import (
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/queuehook/queuehook/heartbeat"
	"github.com/queuehook/queuehook/internal/redistest"
	"github.com/queuehook/queuehook/lifecycle"
)

// TestAWrongClockDecidesNothing has a dispatcher whose clock is minutes off the server's. It counts as alive no longer
// and no shorter for that, and keeps what it leased until the server's clock says otherwise, also to a janitor with the
// wrong clock. Delays end by the server's clock too.
func TestAWrongClockDecidesNothing(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]time.Duration{"behind": 5 * time.Minute, "ahead": -5 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := miniredis.RunT(t)
			now := time.Now().Add(off).Truncate(time.Millisecond)
			server.SetTime(now)
			pass := func(d time.Duration) {
				now = now.Add(d)
				server.SetTime(now)
			}
			rdb, queue := redis.NewClient(&redis.Options{Addr: server.Addr()}), redistest.Queue(t)
			t.Cleanup(func() { _ = rdb.Close() })
			heart, err := heartbeat.New(rdb, queue, heartbeat.Config{Interval: 10 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			if err := heart.Register(t.Context()); err != nil {
				t.Fatal(err)
			}
			life, err := lifecycle.New(rdb, queue, heart.ID(), lifecycle.Config{})
			if err != nil {
				t.Fatal(err)
			}
			if !heart.Alive() {
				t.Error("by its own clock it is dead")
			}
			if _, err := life.Enqueue(t.Context(), []byte("x"), lifecycle.EnqueueOptions{Delay: 20 * time.Second}); err != nil {
				t.Fatal(err)
			}
			leases := func(want int) {
				t.Helper()
				got, err := life.Lease(t.Context(), 1)
				if err != nil || len(got) != want {
					t.Fatalf("leased %d, %v, want %d", len(got), err, want)
				}
			}
			detector, err := heartbeat.NewDetector(rdb, queue)
			if err != nil {
				t.Fatal(err)
			}
			suspected := func() bool {
				t.Helper()
				ids, err := detector.Detect(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				return len(ids) > 0
			}
			sweeps := func(want lifecycle.Suspicion) {
				t.Helper()
				got, err := life.Sweep(t.Context(), heart.ID(), lifecycle.Sweep{Batch: 100})
				if err != nil || got.State != want {
					t.Errorf("sweep: %+v, %v, want %s", got, err, want)
				}
			}

			pass(19 * time.Second)
			leases(0)
			pass(2 * time.Second)
			leases(1)
			if err := heart.Beat(t.Context()); err != nil {
				t.Fatal(err)
			}
			pass(29 * time.Second)
			if suspected() {
				t.Error("suspected within its time to live")
			}
			sweeps(lifecycle.Alive)
			pass(2 * time.Second)
			if !suspected() {
				t.Error("not suspected after its time to live")
			}
			sweeps(lifecycle.Marked)
			pass(19 * time.Second)
			sweeps(lifecycle.Waiting)
			pass(2 * time.Second)
			sweeps(lifecycle.Taken)
		})
	}
}
