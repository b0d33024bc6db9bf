package main

import (
	"context"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/queuehook/queuehook/admin"
	"github.com/queuehook/queuehook/config"
	"github.com/queuehook/queuehook/dispatcher"
	"github.com/queuehook/queuehook/lifecycle"
	"github.com/queuehook/queuehook/metrics"
	"github.com/queuehook/queuehook/redisconn"
)

// patience is how much longer than its interval a loop's round may take, since calls to Redis take up to their
// timeouts.
const patience = time.Minute

// opener makes routes from their configuration and from what all routes of the process share.
type opener struct {
	cfg    config.Dispatcher
	conn   redisconn.Conn
	counts *metrics.Metrics
	loops  *admin.Loops
	log    *slog.Logger
}

// route is one queue's dispatcher with what belongs to it.
type route struct {
	cfg        config.Route
	dispatcher *dispatcher.Dispatcher

	target target
	depths *metrics.Poll
	counts *metrics.Route
	loop   *admin.Loop
}

// open makes a route that does not run yet.
func (o opener) open(r config.Route) (_ *route, err error) {
	queue, err := lifecycle.Open(o.conn.Commands, r.Queue)
	if err != nil {
		return nil, err
	}
	target, err := newTarget(context.Background(), r)
	if err != nil {
		return nil, err
	}
	opened := &route{
		cfg: r, target: target,
		depths: o.counts.Poll(r.Queue, depthOf(queue)),
		counts: o.counts.Route(r.Queue, r.Target.String()),
		loop:   o.loops.Watch("heartbeat "+r.Queue, 2*o.cfg.HeartbeatInterval+patience),
	}
	concurrency, bytes, timeout := slots(r)
	opened.dispatcher, err = dispatcher.New(dispatcher.Config{
		Queue: r.Queue, Target: target, Redis: o.conn, Concurrency: concurrency, MaxBytes: bytes, Timeout: timeout,
		Ordered: r.Ordered, Rate: lifecycle.Rate(r.Rate), Retry: retry(r.Retry), Breaker: breaker(r.Breaker),
		Grace: max(o.cfg.ShutdownGrace, time.Nanosecond), Interval: o.cfg.HeartbeatInterval, NoJanitor: !o.cfg.Janitor,
		CrashLimit: o.cfg.CrashLimit,
		Retention:  dispatcher.Retention{MaxAge: o.cfg.DeadMaxAge, MaxCount: o.cfg.DeadMaxCount},
		Version:    version, Progress: opened.loop.Beat, Observer: opened.counts,
		Logger: o.log.With("target", r.Target.String()),
	})
	if err != nil {
		opened.close()
		return nil, err
	}
	return opened, nil
}

// run serves the route until ctx ends and its dispatcher has stopped, then closes it.
func (r *route) run(ctx context.Context) error {
	defer r.close()
	watching, unwatch := context.WithCancel(context.WithoutCancel(ctx))
	var depths errgroup.Group
	depths.Go(func() error { return r.depths.Run(watching) })
	defer func() { _ = depths.Wait() }() // it has no error of its own
	defer unwatch()
	return r.dispatcher.Run(ctx)
}

func (r *route) close() {
	r.loop.Done()
	r.counts.Forget()
	r.target.Close()
}

// depthOf reads a queue's depths for the metrics.
func depthOf(queue *lifecycle.Queue) func(context.Context) (metrics.Depth, error) {
	watch := lifecycle.NewWatch(queue)
	return func(ctx context.Context) (metrics.Depth, error) {
		d, err := watch.Depth(ctx)
		return metrics.Depth{
			Ready: d.Ready, Delayed: d.Delayed, Dead: d.Dead, OldestReady: d.OldestReady(), Paused: d.Paused,
		}, err
	}
}
