package e2e_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/internal/audit"
	"github.com/queuehook/queuehook/internal/fleet"
	"github.com/queuehook/queuehook/internal/receiver"
	"github.com/queuehook/queuehook/internal/redistest"
)

func TestEveryPayloadArrives(t *testing.T) {
	t.Parallel()
	const tasks = 10_000
	server := redistest.Shared(t)
	q := fleet.NewQueue(t, server, receiver.Config{})
	draw := rand.New(rand.NewPCG(1, 2))
	payloads := make([][]byte, tasks)
	for i := range payloads {
		switch draw.IntN(4) {
		case 0:
			payloads[i] = []byte{} // empty, many times
		case 1:
			payloads[i] = []byte(`{"the":"same"}`)
		default:
			payloads[i] = fleet.Payload(i, 1+draw.IntN(2000))
		}
	}
	d := fleet.StartDispatcher(t, server.URL(), fleet.Routes(q), "CONCURRENCY=64")
	q.Push(t, payloads...)
	q.AwaitDrained(t)
	if got := q.Receiver.Count(); got != tasks {
		t.Errorf("%d requests, want %d", got, tasks)
	}
	if depth := q.Depth(t); depth.Ready+depth.Delayed+depth.InFlight+depth.Dead != 0 {
		t.Errorf("depths %+v, want none", depth)
	}
	d.Stop(t)
	if left := q.Leftovers(t); len(left) > 0 {
		t.Errorf("keys left: %q", left)
	}
	q.Law(t)
}

func TestUnusualPayloads(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	q := fleet.NewQueue(t, server, receiver.Config{})
	var payloads [][]byte
	for range 1000 {
		payloads = append(payloads, []byte("equal"))
	}
	payloads = append(payloads, nil, nil, []byte{0}, []byte("a\x00b"), []byte("\xff\xfe\xc3\x28"), []byte("\r\n\r\n"),
		fleet.Payload(7, 10<<20), bytes.Repeat([]byte{0}, 10<<20))
	q.Push(t, payloads...)
	d := fleet.StartDispatcher(t, server.URL(), fleet.Routes(q))
	q.AwaitDrained(t)
	d.Stop(t)
	got, want := map[string]int{}, map[string]int{}
	for _, r := range q.Receiver.Log() {
		got[r.SHA256]++
	}
	for _, p := range payloads {
		want[audit.Sum(p)]++
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("payloads by SHA-256 (-want +got):\n%s", diff)
	}
	q.Law(t)
}

func TestFailingReceiver(t *testing.T) {
	t.Parallel()
	const tasks = 2000
	server := redistest.Shared(t)
	q := fleet.NewQueue(t, server, receiver.Config{Script: receiver.Fraction(42, 0.3, 500, 204)})
	d := fleet.StartDispatcher(t, server.URL(), fleet.Routes(q))
	q.PushN(t, tasks)
	q.AwaitDrained(t)
	d.Stop(t)
	if dead := q.Dead(t); len(dead) > 0 {
		t.Errorf("%d dead letters, want none", len(dead))
	}
	if got := q.Receiver.Count(); got < tasks*5/4 || got > tasks*2 {
		t.Errorf("%d requests for %d tasks of which 30%% fail at a time", got, tasks)
	}
	q.Law(t)
}

// TestExhaustedTasks restarts the dispatcher between the attempts: the count is Redis's, not the process's.
func TestExhaustedTasks(t *testing.T) {
	t.Parallel()
	const tasks, attempts = 20, 3
	server := redistest.Shared(t)
	q := fleet.NewQueue(t, server, receiver.Config{Script: receiver.Always(receiver.Status(500))})
	env := []string{"MAX_ATTEMPTS=3", "BACKOFF_BASE=1s", "BACKOFF_CAP=1s"}
	q.PushN(t, tasks)
	for attempt := range attempts {
		d := fleet.StartDispatcher(t, server.URL(), fleet.Routes(q), env...)
		q.AwaitRequests(t, int64(tasks*(attempt+1)))
		d.Stop(t)
	}
	q.AwaitDrained(t)
	if got := q.Receiver.Count(); got != tasks*attempts {
		t.Errorf("%d requests, want %d", got, tasks*attempts)
	}
	dead := q.Dead(t)
	if len(dead) != tasks {
		t.Fatalf("%d dead letters, want %d", len(dead), tasks)
	}
	for _, letter := range dead {
		var seen []string
		for _, r := range q.Receiver.ByTask(letter.ID) {
			seen = append(seen, r.Header.Get(receiver.AttemptHeader))
		}
		if diff := cmp.Diff([]string{"1", "2", "3"}, seen); diff != "" {
			t.Errorf("task %s, its attempts (-want +got):\n%s", letter.ID, diff)
		}
		var history []string
		for _, h := range letter.Meta.History {
			history = append(history, fmt.Sprintf("%d: %s %d", h.Attempt, h.Reason, h.Status))
		}
		want := []string{"1: status 500", "2: status 500", "3: status 500"}
		if diff := cmp.Diff(want, history); diff != "" || letter.Reason != delivery.Exhausted {
			t.Errorf("task %s, %s, history (-want +got):\n%s", letter.ID, letter.Reason, diff)
		}
	}
	q.Law(t)

	q.Receiver.SetScript(nil)
	code, stdout, stderr := fleet.Run(t, fleet.Dispatcher, []string{"dead", "redrive", q.Name, "--all", "--yes"},
		[]string{"DISPATCHER_REDIS_URL=" + server.URL()})
	if left := q.Dead(t); code != 0 || len(left) != 0 {
		t.Fatalf("dead redrive: exit code %d, %d dead letters left\n%s%s", code, len(left), stdout, stderr)
	}
	d := fleet.StartDispatcher(t, server.URL(), fleet.Routes(q), env...)
	q.AwaitRequests(t, tasks*(attempts+1))
	q.AwaitDrained(t)
	d.Stop(t)
	if left := q.Leftovers(t); len(left) > 0 {
		t.Errorf("keys left: %q", left)
	}
	q.Law(t)
}
