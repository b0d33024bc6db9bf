package dispatcher

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/queuehook/queuehook/heartbeat"
	"github.com/queuehook/queuehook/janitor"
	"github.com/queuehook/queuehook/lifecycle"
	"github.com/queuehook/queuehook/redisconn"
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

// Config says what a Dispatcher serves and how. The zero value of a field means its default, where there is one.
type Config struct {
	// Queue is the Redis list that producers push onto.
	Queue string
	// Target is what Run delivers to; Start needs none.
	Target Target
	// Redis holds the connections, which redisconn.FromClient makes from a client; not needed with a Lifecycle.
	Redis redisconn.Conn
	// Lifecycle replaces Redis, and with it heart and janitor; nil = Redis.
	Lifecycle Lifecycle
	// Hooks are called around each sweep of a dead dispatcher; nil = none.
	Hooks janitor.Hooks

	// Concurrency is how many tasks are out at once; 0 = 32. For a program that pulls it is the number of its goroutines.
	Concurrency int
	// MaxBytes bounds the bytes of payloads that are out at once, except that the last task may exceed it; 0 = no bound
	// but Concurrency.
	MaxBytes int
	// Ordered lets one task at a time be out in the whole fleet; a failing one is retried before the next. All
	// dispatchers of the queue must agree on it.
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
	// Interval is the time between heartbeats, at least 10 ms; 0 = 5 s. A dispatcher that misses five is given up.
	Interval time.Duration
	// NoJanitor leaves it to others to look for dead dispatchers.
	NoJanitor bool
	// Retention bounds the dead letters, through the janitor; the zero Retention keeps them all.
	Retention Retention
	// CrashLimit is how many dispatchers may die while they hold a task; then it is buried. 0 = 5, below 0 = no limit.
	CrashLimit int

	// Version is this program's, as the list of dispatchers shows it.
	Version string
	// Progress is called in each round of the heart's loop, also while Redis is away: a round takes an interval and the
	// time of a call to Redis. nil = nobody watches.
	Progress func()
	// Observer counts; nil = nobody does.
	Observer Observer
	// Logger gets one line per attempt, at debug when it succeeded; nil = slog.Default().
	Logger *slog.Logger
}

// validate fills in the defaults and returns every fault at once.
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
