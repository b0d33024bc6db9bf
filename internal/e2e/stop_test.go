package e2e_test

import (
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/queuehook/queuehook/internal/fleet"
	"github.com/queuehook/queuehook/internal/receiver"
	"github.com/queuehook/queuehook/internal/redistest"
)

func TestSIGTERMUnderLoad(t *testing.T) {
	t.Parallel()
	const tasks = 3000
	server := redistest.Shared(t)
	stopping := make(chan struct{})
	q := fleet.NewQueue(t, server, receiver.Config{Script: func(r receiver.Request) receiver.Answer {
		if r.Seq > tasks/2 {
			<-stopping
		}
		return receiver.Status(204).After(10 * time.Millisecond)
	}})
	answer := sync.OnceFunc(func() { close(stopping) })
	t.Cleanup(answer) // else its receiver would wait for it
	q.PushN(t, tasks)
	d := fleet.StartDispatcher(t, server.URL(), fleet.Routes(q))
	q.AwaitRequests(t, tasks/10)
	d.Terminate(t)
	fleet.AwaitTrue(t, fleet.Patience, "draining", func() bool { return d.Ready(t) != 200 })
	answer()
	if code := d.Wait(t); code != 0 {
		t.Errorf("exit code %d after SIGTERM, want 0", code)
	}
	delivered := q.Receiver.Count()
	if depth := q.Depth(t); depth.InFlight != 0 || depth.Dispatchers != 0 || depth.Ready != tasks-delivered {
		t.Errorf("depths after SIGTERM %+v, want %d ready", depth, tasks-delivered)
	}
	q.Law(t)

	d = fleet.StartDispatcher(t, server.URL(), fleet.Routes(q))
	q.AwaitDrained(t)
	d.Stop(t)
	if got := q.Receiver.Count(); got != tasks {
		t.Errorf("%d requests, want %d", got, tasks)
	}
	q.Law(t)
}

func TestSIGTERMWithSlowReceiver(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	q := fleet.NewQueue(t, server, receiver.Config{Script: receiver.Always(receiver.Status(204).After(5 * time.Second))})
	d := fleet.StartDispatcher(t, server.URL(), fleet.Routes(q))
	q.PushN(t, 8)
	q.AwaitInFlight(t, 8)
	d.Stop(t)
	q.AwaitDrained(t)
	if got := q.Receiver.Count(); got != 8 {
		t.Errorf("%d requests, want 8", got)
	}
	q.Law(t)
}

func TestSIGTERMBeyondTheGrace(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	q := fleet.NewQueue(t, server, receiver.Config{Script: receiver.Always(receiver.Never())})
	d := fleet.StartDispatcher(t, server.URL(), fleet.Routes(q), "SHUTDOWN_GRACE=500ms")
	q.PushN(t, 8)
	q.AwaitInFlight(t, 8)
	d.Stop(t)
	released(t, server, q, 8)
}

func TestSecondSIGTERM(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	q := fleet.NewQueue(t, server, receiver.Config{Script: receiver.Always(receiver.Never())})
	d := fleet.StartDispatcher(t, server.URL(), fleet.Routes(q), "SHUTDOWN_GRACE=1h", "TIMEOUT=1h")
	q.PushN(t, 8)
	q.AwaitInFlight(t, 8)
	d.Terminate(t)
	fleet.AwaitTrue(t, fleet.Patience, "draining", func() bool { return d.Ready(t) == 503 })
	if !d.Alive() {
		t.Fatal("the first SIGTERM did not wait for what is in flight")
	}
	d.Stop(t)
	released(t, server, q, 8)
}

// released checks that n tasks were given back at once and uncharged, and has them delivered.
func released(t *testing.T, server *redistest.Server, q *fleet.Queue, n int64) {
	t.Helper()
	if depth := q.Depth(t); depth.Ready != n || depth.InFlight != 0 || depth.Dispatchers != 0 {
		t.Errorf("depths %+v, want %d ready", depth, n)
	}
	q.Law(t)
	q.Receiver.SetScript(nil)
	heir := fleet.StartDispatcher(t, server.URL(), fleet.Routes(q))
	q.AwaitDrained(t)
	heir.Stop(t)
	for _, r := range q.Receiver.Log()[n:] {
		if attempt := r.Header.Get(receiver.AttemptHeader); attempt != "1" || r.Header.Get("Dispatch-Redelivered") != "true" {
			t.Errorf("task %s came again as attempt %s, redelivered %q", r.TaskID, attempt, r.Header.Get("Dispatch-Redelivered"))
		}
	}
	q.Law(t)
}

// TestSIGTERMWhileIdle pushes at the moment when a dispatcher that blocks on an empty list is told to stop: the wait
// under way may still take the payload.
func TestSIGTERMWhileIdle(t *testing.T) {
	t.Parallel()
	const rounds, fleetSize, each = 4, 5, 10
	server := redistest.Start(t, redistest.Config{})
	q := fleet.NewQueue(t, server, receiver.Config{})
	for range rounds {
		var dispatchers []*fleet.Server
		for range fleetSize {
			dispatchers = append(dispatchers, fleet.Launch(t, server.URL(), fleet.Routes(q)))
		}
		for _, d := range dispatchers {
			d.AwaitReady(t)
		}
		q.AwaitDrained(t)
		fleet.AwaitTrue(t, fleet.Patience, "all block", func() bool {
			return strings.Count(q.Redis.ClientList(t.Context()).Val(), "cmd=blmove") == fleetSize
		})
		for _, d := range dispatchers {
			d.Terminate(t)
			for range each {
				q.PushN(t, 1)
				fleet.Pass(rand.N(100 * time.Millisecond / each))
			}
		}
		for _, d := range dispatchers {
			if code := d.Wait(t); code != 0 {
				t.Errorf("exit code %d, want 0", code)
			}
		}
		q.Law(t)
	}
	d := fleet.StartDispatcher(t, server.URL(), fleet.Routes(q))
	q.AwaitDrained(t)
	d.Stop(t)
	if got := q.Receiver.Count(); got != rounds*fleetSize*each {
		t.Errorf("%d requests, want %d", got, rounds*fleetSize*each)
	}
	q.Law(t)
}
