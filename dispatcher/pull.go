package dispatcher

import (
	"context"
	"time"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/task"
)

// offer is how Start hands tasks over: each with the route's Retry behind its Succeed and Fail. One that nobody takes
// before the dispatcher closes is given back.
func (d *Dispatcher) offer(to chan<- *task.Task) func(context.Context, *session, *task.Task) {
	return func(ctx context.Context, s *session, t *task.Task) {
		if s.fit(ctx) == nil {
			select {
			case to <- t.With(&puller{d: d, s: s, begin: time.Now()}):
				d.cfg.Observer.InFlight(1)
				return
			case <-ctx.Done():
			}
		}
		s.refuse(t)
	}
}

// puller settles one task that a program pulled.
type puller struct {
	d     *Dispatcher
	s     *session
	begin time.Time
}

// Succeed completes the task.
func (p *puller) Succeed(ctx context.Context, t *task.Task) error { return p.end(ctx, t, delivery.OK) }

// Fail abandons the task with the route's backoff, or buries it when its budget has ended.
func (p *puller) Fail(ctx context.Context, t *task.Task) error { return p.end(ctx, t, delivery.Failed) }

func (p *puller) end(ctx context.Context, t *task.Task, r delivery.Reason) error {
	outcome := delivery.Of(r)
	decision := p.d.conclude(t, outcome)
	err := p.s.settle(t, decision)
	if err == nil || isLost(err) {
		p.d.cfg.Observer.InFlight(-1)
		p.d.account(ctx, t, outcome, decision, time.Since(p.begin), err)
	}
	return err
}
