package metrics_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queuehook/queuehook/metrics"
)

// poll puts a depth of the queue "orders" on the page.
func poll(t *testing.T, m *metrics.Metrics, d metrics.Depth) {
	t.Helper()
	p := m.Poll("orders", func(context.Context) (metrics.Depth, error) { return d, nil })
	if err := p.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func depths(t *testing.T, m *metrics.Metrics) map[string]float64 {
	t.Helper()
	got := map[string]float64{}
	for name, f := range scrape(t, m) {
		switch name {
		case "dispatcher_queue_ready", "dispatcher_queue_delayed", "dispatcher_queue_dead",
			"dispatcher_oldest_ready_seconds", "dispatcher_route_paused":
			for labels, v := range values(f) {
				got[name+" "+labels] = v
			}
		}
	}
	return got
}

func TestLook(t *testing.T) {
	m := metrics.New("")
	poll(t, m, metrics.Depth{Ready: 4, Delayed: 3, Dead: 2, OldestReady: 90 * time.Second, Paused: true})
	want := map[string]float64{
		"dispatcher_queue_ready orders":          4,
		"dispatcher_queue_delayed orders":        3,
		"dispatcher_queue_dead orders":           2,
		"dispatcher_oldest_ready_seconds orders": 90,
		"dispatcher_route_paused paused orders":  1,
	}
	if diff := cmp.Diff(want, depths(t, m)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	poll(t, m, metrics.Depth{})
	for name, v := range depths(t, m) {
		if v != 0 {
			t.Errorf("%s = %v, want 0", name, v)
		}
	}
}

func TestDepthsGoWhileRedisIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type read = func(context.Context) (metrics.Depth, error)
		answers := func(context.Context) (metrics.Depth, error) { return metrics.Depth{Ready: 1}, nil }
		refuses := func(context.Context) (metrics.Depth, error) { return metrics.Depth{}, errors.New("refused") }
		hangs := func(ctx context.Context) (metrics.Depth, error) {
			<-ctx.Done()
			return metrics.Depth{}, context.Cause(ctx)
		}
		var redis atomic.Pointer[read]
		redis.Store(&answers)

		m := metrics.New("")
		p := m.Poll("orders", func(ctx context.Context) (metrics.Depth, error) { return (*redis.Load())(ctx) })
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.Run(ctx) }()
		see := func(when string, series int, failures float64) {
			t.Helper()
			synctest.Wait()
			if got := depths(t, m); len(got) != series {
				t.Errorf("%s: %v, want %d series", when, got, series)
			}
			if got := values(scrape(t, m)["dispatcher_redis_errors_total"])["depth"]; got != failures {
				t.Errorf("%s: %v failures counted, want %v", when, got, failures)
			}
		}

		time.Sleep(time.Second) // looks begin at 0, 5, 10 s, ...; this test sees what they made a second later
		see("at once", 5, 0)
		redis.Store(&refuses)
		time.Sleep(5 * time.Second)
		see("away", 0, 1)
		redis.Store(&answers)
		time.Sleep(5 * time.Second)
		see("back", 5, 1)
		redis.Store(&hangs)
		time.Sleep(10 * time.Second)
		see("no answer within an interval", 0, 2)
		redis.Store(&answers)
		time.Sleep(5 * time.Second)
		see("answers after a second look that hung", 5, 3)
		redis.Store(&hangs)
		time.Sleep(5 * time.Second)
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
		see("stopped amid a look, which is no failure", 0, 3)
	})
}

func TestDepthsOfARouteThatIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := metrics.New("")
		read := func(context.Context) (metrics.Depth, error) { return metrics.Depth{Ready: 1}, nil }
		run := func() (end func()) {
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- m.Poll("orders", read).Run(ctx) }()
			synctest.Wait()
			return func() { cancel(); <-done }
		}
		endOld := run()
		endNew := run()
		endOld()
		if got := depths(t, m); len(got) != 5 {
			t.Errorf("once the old one has gone: %v, want 5 series", got)
		}
		endNew()
		if got := depths(t, m); len(got) != 0 {
			t.Errorf("once both have gone: %v, want none", got)
		}
	})
}
