package lifecycle

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/task"
)

const (
	// adoptEvery is how often a listener asks for tasks that it holds without knowing, when nothing told it to.
	adoptEvery = 30 * time.Second
	// The idle wait: at least minWait, so that a due task that cannot be had is no hot loop; at most maxWait, so that
	// a task that is enqueued as parked, which wakes nobody, is seen within it.
	minWait = 10 * time.Millisecond
	maxWait = time.Second
	// lapsedWait is how soon to ask again when our own tick has run out; the heart goes on beating by itself.
	lapsedWait = 100 * time.Millisecond
	// releaseFor bounds the tries to release what was leased and not taken; after that it stays in flight, for a sweep.
	releaseFor = 5 * time.Second
)

// Listen leases tasks as slots become free and hands them over, until StopListening is called or ctx ends; then both
// channels are closed. The second channel tells of faults and never blocks: it keeps only the last one. After ErrFenced
// nothing more is leased. Call it once.
func (l *DefaultLifecycle) Listen(ctx context.Context) (<-chan *task.Task, <-chan error) {
	ctx, stop := context.WithCancel(ctx)
	stopped := make(chan struct{})
	l.mu.Lock()
	l.stop, l.stopped = stop, stopped
	l.mu.Unlock()

	tasks, errs := make(chan *task.Task), make(chan error, 1)
	go func() {
		defer close(stopped)
		defer close(errs)
		defer close(tasks)
		l.listen(ctx, tasks, errs)
	}()
	return tasks, errs
}

// StopListening ends Listen. When it returns nothing more is leased: it has waited for the reply of a lease under way, and
// tasks that nobody took from the channel are released.
func (l *DefaultLifecycle) StopListening() {
	l.mu.Lock()
	stop, stopped := l.stop, l.stopped
	l.mu.Unlock()
	if stop != nil {
		stop()
		<-stopped
	}
}

// AbandonAll releases every task that is out, uncharged, and cancels their contexts. Unless it was recorded how an
// attempt ended, its outcome counts as unknown. Tasks that were delivered, but not yet completed because Redis was away,
// are completed instead.
func (l *DefaultLifecycle) AbandonAll(ctx context.Context) error {
	l.abort(delivery.ErrShutdown)
	tasks, done := l.out.tasks()
	for _, t := range tasks {
		if !t.Recorded() {
			t.Record(task.Result{At: t.Now(), Reason: delivery.Shutdown.String(), Unknown: true})
		}
	}
	return errors.Join(l.completeAll(ctx, done), l.Release(ctx, tasks...))
}

func (l *DefaultLifecycle) listen(ctx context.Context, tasks chan<- *task.Task, errs chan error) {
	var faults backoff
	for ctx.Err() == nil {
		settled := l.out.changes() // before counting, so that none is missed
		n, wait := l.cfg.Admit(l.out.len(), l.out.free())
		if n <= 0 {
			_ = sleepUnless(ctx, settled, min(wait, maxWait)) // the loop's condition ends it
			continue
		}
		got, err := l.next(context.WithoutCancel(ctx), n)
		l.hand(ctx, tasks, got.tasks)
		switch {
		case err == nil:
			faults = backoff{}
			if l.fault.Swap(nil) != nil {
				l.cfg.Logger.InfoContext(ctx, "leasing goes on", "queue", l.Name())
			}
			l.idle(ctx, got, settled)
		case errors.Is(err, ErrFenced):
			report(errs, err)
			return
		default:
			if l.fault.Swap(&err) == nil {
				l.cfg.Logger.WarnContext(ctx, "leasing failed, going on trying", "queue", l.Name(), "error", err)
			}
			l.cfg.Fault("lease")
			report(errs, err)
			_ = faults.wait(ctx)
		}
	}
}

// next is one call to Redis for up to n tasks: an adoption when one is due, else a lease.
func (l *DefaultLifecycle) next(ctx context.Context, n int) (leased, error) {
	if l.unsure.Load() || time.Since(l.adopted) >= adoptEvery {
		got, err := l.adopt(ctx, n)
		if err != nil || len(got.tasks) > 0 {
			return got, err
		}
		l.adopted = time.Now()
	}
	return l.lease(ctx, n)
}

// hand gives the tasks to whoever receives, and releases those that nobody took before ctx ended.
func (l *DefaultLifecycle) hand(ctx context.Context, to chan<- *task.Task, tasks []*task.Task) {
	for i, t := range tasks {
		select {
		case to <- t:
		case <-ctx.Done():
			l.giveBack(ctx, tasks[i:])
			return
		}
	}
}

// giveBack releases tasks that nobody began to work on, although ctx has ended.
func (l *DefaultLifecycle) giveBack(ctx context.Context, tasks []*task.Task) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseFor)
	defer cancel()
	if err := l.Release(ctx, tasks...); err != nil {
		l.cfg.Logger.WarnContext(ctx, "tasks stay in flight until a sweep", "queue", l.Name(), "tasks", len(tasks), "error", err)
	}
}

// idle waits until the next call may be of use: for an ordered queue that is when its task is settled, which may be ours.
func (l *DefaultLifecycle) idle(ctx context.Context, got leased, settled <-chan struct{}) {
	wait := maxWait
	if got.wait >= 0 {
		wait = min(max(got.wait, minWait), maxWait)
	}
	switch got.code {
	case codeEmpty:
		l.await(ctx, wait)
	case codeLapsed:
		_ = sleep(ctx, lapsedWait) // the caller sees that ctx has ended
	case codeBusy:
		_ = sleepUnless(ctx, settled, wait)
	case codePaused, codeLimited:
		_ = sleep(ctx, wait)
	case codeLeased, codeFenced, codeReplay:
	}
}

// await blocks until a payload comes, at most for wait. What comes is moved to the landing list, which every lease reads
// first: were it popped, a connection that dies at this moment would lose it. The reply tells nothing of use. A wait
// under way when ctx ends runs out by itself, for it takes nothing from anybody.
func (l *DefaultLifecycle) await(ctx context.Context, wait time.Duration) {
	if ctx.Err() != nil {
		return
	}
	seconds := strconv.FormatFloat(wait.Seconds(), 'f', 3, 64) // go-redis's own BLMove rounds to whole seconds
	err := l.cfg.Waits.Do(context.WithoutCancel(ctx),
		"blmove", l.keys.Source, l.keys.Landing, "right", "left", seconds).Err()
	if err != nil && !errors.Is(err, redis.Nil) { // refused, or no connection: poll
		l.cfg.Fault("wait")
		_ = sleep(ctx, min(wait, lapsedWait))
	}
}

// report tells of a fault, in place of an earlier one that nobody has read. Only the listening goroutine sends, so there
// is room once that one is out.
func report(errs chan error, err error) {
	select {
	case <-errs: //nolint:errcheck // told too late to be of use
	default:
	}
	errs <- err
}
