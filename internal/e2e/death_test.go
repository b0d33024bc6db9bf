package e2e_test

import (
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/internal/fleet"
	"github.com/queuehook/queuehook/internal/receiver"
	"github.com/queuehook/queuehook/internal/redistest"
	"github.com/queuehook/queuehook/lifecycle"
)

// interval is that of the heartbeats in tests that wait until a death is noticed. It takes 3 intervals until the
// dispatcher is suspected, 2 more until its tasks are taken, and up to 2 until a janitor looks.
const (
	interval = 500 * time.Millisecond
	beats    = "HEARTBEAT_INTERVAL=500ms"
	noticed  = 7 * interval
)

// holding starts a dispatcher that has n tasks in flight, at a receiver that does not answer.
func holding(t *testing.T, server *redistest.Server, n int, env ...string) (*fleet.Queue, *fleet.Server) {
	t.Helper()
	q := fleet.NewQueue(t, server, receiver.Config{Script: receiver.Always(receiver.Never())})
	d := fleet.StartDispatcher(t, server.URL(), fleet.Routes(q), env...)
	q.PushN(t, n)
	q.AwaitInFlight(t, n)
	return q, d
}

func TestKilledDispatcher(t *testing.T) {
	t.Parallel()
	const held = 64
	server := redistest.Shared(t)
	q, victim := holding(t, server, held, beats, "CONCURRENCY=64")
	q.Receiver.SetScript(nil)
	heir := fleet.StartDispatcher(t, server.URL(), fleet.Routes(q), beats)
	q.PushN(t, 100) // which the victim has no slot for
	q.AwaitRequests(t, held+100)

	lost := q.Crash(t, victim)
	died := time.Now()
	if len(lost) != held {
		t.Fatalf("%d tasks were in flight, want %d", len(lost), held)
	}
	q.AwaitRequests(t, held+100+held)
	took := time.Since(died)
	q.AwaitDrained(t)
	if took > noticed+10*time.Second {
		t.Errorf("the tasks of the dead came back after %s, want about %s", took, noticed)
	}
	if got := heir.Metric(t, `dispatcher_tasks_recovered_total{queue="`+q.Name+`"}`); got != held {
		t.Errorf("recovered %v, want %d", got, held)
	}
	heir.Stop(t)
	for _, r := range q.Receiver.Log() {
		requests := q.Receiver.ByTask(r.TaskID)
		again := slices.Contains(lost, r.TaskID)
		switch {
		case again && len(requests) != 2:
			t.Errorf("task %s of the dead came %d times, want 2", r.TaskID, len(requests))
		case again && requests[1].Header.Get("Dispatch-Redelivered") != "true":
			t.Errorf("task %s came again without Dispatch-Redelivered", r.TaskID)
		case !again && len(requests) != 1:
			t.Errorf("task %s came %d times, want once", r.TaskID, len(requests))
		}
	}
	if left := q.Leftovers(t); len(left) > 0 {
		t.Errorf("keys left: %q", left)
	}
	q.Law(t)
}

// TestManyJanitors has five janitors at once, as schedules may have it, beside those inside two living dispatchers.
func TestManyJanitors(t *testing.T) {
	t.Parallel()
	const held, janitors = 64, 5
	server := redistest.Start(t, redistest.Config{})
	q, victim := holding(t, server, held, beats, "CONCURRENCY=64")
	q.Receiver.SetScript(nil)
	heirs := []*fleet.Server{
		fleet.StartDispatcher(t, server.URL(), fleet.Routes(q), beats),
		fleet.StartDispatcher(t, server.URL(), fleet.Routes(q), beats),
	}
	lost := q.Crash(t, victim)
	var sweeps []*fleet.Process
	for range janitors {
		sweeps = append(sweeps, fleet.Start(t, fleet.Janitor, nil,
			[]string{"JANITOR_REDIS_URL=" + server.URL(), "JANITOR_GRACE=1s"}))
	}
	for _, j := range sweeps {
		if code := j.Wait(t); code != 0 {
			t.Errorf("janitor: exit code %d\n%s", code, j.Log())
		}
	}
	q.AwaitDrained(t)
	if taken := q.Recovered(t); len(lost) != held || taken != held {
		t.Errorf("%d tasks were lost and %d taken back, want %d", len(lost), taken, held)
	}
	for _, id := range lost {
		if n := len(q.Receiver.ByTask(id)); n != 2 {
			t.Errorf("task %s came %d times, want twice", id, n)
		}
	}
	for _, s := range heirs {
		s.Stop(t)
	}
	q.Law(t)
}

