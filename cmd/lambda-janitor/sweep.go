package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/queuehook/queuehook/config"
	"github.com/queuehook/queuehook/heartbeat"
	"github.com/queuehook/queuehook/internal/sweepanswer"
	"github.com/queuehook/queuehook/janitor"
	"github.com/queuehook/queuehook/lifecycle"
	"github.com/queuehook/queuehook/redisconn"
)

const (
	// reserve is how long before its deadline a run stops sweeping, to read the depths and to answer.
	reserve = 2 * time.Second
	// measureFor bounds the reading of one queue's depths.
	measureFor = 5 * time.Second
	// parallel bounds the calls to Redis at a time. Queues that wait for a grace wait all at the same time.
	parallel = 8
	// crashLimit is what dispatchers have unless told otherwise.
	crashLimit = 5
)

var errNoTime = errors.New("no time to sweep: a function needs a timeout well over 2s, better of 60s")

// sweeper is the janitor's work on all queues.
type sweeper struct {
	cfg    config.Janitor
	vault  *vault // of the password; nil = cfg.Redis has it
	logger *slog.Logger
}

// sweep sweeps every queue as far as it can until shortly before ctx's deadline. Each run has a connection of its own:
// a function is frozen between two, for longer than a connection lives.
func (s sweeper) sweep(ctx context.Context) answer {
	ctx, cancel := working(ctx)
	defer cancel()
	if ctx.Err() != nil {
		return s.log(ctx, failed(errNoTime))
	}
	rdb, err := s.connect(ctx)
	if err != nil {
		return s.log(ctx, failed(err))
	}
	defer func() { _ = rdb.Close() }() // nothing waits for it
	names := slices.Clone(s.cfg.Queues)
	if len(names) == 0 {
		if names, err = lifecycle.Queues(ctx, rdb); err != nil {
			return s.log(ctx, failed(err))
		}
	}
	queues := make([]swept, len(names))
	slots := make(chan struct{}, parallel)
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() { queues[i] = s.queue(ctx, rdb, slots, name) })
	}
	all.Wait()
	return s.log(ctx, collect(queues))
}

// connect returns a client that Redis has let in. A password that was read for an earlier run may have been rotated
// since: when Redis refuses it, it is read once more.
func (s sweeper) connect(ctx context.Context) (redis.UniversalClient, error) {
	if s.vault == nil {
		return reach(ctx, s.cfg.Redis)
	}
	fresh := s.vault.password == ""
	for {
		if fresh {
			if err := s.vault.read(ctx); err != nil {
				return nil, err
			}
		}
		cfg := s.cfg.Redis
		cfg.Password = s.vault.password
		rdb, err := reach(ctx, cfg)
		if fresh || !errors.Is(err, redisconn.ErrCredentials) {
			return rdb, err
		}
		s.logger.InfoContext(ctx, "password refused, the secret is read again")
		fresh = true
	}
}

func reach(ctx context.Context, cfg config.Redis) (redis.UniversalClient, error) {
	rdb, err := redisconn.Open(cfg, redisconn.Options{PoolSize: parallel})
	if err != nil {
		return nil, err
	}
	if err := redisconn.Reach(ctx, rdb); err != nil {
		_ = rdb.Close()
		return nil, err
	}
	return rdb, nil
}

// queue sweeps one queue and measures it. Its errors are its own.
func (s sweeper) queue(ctx context.Context, rdb redis.UniversalClient, slots chan struct{}, name string) swept {
	result := swept{Queue: sweepanswer.New(name)}
	detector, err := heartbeat.NewDetector(rdb, name)
	if err != nil {
		result.errs = []string{err.Error()}
		return result
	}
	q, err := lifecycle.Open(rdb, name)
	if err != nil {
		result.errs = []string{err.Error()}
		return result
	}
	polite := limited{slots: slots, detector: detector, queue: q}
	var looks []janitor.Look
	if s.cfg.Legacy {
		legacy := sweepanswer.NewLegacy()
		result.Legacy = legacy
		look := legacy.Look(q)
		looks = append(looks, func(ctx context.Context) (again bool, err error) {
			return within(ctx, slots, func() (bool, error) { return look(ctx) })
		})
	}
	report, err := janitor.Recover(ctx, janitor.Config{
		Detector: polite, Sweeper: polite, Grace: s.cfg.Grace, Batch: s.cfg.Batch, CrashLimit: crashLimit, Looks: looks,
		Logger: s.logger,
	})
	result.Add(report)
	if err != nil {
		result.errs = append(result.errs, err.Error())
	}
	if len(report.Suspects) > 0 || report.Left > 0 || report.Stopped {
		s.logger.WarnContext(ctx, "sweep ended early, the next run goes on", "queue", name,
			"suspects", report.Suspects, "wait_ms", report.Wait.Milliseconds(), "left", report.Left)
	}
	if err := result.measure(ctx, polite); err != nil {
		result.errs = append(result.errs, fmt.Sprintf("measure queue %s: %v", name, err))
	}
	return result
}

// measure reads the depths, after the end of ctx too: its deadline leaves time for that.
func (s *swept) measure(ctx context.Context, q limited) error {
	end := time.Now().Add(measureFor)
	if deadline, ok := ctx.Deadline(); ok {
		end = earlier(end, deadline.Add(reserve*3/4))
	}
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), end)
	defer cancel()
	depth, err := q.Depth(ctx)
	if err != nil {
		return err
	}
	s.Ready, s.Delayed, s.InFlight, s.DeadLetters = depth.Ready, depth.Delayed, depth.InFlight, depth.Dead
	s.OldestReady, s.Live = seconds(depth.OldestDue.Seconds()), depth.Dispatchers
	s.measured = true
	return nil
}

func (s sweeper) log(ctx context.Context, a answer) answer {
	for _, text := range a.Errors {
		s.logger.ErrorContext(ctx, "sweep failed", "error", text)
	}
	return a
}

// working returns a context for the sweeping, which ends before ctx does.
func working(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, deadline.Add(-reserve))
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// limited is a queue whose calls to Redis share a limited number of slots with those of other queues.
type limited struct {
	slots    chan struct{}
	detector *heartbeat.Detector
	queue    *lifecycle.Queue
}

// Name is the queue's name.
func (l limited) Name() string { return l.queue.Name() }

// Detect is that of heartbeat.Detector.
func (l limited) Detect(ctx context.Context) ([]string, error) {
	return within(ctx, l.slots, func() ([]string, error) { return l.detector.Detect(ctx) })
}

// Sweep is that of lifecycle.Queue.
func (l limited) Sweep(ctx context.Context, id string, s lifecycle.Sweep) (lifecycle.Swept, error) {
	return within(ctx, l.slots, func() (lifecycle.Swept, error) { return l.queue.Sweep(ctx, id, s) })
}

// Depth is that of lifecycle.Queue.
func (l limited) Depth(ctx context.Context) (lifecycle.Depth, error) {
	return within(ctx, l.slots, func() (lifecycle.Depth, error) { return l.queue.Depth(ctx) })
}

// within calls while it holds a slot.
func within[T any](ctx context.Context, slots chan struct{}, call func() (T, error)) (T, error) {
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
	defer func() { <-slots }()
	return call()
}
