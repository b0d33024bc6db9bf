package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/lifecycle"
	"github.com/queuehook/queuehook/task"
)

// move is a verb that takes dead letters away: redrive or purge.
type move struct {
	verb, done  string
	short, long string
	act         func(*lifecycle.Queue, context.Context, ...string) (int, error)
	// hollow says that letters without a payload are taken too.
	hollow bool
}

func redrive() move {
	return move{
		verb: "redrive", done: "redriven", act: (*lifecycle.Queue).Redrive,
		short: "Make dead letters due again",
		long:  "Make dead letters due at once. Their attempts and their age begin anew.",
	}
}

func purge() move {
	return move{
		verb: "purge", done: "purged", act: (*lifecycle.Queue).Purge, hollow: true,
		short: "Delete dead letters for good",
		long:  "Delete dead letters for good.",
	}
}

// selection says which dead letters.
type selection struct {
	ids       []string
	all       bool
	reason    delivery.Reason // 0 = any
	olderThan time.Duration   // 0 = any age
}

func newMove(std stdio, m move) *cobra.Command {
	var (
		chosen      selection
		reason      string
		yes, asJSON bool
	)
	cmd := &cobra.Command{
		Use:   m.verb + " QUEUE {ID... | --reason R | --older-than D | --all}",
		Short: m.short,
		Long: m.long + `
Give their ids, or say which ones: --reason and --older-than together select those
that meet both. Tasks that die while the command runs are left alone. It asks before
it acts, unless --yes is given.`,
		Example: strings.ReplaceAll(`  dispatcher dead VERB orders 01JDXQ2G5V0000000000000000
  dispatcher dead VERB orders --reason exhausted --older-than 24h
  dispatcher dead VERB orders --all --yes`, "VERB", m.verb),
		Args: args(cobra.MinimumNArgs(1), "a queue"), ValidArgsFunction: completeQueue,
		RunE: func(cmd *cobra.Command, given []string) (err error) {
			chosen.ids = unique(given[1:])
			if chosen.reason, err = parseReason(reason); err != nil {
				return err
			}
			if err := chosen.check(cmd.Flags().Changed("older-than")); err != nil {
				return usage{fmt.Errorf("%s: %w", cmd.CommandPath(), err)}
			}
			if !yes && !std.asks {
				return usage{fmt.Errorf("%s asks before it acts, and there is no terminal to ask on: say --yes", cmd.CommandPath())}
			}
			return onQueue(cmd.Context(), given[0], func(ctx context.Context, c client, q *lifecycle.Queue) error {
				return m.run(ctx, c, q, chosen, yes, asJSON, std)
			})
		},
	}
	f := cmd.Flags()
	addReasonFlag(cmd, &reason)
	f.DurationVar(&chosen.olderThan, "older-than", 0, "only those that died longer ago, such as 24h")
	f.BoolVar(&chosen.all, "all", false, "all of the queue")
	f.BoolVar(&yes, "yes", false, "do not ask")
	f.BoolVar(&asJSON, "json", false, fmt.Sprintf(`print {"%s":3}`, m.done))
	return cmd
}

// check refuses flags that leave open which letters are meant.
func (s selection) check(aged bool) error {
	filtered := s.reason != 0 || aged
	switch {
	case aged && s.olderThan <= 0:
		return fmt.Errorf("--older-than %s: more than 0 is accepted", s.olderThan)
	case len(s.ids) == 0 && !s.all && !filtered:
		return errors.New("no dead letters are chosen; ids, --reason, --older-than or --all are accepted")
	case len(s.ids) > 0 && (s.all || filtered):
		return errors.New("ids do not go with --reason, --older-than or --all")
	case s.all && filtered:
		return errors.New("--all does not go with --reason or --older-than")
	}
	return nil
}

// String names the selection in a question.
func (s selection) String() string {
	switch {
	case len(s.ids) == 1:
		return "dead letter " + clean(s.ids[0])
	case len(s.ids) > 1:
		return fmt.Sprintf("%d dead letters", len(s.ids))
	case s.all:
		return "all dead letters"
	}
	text := "the dead letters"
	if s.reason != 0 {
		text += " of reason " + s.reason.String()
	}
	if s.olderThan > 0 {
		text += " older than " + s.olderThan.String()
	}
	return text
}

