package main

import (
	"context"
	"fmt"

	"github.com/queuehook/queuehook/janitor"
	"github.com/queuehook/queuehook/lifecycle"
)

// deepSwept is what --deep found and mended.
type deepSwept struct {
	Orphans  []string `json:"orphans"`  // dispatchers
	Strays   int      `json:"strays"`   // tasks
	Bodiless int      `json:"bodiless"` // tasks
}

// legacySwept is what --legacy took over.
type legacySwept struct {
	Workers []string `json:"legacy_workers"` // dead
	Moved   int      `json:"legacy_recovered"`
}

// looks are those of the flags; what they do goes into swept.
func (how sweeping) looks(q *lifecycle.Queue, swept *sweptQueue) []janitor.Look {
	var looks []janitor.Look
	if how.deep {
		swept.deepSwept = &deepSwept{Orphans: []string{}}
		looks = append(looks, swept.deepSwept.look(lifecycle.NewDeep(q)))
	}
	if how.legacy {
		swept.legacySwept = &legacySwept{Workers: []string{}}
		looks = append(looks, swept.legacySwept.look(lifecycle.NewLegacy(q)))
	}
	for i, look := range looks {
		looks[i] = func(ctx context.Context) (again bool, err error) {
			if again, err = look(ctx); err != nil {
				return false, fmt.Errorf("queue %s: %w", q.Name(), err)
			}
			return again, nil
		}
	}
	return looks
}

func (d *deepSwept) look(deep *lifecycle.Deep) janitor.Look {
	return func(ctx context.Context) (again bool, err error) {
		found, err := deep.Look(ctx)
		d.Orphans = append(d.Orphans, found.Orphans...)
		d.Strays += len(found.Strays)
		d.Bodiless += len(found.Bodiless)
		return found.Suspects > 0, err
	}
}

// look also says why there can be none: the rest of the queue's sweep goes on.
func (l *legacySwept) look(legacy *lifecycle.Legacy, unable error) janitor.Look {
	return func(ctx context.Context) (again bool, err error) {
		if unable != nil {
			return false, unable
		}
		moved, dead, suspects, err := legacy.Look(ctx)
		l.Workers = append(l.Workers, dead...)
		l.Moved += moved
		return suspects > 0, err
	}
}
