package e2e_test

import (
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/queuehook/queuehook/internal/fleet"
	"github.com/queuehook/queuehook/internal/receiver"
	"github.com/queuehook/queuehook/internal/redistest"
	"github.com/queuehook/queuehook/lifecycle"
)

const ordered = "ordered: true"

// pushOrdered pushes the numbers from 0 to n-1 in one batch.
func pushOrdered(t *testing.T, q *fleet.Queue, n int) (want []string) {
	t.Helper()
	payloads := make([][]byte, n)
	for i := range payloads {
		want = append(want, strconv.Itoa(i))
		payloads[i] = []byte(want[i])
	}
	q.Push(t, payloads...)
	return want
}

// inOrder checks that the payloads came in this order, each as often as it was tried, and never two at a time.
func inOrder(t *testing.T, q *fleet.Queue, want []string) {
	t.Helper()
	var came []string
	for _, r := range q.Receiver.Log() {
		came = append(came, string(r.Body))
	}
	if diff := cmp.Diff(want, slices.Compact(came)); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	if _, peak := q.Receiver.InFlight(); peak != 1 {
		t.Errorf("%d were in flight at once, want 1", peak)
	}
}

// byNumber answers the task with payload "i" by the i-th script, and the rest with 204. It relies on the order that
// inOrder checks.
func byNumber(scripts map[int]receiver.Script) receiver.Script {
	next := 0
	return receiver.EachTask(func() receiver.Script {
		s, ok := scripts[next]
		next++
		if !ok {
			return receiver.Always(receiver.Status(204))
		}
		return s
	})
}

// TestOrdered has two dispatchers serve one ordered queue. Its tasks fail now and then, with answers of every kind that
// means another try.
func TestOrdered(t *testing.T) {
	t.Parallel()
	const tasks = 200
	server := redistest.Shared(t)
	q := fleet.NewQueue(t, server, receiver.Config{KeepBody: 8, Script: byNumber(map[int]receiver.Script{
		0:   receiver.Sequence(receiver.Status(500), receiver.Status(500), receiver.Status(500), receiver.Status(204)),
		7:   receiver.Sequence(receiver.Status(429), receiver.Status(204)),
		50:  receiver.Sequence(receiver.Status(404), receiver.Status(503).With("Retry-After", "1"), receiver.Status(204)),
		100: receiver.Sequence(receiver.HangUp(receiver.Reset, receiver.AfterRead), receiver.Status(204)),
		150: receiver.Always(receiver.Status(400)), // buried after 4 attempts, then the next may go
		151: receiver.Always(receiver.Status(400).With("Dispatch-No-Retry", "true")),
		199: receiver.Sequence(receiver.Status(500), receiver.Status(204)),
	})})
	all := serveAll(t, 2, server.URL(), routes(route(q, ordered, "retry: {max_attempts: 4}", "breaker: off")))
	want := pushOrdered(t, q, tasks)
	q.AwaitDrained(t)
	for _, d := range all {
		d.Stop(t)
	}
	inOrder(t, q, want)
	var dead []string
	for _, letter := range q.Dead(t) {
		dead = append(dead, letter.Reason.String())
	}
	if diff := cmp.Diff([]string{"exhausted", "rejected"}, dead); diff != "" {
		t.Errorf("dead letters (-want +got):\n%s", diff)
	}
	q.Law(t)
}

// TestOrderedEnqueued has tasks that a producer enqueues one after the other, under ids that sort in another order.
func TestOrderedEnqueued(t *testing.T) {
	t.Parallel()
	const tasks = 300
	server := redistest.Shared(t)
	q := fleet.NewQueue(t, server, receiver.Config{KeepBody: 8})
	var want []string
	for i := range tasks {
		want = append(want, strconv.Itoa(i))
		o := lifecycle.EnqueueOptions{}
		if i >= tasks/2 {
			o.ID = strconv.Itoa(2*tasks - i)
		}
		q.Enqueue(t, []byte(want[i]), o)
	}
	all := serveAll(t, 2, server.URL(), routes(route(q, ordered)))
	q.AwaitDrained(t)
	for _, d := range all {
		d.Stop(t)
	}
	inOrder(t, q, want)
	q.Law(t)
}

// TestOrderedHolderKilled kills the dispatcher that has the head: nothing overtakes it until it has come again.
func TestOrderedHolderKilled(t *testing.T) {
	t.Parallel()
	const tasks, head = 100, 20
	server := redistest.Shared(t)
	q := fleet.NewQueue(t, server, receiver.Config{KeepBody: 8, Script: byNumber(map[int]receiver.Script{
		head: receiver.Sequence(receiver.Never(), receiver.Status(500), receiver.Status(204)),
	})})
	file := routes(route(q, ordered))
	victim := serve(t, server.URL(), file, beats)
	want := pushOrdered(t, q, tasks)
	q.AwaitRequests(t, head+1)
	heirs := serveAll(t, 2, server.URL(), file, beats)
	if held := q.Crash(t, victim); len(held) != 1 {
		t.Fatalf("%d tasks were in flight, want the head", len(held))
	}
	q.AwaitDrained(t)
	for _, d := range heirs {
		d.Stop(t)
	}
	inOrder(t, q, want)
	if n := len(q.Receiver.ByTask(q.Receiver.Log()[head].TaskID)); n != 3 {
		t.Errorf("the head came %d times, want 3", n)
	}
	q.Law(t)
}