func (m move) run(
	ctx context.Context, c client, q *lifecycle.Queue, chosen selection, yes, asJSON bool, std stdio,
) error {
	depth, err := q.Depth(ctx)
	if err != nil {
		return err
	}
	if !yes {
		question := fmt.Sprintf("%s %s of queue %s, which has %d", m.verb, chosen, q.Name(), depth.Dead)
		agreed, err := confirm(ctx, std, question)
		if err != nil {
			return err
		}
		if !agreed {
			return fmt.Errorf("nothing %s", m.done)
		}
	}
	var done, hollow int
	if len(chosen.ids) > 0 {
		done, err = m.each(ctx, q, chosen.ids, std)
	} else {
		done, hollow, err = m.matching(ctx, c, q, chosen, newProgress(std, depth.Dead, m.verb))
	}
	if done == 0 && err != nil {
		return err
	}
	if hollow > 0 {
		fmt.Fprintf(std.err, "dispatcher: %d have lost their payload and can only be purged\n", hollow)
	}
	if asJSON {
		return errors.Join(err, printJSON(std.out, map[string]int{m.done: done}))
	}
	fmt.Fprintf(std.out, "%s %d %s\n", m.done, done, plural(done, "task"))
	return err
}

// each moves the letters with these ids, and its error names those that it could not move.
func (m move) each(ctx context.Context, q *lifecycle.Queue, ids []string, std stdio) (done int, err error) {
	bar := newProgress(std, int64(len(ids)), m.verb)
	defer bar.end()
	var unknown, hollow []string
	for _, id := range ids {
		n, err := m.act(q, ctx, id)
		if err != nil {
			return done, err
		}
		done += n
		bar.add(1)
		if n > 0 {
			continue
		}
		switch _, _, err := q.DeadLetter(ctx, id); {
		case err == nil:
			hollow = append(hollow, id)
		case errors.Is(err, task.ErrNotFound):
			unknown = append(unknown, id)
		default:
			return done, err
		}
	}
	if len(unknown) > 0 {
		err = unknownLetters(q, unknown...)
	}
	if len(hollow) > 0 {
		err = errors.Join(err, fmt.Errorf("without a payload, can only be purged: %s", cleanList(hollow)))
	}
	return done, err
}

// matching moves the letters that were dead when it began and meet the selection, page by page. It also returns how
// many it left alone because their payload is gone.
func (m move) matching(
	ctx context.Context, c client, q *lifecycle.Queue, chosen selection, bar *progress,
) (done, hollow int, err error) {
	defer bar.end()
	began, err := c.Time(ctx).Result()
	if err != nil {
		return 0, 0, fmt.Errorf("%s: %w", m.verb, err)
	}
	// Letters come in the order of their deaths. A redriven task may die again meanwhile, and without this bound would
	// be met again and again.
	last := began.Add(-chosen.olderThan)
	for cursor := ""; ; {
		page, next, err := q.Dead(ctx, cursor, maxPage)
		if err != nil {
			return done, hollow, err
		}
		var ids []string
		for _, letter := range page {
			if letter.DiedAt.After(last) {
				next = ""
				break
			}
			switch {
			case chosen.reason != 0 && letter.Reason != chosen.reason:
			case letter.Reason == delivery.BodyMissing && !m.hollow:
				hollow++
			default:
				ids = append(ids, letter.ID)
			}
		}
		n, err := m.act(q, ctx, ids...)
		done += n
		if err != nil || next == "" {
			return done, hollow, err
		}
		bar.add(len(page))
		cursor = next
	}
}

// unique keeps the first of equal ids.
func unique(ids []string) []string {
	seen := make(map[string]bool, len(ids))
	var all []string
	for _, id := range ids {
		if !seen[id] {
			seen[id] = true
			all = append(all, id)
		}
	}
	return all
}

func plural(n int, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}
