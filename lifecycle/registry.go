package lifecycle

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/queuehook/queuehook/task"
)

// registry knows the tasks that are out and thereby the free slots. An entry comes with the lease's reply and goes with
// the settlement's, whatever that says: as long as a task stands here, no adoption takes it for a lost one.
type registry struct {
	slots int
	most  int // payload bytes from which on no slot is free; 0 = no matter how many

	mu      sync.Mutex
	entries map[string]entry // by task id
	bytes   int              // of their payloads
	closing map[claim]bool   // leases that AbandonAll completes, beside their own Complete
	changed chan struct{}    // closed and renewed when an entry goes
}

// entry is one task that is out.
type entry struct {
	task  *task.Task
	token string // of its lease
	done  bool   // it was delivered, and Redis has not answered so far
}

// claim names one lease of a task.
type claim struct{ id, token string }

func newRegistry(slots, most int) *registry {
	return &registry{
		slots: slots, most: most,
		entries: make(map[string]entry), closing: make(map[claim]bool), changed: make(chan struct{}),
	}
}

func (r *registry) add(t *task.Task, token string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget(t.ID())
	r.entries[t.ID()] = entry{task: t, token: token}
	r.bytes += len(t.Bytes())
}

// remove forgets a lease by the token that it was settled under. A task that is due again at once may be out anew before
// the reply that settled its last lease is read here: that entry must stay.
func (r *registry) remove(leases ...claim) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range leases {
		if r.entries[l.id].token == l.token {
			r.forget(l.id)
		}
	}
	close(r.changed)
	r.changed = make(chan struct{})
}

// forget takes an entry out, if there is one. r.mu is held.
func (r *registry) forget(id string) {
	if e, ok := r.entries[id]; ok {
		delete(r.entries, id)
		r.bytes -= len(e.task.Bytes())
	}
}

func (r *registry) token(id string) (string, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.entries[id]
	return e.token, ok
}

// delivered marks a lease whose task only waits for Redis to forget it.
func (r *registry) delivered(l claim) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, ok := r.entries[l.id]; ok && e.token == l.token {
		e.done = true
		r.entries[l.id] = e
	}
}

// completed says that AbandonAll completes this lease or has done so: then Redis need not know it any more.
func (r *registry) completed(l claim) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closing[l]
}

// tasks answers those that are out, and apart from them the leases whose tasks were delivered: the caller completes them.
func (r *registry) tasks() (open []*task.Task, done []claim) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, e := range r.entries {
		if e.done {
			l := claim{id, e.token}
			r.closing[l] = true
			done = append(done, l)
		} else {
			open = append(open, e.task)
		}
	}
	return open, done
}

func (r *registry) ids() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.entries))
}

func (r *registry) len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.entries)
}

func (r *registry) free() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.most > 0 && r.bytes >= r.most {
		return 0
	}
	return r.slots - len(r.entries)
}

// room is how many payload bytes more may be out, at most limit and at least 1.
func (r *registry) room(limit int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.most == 0 {
		return limit
	}
	return max(1, min(limit, r.most-r.bytes))
}

// wait returns when no task is out, or with ctx's cause.
func (r *registry) wait(ctx context.Context) error {
	for {
		r.mu.Lock()
		out, changed := len(r.entries), r.changed
		r.mu.Unlock()
		if out == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		}
	}
}

// changes returns a channel that is closed when the next entry goes.
func (r *registry) changes() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed
}
