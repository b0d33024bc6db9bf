// Package dispatcher is the policy between a queue and a target: how many tasks are out at once, how long an attempt may
// take, what its outcome means for the task, how long a failed task waits, and how everything stops. Where tasks are
// and how they travel is for others to know: this package touches neither Redis nor HTTP.
package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/heartbeat"
	"github.com/queuehook/queuehook/janitor"
	"github.com/queuehook/queuehook/lifecycle"
	"github.com/queuehook/queuehook/redisconn"
	"github.com/queuehook/queuehook/task"
)

// Defaults of Config.
const (
	defaultConcurrency = 32
	defaultTimeout     = 20 * time.Second
	defaultGrace       = 25 * time.Second
	defaultInterval    = 5 * time.Second
	defaultCrashLimit  = 5
	defaultConsecutive = 20
	defaultPause       = 30 * time.Second
)

// Target is where tasks are delivered. Deliver returns nil when the task is done, a *delivery.Error to say precisely
// what happened, or any other error for a failure that counts as an attempt. It is called by many goroutines at once and
// returns soon after ctx ends.
type Target interface {
	Deliver(ctx context.Context, t *task.Task) error
}

// Drainer is a Target that lets tasks wait for others. Drain is called once, when the dispatcher stops and has leased its
// last task: nothing is worth waiting for any more, although Deliver may still be called with what was leased before.
type Drainer interface{ Drain() }

// TargetFunc is a Go func as a target. A panic counts as a failed attempt.
type TargetFunc func(context.Context, *task.Task) error

// Deliver calls f.
func (f TargetFunc) Deliver(ctx context.Context, t *task.Task) error { return f(ctx, t) }

// Lifecycle leases tasks and settles them. lifecycle.DefaultLifecycle, on Redis, is the one that a Dispatcher uses when
// none is given, together with a heart and a janitor; whoever brings another sees to the rest of it too.
type Lifecycle interface {
	// Listen hands tasks over until StopListening or the end of ctx, then closes both channels. It leases no more than
	// may be out at once.
	Listen(ctx context.Context) (<-chan *task.Task, <-chan error)
	StopListening()
	// The settlements answer task.ErrNotFound when the lease is lost. They try until ctx ends.
	Complete(ctx context.Context, t *task.Task) error
	Abandon(ctx context.Context, t *task.Task, delay time.Duration) error
	Bury(ctx context.Context, t *task.Task, reason delivery.Reason) error
	Release(ctx context.Context, tasks ...*task.Task) error
	// AbandonAll releases every task that is out and cancels its context; Await returns when none is out.
	AbandonAll(ctx context.Context) error
	Await(ctx context.Context) error
}

// Observer is told what happens on one route, by many goroutines at once. It must not block.
type Observer interface {
	Attempt(s delivery.Settlement, r delivery.Reason, took time.Duration)
	Completed(lag time.Duration)
	Buried(r delivery.Reason)
	Recovered(tasks int)
	LeaseLost()
	InFlight(delta int)
	Beat(at time.Time)
	// Trimmed counts dead letters that retention deleted.
	Trimmed(tasks int)
	// Paused says that the route is held back for this cause, or no longer: throttled, breaker, rejections.
	Paused(cause string, on bool)
	// RedisError counts a failed call, by what it was for: beat, lease, settle, wait, sweep, trim.
	RedisError(op string)
}

