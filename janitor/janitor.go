// Package janitor decides when to look for dead dispatchers, and calls hooks around the taking of their tasks. Whether a
// dispatcher is dead, and what is taken from it, is decided inside Redis, so any number of janitors may work at once.
//
// Sweep is one pass over a queue. Recover makes as many passes as a single run needs to give a dead dispatcher's tasks
// back. Janitor is the loop inside a dispatcher.
package janitor

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/queuehook/queuehook/lifecycle"
)

// defaultInterval is how often a Janitor looks: as often as dispatchers beat.
const defaultInterval = 5 * time.Second

var errIncomplete = errors.New("a janitor needs a Detector and a Sweeper")

// Detector names the dispatchers of a queue that look dead. A *heartbeat.Detector is one.
type Detector interface {
	Detect(ctx context.Context) ([]string, error)
}

// Sweeper takes tasks back from a dead dispatcher of one queue. A *lifecycle.Queue is one.
type Sweeper interface {
	Name() string
	Sweep(ctx context.Context, id string, s lifecycle.Sweep) (lifecycle.Swept, error)
}

// Hooks are called around the taking of one dead dispatcher's tasks. For one dispatcher only one janitor at a time calls
// its hooks, as long as each takes less than a minute. After a crash they may be called again for the same dispatcher.
// Janitors without hooks do not wait for those with hooks: give hooks to all or to none.
type Hooks interface {
	// OnPreConcat is called before anything is taken. If it returns an error, nothing is taken until the next pass.
	OnPreConcat(ctx context.Context, queue, dead string) error
	// OnPostConcat is called when everything was taken. If it returns an error, the next pass calls both hooks again.
	OnPostConcat(ctx context.Context, queue, dead string) error
}

// Config says what to sweep and how. Detector and Sweeper must be set, and of the same queue.
type Config struct {
	Detector Detector
	Sweeper  Sweeper
	// Hooks may be nil.
	Hooks Hooks
	// Grace is the least time for which a dispatcher is suspected before its tasks are taken; its own counts when it is
	// longer.
	Grace time.Duration
	// Batch is how many tasks one call takes, at most 100; 0 = 100.
	Batch int
	// CrashLimit is how many sweeps in a row bury a task; 0 = none do.
	CrashLimit int

	// Looks are done by Recover before each of its first two passes.
	Looks []Look

	// Interval is the time between two passes of Janitor.Run, more or less a quarter of it; 0 = 5 s. It must be shorter
	// than twice the dispatchers' grace, or suspicions lapse between two looks.
	Interval time.Duration
	// Chores are done between passes of Janitor.Run.
	Chores []Chore
	// Alive says whether the process that this janitor is part of has lately reached Redis. While it has not, nothing is
	// looked at, since others probably could not reach Redis either. nil = always.
	Alive func() bool
	// Observe gets the report of each pass of Janitor.Run that found a dead dispatcher; nil = nobody is told.
	Observe func(Report)
	// Logger gets what Janitor.Run recovered (nil = slog.Default()), and that Recover waits for a grace (nil = it does not
	// say so).
	Logger *slog.Logger
}

// Janitor sweeps one queue from within a dispatcher.
type Janitor struct {
	cfg   Config
	token string
}

// New returns a janitor of one queue. Its error says that Detector or Sweeper is missing.
func New(cfg Config) (*Janitor, error) {
	if cfg.Detector == nil || cfg.Sweeper == nil {
		return nil, errIncomplete
	}
	if cfg.Interval <= 0 {
		cfg.Interval = defaultInterval
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	// The token stays the same over passes, so that this janitor is not kept out by its own earlier attempt.
	return &Janitor{cfg: cfg, token: newToken(cfg)}, nil
}

// Run sweeps once every interval until ctx ends, then returns nil. What a pass could not do the next one tries again.
func (j *Janitor) Run(ctx context.Context) error {
	wait := rand.N(j.cfg.Interval) //nolint:gosec // jitter: a fleet that starts together looks at different times
	failing := false
	chores := newChores(j.cfg.Chores)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		wait = j.cfg.Interval*3/4 + rand.N(j.cfg.Interval/2) //nolint:gosec // jitter
		if !alive(j.cfg) {
			continue
		}
		report, err := newPass(j.cfg, j.token).sweep(ctx)
		j.tell(ctx, report)
		if err != nil && !failing {
			j.cfg.Logger.WarnContext(ctx, "sweep failed", "queue", report.Queue, "error", err)
		}
		failing = err != nil
		chores.do(ctx, j.cfg.Logger.With("queue", report.Queue))
	}
}

func (j *Janitor) tell(ctx context.Context, r Report) {
	if len(r.Dead) == 0 {
		return
	}
	j.cfg.Logger.InfoContext(ctx, "dead dispatchers swept", "queue", r.Queue, "dispatchers", r.Dead,
		"recovered", r.Recovered, "buried", r.Buried, "left", r.Left)
	if j.cfg.Observe != nil {
		j.cfg.Observe(r)
	}
}

func alive(cfg Config) bool { return cfg.Alive == nil || cfg.Alive() }