// TestJanitorAlone has nothing alive but a janitor that runs once, as from cron.
func TestJanitorAlone(t *testing.T) {
	t.Parallel()
	const held = 10
	server := redistest.Start(t, redistest.Config{})
	q, victim := holding(t, server, held, "HEARTBEAT_INTERVAL=200ms")
	dead := q.Crash(t, victim)
	if len(dead) != held {
		t.Fatalf("%d tasks were in flight, want %d", len(dead), held)
	}
	fleet.Pass(3 * 200 * time.Millisecond) // its time runs out

	code, stdout, stderr := fleet.Run(t, fleet.Janitor, nil,
		[]string{"JANITOR_REDIS_URL=" + server.URL(), "JANITOR_GRACE=500ms"})
	var answer struct {
		Queues []struct {
			Queue     string
			Recovered int
		}
		Errors []string
	}
	if err := json.Unmarshal([]byte(stdout), &answer); err != nil || code != 0 {
		t.Fatalf("exit code %d, %v\n%s%s", code, err, stdout, stderr)
	}
	if len(answer.Queues) != 1 || answer.Queues[0].Queue != q.Name || answer.Queues[0].Recovered != held {
		t.Errorf("one run answers %s, want %d tasks of %s recovered", stdout, held, q.Name)
	}
	if d := q.Depth(t); d.Ready != held || d.InFlight != 0 {
		t.Errorf("depths %+v, want %d ready", d, held)
	}
	q.Law(t)

	q.Receiver.SetScript(nil)
	heir := fleet.StartDispatcher(t, server.URL(), fleet.Routes(q))
	q.AwaitDrained(t)
	heir.Stop(t)
	q.Law(t)
}

// TestFrozenDispatcher freezes a dispatcher until others have taken and done its tasks, and then lets it go on.
func TestFrozenDispatcher(t *testing.T) {
	t.Parallel()
	const tasks = 8
	server := redistest.Shared(t)
	answer := make(chan struct{})
	q := fleet.NewQueue(t, server, receiver.Config{Script: func(r receiver.Request) receiver.Answer {
		if r.Header.Get("Dispatch-Redelivered") == "" {
			<-answer
		}
		return receiver.Status(204)
	}})
	accept := sync.OnceFunc(func() { close(answer) })
	t.Cleanup(accept) // else its receiver would wait for it
	frozen := fleet.StartDispatcher(t, server.URL(), fleet.Routes(q), beats, "CONCURRENCY=8", "TIMEOUT=10m")
	q.PushN(t, tasks)
	q.AwaitInFlight(t, tasks)
	other := fleet.StartDispatcher(t, server.URL(), fleet.Routes(q), beats)
	frozen.Suspend(t)
	lost := q.Of(t, frozen)
	q.Cause("its dispatcher was frozen and lost the lease", lost...)
	if len(lost) != tasks {
		t.Fatalf("%d tasks were in flight, want %d", len(lost), tasks)
	}
	q.AwaitDrained(t)
	accept() // the receiver accepts what the frozen one had sent
	frozen.Resume(t)
	late := func() float64 { return frozen.Metric(t, `dispatcher_leases_lost_total{queue="`+q.Name+`"}`) }
	fleet.AwaitTrue(t, fleet.Patience, "all late settlements refused", func() bool { return late() == tasks })
	if left := q.Places(t).Of(); len(left) > 0 {
		t.Errorf("late settlements left %v", left)
	}

	other.Stop(t)
	q.PushN(t, tasks) // the other one serves on, under a new id
	q.AwaitDrained(t)
	q.AwaitRequests(t, 3*tasks)
	frozen.Stop(t)
	if got := q.Receiver.Count(); got != 3*tasks {
		t.Errorf("%d requests, want %d", got, 3*tasks)
	}
	q.Law(t)
}

