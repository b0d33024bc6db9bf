package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/task"
)

// attempt delivers one task once and settles it. When the process dies in here the task stays in flight, until a sweep
// finds its dispatcher dead.
func (d *Dispatcher) attempt(ctx context.Context, s *session, t *task.Task) {
	leave, ok := d.gate.enter()
	if !ok {
		s.release(s.settling, t)
		return
	}
	d.cfg.Observer.InFlight(1)
	defer d.cfg.Observer.InFlight(-1)

	deadline, cancel := context.WithTimeout(ctx, d.cfg.Timeout)
	defer cancel()
	begin := time.Now()
	outcome := outcomeOf(deadline, d.deliver(deadline, t))
	took := time.Since(begin)

	leave(outcome)
	decision := d.conclude(t, outcome)
	err := s.settle(t, decision)
	d.account(ctx, t, outcome, decision, took, err)
}

// deliver calls the target. A panic of a Go func must not take the other tasks' dispatcher down.
func (d *Dispatcher) deliver(ctx context.Context, t *task.Task) (err error) {
	defer func() {
		if p := recover(); p != nil {
			d.log.ErrorContext(ctx, "target panicked", "task", t.ID(), "panic", fmt.Sprint(p),
				"stack", string(debug.Stack()))
			err = delivery.Errorf(delivery.Failed, "panic: %v", p)
		}
	}()
	return d.cfg.Target.Deliver(ctx, t)
}

// outcomeOf reads a target's error. A target that merely returns its context's error has not failed by itself.
func outcomeOf(ctx context.Context, err error) delivery.Outcome {
	if errors.Is(err, context.Canceled) && errors.Is(context.Cause(ctx), delivery.ErrShutdown) {
		if _, ok := errors.AsType[*delivery.Error](err); !ok {
			return delivery.Of(delivery.Shutdown)
		}
	}
	return delivery.FromError(err)
}

// conclude decides what the outcome means for the task, and notes the attempt on it.
func (d *Dispatcher) conclude(t *task.Task, o delivery.Outcome) decision {
	meta, now := t.Meta(), t.Now()
	decision := d.cfg.Retry.decide(o, facts{
		// By the task's number, for meta has this attempt too when a program tries its failed settlement again.
		charged: t.Attempt() - 1, throttles: meta.Throttles, maxAttempts: meta.MaxAttempts,
		age:  since(meta.FirstDueAt, now),
		draw: rand.Float64(), //nolint:gosec // jitter
	})
	t.Record(task.Result{
		At: now, Status: o.Status, Reason: o.Reason.String(), Error: o.Detail, Log: o.Log, Charged: o.Charged,
		Throttled: o.Reason == delivery.Throttled,
		// The record of a success is read only when Redis could not be told of it: then the receiver has seen the task.
		Unknown: o.Unknown || o.Settlement == delivery.Complete,
	})
	return decision
}

// account tells operators of one finished attempt: it counts it and logs one line.
func (d *Dispatcher) account(
	ctx context.Context, t *task.Task, o delivery.Outcome, dec decision, took time.Duration, settled error,
) {
	d.cfg.Observer.Attempt(dec.settlement, o.Reason, took)
	switch {
	case isLost(settled):
		d.cfg.Observer.LeaseLost()
	case settled != nil: // the dispatcher stopped while Redis was away: a sweep gives the task back
	case dec.settlement == delivery.Complete:
		d.cfg.Observer.Completed(since(t.Meta().EnqueuedAt, t.Now()))
	case dec.settlement == delivery.Bury:
		d.cfg.Observer.Buried(dec.reason)
	}

	level := slog.LevelInfo
	switch {
	case settled != nil: // whatever was decided
	case dec.settlement == delivery.Complete:
		level = slog.LevelDebug
	case dec.settlement == delivery.Bury:
		level = slog.LevelWarn
	}
	if !d.log.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("task", t.ID()), slog.Int("attempt", t.Attempt()), slog.String("outcome", written(dec, settled)),
		slog.String("reason", dec.reason.String()), slog.Int64("duration_ms", took.Milliseconds()),
	}
	if limit := d.cfg.Retry.limit(t.Meta().MaxAttempts); limit > 0 {
		attrs = append(attrs, slog.Int("max_attempts", limit))
	}
	if o.Status != 0 {
		attrs = append(attrs, slog.Int("status", o.Status))
	}
	if o.Detail != "" {
		attrs = append(attrs, slog.String("detail", o.Detail))
	}
	if dec.settlement == delivery.Abandon {
		attrs = append(attrs, slog.Int64("delay_ms", dec.delay.Milliseconds()))
	}
	if settled != nil {
		attrs = append(attrs, slog.Any("error", settled))
	}
	d.log.LogAttrs(ctx, level, "attempt finished", attrs...)
}

// written is how the attempt ended for the task as far as Redis knows.
func written(d decision, settled error) string {
	switch {
	case settled == nil:
		return d.settlement.String()
	case isLost(settled):
		return "lost" // others have taken the task: whatever came of it here
	default:
		return "unsettled"
	}
}

// isLost says that a settlement was refused because the lease is lost.
func isLost(err error) bool { return errors.Is(err, task.ErrNotFound) }

// since is the time from ms to now, 0 when ms is not known.
func since(ms int64, now time.Time) time.Duration {
	if ms == 0 {
		return 0
	}
	return now.Sub(time.UnixMilli(ms))
}
