package main

import (
	"context"
	"fmt"

	"github.com/queuehook/queuehook/internal/sweepanswer"
	"github.com/queuehook/queuehook/janitor"
	"github.com/queuehook/queuehook/lifecycle"
)

// deepSwept is what --deep found and mended.
type deepSwept struct {
	Orphans  []string `json:"orphans"`  // dispatchers
	Strays   int      `json:"strays"`   // tasks
	Bodiless int      `json:"bodiless"` // tasks
}

// looks are those that the flags ask for; what they find goes into swept.
func (how sweeping) looks(q *lifecycle.Queue, swept *sweptQueue) []janitor.Look {
	var looks []janitor.Look
	if how.deep {
		deep := &deepSwept{Orphans: []string{}}
		swept.deepSwept, looks = deep, append(looks, deep.look(q))
	}
	if how.legacy {
		legacy := sweepanswer.NewLegacy()
		swept.Legacy, looks = legacy, append(looks, legacy.Look(q))
	}
	return looks
}

func (d *deepSwept) look(q *lifecycle.Queue) janitor.Look {
	deep := lifecycle.NewDeep(q)
	return func(ctx context.Context) (again bool, err error) {
		found, err := deep.Look(ctx)
		d.Orphans = append(d.Orphans, found.Orphans...)
		d.Strays += len(found.Strays)
		d.Bodiless += len(found.Bodiless)
		if err != nil {
			return false, fmt.Errorf("queue %s: %w", q.Name(), err)
		}
		return found.Suspects > 0, nil
	}
}
