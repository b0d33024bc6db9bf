package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/queuehook/queuehook/heartbeat"
	"github.com/queuehook/queuehook/internal/sweepanswer"
	"github.com/queuehook/queuehook/janitor"
	"github.com/queuehook/queuehook/lifecycle"
)

// defaultGrace is that of the janitor function.
const defaultGrace = 10 * time.Second

// sweptQueue is what a sweep did to one queue, as JSON shows it.
type sweptQueue struct {
	sweepanswer.Queue

	Suspects []string `json:"suspects"`
	*deepSwept
	*sweepanswer.Legacy
}

// sweeping says how to sweep.
type sweeping struct {
	grace        time.Duration
	deep, legacy bool
}

func newSweep(std stdio) *cobra.Command {
	how, asJSON := sweeping{grace: defaultGrace}, false
	cmd := &cobra.Command{
		Use:   "sweep [QUEUE...]",
		Short: "Give the tasks of dead dispatchers back now",
		Long: `Give the tasks of dead dispatchers back now, as dispatchers do for each other.
A dispatcher that seems dead gets the grace, or its own where that is longer, to beat
again; the command waits for that. Without a QUEUE all known queues are swept.

With --deep it also repairs what manual changes, or a Redis that lost writes, left
behind: tasks of dispatchers that nobody knows (orphans) are given back, tasks in no
index (strays) are made due at once, those without a payload (bodiless) are buried.

With --legacy it also gives the tasks of dead workers of the library redutil back to
the head of the queue, so that the oldest comes out first. A worker counts as dead
when its tick does not change for the grace, which must be longer than its interval.`,
		Example: `  dispatcher sweep
  dispatcher sweep orders thumbs --grace 30s --json
  dispatcher sweep orders --deep
  dispatcher sweep orders --legacy --grace 1m`,
		GroupID: groupOperate, Args: cobra.ArbitraryArgs, ValidArgsFunction: completeQueues,
		RunE: func(cmd *cobra.Command, names []string) error {
			if how.grace < time.Millisecond {
				return usage{fmt.Errorf("--grace %s: at least 1ms is accepted", how.grace)}
			}
			return onQueues(cmd.Context(), names, func(ctx context.Context, c client, _ []*lifecycle.Queue) error {
				names, err := c.orKnown(ctx, names)
				if err != nil {
					return err
				}
				if std.shows {
					fmt.Fprintln(std.err, "looking for dead dispatchers; one that seems so is watched for its grace")
				}
				done, errs := c.sweep(ctx, names, how)
				if asJSON {
					return errors.Join(append(errs, printJSON(std.out, sweepAnswer{done, texts(errs)}))...)
				}
				return errors.Join(append(errs, how.print(std, done))...)
			})
		},
	}
	f := cmd.Flags()
	f.DurationVar(&how.grace, "grace", how.grace, "the least time that a dispatcher is watched before its tasks are taken")
	f.BoolVar(&how.deep, "deep", false, "also repair what no dispatcher leaves behind")
	f.BoolVar(&how.legacy, "legacy", false, "also take over from dead workers of redutil")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// sweepAnswer is shaped as the janitor function's.
type sweepAnswer struct {
	Queues []sweptQueue `json:"queues"`
	Errors []string     `json:"errors"`
}

// sweep sweeps all queues as far as it can, at the same time, so that their graces pass together.
func (c client) sweep(ctx context.Context, names []string, how sweeping) ([]sweptQueue, []error) {
	done := make([]sweptQueue, len(names))
	errs := make([]error, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() { done[i], errs[i] = c.sweepQueue(ctx, name, how) })
	}
	all.Wait()
	var failed []error
	for _, err := range errs {
		if err != nil {
			failed = append(failed, err)
		}
	}
	return done, failed
}

func (c client) sweepQueue(ctx context.Context, name string, how sweeping) (sweptQueue, error) {
	swept := sweptQueue{Queue: sweepanswer.New(name), Suspects: []string{}}
	detector, err := heartbeat.NewDetector(c.UniversalClient, name)
	if err != nil {
		return swept, err
	}
	q, err := lifecycle.Open(c.UniversalClient, name)
	if err != nil {
		return swept, err
	}
	report, err := janitor.Recover(ctx, janitor.Config{
		Detector: detector, Sweeper: q, Grace: how.grace, CrashLimit: c.cfg.CrashLimit, Looks: how.looks(q, &swept),
	})
	swept.Add(report)
	swept.Suspects = append(swept.Suspects, report.Suspects...)
	return swept, cmp.Or(err, ctx.Err())
}

func (how sweeping) print(std stdio, done []sweptQueue) error {
	head := []any{"QUEUE", "DEAD DISPATCHERS", "RECOVERED", "BURIED", "LEFT", "SUSPECTS"}
	if how.deep {
		head = append(head, "ORPHANS", "STRAYS", "BODILESS")
	}
	if how.legacy {
		head = append(head, "LEGACY WORKERS", "LEGACY RECOVERED")
	}
	t := newTable(std.out, head...)
	for _, s := range done {
		cells := []any{s.Name, len(s.Dead), s.Recovered, s.Buried, s.Left, len(s.Suspects)}
		if d := s.deepSwept; d != nil {
			cells = append(cells, len(d.Orphans), d.Strays, d.Bodiless)
		}
		if l := s.Legacy; l != nil {
			cells = append(cells, len(l.Workers), l.Moved)
		}
		t.row(cells...)
	}
	return t.print()
}

func texts(errs []error) []string {
	all := []string{}
	for _, err := range errs {
		all = append(all, err.Error())
	}
	return all
}
