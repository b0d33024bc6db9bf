package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/queuehook/queuehook/internal/fleet"
	"github.com/queuehook/queuehook/internal/receiver"
	"github.com/queuehook/queuehook/internal/redistest"
	"github.com/queuehook/queuehook/lifecycle"
)

// TestTaskHeaders enqueues headers that are not a task's to set, or would make another request of it altogether.
func TestTaskHeaders(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	q := fleet.NewQueue(t, server, receiver.Config{KeepBody: 100})
	ours := []string{
		"hOsT=evil.example", "content-LENGTH=1", "tRANSFER-encoding=chunked", "cOnNeCtIoN=close", "wEBHOOK-signature=v1,forged",
		"webhook-ID=forged", "DISPATCH-task-id=forged", "dispatch-ATTEMPT=9", "tE=trailers", "upgrade=h2c",
	}
	refused := append([]string{
		"X-A=1\r\nX-B: 2", "X A=1", "X-A", "=1", "X-A\r\nX-B=1", "X-A=\x7f",
	}, ours...)
	for _, header := range refused {
		args := []string{"enqueue", q.Name, "--data", "x", "--header", header}
		if code, _, stderr := fleet.Run(t, fleet.Dispatcher, args, []string{"DISPATCHER_REDIS_URL=" + server.URL()}); code != 2 {
			t.Errorf("%q: exit code %d, want 2: %s", header, code, stderr)
		}
	}
	if d := q.Depth(t); d != (lifecycle.Depth{}) {
		t.Errorf("something was enqueued all the same: %+v", d)
	}

	d := serve(t, server.URL(), routes(route(q, "signing_secrets_file: "+write(t, "secrets", newSecret+"\n"),
		"headers: {X-Route: route}", "bearer: route")))
	command(t, server.URL(), "enqueue", q.Name, "--data", "payload", "--id", "legal", "--content-type", "text/plain",
		"--header", "x-ROUTE=forged", "--header", "X-Own=own", "--header", "x-empty=")
	q.Handed([]byte("payload"))
	// What enqueue refuses, somebody may still write into Redis.
	illegal := map[string]string{"crlf": "1\r\nX-Smuggled: 2", "nul": "1\x00", "name": "1"}
	for id, value := range illegal {
		name := "X-Own"
		if id == "name" {
			name = "X Own"
		}
		q.Enqueue(t, []byte(id), lifecycle.EnqueueOptions{ID: id, Headers: map[string]string{name: value}})
	}
	theirs := map[string]string{"x-ROUTE": "forged", "AUTHORIZATION": "forged", "X-Own": "own", "x-empty": ""}
	for _, header := range ours {
		name, value, _ := strings.Cut(header, "=")
		theirs[name] = value
	}
	q.Enqueue(t, []byte("payload"), lifecycle.EnqueueOptions{ID: "forged", Headers: theirs, ContentType: "text/plain"})
	q.AwaitDrained(t)
	d.Stop(t)

	if got := q.Receiver.Count(); got != 2 {
		t.Errorf("%d requests, want those of the two tasks that can be sent", got)
	}
	for _, id := range []string{"legal", "forged"} {
		requests := q.Receiver.ByTask(id)
		if len(requests) != 1 {
			t.Fatalf("task %s: %d requests, want 1", id, len(requests))
		}
		onTheWire(t, q, requests[0])
	}
	letters := map[string]string{}
	for _, letter := range q.Dead(t) {
		letters[letter.ID] = fmt.Sprintf("%s, %d attempts charged", letter.Reason, letter.Meta.Attempt)
	}
	if diff := cmp.Diff(map[string]string{
		"crlf": "unsendable, 0 attempts charged", "nul": "unsendable, 0 attempts charged", "name": "unsendable, 0 attempts charged",
	}, letters); diff != "" {
		t.Errorf("dead letters (-want +got):\n%s", diff)
	}
	q.Law(t)
}

// onTheWire checks that a request has what its route and the task's options say, whatever the task's headers say.
func onTheWire(t *testing.T, q *fleet.Queue, r receiver.Request) {
	t.Helper()
	got := map[string]string{"Host": r.Host, "body": string(r.Body)}
	for _, name := range []string{
		"Content-Length", "Content-Type", "Transfer-Encoding", "Connection", "Webhook-Id", "Dispatch-Task-Id", "Dispatch-Attempt",
		"X-Route", "Authorization", "Te", "Upgrade", "X-Own", "X-Empty",
	} {
		if values, there := r.Header[name]; there {
			got[name] = strings.Join(values, ", ")
		}
	}
	want := map[string]string{
		"Host": q.Receiver.Addr(), "body": "payload", "Content-Length": "7", "Content-Type": "text/plain", "Webhook-Id": r.TaskID,
		"Dispatch-Task-Id": r.TaskID, "Dispatch-Attempt": "1", "X-Route": "route", "Authorization": "Bearer route", "X-Own": "own",
		"X-Empty": "",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	if s := r.Header.Values("Webhook-Signature"); len(s) != 1 || strings.Contains(s[0], "forged") {
		t.Errorf("signature %q", s)
	}
}

// TestEnqueueOptions enqueues tasks from the command line: with a dedup key, with a delay, with a limit of attempts.
func TestEnqueueOptions(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	q := fleet.NewQueue(t, server, receiver.Config{Script: receiver.ByTask(map[string]receiver.Script{
		"twice": receiver.Always(receiver.Status(500)), "route": receiver.Always(receiver.Status(500)),
	}, receiver.Always(receiver.Status(204)))})
	enqueue := func(data string, args ...string) (id string) {
		t.Helper()
		return strings.TrimSpace(command(t, server.URL(), append([]string{"enqueue", q.Name, "--data", data}, args...)...))
	}
	dedup := []string{"--dedup-key", "order 1", "--dedup-ttl", "1h"}
	first := enqueue("first", dedup...)
	q.Handed([]byte("first"), []byte("twice"), []byte("route"), []byte("late"))
	if again := enqueue("second", dedup...); again != first {
		t.Errorf("the duplicate is task %s, want %s", again, first)
	}
	d := serve(t, server.URL(), routes(route(q, "retry: {max_attempts: 4}")))
	fleet.AwaitTrue(t, fleet.Patience, "first delivered", func() bool { return len(q.Receiver.ByTask(first)) == 1 })
	if again := enqueue("third", append(dedup, "--json")...); !strings.Contains(again, first) || !strings.Contains(again, `"due":null`) {
		t.Errorf("the duplicate of a delivered task is %s, want %s and no due time", again, first)
	}
	enqueue("twice", "--id", "twice", "--max-attempts", "2")
	enqueue("route", "--id", "route")
	answer := enqueue("late", "--id", "late", "--delay", "3s", "--json")
	q.AwaitDrained(t)
	d.Stop(t)

	var due struct{ Due string }
	if err := json.Unmarshal([]byte(answer), &due); err != nil {
		t.Fatal(err)
	}
	at := q.Receiver.ByTask("late")[0].Arrived.UTC().Format("2006-01-02T15:04:05.000Z")
	if at < due.Due {
		t.Errorf("came at %s, due at %s", at, due.Due)
	}
	got := map[string]int{}
	for _, r := range q.Receiver.Log() {
		got[r.TaskID]++
		if r.TaskID == "twice" && r.Header.Get("Dispatch-Max-Attempts") != "2" {
			t.Errorf("Dispatch-Max-Attempts %s, want 2", r.Header.Get("Dispatch-Max-Attempts"))
		}
	}
	if diff := cmp.Diff(map[string]int{first: 1, "twice": 2, "route": 4, "late": 1}, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	q.Law(t)
}