// Config says what a Dispatcher serves and how. The zero value of a field means its default, where there is one.
type Config struct {
	// Queue is the Redis list that producers push onto.
	Queue string
	// Target is what Run delivers to; Start needs none.
	Target Target
	// Redis holds the connections: redisconn.FromClient makes them from a client. Not needed with a Lifecycle.
	Redis redisconn.Conn
	// Lifecycle replaces leasing from Redis, with its heart and janitor.
	Lifecycle Lifecycle
	// Hooks are called around each sweep of a dead dispatcher; nil = none.
	Hooks janitor.Hooks

	// Concurrency is how many tasks are out at once; 0 = 32. A program that pulls gives the number of its goroutines.
	Concurrency int
	// MaxBytes bounds the payloads that are out at once, save for the task that goes beyond; 0 = Concurrency alone bounds.
	MaxBytes int
	// Ordered lets one task be out in the whole fleet; a failing one is retried before the next. All dispatchers of the
	// queue must agree on it.
	Ordered bool
	// Rate bounds the leases of the whole fleet, which must agree on it; the zero Rate bounds nothing.
	Rate lifecycle.Rate
	// Timeout bounds one attempt of Run; 0 = 20 s. It does not bound a program that pulls.
	Timeout time.Duration
	// Retry says when a failed task is tried again.
	Retry Retry
	// Breaker says when the route is held back because its target is at fault.
	Breaker Breaker
	// Grace is how long attempts in flight may go on when Run or Start is told to stop; 0 = 25 s.
	Grace time.Duration
	// Interval is the time between heartbeats, at least 10 ms; 0 = 5 s. A dispatcher that stops beating is given up after
	// five.
	Interval time.Duration
	// NoJanitor leaves the dispatchers that died to others.
	NoJanitor bool
	// Retention bounds the dead letters, through the janitor; the zero Retention keeps them all.
	Retention Retention
	// CrashLimit is after how many dispatchers that died with it a task is buried; 0 = 5, below 0 = never.
	CrashLimit int

	// Version is what the list of dispatchers shows.
	Version string
	// Progress is called by the heart's loop, also while Redis is away, at least every interval and the time that a call
	// to Redis takes; nil = nobody watches.
	Progress func()
	// Observer counts; nil = nobody does.
	Observer Observer
	// Logger gets one line per attempt, at debug when it succeeded; nil = slog.Default().
	Logger *slog.Logger
}

// validate fills in the defaults and answers every fault at once.
func (c *Config) validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if c.Queue == "" {
		fault("no queue")
	}
	if c.Lifecycle == nil && c.Redis.Commands == nil {
		fault("neither Redis connections nor a Lifecycle")
	}
	if c.Concurrency < 0 || c.MaxBytes < 0 || c.Timeout < 0 || c.Grace < 0 || c.Interval < 0 || c.Breaker.Pause < 0 {
		fault("concurrency %d, max bytes %d, timeout %s, grace %s, interval %s, breaker pause %s: must not be negative",
			c.Concurrency, c.MaxBytes, c.Timeout, c.Grace, c.Interval, c.Breaker.Pause)
	}
	if c.Interval > 0 && c.Interval < heartbeat.MinInterval {
		fault("interval %s: at least %s is accepted", c.Interval, heartbeat.MinInterval)
	}
	faults = append(faults, c.Rate.Validate(), c.Retry.validate())
	setDefault(&c.Concurrency, defaultConcurrency)
	setDefault(&c.Timeout, defaultTimeout)
	setDefault(&c.Grace, defaultGrace)
	setDefault(&c.Interval, defaultInterval)
	setDefault(&c.CrashLimit, defaultCrashLimit)
	setDefault(&c.Breaker.Consecutive, defaultConsecutive)
	setDefault(&c.Breaker.Pause, defaultPause)
	c.CrashLimit = max(c.CrashLimit, 0)
	if c.Progress == nil {
		c.Progress = func() {}
	}
	if c.Observer == nil {
		c.Observer = nobody{}
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return errors.Join(faults...)
}

func setDefault[T int | time.Duration](v *T, to T) {
	if *v == 0 {
		*v = to
	}
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

// nobody is the Observer of a dispatcher without one.
type nobody struct{}

func (nobody) Attempt(delivery.Settlement, delivery.Reason, time.Duration) {}
func (nobody) Completed(time.Duration)                                     {}
func (nobody) Buried(delivery.Reason)                                      {}
func (nobody) Recovered(int)                                               {}
func (nobody) LeaseLost()                                                  {}
func (nobody) InFlight(int)                                                {}
func (nobody) Beat(time.Time)                                              {}
func (nobody) Trimmed(int)                                                 {}
func (nobody) Paused(string, bool)                                         {}
func (nobody) RedisError(string)                                           {}
