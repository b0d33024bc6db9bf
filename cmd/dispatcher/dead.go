package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/lifecycle"
)

// maxPage is how many letters one call of Queue.Dead returns at most.
const maxPage = 1000

// deadLetter is a dead letter as JSON shows it in lists.
type deadLetter struct {
	ID       string `json:"id"`
	DiedAt   string `json:"died_at"`
	Reason   string `json:"reason"`
	Status   int    `json:"status"`
	Attempts int    `json:"attempts"`
	Size     int    `json:"size"`
}

func describe(d lifecycle.DeadLetter) deadLetter {
	return deadLetter{
		ID: d.ID, DiedAt: instant(d.DiedAt), Reason: d.Reason.String(), Status: d.Meta.LastStatus,
		Attempts: d.Meta.Attempt, Size: d.Size,
	}
}

func newDead(std stdio) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dead",
		Short: "Look at dead letters, redrive or purge them",
		Long: `Dead letters are tasks that are no longer delivered: their attempts or their age are
used up, the receiver refused them for good, or too many dispatchers died while they
held them.`,
		Example: `  dispatcher dead list orders
  dispatcher dead redrive orders --reason exhausted --older-than 1h`,
		GroupID: groupTasks, Args: noArgs, RunE: needVerb,
	}
	cmd.AddCommand(newDeadList(std), newDeadShow(std), newMove(std, redrive()), newMove(std, purge()))
	return cmd
}

func newDeadList(std stdio) *cobra.Command {
	const usual = 100
	limit, cursor, reason, asJSON := usual, "", "", false
	cmd := &cobra.Command{
		Use:   "list QUEUE",
		Short: "List a queue's dead letters, the oldest first",
		Example: `  dispatcher dead list orders
  dispatcher dead list orders --reason exhausted --limit 20
  dispatcher dead list orders --json | jq -r '.tasks[].id'`,
		Args: args(cobra.ExactArgs(1), "one queue"), ValidArgsFunction: completeQueue,
		RunE: func(cmd *cobra.Command, given []string) error {
			if limit < 1 || limit > maxPage {
				return usage{fmt.Errorf("--limit %d: 1 to %d is accepted", limit, maxPage)}
			}
			only, err := parseReason(reason)
			if err != nil {
				return err
			}
			return onQueue(cmd.Context(), given[0], func(ctx context.Context, _ client, q *lifecycle.Queue) error {
				letters, next, err := list(ctx, q, cursor, limit, only)
				switch {
				case errors.Is(err, lifecycle.ErrCursor):
					return usage{fmt.Errorf("--cursor: %w", err)}
				case err != nil:
					return err
				case asJSON:
					return printJSON(std.out, deadPage{letters, next})
				}
				return printLetters(std, letters, next)
			})
		},
	}
	cmd.Flags().IntVar(&limit, "limit", limit, "how many to list, at most 1000")
	cmd.Flags().StringVar(&cursor, "cursor", "", "go on where an earlier list ended")
	addReasonFlag(cmd, &reason)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// deadPage is a list as JSON shows it.
type deadPage struct {
	Tasks []deadLetter `json:"tasks"`
	Next  string       `json:"next"`
}

// list returns up to limit letters with a reason, 0 being any, and the cursor with which to go on, empty at the end.
func list(
	ctx context.Context, q *lifecycle.Queue, cursor string, limit int, only delivery.Reason,
) (letters []deadLetter, next string, err error) {
	size := limit
	if only != 0 {
		size = maxPage
	}
	letters = []deadLetter{}
	for {
		page, next, err := q.Dead(ctx, cursor, size)
		if err != nil {
			return nil, "", err
		}
		for i, letter := range page {
			if only != 0 && letter.Reason != only {
				continue
			}
			letters = append(letters, describe(letter))
			if len(letters) < limit {
				continue
			}
			if i < len(page)-1 {
				next = letter.Cursor()
			}
			return letters, next, nil
		}
		if next == "" {
			return letters, "", nil
		}
		cursor = next
	}
}

func printLetters(std stdio, letters []deadLetter, next string) error {
	t := newTable(std.out, "ID", "DIED AT", "REASON", "STATUS", "ATTEMPTS", "SIZE")
	for _, d := range letters {
		t.row(clean(d.ID), d.DiedAt, d.Reason, orDash(d.Status), d.Attempts, d.Size)
	}
	if err := t.print(); err != nil {
		return err
	}
	if next != "" {
		fmt.Fprintf(std.err, "more follow: --cursor '%s'\n", strings.ReplaceAll(next, "'", `'\''`))
	}
	return nil
}

func addReasonFlag(cmd *cobra.Command, reason *string) {
	cmd.Flags().StringVar(reason, "reason", "", "only those that died of this `reason`: "+strings.Join(reasons(), ", "))
	_ = cmd.RegisterFlagCompletionFunc("reason", cobra.FixedCompletions(reasons(), cobra.ShellCompDirectiveNoFileComp))
}

// reasons lists the reasons that dead letters can have.
func reasons() []string {
	var all []string
	for _, r := range delivery.Reasons() {
		if r != delivery.OK && r != delivery.Shutdown {
			all = append(all, r.String())
		}
	}
	return all
}

// parseReason reads a reason; an empty label is 0, any reason.
func parseReason(label string) (delivery.Reason, error) {
	if label == "" {
		return 0, nil
	}
	r, err := delivery.ParseReason(label)
	if err != nil || r == delivery.OK || r == delivery.Shutdown {
		return 0, usage{fmt.Errorf("--reason %q: accepted are %s", label, strings.Join(reasons(), ", "))}
	}
	return r, nil
}
