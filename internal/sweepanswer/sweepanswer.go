// Package sweepanswer is what the JSON of `dispatcher sweep` and of the janitor function have in common, so that both
// use the same names for the same things.
package sweepanswer

import (
	"context"
	"fmt"

	"github.com/queuehook/queuehook/janitor"
	"github.com/queuehook/queuehook/lifecycle"
)

// Queue is what a run did to one queue.
type Queue struct {
	Name      string   `json:"queue"`
	Dead      []string `json:"dead_dispatchers"` // never nil: JSON has a list
	Recovered int      `json:"recovered"`        // tasks
	Buried    int      `json:"buried"`           // tasks
	Left      int      `json:"left"`             // tasks in flight at dead dispatchers: time was up
}

// New is the answer for a queue to which nothing was done yet.
func New(queue string) Queue { return Queue{Name: queue, Dead: []string{}} }

// Add adds what a report says.
func (q *Queue) Add(r janitor.Report) {
	q.Dead = append(q.Dead, r.Dead...)
	q.Recovered += r.Recovered
	q.Buried += r.Buried
	q.Left += r.Left
}

// Legacy is what was taken over from dead workers of the library redutil, where that was asked for.
type Legacy struct {
	Workers []string `json:"legacy_workers"` // the dead ones; never nil
	Moved   int      `json:"legacy_recovered"`
}

// NewLegacy is the answer before the first look.
func NewLegacy() *Legacy { return &Legacy{Workers: []string{}} }

// Look returns a look at q's workers, which adds what it takes over to l. If the queue cannot be looked at, each look
// returns why, while the rest of its sweep goes on.
func (l *Legacy) Look(q *lifecycle.Queue) janitor.Look {
	legacy, unable := lifecycle.NewLegacy(q)
	return func(ctx context.Context) (again bool, err error) {
		if unable != nil {
			return false, fmt.Errorf("queue %s: %w", q.Name(), unable)
		}
		moved, dead, suspects, err := legacy.Look(ctx)
		l.Workers = append(l.Workers, dead...)
		l.Moved += moved
		if err != nil {
			return false, fmt.Errorf("queue %s: %w", q.Name(), err)
		}
		return suspects > 0, nil
	}
}
