// Package dev is the stage of `dispatcher dev`: a Redis and a receiver in this process, a trickle of sample tasks, and a
// readable account of what the dispatcher does with them. The dispatcher itself is the one that serves in production,
// given by the caller; all that this package knows of it is its configuration and its log.
package dev

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/queuehook/queuehook/config"
	"github.com/queuehook/queuehook/lifecycle"
	"github.com/queuehook/queuehook/redisconn"
)

const (
	pushEvery   = 500 * time.Millisecond
	totalsEvery = 5 * time.Second
	// lookFor bounds the last look at the queues.
	lookFor = 2 * time.Second
)

// Options say how to show it.
type Options struct {
	Out       io.Writer // gets the banner and the account
	Color     bool
	Program   string // how the reader calls this program, for the commands that the banner suggests
	Version   string
	AdminAddr string // host:port; when it is in use, the next free port
}

// Serve serves the routes of a configuration until ctx ends, and logs to log.
type Serve func(ctx context.Context, cfg config.Dispatcher, log *slog.Logger) error

// Run sets the stage and runs serve on it until ctx ends. Then it lets what is in flight end and writes a summary. It
// returns nil unless something could not start.
func Run(ctx context.Context, o Options, serve Serve) error {
	s, err := openStage() //nolint:contextcheck // the stage stands until close: what is in flight ends after ctx
	if err != nil {
		return err
	}
	defer s.close() //nolint:contextcheck // see above
	cfg, err := s.config(ctx, o.AdminAddr)
	if err != nil {
		return err
	}
	rdb, err := redisconn.Open(cfg.Redis, redisconn.Options{})
	if err != nil {
		return err
	}
	defer func() { _ = rdb.Close() }() // Redis is gone in a moment
	queues, err := openQueues(rdb)
	if err != nil {
		return err
	}

	account := newAccount(o.Out, o.Color)
	if err := account.banner(o, cfg, s.receiver.URL()); err != nil {
		return err
	}
	parts, running := errgroup.WithContext(ctx)
	parts.Go(func() error { return serve(running, cfg, account.logger()) })
	parts.Go(func() error {
		p := producer{rdb: rdb, queues: queues, account: account}
		every(running, pushEvery, p.push)
		return nil
	})
	parts.Go(func() error {
		every(running, totalsEvery, func(ctx context.Context) error { return tell(ctx, queues, account.totals) })
		return nil
	})
	parts.Go(func() error {
		<-running.Done()
		if ctx.Err() != nil {
			account.note("stopping: deliveries in flight may end within " + cfg.ShutdownGrace.String())
		}
		return nil
	})
	if err := parts.Wait(); err != nil {
		return err
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookFor)
	defer cancel()
	return tell(last, queues, account.farewell)
}

func openQueues(rdb redis.UniversalClient) ([]*lifecycle.Queue, error) {
	all := samples()
	queues := make([]*lifecycle.Queue, len(all))
	for i, sample := range all {
		queue, err := lifecycle.Open(rdb, sample.queue)
		if err != nil {
			return nil, err
		}
		queues[i] = queue
	}
	return queues, nil
}

// every calls do once every interval until ctx ends. Errors are ignored: Redis is in this process, so a call only fails
// when it is stopped.
func every(ctx context.Context, interval time.Duration, do func(context.Context) error) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			_ = do(ctx)
		}
	}
}

// tell reads how much is in each queue and passes it on.
func tell(ctx context.Context, queues []*lifecycle.Queue, to func([]lifecycle.Depth)) error {
	depths := make([]lifecycle.Depth, len(queues))
	for i, queue := range queues {
		depth, err := queue.Depth(ctx)
		if err != nil {
			return fmt.Errorf("queue %s: %w", queue.Name(), err)
		}
		depths[i] = depth
	}
	to(depths)
	return nil
}