// TestCrashLoop has a task that takes its dispatcher down each time.
func TestCrashLoop(t *testing.T) {
	t.Parallel()
	const limit = 3
	server := redistest.Shared(t)
	deadly := make(chan struct{}, 2*limit)
	q := fleet.NewQueue(t, server, receiver.Config{Script: receiver.ByTask(map[string]receiver.Script{
		"poison": func(receiver.Request) receiver.Answer {
			deadly <- struct{}{}
			return receiver.Never()
		},
	}, receiver.Always(receiver.Status(204)))})
	q.Enqueue(t, []byte("poison"), lifecycle.EnqueueOptions{ID: "poison"})
	q.PushN(t, 50)
	deaths := 0
	for {
		d := fleet.StartDispatcher(t, server.URL(), fleet.Routes(q), "HEARTBEAT_INTERVAL=200ms", "CRASH_LIMIT=3")
		buried := false
		fleet.AwaitTrue(t, fleet.Patience, "the next crash, or a burial", func() bool {
			buried = len(q.Dead(t)) > 0
			return buried || len(deadly) > 0
		})
		if buried {
			q.AwaitDrained(t)
			d.Stop(t)
			break
		}
		<-deadly
		q.Crash(t, d)
		deaths++
	}
	if deaths != limit {
		t.Errorf("%d dispatchers died, want %d", deaths, limit)
	}
	dead := q.Dead(t)
	if len(dead) != 1 || dead[0].ID != "poison" || dead[0].Reason != delivery.Crashed {
		t.Errorf("dead letters %+v, want the poison, crashed", dead)
	}
	q.Law(t)
}

// TestForgottenDispatcher deletes a dispatcher's tick while it holds tasks and then kills it. Nobody suspects a
// dispatcher without a tick, so only a deep sweep finds the tasks.
func TestForgottenDispatcher(t *testing.T) {
	t.Parallel()
	const held = 20
	server := redistest.Shared(t)
	q, victim := holding(t, server, held, beats)
	victim.Suspend(t) // its next beat would register it anew
	lost := q.Of(t, victim)
	k := q.Keys(t)
	if err := q.Redis.Del(t.Context(), k.Ticks, k.Info, k.Suspects).Err(); err != nil {
		t.Fatal(err)
	}
	q.Cause("its dispatcher was killed", lost...)
	victim.Kill()
	q.Receiver.SetScript(nil)

	sweep := func(args ...string) {
		code, out, errs := fleet.Run(t, fleet.Dispatcher, append([]string{"sweep", q.Name, "--grace", "100ms"}, args...),
			[]string{"DISPATCHER_REDIS_URL=" + server.URL()})
		if code != 0 {
			t.Errorf("exit code %d\n%s%s", code, out, errs)
		}
	}
	sweep()
	if n := q.Recovered(t); n != 0 {
		t.Errorf("a plain sweep found %d tasks: the test shows nothing of the deep one", n)
	}
	sweep("--deep")
	if n := q.Recovered(t); n != held {
		t.Errorf("the deep sweep found %d tasks, want %d", n, held)
	}
	heir := fleet.StartDispatcher(t, server.URL(), fleet.Routes(q), beats)
	q.AwaitDrained(t)
	for _, id := range lost {
		if n := len(q.Receiver.ByTask(id)); n != 2 {
			t.Errorf("task %s came %d times, want twice", id, n)
		}
	}
	if len(lost) != held {
		t.Errorf("%d tasks were in flight, want %d", len(lost), held)
	}
	heir.Stop(t)
	q.Law(t)
}
