package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queuehook/queuehook/internal/fleet"
	"github.com/queuehook/queuehook/internal/receiver"
	"github.com/queuehook/queuehook/internal/redistest"
	"github.com/queuehook/queuehook/lifecycle"
)

// rowOf is the outcome table for answers without further headers, written down a second time.
func rowOf(status int) (reason string, charged bool) {
	switch {
	case status <= 399:
		return "redirect", true
	case slices.Contains([]int{401, 403, 404, 405, 407, 421, 511}, status):
		return "target", true
	case status == 429:
		return "throttled", false
	default:
		return "status", true
	}
}

// TestEveryStatus answers each task's first request with the status that its header names. The second one tells what
// became of the first; -v prints it as a table.
func TestEveryStatus(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	var seen sync.Map
	q := fleet.NewQueue(t, server, receiver.Config{Script: func(r receiver.Request) receiver.Answer {
		status, err := strconv.Atoi(r.Header.Get("X-Status"))
		if _, again := seen.LoadOrStore(r.TaskID, true); again || err != nil {
			return receiver.Status(204)
		}
		return receiver.Status(status)
	}})
	statuses := []int{600, 999}
	for status := 300; status <= 599; status++ {
		statuses = append(statuses, status)
	}
	// In any other order than this the breaker would hold the route back after 20 redirects.
	rand.New(rand.NewPCG(3, 4)).Shuffle(len(statuses), func(i, j int) { statuses[i], statuses[j] = statuses[j], statuses[i] })
	for _, status := range statuses {
		code := strconv.Itoa(status)
		q.Enqueue(t, []byte(code), lifecycle.EnqueueOptions{ID: code, Headers: map[string]string{"X-Status": code}})
	}
	d := fleet.StartDispatcher(t, server.URL(), fleet.Routes(q))
	q.AwaitDrained(t)
	d.Stop(t)
	slices.Sort(statuses)
	var rows table
	for _, status := range statuses {
		requests := q.Receiver.ByTask(strconv.Itoa(status))
		if len(requests) != 2 {
			t.Errorf("status %d: %d requests, want 2", status, len(requests))
			continue
		}
		h := requests[1].Header
		got := fmt.Sprintf("%s %s, then attempt %s", h.Get("Dispatch-Previous-Reason"), h.Get("Dispatch-Previous-Status"),
			h.Get(receiver.AttemptHeader))
		reason, charged := rowOf(status)
		attempt := 1
		if charged {
			attempt = 2
		}
		if want := fmt.Sprintf("%s %d, then attempt %d", reason, status, attempt); got != want {
			t.Errorf("status %d: %s, want %s", status, got, want)
		}
		rows.add(status, fmt.Sprintf("abandoned  %-9s  charged: %t", h.Get("Dispatch-Previous-Reason"), h.Get(receiver.AttemptHeader) == "2"))
	}
	t.Logf("status -> settlement, reason, charge\n%s", rows)
	q.Law(t)
}

// table is what became of which statuses; neighbours with the same fate share a row.
type table []struct {
	from, to int
	fate     string
}

func (rows *table) add(status int, fate string) {
	if n := len(*rows); n > 0 && (*rows)[n-1].fate == fate && (*rows)[n-1].to == status-1 {
		(*rows)[n-1].to = status
		return
	}
	*rows = append(*rows, struct {
		from, to int
		fate     string
	}{status, status, fate})
}

func (rows table) String() string {
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&b, "%d-%d  %s\n", r.from, r.to, r.fate)
	}
	return b.String()
}

// TestBrokenTargets gives each kind of failure a route of its own, and reads in the dead letters what it was taken for.
func TestBrokenTargets(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	expired := fleet.NewQueue(t, server, receiver.Config{TLS: true, Expired: true})
	plain := fleet.NewQueue(t, server, receiver.Config{})
	reset := fleet.NewQueue(t, server, receiver.Config{
		Script: receiver.Always(receiver.HangUp(receiver.Reset, receiver.BeforeRead)),
	})
	refused, nowhere := fleet.NewQueue(t, server, receiver.Config{}), fleet.NewQueue(t, server, receiver.Config{})
	targets := []struct {
		queue  *fleet.Queue
		url    string
		reason string
	}{
		{expired, expired.Receiver.URL(), "tls"},
		{plain, "https://" + plain.Receiver.Addr(), "tls"},
		{reset, reset.Receiver.URL(), "reset"},
		{refused, "http://" + closedPort(t), "connect"},
		{nowhere, "http://no..such.host", "dns"}, // which no resolver is asked for
	}
	routes := ""
	for _, target := range targets {
		routes += target.queue.Name + "=" + target.url + "/ "
		target.queue.Push(t, []byte("x"))
	}
	d := fleet.StartDispatcher(t, server.URL(), routes, "MAX_ATTEMPTS=2")
	for _, target := range targets {
		target.queue.AwaitDrained(t)
	}
	d.Stop(t)
	for _, target := range targets {
		dead := target.queue.Dead(t)
		if len(dead) != 1 {
			t.Fatalf("%s: %d dead letters, want 1", target.url, len(dead))
		}
		var reasons []string
		for _, h := range dead[0].Meta.History {
			reasons = append(reasons, h.Reason)
		}
		if diff := cmp.Diff([]string{target.reason, target.reason}, reasons); diff != "" {
			t.Errorf("%s, reasons (-want +got):\n%s", target.url, diff)
		}
		target.queue.Law(t)
	}
}

