package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/task"
)

// Defaults of Config.
const (
	defaultConcurrency = 32
	defaultMaxBytes    = 8 << 20
)

// Config says how one dispatcher leases from its queue.
type Config struct {
	// Concurrency is how many tasks may be out at once; 0 = 32. A task is out from its lease until Redis has acknowledged
	// its settlement.
	Concurrency int
	// MaxBytes bounds the payload bytes of one lease call, unless a single task is larger; 0 = 8 MiB. After a reply that
	// did not come in time less is asked for, for a while.
	MaxBytes int
	// MaxOut bounds the payload bytes that are out, except that the last task may exceed it; 0 = no bound but
	// Concurrency.
	MaxOut int
	// Ordered lets one task at a time be out in the whole fleet; a failing one is retried before the next is leased.
	Ordered bool
	// Rate bounds the leases of the whole fleet, which must agree on it; the zero Rate bounds nothing.
	Rate Rate
	// Admit is asked before each lease how many tasks to lease at most; it is told how many are out and how many slots
	// are free. When it says none it is asked again after wait, at most 1 s, or once a task is settled. nil = as many as
	// are free.
	Admit func(out, free int) (n int, wait time.Duration)
	// Waits carries the blocking idle wait. It should be a client of its own, so that waits take no connection from
	// settlements; nil = the client given to New.
	Waits redis.UniversalClient
	// Fault is told what each failed call to Redis was for: "lease", "wait" or "settle"; nil = nobody is told.
	Fault func(op string)
	// Buried is told the reason of each task that a lease buried because its body is gone; nil = nobody is told.
	Buried func(delivery.Reason)
	// Logger gets what is not about a single attempt; nil = slog.Default().
	Logger *slog.Logger
}

// Rate is a token bucket in Redis: Limit tasks in each Per, and Burst at once after a quiet time. Limit 0 = no limit.
type Rate struct {
	Limit int
	Per   time.Duration
	Burst int // 0 = Limit
}

// Validate says what is wrong with the rate, nil when nothing is.
func (r Rate) Validate() error {
	if r.Limit < 0 || r.Burst < 0 || (r.Limit > 0 && r.Per < time.Millisecond) {
		return fmt.Errorf("rate %d per %s, burst %d: must not be negative, and per is at least 1ms", r.Limit, r.Per, r.Burst)
	}
	return nil
}

// policy is the part of a lease's arguments that says what the queue allows.
func (c Config) policy() []any {
	ordered := 0
	if c.Ordered {
		ordered = 1
	}
	if c.Rate.Limit == 0 {
		return []any{ordered, "", "", ""}
	}
	burst := c.Rate.Burst
	if burst == 0 {
		burst = c.Rate.Limit
	}
	return []any{ordered, c.Rate.Limit, c.Rate.Per.Milliseconds(), burst}
}

// DefaultLifecycle is one dispatcher's hold on its queue: it leases tasks, knows which are out and settles them. It is
// registered and kept alive by a heartbeat.Heart of the same id. Its methods may be called by many goroutines.
type DefaultLifecycle struct {
	*Queue

	id  string
	cfg Config

	out     *registry
	batch   batch
	turn    atomic.Uint64         // odd and even leases take turns in the share of parked tasks
	unsure  atomic.Bool           // a lease's reply was lost: adopt before the next one
	fault   atomic.Pointer[error] // of the last call for tasks; nil = it was answered
	stuck   atomic.Int64          // settlements that Redis has not taken yet, after a try
	adopted time.Time             // of the listening goroutine
	room    room                  // of one lease's reply

	tasks   context.Context //nolint:containedctx // the parent of what task.Task.Context answers
	abort   context.CancelCauseFunc
	mu      sync.Mutex
	stop    context.CancelFunc // ends Listen
	stopped chan struct{}      // closed when Listen's goroutine has returned
}

// New returns the lifecycle of the dispatcher that is registered as id. Its error says what is wrong with its arguments;
// it opens no connection.
func New(rdb redis.UniversalClient, queue, id string, cfg Config) (*DefaultLifecycle, error) {
	q, err := Open(rdb, queue)
	if err != nil {
		return nil, err
	}
	if id == "" {
		return nil, errors.New("no dispatcher id: register a heart first")
	}
	if cfg.Concurrency < 0 || cfg.MaxBytes < 0 || cfg.MaxOut < 0 {
		return nil, fmt.Errorf("concurrency %d, max bytes %d, max out %d: must not be negative",
			cfg.Concurrency, cfg.MaxBytes, cfg.MaxOut)
	}
	if err := cfg.Rate.Validate(); err != nil {
		return nil, err
	}
	if cfg.Concurrency == 0 {
		cfg.Concurrency = defaultConcurrency
	}
	if cfg.MaxBytes == 0 {
		cfg.MaxBytes = defaultMaxBytes
	}
	if cfg.Admit == nil {
		cfg.Admit = func(_, free int) (int, time.Duration) { return free, maxWait }
	}
	if cfg.Fault == nil {
		cfg.Fault = func(string) {}
	}
	if cfg.Buried == nil {
		cfg.Buried = func(delivery.Reason) {}
	}
	if cfg.Waits == nil {
		cfg.Waits = rdb
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	l := &DefaultLifecycle{
		Queue: q, id: id, cfg: cfg,
		out: newRegistry(cfg.Concurrency, cfg.MaxOut), adopted: time.Now(), room: room{most: cfg.MaxBytes},
	}
	l.tasks, l.abort = context.WithCancelCause(context.Background())
	l.batch.send = l.complete
	return l, nil
}

// ID is the dispatcher's id.
func (l *DefaultLifecycle) ID() string { return l.id }

// Out is the number of tasks that are leased and not settled.
func (l *DefaultLifecycle) Out() int { return l.out.len() }

// Fault is the error of the last call that asked for tasks, nil when Redis answered it.
func (l *DefaultLifecycle) Fault() error {
	if err := l.fault.Load(); err != nil {
		return *err
	}
	return nil
}

// Await returns when no task is out, or with ctx's cause.
func (l *DefaultLifecycle) Await(ctx context.Context) error {
	return l.out.wait(ctx)
}

// Succeed completes the task. With Fail it makes the lifecycle the task.Settler of the tasks that it leases; a dispatcher
// puts itself in between, to apply its route's backoff.
func (l *DefaultLifecycle) Succeed(ctx context.Context, t *task.Task) error {
	return l.Complete(ctx, t)
}

// Fail abandons the task without delay.
func (l *DefaultLifecycle) Fail(ctx context.Context, t *task.Task) error { return l.Abandon(ctx, t, 0) }
