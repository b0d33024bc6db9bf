package janitor_test

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/queuehook/queuehook/heartbeat"
	"github.com/queuehook/queuehook/internal/redistest"
	"github.com/queuehook/queuehook/janitor"
	"github.com/queuehook/queuehook/lifecycle"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

// abandon leaves a dispatcher behind that leased this many tasks and will never beat again. Its grace is twice the
// interval.
func abandon(t *testing.T, rdb redis.UniversalClient, queue string, tasks int, interval time.Duration) string {
	t.Helper()
	heart, err := heartbeat.New(rdb, queue, heartbeat.Config{Interval: interval})
	if err != nil {
		t.Fatal(err)
	}
	if err := heart.Register(t.Context()); err != nil {
		t.Fatal(err)
	}
	if tasks == 0 {
		return heart.ID()
	}
	payloads := make([]any, tasks)
	for i := range payloads {
		payloads[i] = fmt.Sprint(i)
	}
	if err := rdb.LPush(t.Context(), queue, payloads...).Err(); err != nil {
		t.Fatal(err)
	}
	life, err := lifecycle.New(rdb, queue, heart.ID(), lifecycle.Config{Concurrency: tasks})
	if err != nil {
		t.Fatal(err)
	}
	for leased := 0; leased < tasks; {
		got, err := life.Lease(t.Context(), tasks-leased)
		if err != nil {
			t.Fatal(err)
		}
		leased += len(got)
		if len(got) == 0 {
			if err := heart.Beat(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	return heart.ID()
}

func onRedis(t *testing.T, rdb redis.UniversalClient, queue string) (janitor.Config, *lifecycle.Queue) {
	t.Helper()
	detector, err := heartbeat.NewDetector(rdb, queue)
	if err != nil {
		t.Fatal(err)
	}
	q, err := lifecycle.Open(rdb, queue)
	if err != nil {
		t.Fatal(err)
	}
	return janitor.Config{Detector: detector, Sweeper: q, Grace: time.Millisecond, CrashLimit: 5}, q
}

func TestRecoverOnRedis(t *testing.T) {
	t.Parallel()
	rdb, queue := redistest.Shared(t).Client(t), redistest.Queue(t)
	dead := abandon(t, rdb, queue, 250, 100*time.Millisecond)
	cfg, q := onRedis(t, rdb, queue)

	got := recovered(t, cfg)
	if diff := cmp.Diff(janitor.Report{Queue: queue, Dead: []string{dead}, Recovered: 250}, got); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	depth, err := q.Depth(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if depth.Ready != 250 || depth.InFlight != 0 {
		t.Errorf("depth = %+v, want all 250 ready", depth)
	}
}

// recovered runs Recover until it has found a dead dispatcher, which at the first look may still count as alive.
func recovered(t *testing.T, cfg janitor.Config) janitor.Report {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		got, err := janitor.Recover(ctx, cfg)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Dead) > 0 {
			return got
		}
	}
	t.Fatal("nobody found dead")
	return janitor.Report{}
}

func TestManyJanitorsShareTheWork(t *testing.T) {
	t.Parallel()
	rdb, queue := redistest.Shared(t).Client(t), redistest.Queue(t)
	abandon(t, rdb, queue, 950, 100*time.Millisecond)
	cfg, q := onRedis(t, rdb, queue)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var total atomic.Int64
	all := make(chan struct{})
	done := make(chan error)
	for range 5 {
		cfg.Interval = 10 * time.Millisecond
		cfg.Observe = func(r janitor.Report) {
			if total.Add(int64(r.Recovered)) == 950 {
				close(all)
			}
		}
		j, err := janitor.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		go func() { done <- j.Run(ctx) }()
	}
	select {
	case <-all:
	case <-time.After(20 * time.Second):
		t.Errorf("%d of 950 recovered", total.Load())
	}
	cancel()
	for range 5 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	depth, err := q.Depth(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if depth.Ready != 950 || depth.InFlight != 0 || total.Load() != 950 {
		t.Errorf("depth %+v after %d, want each of 950 back once", depth, total.Load())
	}
}

func TestHooksOnRedis(t *testing.T) {
	t.Parallel()
	rdb, queue := redistest.Shared(t).Client(t), redistest.Queue(t)
	dead := abandon(t, rdb, queue, 150, 10*time.Millisecond)
	cfg, _ := onRedis(t, rdb, queue)
	log := &logbook{}
	cfg.Hooks = log
	if got := recovered(t, cfg); got.Recovered != 150 {
		t.Errorf("report = %+v, want 150 tasks back", got)
	}
	if diff := cmp.Diff([]string{"pre " + queue + " " + dead, "post " + queue + " " + dead}, log.lines); diff != "" {
		t.Errorf("hooks (-want +got):\n%s", diff)
	}
	left, err := heartbeat.NewDetector(rdb, queue)
	if err != nil {
		t.Fatal(err)
	}
	if seen, err := left.List(t.Context()); err != nil || len(seen) != 0 {
		t.Errorf("still known: %+v, %v", seen, err)
	}
}

func TestAnAbortingHookKeepsTheTasks(t *testing.T) {
	t.Parallel()
	rdb, queue := redistest.Shared(t).Client(t), redistest.Queue(t)
	abandon(t, rdb, queue, 7, 10*time.Millisecond)
	cfg, q := onRedis(t, rdb, queue)
	log := &logbook{pre: errStub}
	cfg.Hooks = log
	deadline := time.Now().Add(20 * time.Second)
	for len(log.lines) == 0 && time.Now().Before(deadline) {
		if _, err := janitor.Recover(t.Context(), cfg); err == nil && len(log.lines) > 0 {
			t.Error("the hook's error was lost")
		}
	}
	depth, err := q.Depth(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if depth.InFlight != 7 || depth.Ready != 0 {
		t.Errorf("depth = %+v, want all 7 where they were", depth)
	}
}

// logbook notes its calls; one goroutine uses it.
type logbook struct {
	lines []string
	pre   error
}

func (l *logbook) OnPreConcat(_ context.Context, queue, dead string) error {
	l.lines = append(l.lines, "pre "+queue+" "+dead)
	return l.pre
}

func (l *logbook) OnPostConcat(_ context.Context, queue, dead string) error {
	l.lines = append(l.lines, "post "+queue+" "+dead)
	return nil
}
