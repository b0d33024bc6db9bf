package dispatcher

import (
	"context"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/heartbeat"
	"github.com/queuehook/queuehook/janitor"
	"github.com/queuehook/queuehook/lifecycle"
)

// sweep runs the janitor until ctx ends; the channel is closed when it has stopped. It looks at others only while this
// dispatcher's own beat is good.
func (d *Dispatcher) sweep(ctx context.Context) (stopped <-chan struct{}, err error) {
	done := make(chan struct{})
	if d.cfg.NoJanitor || d.cfg.Lifecycle != nil {
		close(done)
		return done, nil
	}
	queue, err := lifecycle.Open(d.cfg.Redis.Commands, d.cfg.Queue)
	if err != nil {
		return nil, err
	}
	detector, err := heartbeat.NewDetector(d.cfg.Redis.Commands, d.cfg.Queue)
	if err != nil {
		return nil, err
	}
	watched := counted{queue, detector, d.cfg.Observer}
	j, err := janitor.New(janitor.Config{
		Detector: watched, Sweeper: watched, Hooks: d.cfg.Hooks,
		Grace: heartbeat.GraceBeats * d.cfg.Interval, CrashLimit: d.cfg.CrashLimit, Interval: d.cfg.Interval,
		Chores: d.chores(queue), Alive: d.beating, Observe: d.swept, Logger: d.cfg.Logger,
	})
	if err != nil {
		return nil, err
	}
	go func() {
		defer close(done)
		_ = j.Run(ctx) // it has no error of its own
	}()
	return done, nil
}

// beating says that this dispatcher could lately reach Redis.
func (d *Dispatcher) beating() bool {
	s := d.session.Load()
	return s != nil && s.heart.Alive()
}

func (d *Dispatcher) swept(r janitor.Report) {
	d.cfg.Observer.Recovered(r.Recovered)
	for range r.Buried {
		d.cfg.Observer.Buried(delivery.Crashed)
	}
}

// counted is a queue whose failed sweeps are counted, and so are failed looks for the dead.
type counted struct {
	*lifecycle.Queue
	detector *heartbeat.Detector
	observer Observer
}

// Detect is the detector's.
func (c counted) Detect(ctx context.Context) ([]string, error) {
	dead, err := c.detector.Detect(ctx)
	c.count(err)
	return dead, err
}

// Sweep is the queue's.
func (c counted) Sweep(ctx context.Context, id string, s lifecycle.Sweep) (lifecycle.Swept, error) {
	swept, err := c.Queue.Sweep(ctx, id, s)
	c.count(err)
	return swept, err
}

func (c counted) count(err error) {
	if err != nil {
		c.observer.RedisError("sweep")
	}
}
