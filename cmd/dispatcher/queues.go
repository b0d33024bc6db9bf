package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/queuehook/queuehook/lifecycle"
)

// queueDepth is one queue as JSON shows it.
type queueDepth struct {
	Queue       string `json:"queue"`
	Ready       int64  `json:"ready"`
	Delayed     int64  `json:"delayed"`
	InFlight    int64  `json:"in_flight"`
	Dead        int64  `json:"dead"`
	Dispatchers int64  `json:"dispatchers"`
	Paused      bool   `json:"paused"`
}

func newQueues(std stdio) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "queues [QUEUE...]",
		Short: "List the queues with their depths",
		Long: `List the named queues, or else all that a dispatcher ever served and those of the
configured routes, with how many of their tasks are where and how many dispatchers
serve them.`,
		Example: `  dispatcher queues
  dispatcher queues orders thumbs
  dispatcher queues --json | jq '.[] | select(.dead > 0)'`,
		GroupID: groupOperate, Args: cobra.ArbitraryArgs, ValidArgsFunction: completeQueues,
		RunE: func(cmd *cobra.Command, names []string) error {
			return onQueues(cmd.Context(), names, func(ctx context.Context, c client, _ []*lifecycle.Queue) error {
				names, err := c.orKnown(ctx, names)
				if err != nil {
					return err
				}
				depths, failed := c.depths(ctx, names)
				if asJSON {
					return errors.Join(failed, printJSON(std.out, depths))
				}
				return errors.Join(failed, printDepths(std, depths))
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// depths reads all it can. A queue whose keys hold foreign values does not keep others from being listed; a Redis that
// goes away ends it.
func (c client) depths(ctx context.Context, names []string) ([]queueDepth, error) {
	found := make([]*lifecycle.Depth, len(names))
	errs := make([]error, len(names))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i, name := range names {
		group.Go(func() error {
			depth, err := depthOfQueue(ctx, c, name)
			if err == nil {
				found[i] = &depth
				return nil
			}
			if _, answered := errors.AsType[redis.Error](err); answered {
				errs[i] = fmt.Errorf("queue %s: %w", name, err)
				return nil
			}
			return err
		})
	}
	failed := group.Wait()
	depths := []queueDepth{}
	for i, d := range found {
		if d != nil {
			depths = append(depths, queueDepth{names[i], d.Ready, d.Delayed, d.InFlight, d.Dead, d.Dispatchers, d.Paused})
		}
	}
	return depths, errors.Join(append(errs, failed)...)
}

func depthOfQueue(ctx context.Context, c client, name string) (lifecycle.Depth, error) {
	q, err := lifecycle.Open(c.UniversalClient, name)
	if err != nil {
		return lifecycle.Depth{}, err
	}
	return q.Depth(ctx)
}

func printDepths(std stdio, depths []queueDepth) error {
	t := newTable(std.out, "QUEUE", "READY", "DELAYED", "IN FLIGHT", "DEAD", "DISPATCHERS", "PAUSED")
	for _, d := range depths {
		paused := "no"
		if d.Paused {
			paused = "yes"
		}
		t.row(d.Queue, d.Ready, d.Delayed, d.InFlight, d.Dead, d.Dispatchers, paused)
	}
	return t.print()
}
