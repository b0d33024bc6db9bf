package e2e_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/queuehook/queuehook/internal/fleet"
	"github.com/queuehook/queuehook/internal/receiver"
	"github.com/queuehook/queuehook/internal/redistest"
)

// TestOutage takes an endpoint down while thousands of tasks wait. They are neither tried nor charged meanwhile. When
// it is up again the fleet comes back step by step, each step after as many answers as it had slots.
func TestOutage(t *testing.T) {
	t.Parallel()
	const tasks, dispatchers, slots = 2000, 3, 32
	outage := 4 * time.Second
	if long() {
		outage = time.Minute
	}
	server := redistest.Shared(t)
	up := receiver.Always(receiver.Status(204).After(20 * time.Millisecond))
	q := fleet.NewQueue(t, server, receiver.Config{Script: receiver.Always(receiver.Status(503))})
	q.PushN(t, tasks)
	all := serveAll(t, dispatchers, server.URL(), routes(route(q, "breaker: {consecutive: 20, pause: 1s}")))
	paused := `dispatcher_route_paused{cause="breaker",queue="` + q.Name + `"}`
	for _, d := range all {
		fleet.AwaitTrue(t, fleet.Patience, "breaker opens", func() bool { return d.Metric(t, paused) == 1 })
	}
	fleet.Pass(outage)
	q.Receiver.SetScript(up)
	q.AwaitDrained(t)
	for _, d := range all { // the others may have been faster: it needs tasks to see that the endpoint is up
		fleet.AwaitTrue(t, fleet.Patience, "the breaker closes", func() bool {
			q.PushN(t, dispatchers)
			return d.Metric(t, paused) == 0
		})
	}
	q.AwaitDrained(t)
	for _, d := range all {
		d.Stop(t)
	}

	log := q.Receiver.Log()
	slices.SortFunc(log, func(a, b receiver.Request) int { return a.Arrived.Compare(b.Arrived) })
	failed := map[string]int{}
	for _, r := range log {
		if r.Status == 503 {
			failed[r.TaskID]++
		} else if want := strconv.Itoa(failed[r.TaskID] + 1); r.Header.Get(receiver.AttemptHeader) != want {
			t.Errorf("task %s came as attempt %s, want %s", r.TaskID, r.Header.Get(receiver.AttemptHeader), want)
		}
	}
	first := slices.IndexFunc(log, func(r receiver.Request) bool { return r.Status != 503 })
	seconds := log[first].Arrived.Sub(log[0].Arrived).Seconds()
	// As many as were under way, and one probe for each three quarters of the pause.
	if most := float64(dispatchers) * (20 + slots + 1 + seconds/0.75); float64(first) > most {
		t.Errorf("%d requests within the %.1f s of the outage, want %.0f at most", first, seconds, most)
	}
	gentle(t, log[first:], dispatchers)
	t.Logf("outage of %.1f s: %d requests, %d of %d tasks charged\n%s", seconds, first, len(failed), tasks,
		histogram(log, log[first].Arrived))
	q.Law(t)
}

// gentle checks that each dispatcher reopens its slots step by step: 1, then 2 after 1 answer, then 4 after 3, and so
// on. So there are never more requests under way than have been answered, and one for each dispatcher. An answer counts
// before anybody can know it.
func gentle(t *testing.T, log []receiver.Request, dispatchers int) {
	t.Helper()
	var ends []time.Time
	for _, r := range log {
		ends = append(ends, r.Over)
	}
	slices.SortFunc(ends, time.Time.Compare)
	answered := 0
	for i, r := range log {
		for answered < len(ends) && ends[answered].Before(r.Arrived) {
			answered++
		}
		if underWay := i + 1 - answered; answered < 32 && underWay > answered+dispatchers {
			t.Errorf("%d were under way when %d had been answered", underWay, answered)
			return
		}
	}
}

// histogram draws how many requests came in each 100 ms from 1 s before a moment to 2 s after it, and the sums of the
// rest.
func histogram(log []receiver.Request, up time.Time) string {
	const bucket, before, after = 100 * time.Millisecond, 10, 20
	var counts [before + after]int
	early, late := 0, 0
	for _, r := range log {
		at := before + int(r.Arrived.Sub(up)/bucket)
		if r.Arrived.Before(up) {
			at--
		}
		switch {
		case at < 0:
			early++
		case at >= len(counts):
			late++
		default:
			counts[at]++
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%9s %5d\n", "earlier", early)
	for i, n := range counts {
		fmt.Fprintf(&b, "%+6d ms %5d %s\n", (i-before)*int(bucket/time.Millisecond), n, strings.Repeat("#", (n+4)/5))
	}
	fmt.Fprintf(&b, "%9s %5d\n", "later", late)
	return b.String()
}

// TestMassRejection has a receiver that rejects everything, as after a bad deploy. That must not cost the backlog.
func TestMassRejection(t *testing.T) {
	t.Parallel()
	const tasks, slots = 1000, 4
	server := redistest.Shared(t)
	q := fleet.NewQueue(t, server, receiver.Config{Script: receiver.Always(receiver.Status(400))})
	q.PushN(t, tasks)
	d := serve(t, server.URL(), routes(route(q, "reject: [400]", "concurrency: 4", "breaker: {consecutive: 20, pause: 4s}")))
	paused := `dispatcher_route_paused{cause="rejections",queue="` + q.Name + `"}`
	fleet.AwaitTrue(t, fleet.Patience, "the guard stops the route", func() bool { return d.Metric(t, paused) == 1 })
	q.Receiver.SetScript(nil) // the deploy is taken back
	fleet.AwaitTrue(t, fleet.Patience, "nothing is under way", func() bool { return q.Depth(t).InFlight == 0 })
	dead := len(q.Dead(t))
	t.Logf("%d of %d tasks were buried", dead, tasks)
	if dead < 26 || dead > 26+slots {
		t.Errorf("%d dead letters, want 26 and what was under way", dead)
	}
	buried := d.Metric(t, `dispatcher_tasks_buried_total{queue="`+q.Name+`",reason="rejected"}`)
	if int(buried) != dead {
		t.Errorf("%v counted as rejected, %d are dead", buried, dead)
	}
	q.AwaitDrained(t)
	if got := d.Metric(t, paused); got != 0 {
		t.Errorf("%s %v, want 0", paused, got)
	}
	d.Stop(t)
	if got := len(q.Dead(t)); got != dead {
		t.Errorf("%d dead letters, %d before the receiver was right again", got, dead)
	}
	q.Law(t)
}
