package e2e_test

import (
	"testing"

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
	// After 100 ms, 200 ms, 400 ms, ...: with the tenth attempt a minute is over.
	if n := len(q.Receiver.ByTask("poison")); n == 0 || n > 10 {
		t.Errorf("the poison came %d times", n)
	}
	q.Law(t)
}
