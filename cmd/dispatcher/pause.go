package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/queuehook/queuehook/lifecycle"
)

func newPause(std stdio) *cobra.Command {
	return newSwitch(std, leasing{
		verb: "pause", paused: true, act: (*lifecycle.Queue).Pause,
		done: "paused: nothing more is leased", idle: "was paused already",
		short: "Lease nothing more from a queue",
		long: `Lease nothing more from a queue, in the whole fleet, until it is resumed. Attempts
under way go on, and producers can go on adding tasks. It can be repeated, and also
works while Redis is full. "dispatcher queues" shows which queues are paused.`,
	})
}

func newResume(std stdio) *cobra.Command {
	return newSwitch(std, leasing{
		verb: "resume", act: (*lifecycle.Queue).Resume,
		done: "resumed", idle: "was not paused",
		short: "Lease from a paused queue again",
		long:  `Lease from a paused queue again. It can be repeated.`,
	})
}

// leasing is a verb that switches the leasing from a queue on or off.
type leasing struct {
	verb        string
	paused      bool // afterwards
	act         func(*lifecycle.Queue, context.Context) (changed bool, err error)
	done, idle  string
	short, long string
}

func newSwitch(std stdio, l leasing) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use: l.verb + " QUEUE", Short: l.short, Long: l.long,
		Example: fmt.Sprintf("  dispatcher %[1]s orders\n  dispatcher %[1]s orders --json", l.verb),
		GroupID: groupOperate, Args: args(cobra.ExactArgs(1), "one queue"), ValidArgsFunction: completeQueue,
		RunE: func(cmd *cobra.Command, given []string) error {
			return onQueue(cmd.Context(), given[0], func(ctx context.Context, c client, q *lifecycle.Queue) error {
				changed, err := l.act(q, ctx)
				if err != nil {
					return err
				}
				if l.paused {
					c.warnUnknown(ctx, std, q.Name())
				}
				return l.print(std, q.Name(), changed, asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, `print {"queue","paused","changed"}`)
	return cmd
}

func (l leasing) print(std stdio, queue string, changed, asJSON bool) error {
	if asJSON {
		return printJSON(std.out, struct {
			Queue   string `json:"queue"`
			Paused  bool   `json:"paused"`
			Changed bool   `json:"changed"`
		}{queue, l.paused, changed})
	}
	what := l.idle
	if changed {
		what = l.done
	}
	_, err := fmt.Fprintf(std.out, "%s %s\n", queue, what)
	return err
}
