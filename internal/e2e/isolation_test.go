package e2e_test

import (
	"testing"
	"time"

	"github.com/queuehook/queuehook/internal/fleet"
	"github.com/queuehook/queuehook/internal/receiver"
	"github.com/queuehook/queuehook/internal/redistest"
	"github.com/queuehook/queuehook/lifecycle"
)

func TestHangingEndpointHurtsNoOther(t *testing.T) {
	t.Parallel()
	const tasks, slots = 1000, 32
	server := redistest.Shared(t)
	bad := fleet.NewQueue(t, server, receiver.Config{Script: receiver.Always(receiver.Never())})
	good := fleet.NewQueue(t, server, receiver.Config{})
	d := fleet.StartDispatcher(t, server.URL(), fleet.Routes(bad, good), "TIMEOUT=10m")
	bad.PushN(t, tasks)
	bad.AwaitInFlight(t, slots)
	good.PushN(t, tasks)
	good.AwaitDrained(t)
	if now, _ := bad.Receiver.InFlight(); now != slots || bad.Receiver.Count() != slots {
		t.Errorf("%d requests hang of %d, want %d: the test shows nothing", now, bad.Receiver.Count(), slots)
	}
	good.Law(t)

	bad.Receiver.SetScript(nil)
	bad.Receiver.Release()
	bad.AwaitDrained(t)
	d.Stop(t)
	bad.Law(t)
}

func TestPoisonTask(t *testing.T) {
	t.Parallel()
	const tasks = 1000
	server := redistest.Shared(t)
	q := fleet.NewQueue(t, server, receiver.Config{Script: receiver.ByTask(map[string]receiver.Script{
		"poison": receiver.Always(receiver.Status(500)),
	}, receiver.Always(receiver.Status(204)))})
	q.Enqueue(t, []byte("poison"), lifecycle.EnqueueOptions{ID: "poison"})
	q.PushN(t, tasks)
	d := fleet.StartDispatcher(t, server.URL(), fleet.Routes(q), "CONCURRENCY=1", "MAX_ATTEMPTS=0", "BACKOFF_BASE=100ms",
		"BACKOFF_CAP=1h")
	q.AwaitLeft(t, 1)
	d.Stop(t)
	came := q.Receiver.ByTask("poison")
	if len(came) == 0 {
		t.Error("the poison never came: the test shows nothing")
	}
	for i := 1; i < len(came); i++ { // after up to 100 ms, 200 ms, 400 ms, ..., and after half of that at least
		if gap, least := came[i].Arrived.Sub(came[i-1].Arrived), 50*time.Millisecond<<(i-1); gap < least {
			t.Fatalf("the poison came again, as number %d, after %s; want %s", i+1, gap, least)
		}
	}
	q.Law(t)
}
