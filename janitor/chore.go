package janitor

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"
)

// Chore is something that a Janitor does now and then besides sweeping.
type Chore struct {
	Name string
	// Every is the time between two rounds, more or less a quarter of it. A round is done after one of the janitor's
	// passes.
	Every time.Duration
	// Do does one round. It may return how soon it wants the next one; 0 = as usual.
	Do func(ctx context.Context) (again time.Duration, err error)
}

// chores knows when each chore is due.
type chores []*due

type due struct {
	Chore
	at      time.Time
	failing bool
}

// newChores spreads the first rounds over their period: a fleet that starts together does not all do them at once, and
// one that restarts often still does them now and then.
func newChores(all []Chore) chores {
	list := make(chores, 0, len(all))
	for _, c := range all {
		list = append(list, &due{Chore: c, at: time.Now().Add(rand.N(c.Every))}) //nolint:gosec // jitter
	}
	return list
}

// do does what is due. A chore that fails is logged once until it succeeds, and tried again in its time.
func (all chores) do(ctx context.Context, log *slog.Logger) {
	for _, c := range all {
		if ctx.Err() != nil || time.Now().Before(c.at) {
			continue
		}
		again, err := c.Do(ctx)
		if err != nil && !c.failing && ctx.Err() == nil {
			log.WarnContext(ctx, "chore failed", "chore", c.Name, "error", err)
		}
		c.failing = err != nil
		if again == 0 {
			again = c.Every*3/4 + rand.N(c.Every/2+1) //nolint:gosec // jitter
		}
		c.at = time.Now().Add(again)
	}
}
