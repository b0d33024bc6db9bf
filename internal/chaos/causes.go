package chaos

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/queuehook/queuehook/internal/receiver"
)

// causes looks for why tasks were answered 2xx more often than once, or once and then buried. What it does not find it
// leaves to the law.
func (tr *trial) causes() {
	byTask := map[string][]receiver.Request{}
	for _, r := range tr.queue.Receiver.Log() {
		byTask[r.TaskID] = append(byTask[r.TaskID], r)
	}
	held := tr.queue.Places(tr.t).Of()
	ends := endsOf(tr.t, tr.server, tr.queue)
	for _, l := range tr.lives {
		tr.figures.Fences += len(l.server.Logged("dispatcher was given up by the others"))
	}
	for id, requests := range byTask {
		slices.SortFunc(requests, func(a, b receiver.Request) int { return cmp.Compare(a.Seq, b.Seq) })
		tr.overtaken(requests, ends[id])
		accepted := slices.DeleteFunc(slices.Clone(requests), func(r receiver.Request) bool {
			return !r.Accepted()
		})
		recorded := 1 // of these; it need not be the last to come
		if len(held[id]) > 0 {
			recorded = 0
		}
		if len(accepted) <= recorded {
			continue
		}
		var found []string
		for _, r := range accepted {
			if cause := explain(tr.life(r), ends[id], r); cause != "" {
				found = append(found, cause)
			}
		}
		if len(found) < len(accepted)-recorded {
			tr.t.Logf("task %s was accepted more often than there are causes for, %q:\n%s",
				id, found, tell(requests, ends[id], tr, id))
			continue
		}
		for _, cause := range found[:len(accepted)-recorded] {
			tr.figures.Repeats[cause]++
			tr.queue.Cause(cause, id)
		}
	}
}

// overtaken notes the requests that knew of no doubt and may have been on their way for so long, in a dispatcher that was
// frozen, that others came first.
func (tr *trial) overtaken(requests []receiver.Request, ends []*end) {
	for _, r := range requests {
		pid := tr.life(r).server.PID()
		if slices.ContainsFunc(ends, func(e *end) bool { return e.swept && e.pid == pid }) {
			tr.queue.Overtaken(r.Seq)
		}
	}
}

// explain returns why the 2xx of this request may not have been recorded: its lease ended otherwise, for a reason that
// lets this happen. Each end explains one request.
func explain(l *life, ends []*end, r receiver.Request) string {
	attempt, _ := strconv.Atoi(r.Header.Get(receiver.AttemptHeader)) // 0 fits none
	for _, e := range ends {
		if e.pid != l.server.PID() || e.used {
			continue
		}
		if cause := e.cause(attempt, l.killed); cause != "" {
			e.used = true
			return cause
		}
	}
	if !r.Sent {
		return "answer cut off"
	}
	return ""
}

// tell is a task's history, for a failure's report.
func tell(requests []receiver.Request, ends []*end, tr *trial, id string) string {
	var b strings.Builder
	since := func(at time.Time) string { return at.Sub(tr.start).Round(time.Millisecond).String() }
	for _, r := range requests {
		fmt.Fprintf(&b, "\trequest %d %s: %s to %s, status %d, sent %v, attempt %s, redelivered %q\n", r.Seq, r.Path,
			since(r.Arrived), since(r.Finished), r.Status, r.Sent, r.Header.Get(receiver.AttemptHeader),
			r.Header.Get("Dispatch-Redelivered"))
	}
	for _, e := range ends {
		fmt.Fprintf(&b, "\tlease of pid %d ended: %+v\n", e.pid, *e)
	}
	for _, l := range tr.lives {
		for line := range strings.Lines(l.server.Log()) {
			if strings.Contains(line, id) || strings.Contains(line, "given up") {
				fmt.Fprintf(&b, "\t%s, pid %d: %s", l.name, l.server.PID(), line)
			}
		}
	}
	return b.String()
}

// judge finds the causes, asks for the law and answers the figures.
func (tr *trial) judge() Figures {
	if tr.site == Alone { // elsewhere the law looks for losses only: see build
		tr.causes()
	}
	tr.queue.Law(tr.t)
	f := &tr.figures
	f.Pushed = tr.queue.Pushed()
	f.Trials = 1
	done, payloads := map[string]bool{}, map[string]bool{}
	for _, r := range tr.queue.Receiver.Log() {
		f.Requests++
		if r.Accepted() {
			done[r.TaskID], payloads[r.SHA256] = true, true
		}
	}
	f.Delivered = len(done)
	held := tr.queue.Places(tr.t)
	f.Buried = len(held.Dead)
	found := len(done) + len(held.Source) + len(held.Landing)
	for id := range held.Of() {
		if !done[id] {
			found++
		}
	}
	if tr.site == Sentinels { // a failover may give a task another id
		found += len(payloads) - len(done)
	}
	f.Lost = f.Pushed - found
	return *f
}
