package dispatcher

import (
	"context"
	"time"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/heartbeat"
	"github.com/queuehook/queuehook/janitor"
	"github.com/queuehook/queuehook/lifecycle"
)

const (
	deepEvery = time.Hour
	trimEvery = time.Minute
)

// Retention bounds a queue's dead letters.
type Retention struct {
	// MaxAge is how long a dead letter is kept; 0 = for ever.
	MaxAge time.Duration
	// MaxCount is how many are kept, the newest; 0 = all.
	MaxCount int
}

// chores are what the janitor does besides sweeping.
func (d *Dispatcher) chores(queue *lifecycle.Queue) []janitor.Chore {
	deep := lifecycle.NewDeep(queue)
	all := []janitor.Chore{{
		Name: "deep sweep", Every: deepEvery,
		Do: func(ctx context.Context) (time.Duration, error) { return d.lookDeep(ctx, deep) },
	}}
	if d.cfg.Retention != (Retention{}) {
		all = append(all, janitor.Chore{
			Name: "retention", Every: trimEvery,
			Do: func(ctx context.Context) (time.Duration, error) { return 0, d.trim(ctx, queue) },
		})
	}
	return all
}

// lookDeep looks again after a grace when there is something to be found twice.
func (d *Dispatcher) lookDeep(ctx context.Context, deep *lifecycle.Deep) (again time.Duration, err error) {
	found, err := deep.Look(ctx)
	if found.Any() {
		d.log.WarnContext(ctx, "deep sweep found something", "orphans", found.Orphans, "strays", found.Strays,
			"bodiless", found.Bodiless, "suspects", found.Suspects)
	}
	for range found.Bodiless {
		d.cfg.Observer.Buried(delivery.BodyMissing)
	}
	if err != nil {
		d.cfg.Observer.RedisError("sweep")
	}
	if found.Suspects > 0 {
		again = heartbeat.GraceBeats * d.cfg.Interval
	}
	return again, err
}

// trim deletes the dead letters that retention does not keep, counts and logs them.
func (d *Dispatcher) trim(ctx context.Context, queue *lifecycle.Queue) error {
	n, err := queue.Trim(ctx, d.cfg.Retention.MaxAge, d.cfg.Retention.MaxCount)
	if n > 0 {
		d.cfg.Observer.Trimmed(n)
		d.log.WarnContext(ctx, "dead letters past their retention deleted", "tasks", n)
	}
	if err != nil {
		d.cfg.Observer.RedisError("trim")
	}
	return err
}
