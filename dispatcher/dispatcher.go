// Package dispatcher is the policy between a queue and a target: how many tasks are out at once, how long an attempt may
// take, what its outcome means for the task, how long a failed task waits, and how everything stops. It touches neither
// Redis nor HTTP: where tasks are is the business of package lifecycle, how they travel that of their Target.
package dispatcher

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/task"
)

// Target is where tasks are delivered. Deliver returns nil when the task is done, a *delivery.Error to say precisely
// what happened, or any other error for a failure that counts as an attempt. It is called by many goroutines at once and
// must return soon after ctx ends.
type Target interface {
	Deliver(ctx context.Context, t *task.Task) error
}

// Drainer is a Target in which tasks wait for others, to share a call with them. Drain is called once, when the dispatcher
// stops and has leased its last task: from then on waiting is of no use, although Deliver may still be called with tasks
// that were leased before.
type Drainer interface{ Drain() }

// TargetFunc is a Go func as a target. A panic counts as a failed attempt.
type TargetFunc func(context.Context, *task.Task) error

// Deliver calls f.
func (f TargetFunc) Deliver(ctx context.Context, t *task.Task) error { return f(ctx, t) }

// Lifecycle leases tasks and settles them. A Dispatcher that is given none uses lifecycle.DefaultLifecycle, on Redis,
// together with a heart and a janitor. A Lifecycle of your own has neither.
type Lifecycle interface {
	// Listen hands tasks over until StopListening is called or ctx ends, then closes both channels. It leases no more
	// tasks than may be out at once.
	Listen(ctx context.Context) (<-chan *task.Task, <-chan error)
	StopListening()
	// The settlements return task.ErrNotFound when the lease is lost. They go on trying until ctx ends.
	Complete(ctx context.Context, t *task.Task) error
	Abandon(ctx context.Context, t *task.Task, delay time.Duration) error
	Bury(ctx context.Context, t *task.Task, reason delivery.Reason) error
	Release(ctx context.Context, tasks ...*task.Task) error
	// AbandonAll releases every task that is out and cancels its context; Await returns when none is out.
	AbandonAll(ctx context.Context) error
	Await(ctx context.Context) error
}

// Dispatcher serves one queue: it leases, delivers and settles from Run or Start until it is stopped. It serves once.
type Dispatcher struct {
	cfg  Config
	log  *slog.Logger // says the queue; the parts that log by themselves say it too
	gate *gate

	slots   chan struct{}  // one for each attempt under way
	working sync.WaitGroup // attempts
	closing signal         // stop leasing, let attempts end
	halting signal         // stop at once
	done    signal         // stopped
	started atomic.Bool

	session atomic.Pointer[session] // the current one; nil before the first
}

// New returns a dispatcher that is not serving yet. Its error names every fault of cfg.
func New(cfg Config) (*Dispatcher, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("dispatcher of queue %q: %w", cfg.Queue, err)
	}
	log := cfg.Logger.With("queue", cfg.Queue)
	return &Dispatcher{
		cfg:     cfg,
		log:     log,
		gate:    newGate(cfg, log),
		slots:   make(chan struct{}, cfg.Concurrency),
		closing: newSignal(), halting: newSignal(), done: newSignal(),
	}, nil
}
