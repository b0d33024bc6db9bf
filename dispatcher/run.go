package dispatcher

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/task"
)

// How long a stop waits beyond the grace: for cancelled attempts, and then for cancelled settlements, to end by
// themselves, and in between for Redis to take back what is left.
const (
	unwindFor  = time.Second
	releaseFor = 2 * time.Second
)

// ErrStarted is returned by a second Run or Start.
var ErrStarted = errors.New("dispatcher was started before")

// Run delivers tasks to the Target until ctx ends, or Close or Halt is called. Then it gives attempts the grace to end,
// cancels and releases the rest, and returns. It returns nil unless it could not serve at all. A Target that does not heed
// its context goes on by itself, while another dispatcher gets its task.
func (d *Dispatcher) Run(ctx context.Context) error {
	if d.cfg.Target == nil {
		return errors.New("run dispatcher: no target")
	}
	if !d.started.CompareAndSwap(false, true) {
		return ErrStarted
	}
	return d.serve(ctx, d.start, nil)
}

// Start leases tasks for a program that pulls them from the channel and resolves each with its Succeed or Fail; Fail
// applies Config.Retry. It stops as Run does, and then closes both channels. The second channel tells of temporary
// faults and never blocks: what nobody reads is dropped. On a second call it tells ErrStarted, and both channels are
// closed.
func (d *Dispatcher) Start(ctx context.Context) (<-chan *task.Task, <-chan error) {
	tasks, faults := make(chan *task.Task), make(chan error, 1)
	if !d.started.CompareAndSwap(false, true) {
		faults <- ErrStarted
		close(tasks)
		close(faults)
		return tasks, faults
	}
	go func() {
		defer close(faults)
		defer close(tasks)
		if err := d.serve(ctx, d.offer(tasks), faults); err != nil {
			tell(faults, err)
		}
	}()
	return tasks, faults
}

// Close stops leasing, lets what is in flight end within the grace, and returns when the dispatcher has stopped. When ctx
// ends first it returns ctx's cause while the stop goes on; Halt hastens it.
func (d *Dispatcher) Close(ctx context.Context) error {
	d.closing.give()
	return d.stopped(ctx)
}

// Halt stops leasing, cancels what is in flight, releases it, and returns when the dispatcher has stopped, or with ctx's
// cause.
func (d *Dispatcher) Halt(ctx context.Context) error {
	d.closing.give()
	d.halting.give()
	return d.stopped(ctx)
}

func (d *Dispatcher) stopped(ctx context.Context) error {
	if d.started.CompareAndSwap(false, true) {
		d.done.give() // one that never started has nothing to stop
	}
	select {
	case <-d.done.given():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// serve is a dispatcher's life: it opens sessions until it is told to stop, then stops in the one order that loses
// nothing.
func (d *Dispatcher) serve(
	ctx context.Context, take func(context.Context, *session, *task.Task), faults chan<- error,
) (err error) {
	defer d.done.give()
	detached := context.WithoutCancel(ctx)
	serving, stop := until(ctx, d.closing)
	defer stop()
	defer context.AfterFunc(ctx, d.closing.give)() // so that Ready says so while it drains
	settling, giveUp := context.WithCancel(detached)
	defer giveUp()
	attempts, cut := context.WithCancelCause(detached)
	defer cut(nil)
	limits := bounds{attempts: attempts, settling: settling}

	sweeping, err := d.sweep(serving)
	if err != nil {
		return err
	}
	var sessions []*session
	for serving.Err() == nil && err == nil {
		var s *session
		if s, err = d.open(serving, limits); err != nil {
			break
		}
		sessions = append(d.prune(ctx, sessions), s)
		d.session.Store(s)
		err = s.serve(serving, take, faults) // 1. leasing has stopped, the last reply was awaited
	}
	if serving.Err() != nil {
		err = nil // it was asked to stop
	}
	stop() // when it could not serve, nobody else ends the janitor

	// 2. Drain: attempts in flight end within the grace.
	if target, ok := d.cfg.Target.(Drainer); ok {
		target.Drain()
	}
	halted, unbind := until(detached, d.halting)
	defer unbind()
	d.await(halted, d.cfg.Grace, sessions)
	// 3. Cancel the rest, which release themselves, and release what does not.
	cut(delivery.ErrShutdown)
	d.await(detached, unwindFor, sessions)
	releasing, cancel := context.WithTimeout(detached, releaseFor)
	defer cancel()
	for _, s := range sessions {
		if e := s.life.AbandonAll(releasing); e != nil {
			d.log.WarnContext(ctx, "tasks stay in flight until a sweep", "error", e)
		}
	}
	giveUp()
	if !d.idle(detached, unwindFor) { // a bound of its own: Redis may have used the other up
		d.log.WarnContext(ctx, "attempts go on after the stop: the target does not heed its context, or Redis is silent")
	}
	<-sweeping
	// 4. The heart stops last, then the id is forgotten.
	for _, s := range sessions {
		d.forget(releasing, s)
	}
	return err
}

// start begins the attempt of a task in a goroutine of its own. There is a slot for it, save for a moment after a fence,
// when the attempts of two sessions share them.
func (d *Dispatcher) start(ctx context.Context, s *session, t *task.Task) {
	s.working.Add(1)
	select {
	case d.slots <- struct{}{}:
	case <-ctx.Done():
		s.working.Add(-1)
		s.refuse(t)
		return
	}
	d.working.Go(func() {
		defer s.working.Add(-1) // after the slot: see elsewhere
		defer func() { <-d.slots }()
		if s.fit(s.attempts) != nil {
			s.release(s.settling, t)
			return
		}
		d.attempt(s.attempts, s, t)
	})
}

// idle waits until no attempt is under way, and answers false when that takes longer than the time given.
func (d *Dispatcher) idle(ctx context.Context, limit time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	idle := newSignal()
	go func() {
		d.working.Wait()
		idle.give()
	}()
	select {
	case <-idle.given():
		return true
	case <-ctx.Done():
		return false
	}
}

// await returns when no task is out any more, or after the time given.
func (d *Dispatcher) await(ctx context.Context, limit time.Duration, sessions []*session) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for _, s := range sessions {
		if s.life.Await(ctx) != nil {
			return
		}
	}
}

// prune forgets the fenced sessions whose last task is settled.
func (d *Dispatcher) prune(ctx context.Context, sessions []*session) []*session {
	return slices.DeleteFunc(sessions, func(s *session) bool {
		if !s.drained() {
			return false
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseFor)
		defer cancel()
		d.forget(ctx, s)
		return true
	})
}

func (d *Dispatcher) forget(ctx context.Context, s *session) {
	if err := s.close(ctx); err != nil {
		d.log.WarnContext(ctx, "dispatcher not deregistered", "error", err)
	}
}
