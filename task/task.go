// Package task is one unit of work as whoever works on it sees it: an id, the producer's bytes, what is known of earlier
// attempts, and one settlement.
package task

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"
)

var (
	// ErrAlreadyResolved is returned by the second settlement of a task.
	ErrAlreadyResolved = errors.New("task is already resolved")
	// ErrNotFound is returned when whoever settles a task does not hold its lease, because a sweep took it or because they
	// never did.
	ErrNotFound = errors.New("task is not in flight here")
)

// Settler writes down how a task ended. Both methods may be called by many goroutines at once, each for a task of its
// own.
type Settler interface {
	Succeed(ctx context.Context, t *Task) error
	Fail(ctx context.Context, t *Task) error
}

// Spec is what a lease says of a task.
type Spec struct {
	ID      string
	Queue   string
	Payload []byte
	Meta    Meta
	// Redelivered says that an earlier attempt's outcome is unknown.
	Redelivered bool
	// Now is the server's time when the task was leased, so that ages need no second clock.
	Now time.Time
	// Context is cancelled when the task should not be worked on any more: its dispatcher halts.
	Context context.Context //nolint:containedctx // a task carries its context as http.Request does
	Settler Settler
}

// Task is one task under one lease. It is resolved once, by Succeed or by Fail. Its methods may be called from any
// goroutine.
type Task struct {
	spec   Spec
	leased time.Time // Go's clock at the lease: Spec.Now plus the time since is the server's time

	mu       sync.Mutex
	meta     Meta
	recorded bool
	resolved bool
}

// New returns a task that s settles, for tests and for a Lifecycle of your own. The payload is not copied.
func New(id string, payload []byte, s Settler) *Task {
	return From(Spec{ID: id, Payload: payload, Settler: s, Now: time.Now(), Context: context.Background()})
}

// From returns the task that a lease describes.
func From(s Spec) *Task {
	return &Task{spec: s, leased: time.Now(), meta: s.Meta}
}

// ID is the task's name, the same over all attempts.
func (t *Task) ID() string { return t.spec.ID }

// Queue is the name of the task's queue, which is that of the list that producers push onto.
func (t *Task) Queue() string { return t.spec.Queue }

// Bytes is the payload exactly as its producer pushed it. Do not change it.
func (t *Task) Bytes() []byte { return t.spec.Payload }

// HexDump is the payload as hexdump -C prints it.
func (t *Task) HexDump() string { return hex.Dump(t.spec.Payload) }

// String names the task and its size, never its payload.
func (t *Task) String() string {
	return fmt.Sprintf("task %s (attempt %d, %d bytes)", t.ID(), t.Attempt(), len(t.spec.Payload))
}

// Attempt is the number of this attempt: 1 for the first, then one more for each attempt that was charged.
func (t *Task) Attempt() int { return t.spec.Meta.Attempt + 1 }

// Redelivered says that the outcome of an earlier attempt is unknown, so that the receiver may have seen the task.
func (t *Task) Redelivered() bool { return t.spec.Redelivered || t.spec.Meta.Redelivered }

// Now is the Redis server's time: that of the lease, moved on by this process's own clock.
func (t *Task) Now() time.Time { return t.spec.Now.Add(time.Since(t.leased)) }

// Context is cancelled when the dispatcher halts and nobody should go on working on the task. A lost lease does not
// cancel it, since that shows only at the settlement, which returns ErrNotFound.
func (t *Task) Context() context.Context { return t.spec.Context }

// Closer is closed when Context is done.
func (t *Task) Closer() <-chan struct{} { return t.spec.Context.Done() }

// IsResolved says whether Succeed or Fail has taken effect.
func (t *Task) IsResolved() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.resolved
}

// Succeed completes the task, and it is forgotten. It returns ErrAlreadyResolved when the task was settled before and
// ErrNotFound when the lease is lost. After any other error the task is still unresolved, and Succeed may be tried again.
func (t *Task) Succeed() error { return t.resolve(t.spec.Settler.Succeed) }

// Fail abandons the task: it is tried again after the route's backoff, or buried when its attempts or its age are used
// up. Its errors are those of Succeed.
func (t *Task) Fail() error { return t.resolve(t.spec.Settler.Fail) }

// resolve lets one settlement through. What was decided is written down even when the task's own context has ended.
func (t *Task) resolve(settle func(context.Context, *Task) error) error {
	t.mu.Lock()
	if t.resolved {
		t.mu.Unlock()
		return ErrAlreadyResolved
	}
	t.resolved = true
	t.mu.Unlock()

	err := settle(context.WithoutCancel(t.spec.Context), t)
	if err != nil && !errors.Is(err, ErrNotFound) {
		t.mu.Lock()
		t.resolved = false
		t.mu.Unlock()
	}
	return err
}

// With returns the same task settled by s. Only one of the two may be used from then on.
func (t *Task) With(s Settler) *Task {
	spec := t.spec
	spec.Settler = s
	return &Task{spec: spec, leased: t.leased, meta: t.spec.Meta}
}

// Meta is what is kept with the task; after Record it includes this attempt.
func (t *Task) Meta() Meta {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.meta
}

// Record notes how this attempt ended, before the settlement that writes it down. The last call counts.
func (t *Task) Record(r Result) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.meta = t.spec.Meta.after(t.Attempt(), t.Redelivered(), r)
	t.recorded = true
}

// Recorded says whether Record was called.
func (t *Task) Recorded() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.recorded
}
