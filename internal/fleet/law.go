package fleet

import (
	"cmp"
	"maps"
	"slices"
	"testing"

	"github.com/queuehook/queuehook/internal/audit"
	"github.com/queuehook/queuehook/internal/receiver"
)

// Cause notes why these tasks may be answered more than once.
func (q *Queue) Cause(why string, ids ...string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, id := range ids {
		q.causes[id] = why
	}
}

// Undone notes that Redis may have forgotten its last writes, as in a failover: what was recorded may come again, and a
// raw task under another id.
func (q *Queue) Undone(why string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.undone = why
}

// Overtaken notes that a request may have been sent before requests for its task that came first: it need not know of
// them.
func (q *Queue) Overtaken(seq int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.late[seq] = true
}

// Crash kills a dispatcher (SIGKILL) and returns the tasks that it had in flight, which may now be delivered twice.
func (q *Queue) Crash(t testing.TB, s *Server) []string {
	t.Helper()
	s.Suspend(t)
	ids := q.Of(t, s)
	q.Cause("its dispatcher was killed", ids...)
	s.Kill()
	return ids
}

// Law closes a test: nothing is lost, nothing doubled without a cause, and the receiver was told of every doubt. Redis
// and the receiver's log can't be read at one moment, so that a difference must last to count.
func (q *Queue) Law(t testing.TB) {
	t.Helper()
	q.judged = true
	if n := q.Receiver.Dropped(); n > 0 {
		t.Fatalf("the receiver's log has lost %d requests", n)
	}
	if err := poll(Patience/6, func() error {
		trial := q.trial()
		places := q.Places(t)
		q.settleDoubts(&trial, places)
		return audit.Err(audit.Check(places, trial))
	}); err != nil {
		t.Errorf("queue %s: %v", q.Name, err)
	}
	if q.undone == "" { // else Redis has forgotten doubts too
		q.tellsDoubts(t)
	}
}

// settleDoubts counts offers whose answer was lost as pushed, if the task turned up.
func (q *Queue) settleDoubts(trial *audit.Trial, p audit.Places) {
	q.mu.Lock()
	defer q.mu.Unlock()
	arrived := func(sum string) {
		if q.maybe[sum] {
			trial.Pushed[sum], q.pushed[sum] = 1, 1
			delete(q.maybe, sum)
		}
	}
	for _, raw := range slices.Concat(p.Source, p.Landing) {
		arrived(audit.Sum([]byte(raw)))
	}
	for _, body := range p.Body {
		arrived(audit.Sum([]byte(body)))
	}
	for _, got := range trial.Delivered {
		if got.Times > 0 {
			arrived(got.Sum)
		}
	}
}

func (q *Queue) trial() audit.Trial {
	delivered := map[string]audit.Answered{}
	for _, r := range q.Receiver.Log() {
		a := delivered[r.TaskID]
		if r.BodyRead {
			a.Sum = r.SHA256
		}
		if r.Accepted() {
			a.Times++
		}
		delivered[r.TaskID] = a
	}
	maps.DeleteFunc(delivered, func(_ string, a audit.Answered) bool { return a.Sum == "" })
	q.mu.Lock()
	defer q.mu.Unlock()
	return audit.Trial{
		Pushed: maps.Clone(q.pushed), Delivered: delivered, Causes: maps.Clone(q.causes), CauseOfAll: q.undone,
		Renamed: q.undone != "",
	}
}

// tellsDoubts checks that a task whose earlier request had no answer, or a good one, is marked as redelivered from then
// on.
func (q *Queue) tellsDoubts(t testing.TB) {
	t.Helper()
	q.mu.Lock()
	defer q.mu.Unlock()
	doubt := map[string]bool{}
	log := q.Receiver.Log()
	slices.SortFunc(log, func(a, b receiver.Request) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, r := range log {
		told := r.Header.Get("Dispatch-Redelivered") == "true"
		if doubt[r.TaskID] && !told && !q.late[r.Seq] {
			t.Errorf("task %s came again, request %d, without Dispatch-Redelivered", r.TaskID, r.Seq)
		}
		doubt[r.TaskID] = doubt[r.TaskID] || r.Status == 0 || r.Accepted()
	}
}
