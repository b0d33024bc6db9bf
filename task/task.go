// Package task holds one unit of work as its receiver sees it: an id, the producer's bytes, and one settlement.
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
	// ErrAlreadyResolved is answered to the second settlement of a task.
	ErrAlreadyResolved = errors.New("task is already resolved")
	// ErrNotFound is answered to a settlement by one who does not hold the task's lease: it was swept, or never his.
	ErrNotFound = errors.New("task is not in flight here")
)

// Settler writes down how a task ended. Both methods may be called by many goroutines at once, each for its own task.
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

// Task is one task under one lease. It is resolved once, by Succeed or by Fail; its methods may be called from any
// goroutine.
type Task struct {
	spec   Spec
	leased time.Time // Go's clock at the lease: Spec.Now plus the time since is the server's time

	mu       sync.Mutex
	meta     Meta
	recorded bool
	resolved bool
}

// New returns a task that s settles. It is what tests and own Lifecycles use; payload is not copied.
func New(id string, payload []byte, s Settler) *Task {
	return From(Spec{ID: id, Payload: payload, Settler: s, Now: time.Now(), Context: context.Background()})
}

// From returns the task that a lease described.
func From(s Spec) *Task {
	return &Task{spec: s, leased: time.Now(), meta: s.Meta}
}

// ID is the task's name, the same over all attempts.
func (t *Task) ID() string { return t.spec.ID }

// Queue is the name of the list that the task was pushed to.
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

// Now is the Redis server's time, as of the lease and moved on by this process's own clock.
func (t *Task) Now() time.Time { return t.spec.Now.Add(time.Since(t.leased)) }

// Context is cancelled when there is no use in working on: the dispatcher halts. A lost lease does not cancel it, since
// nobody learns of one before the settlement, which is refused with ErrNotFound.
func (t *Task) Context() context.Context { return t.spec.Context }

// Closer is closed when Context is done.
func (t *Task) Closer() <-chan struct{} { return t.spec.Context.Done() }

// IsResolved says whether Succeed or Fail has been called with effect.
func (t *Task) IsResolved() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.resolved
}

// Succeed completes the task: it is forgotten. ErrAlreadyResolved when it was settled before, ErrNotFound when the
// lease is lost; after any other error the task is still unresolved and Succeed may be tried again.
func (t *Task) Succeed() error { return t.resolve(t.spec.Settler.Succeed) }

// Fail abandons the task: it is tried again after the route's backoff, or buried when its budget has ended. Its errors
// are Succeed's.
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
