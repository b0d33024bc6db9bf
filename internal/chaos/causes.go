package chaos

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/queuehook/queuehook/internal/receiver"
)

// fenceLag is how long before a dispatcher learns of it its tasks may have been taken: as long as its connection was
// broken or it was frozen, and some beats.
const fenceLag = 12 * time.Second

// story is what the log of a dispatcher tells.
type story struct {
	attempts map[string][]ending // task id -> attempts that did not end well, or were not recorded
	fences   int                 // how often it learnt that it had been given up
	suspect  []time.Time         // when it learnt it, or at its end could not ask
}

type ending struct {
	at    time.Time
	cause string
}

// read reads a dispatcher's log.
func (l *life) read() story {
	s := story{attempts: map[string][]ending{}}
	lines := bufio.NewScanner(strings.NewReader(l.server.Log()))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line struct {
			Time                     time.Time
			Msg, Task, Reason, Error string
		}
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			continue
		}
		switch line.Msg {
		case "dispatcher was given up by the others":
			s.fences++
			s.suspect = append(s.suspect, line.Time)
		case "dispatcher not deregistered":
			s.suspect = append(s.suspect, line.Time)
		case "attempt finished":
			if cause := causeOf(line.Reason, line.Error); cause != "" {
				s.attempts[line.Task] = append(s.attempts[line.Task], ending{line.Time, cause})
			}
		}
	}
	return s
}

// causeOf is why an attempt that ended so may have been repeated although the receiver had accepted the task.
func causeOf(reason, settled string) string {
	switch {
	case strings.Contains(settled, "not found"):
		return "lease lost"
	case settled != "":
		return "stopped while redis was away"
	}
	switch reason {
	case "timeout", "reset", "stale_connection", "shutdown":
		return reason
	}
	return ""
}

// causes looks for every answer 2xx that was not the task's last word for the reason why not. What it does not find it
// leaves to the law.
func (tr *trial) causes() {
	byTask := map[string][]receiver.Request{}
	for _, r := range tr.queue.Receiver.Log() {
		byTask[r.TaskID] = append(byTask[r.TaskID], r)
	}
	held := tr.queue.Places(tr.t).Of()
	stories := map[string]story{}
	for _, l := range tr.lives {
		stories[l.name] = l.read()
		tr.figures.Fences += stories[l.name].fences
	}
	for id, requests := range byTask {
		slices.SortFunc(requests, func(a, b receiver.Request) int { return cmp.Compare(a.Seq, b.Seq) })
		var found []string
		accepted := 0
		for _, r := range requests {
			if r.Status < 200 || r.Status > 299 {
				continue
			}
			if accepted++; accepted == 1 && len(held[id]) == 0 && last2xx(requests) == r.Seq {
				break // the only one, and the task is done
			}
			l := tr.life(strings.TrimPrefix(r.Path, "/"))
			if r.Seq == last2xx(requests) && len(held[id]) == 0 {
				continue
			}
			cause := explain(l, stories[l.name], r)
			if cause == "" {
				found = nil
				tr.t.Logf("no cause for what came after request %d of task %s:\n%s", r.Seq, id, tell(requests, tr, id))
				break
			}
			found = append(found, cause)
		}
		for _, cause := range found {
			tr.figures.Repeats[cause]++
			tr.queue.Cause(cause, id)
		}
	}
}

func last2xx(requests []receiver.Request) int64 {
	var seq int64
	for _, r := range requests {
		if r.Status >= 200 && r.Status <= 299 {
			seq = r.Seq
		}
	}
	return seq
}

// explain answers why the 2xx of this request may not have been recorded.
func explain(l *life, s story, r receiver.Request) string {
	for _, e := range s.attempts[r.TaskID] {
		if e.at.After(r.Arrived) {
			return e.cause
		}
	}
	switch {
	case l.inHand[r.TaskID] && !l.died.IsZero():
		return "dispatcher killed"
	case l.inHand[r.TaskID]:
		return "stopped while redis was away"
	case !r.Sent:
		return "answer cut off"
	case l.fenced && !l.died.IsZero() && r.Arrived.After(l.died.Add(-fenceLag)):
		return "lease lost, then killed"
	}
	for _, at := range s.suspect {
		if r.Arrived.Before(at) && r.Arrived.After(at.Add(-fenceLag)) {
			return "lease lost"
		}
	}
	return ""
}

// tell is a task's history, for a failure's report.
func tell(requests []receiver.Request, tr *trial, id string) string {
	var b strings.Builder
	since := func(at time.Time) string { return at.Sub(tr.start).Round(time.Millisecond).String() }
	for _, r := range requests {
		fmt.Fprintf(&b, "\trequest %d %s: %s to %s, status %d, sent %v, attempt %s, redelivered %q\n", r.Seq, r.Path,
			since(r.Arrived), since(r.Finished), r.Status, r.Sent, r.Header.Get(receiver.AttemptHeader),
			r.Header.Get("Dispatch-Redelivered"))
	}
	for _, l := range tr.lives {
		for line := range strings.Lines(l.server.Log()) {
			if strings.Contains(line, id) || strings.Contains(line, "given up") {
				fmt.Fprintf(&b, "\t%s: %s", l.name, line)
			}
		}
		if !l.died.IsZero() {
			fmt.Fprintf(&b, "\t%s was killed at %s, fenced %v, seen %v\n", l.name, since(l.died), l.fenced, l.seen)
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
		if r.Status >= 200 && r.Status <= 299 {
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