// TestResetAfterTheStatusLine has an answer break in its body: the status has decided.
func TestResetAfterTheStatusLine(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	q := fleet.NewQueue(t, server, receiver.Config{
		Script: receiver.Always(receiver.HangUp(receiver.Reset, receiver.AfterHeaders)),
	})
	d := fleet.StartDispatcher(t, server.URL(), fleet.Routes(q))
	q.PushN(t, 10)
	q.AwaitDrained(t)
	d.Stop(t)
	if got := q.Receiver.Count(); got != 10 {
		t.Errorf("%d requests, want 10", got)
	}
	q.Law(t)
}

func TestRetryAfterDate(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	at := func(d time.Duration) receiver.Script {
		return func(r receiver.Request) receiver.Answer {
			if r.Header.Get(receiver.AttemptHeader) != "1" {
				return receiver.Status(204)
			}
			return receiver.Status(500).With("Retry-After", time.Now().Add(d).UTC().Format(http.TimeFormat))
		}
	}
	q := fleet.NewQueue(t, server, receiver.Config{Script: receiver.ByTask(map[string]receiver.Script{
		"future": at(5 * time.Second), "past": at(-time.Hour),
	}, receiver.Always(receiver.Status(204)))})
	for _, id := range []string{"future", "past"} {
		q.Enqueue(t, []byte(id), lifecycle.EnqueueOptions{ID: id})
	}
	d := fleet.StartDispatcher(t, server.URL(), fleet.Routes(q))
	q.AwaitDrained(t)
	d.Stop(t)
	gap := func(id string) time.Duration {
		requests := q.Receiver.ByTask(id)
		if len(requests) != 2 {
			t.Fatalf("task %s: %d requests, want 2", id, len(requests))
		}
		return requests[1].Arrived.Sub(requests[0].Arrived)
	}
	future, past := gap("future"), gap("past")
	if future < 4*time.Second { // an HTTP date has whole seconds
		t.Errorf("came again after %s, 5 s were asked for", future)
	}
	if past >= future {
		t.Errorf("came again after %s although the date was past; the other one after %s", past, future)
	}
	q.Law(t)
}

func TestThrottledTasksAreNotCharged(t *testing.T) {
	t.Parallel()
	const tasks = 50
	wait := 3 * time.Second
	if long() {
		wait = 30 * time.Second
	}
	server := redistest.Shared(t)
	var first sync.Once
	var opens time.Time
	q := fleet.NewQueue(t, server, receiver.Config{Script: func(r receiver.Request) receiver.Answer {
		first.Do(func() { opens = r.Arrived.Add(wait) })
		switch {
		case r.Arrived.After(opens):
			return receiver.Status(204)
		case r.Seq%2 == 0:
			return receiver.Status(429).With("Retry-After", "1")
		default:
			return receiver.Status(429)
		}
	}})
	q.PushN(t, tasks)
	d := fleet.StartDispatcher(t, server.URL(), fleet.Routes(q), "MAX_ATTEMPTS=3")
	q.AwaitDrained(t)
	d.Stop(t)
	if dead := q.Dead(t); len(dead) > 0 {
		t.Errorf("%d dead letters, want none", len(dead))
	}
	if got := q.Receiver.Count(); got <= tasks {
		t.Errorf("%d requests: none was throttled, the test shows nothing", got)
	}
	for _, r := range q.Receiver.Log() {
		if attempt := r.Header.Get(receiver.AttemptHeader); attempt != "1" {
			t.Errorf("task %s was charged: attempt %s", r.TaskID, attempt)
		}
	}
	q.Law(t)
}

// TestSlowReceiver has attempts that take longer than it takes to give up a dead dispatcher. The tasks of a living one
// must be left alone.
func TestSlowReceiver(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	q := fleet.NewQueue(t, server, receiver.Config{Script: receiver.Always(receiver.Status(204).After(5 * time.Second))})
	env := []string{beats, "TIMEOUT=20s"}
	one := fleet.StartDispatcher(t, server.URL(), fleet.Routes(q), env...)
	two := fleet.StartDispatcher(t, server.URL(), fleet.Routes(q), env...)
	q.PushN(t, 10)
	q.AwaitDrained(t)
	one.Stop(t)
	two.Stop(t)
	if got := q.Receiver.Count(); got != 10 {
		t.Errorf("%d requests, want 10", got)
	}
	q.Law(t)
}

// closedPort is the address of a port that nobody listens on, and that nobody else gets before t ends.
func closedPort(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	syscall.CloseOnExec(fd)
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	addr, err := syscall.Getsockname(fd)
	at, ok := addr.(*syscall.SockaddrInet4)
	if err != nil || !ok {
		t.Fatalf("address of a socket: %v, %v", addr, err)
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(at.Port))
}
