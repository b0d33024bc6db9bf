package awslambda

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/task"
)

// gatherer makes batches of the tasks that are delivered at the same time. It has no goroutine of its own: the Deliver
// of one of a batch's tasks makes the call, the others wait for it. While every call is taken tasks gather, so that a
// busy function gets full batches, however short the wait.
type gatherer struct {
	size   int // records in a batch
	limit  int // bytes of an input
	invoke func(context.Context, []*entry) []delivery.Outcome

	mu      sync.Mutex
	wait    time.Duration // of a task for others; 0 when no more are to come
	free    int           // calls that may begin
	waiting []*entry      // in the order of their arrival
	bytes   int           // of their records
}

// entry is one task on its way into a batch.
type entry struct {
	task    *task.Task
	record  []byte
	ctx     context.Context //nolint:containedctx // its Deliver's, which waits for as long as the entry lives
	arrived time.Time
	since   int64                 // age, as when its task was enqueued in ms
	lead    chan []*entry         // told to make the call of this batch, in which it is
	done    chan delivery.Outcome // how its attempt ended
}

// deliver takes t through a call with others, and answers what became of it.
func (g *gatherer) deliver(ctx context.Context, t *task.Task, record []byte) delivery.Outcome {
	if size := eventFrame + len(record); size > g.limit {
		return delivery.FromError(tooLarge(size, g.limit))
	}
	e := &entry{
		task: t, record: record, ctx: ctx, arrived: time.Now(), since: t.Meta().EnqueuedAt,
		lead: make(chan []*entry, 1), done: make(chan delivery.Outcome, 1),
	}
	g.mu.Lock()
	g.waiting = append(g.waiting, e)
	g.bytes += len(record) + len(eventComma)
	wait := g.wait
	g.begin()
	g.mu.Unlock()

	ripe := time.NewTimer(wait)
	defer ripe.Stop()
	ended := ctx.Done()
	for {
		select {
		case outcome := <-e.done:
			return outcome
		case batch := <-e.lead:
			g.call(ctx, batch)
		case <-ripe.C:
			g.mu.Lock()
			g.begin()
			g.mu.Unlock()
		case <-ended:
			if g.leave(e) {
				return unsent(ctx)
			}
			ended = nil // it is in a call, which ends by itself
		}
	}
}

// drain has what waits called as soon as a call is free, and so whatever comes yet.
func (g *gatherer) drain() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.wait = 0
	g.begin()
}

// unsent is the outcome of a task that was in no call, or in none that was sent, when ctx ended. It is given back: that
// no time was left for it is neither its fault nor, for all that is known, the function's.
func unsent(ctx context.Context) delivery.Outcome {
	o := delivery.Of(delivery.Shutdown)
	o.Unknown = false
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		o.Reason, o.Detail = delivery.Timeout, "before there was a call"
	}
	return o
}

// leave takes e out of those that wait; false when it is in a batch already.
func (g *gatherer) leave(e *entry) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.waiting, e)
	if i < 0 {
		return false
	}
	g.waiting = slices.Delete(g.waiting, i, i+1)
	g.bytes -= len(e.record) + len(eventComma)
	return true
}

// begin has batches called while there are calls and batches that need not wait. g.mu is held.
func (g *gatherer) begin() {
	for g.free > 0 && g.ripe() {
		g.free--
		batch := g.take()
		batch[0].lead <- batch
	}
}

// ripe says whether a batch is full, or has waited.
func (g *gatherer) ripe() bool {
	return len(g.waiting) > 0 &&
		(len(g.waiting) >= g.size || g.bytes+eventFrame >= g.limit || time.Since(g.waiting[0].arrived) >= g.wait)
}

// take is the next batch: the oldest tasks, in the order of their age, as many as fit. The first always fits.
func (g *gatherer) take() []*entry {
	byAge := slices.Clone(g.waiting)
	slices.SortStableFunc(byAge, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(a.since, b.since), cmp.Compare(a.task.ID(), b.task.ID()))
	})
	n, size := 0, eventFrame-len(eventComma)
	for n < min(g.size, len(byAge)) {
		size += len(byAge[n].record) + len(eventComma)
		if size > g.limit {
			break
		}
		n++
	}
	batch := byAge[:n]
	taken := make(map[*entry]bool, n)
	for _, e := range batch {
		taken[e] = true
		g.bytes -= len(e.record) + len(eventComma)
	}
	g.waiting = slices.DeleteFunc(g.waiting, func(e *entry) bool { return taken[e] })
	return batch
}

// call delivers a batch and tells each of its tasks how it ended. It ends early when all of them were cancelled, and at the
// latest of their deadlines.
func (g *gatherer) call(ctx context.Context, batch []*entry) {
	ctx, cancel := bounded(ctx, batch)
	defer cancel()
	var uncancelled atomic.Int64
	uncancelled.Store(int64(len(batch)))
	for _, e := range batch {
		defer context.AfterFunc(e.ctx, func() { //nolint:contextcheck // each task's own
			if errors.Is(e.ctx.Err(), context.Canceled) && uncancelled.Add(-1) == 0 {
				cancel()
			}
		})()
	}
	outcomes := g.invoke(ctx, batch)
	g.mu.Lock()
	g.free++
	g.begin()
	g.mu.Unlock()
	for i, e := range batch {
		e.done <- outcomes[i]
	}
}

// bounded is the context of a batch's call: ctx without its end, and with the latest deadline of the batch's tasks.
func bounded(ctx context.Context, batch []*entry) (context.Context, context.CancelFunc) {
	detached := context.WithoutCancel(ctx)
	var latest time.Time
	for _, e := range batch {
		deadline, ok := e.ctx.Deadline()
		if !ok {
			return context.WithCancel(detached)
		}
		if deadline.After(latest) {
			latest = deadline
		}
	}
	return context.WithDeadline(detached, latest)
}
