package e2e_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/queuehook/queuehook/internal/fleet"
	"github.com/queuehook/queuehook/internal/receiver"
	"github.com/queuehook/queuehook/internal/redistest"
)

// usage is what a leak would let grow.
type usage struct{ goroutines, files, memory float64 }

func usageOf(t *testing.T, d *fleet.Server) usage {
	t.Helper()
	return usage{
		d.Metric(t, "go_goroutines"), d.Metric(t, "process_open_fds"), d.Metric(t, "process_resident_memory_bytes"),
	}
}

// flat checks that nothing grew with the number of deliveries. It allows for idle connections, which come and go.
func (u usage) flat(t *testing.T, now usage, slots float64) {
	t.Helper()
	t.Logf("goroutines %v -> %v, files %v -> %v, memory %.0f -> %.0f MB", u.goroutines, now.goroutines, u.files, now.files,
		u.memory/1e6, now.memory/1e6)
	if now.goroutines > u.goroutines+4*slots {
		t.Errorf("%v goroutines, %v before", now.goroutines, u.goroutines)
	}
	if now.files > u.files+2*slots {
		t.Errorf("%v open files, %v before", now.files, u.files)
	}
	if now.memory > 2*u.memory+64e6 {
		t.Errorf("%.0f MB of memory, %.0f before", now.memory/1e6, u.memory/1e6)
	}
}

// scale makes the long variants long.
func scale(tasks int) int {
	if long() {
		return 10 * tasks
	}
	return tasks
}

// TestRefusedPort has a backlog and a port that refuses connections. The breaker opens, so that thousands of tasks are
// not charged for it.
func TestRefusedPort(t *testing.T) {
	t.Parallel()
	tasks := scale(10_000)
	server := redistest.Shared(t)
	q := fleet.NewQueue(t, server, receiver.Config{})
	d := fleet.StartDispatcher(t, server.URL(), q.Name+"=http://"+closedPort(t)+"/")
	before := usageOf(t, d)
	q.PushN(t, tasks)
	fleet.AwaitTrue(t, fleet.Patience, "the breaker opens", func() bool {
		return d.Metric(t, `dispatcher_route_paused{cause="breaker",queue="`+q.Name+`"}`) == 1
	})
	fleet.Pass(3 * time.Second)
	before.flat(t, usageOf(t, d), 32)
	d.Stop(t)
	if depth := q.Depth(t); depth.InFlight != 0 || depth.Ready+depth.Delayed != int64(tasks) {
		t.Errorf("depths %+v, want %d in all", depth, tasks)
	}
	q.Law(t)
}

// TestRefusedPortWithoutBreaker makes every attempt. Nothing may grow with their number either.
func TestRefusedPortWithoutBreaker(t *testing.T) {
	t.Parallel()
	tasks := scale(2000)
	server := redistest.Shared(t)
	q := fleet.NewQueue(t, server, receiver.Config{})
	d := fleet.StartDispatcher(t, server.URL(), "", "ROUTES_FILE="+write(t, "routes.yaml", fmt.Sprintf(
		`routes: [{queue: %s, url: "http://%s/", breaker: off, reject: [], retry: {max_attempts: 2}}]`, q.Name, closedPort(t))))
	before := usageOf(t, d)
	q.PushN(t, tasks)
	fleet.Await(t, 5*fleet.Patience, "every task is given up", func() error {
		if depth := q.Depth(t); depth.Dead != int64(tasks) {
			return fmt.Errorf("%+v", depth)
		}
		return nil
	})
	before.flat(t, usageOf(t, d), 32)
	d.Stop(t)
	q.Law(t)
}

// spare is how many of so many requests may find that a connection is not kept: net/http gives one up whose answer came
// while the writing of its request had not been noticed for 50 ms, which happens when the processors are busy.
func spare[N int | int64](requests N) N { return requests / 10 }

func TestConnectionsAreAsManyAsSlots(t *testing.T) {
	t.Parallel()
	const slots = 64
	tasks := scale(5000)
	server := redistest.Shared(t)
	q := fleet.NewQueue(t, server, receiver.Config{Script: receiver.Always(receiver.Status(204).After(5 * time.Millisecond))})
	q.PushN(t, tasks)
	d := fleet.StartDispatcher(t, server.URL(), fleet.Routes(q), "CONCURRENCY=64")
	q.AwaitDrained(t)
	d.Stop(t)
	if got := q.Receiver.Connections(); got.Accepted > slots+spare(int64(tasks)) {
		t.Errorf("%d connections for %d tasks at concurrency %d", got.Accepted, tasks, slots)
	}
	q.Law(t)
}

func TestFailuresKeepTheirConnections(t *testing.T) {
	t.Parallel()
	const slots = 32
	tasks := scale(1500)
	server := redistest.Shared(t)
	page := string(bytes.Repeat([]byte("e"), 64<<10))
	q := fleet.NewQueue(t, server, receiver.Config{Script: receiver.EachTask(func() receiver.Script {
		return receiver.Sequence(receiver.Text(500, page), receiver.Status(204))
	})})
	d := fleet.StartDispatcher(t, server.URL(), fleet.Routes(q))
	q.PushN(t, 100)
	q.AwaitDrained(t)
	before := usageOf(t, d)
	q.PushN(t, tasks)
	q.AwaitDrained(t)
	before.flat(t, usageOf(t, d), slots)
	d.Stop(t)
	if got := q.Receiver.Connections(); got.Accepted > 2*slots+spare(q.Receiver.Count()) {
		t.Errorf("%d connections for %d requests at concurrency %d", got.Accepted, q.Receiver.Count(), slots)
	}
	q.Law(t)
}
