package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/lifecycle"
	"github.com/queuehook/queuehook/task"
)

// deadTask is a whole dead letter as JSON shows it. It has one of the two payload members, or none when the payload is
// gone.
type deadTask struct {
	deadLetter

	History       []attempt         `json:"history"`
	Headers       map[string]string `json:"headers"`
	Log           string            `json:"log,omitempty"` // of the last attempt's Lambda function
	Payload       *string           `json:"payload,omitempty"`
	PayloadBase64 []byte            `json:"payload_base64,omitempty"`
}

type attempt struct {
	At      string `json:"at"`
	Attempt int    `json:"attempt"`
	Status  int    `json:"status"`
	Reason  string `json:"reason"`
	Error   string `json:"error"`
}

func newDeadShow(std stdio) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "show QUEUE ID",
		Short: "Show a dead letter with its history and payload",
		Example: `  dispatcher dead show orders 01JDXQ2G5V0000000000000000
  dispatcher dead show orders order-1 --json | jq -r .payload`,
		Args: args(cobra.ExactArgs(2), "a queue and a task id"), ValidArgsFunction: completeQueue,
		RunE: func(cmd *cobra.Command, given []string) error {
			return onQueue(cmd.Context(), given[0], func(ctx context.Context, _ client, q *lifecycle.Queue) error {
				letter, payload, err := q.DeadLetter(ctx, given[1])
				switch {
				case errors.Is(err, task.ErrNotFound):
					return unknownLetters(q, given[1])
				case err != nil:
					return err
				case asJSON:
					return printJSON(std.out, whole(letter, payload))
				}
				return printLetter(std.out, q.Name(), letter, payload)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, with the payload in base64 when it is not UTF-8")
	return cmd
}

func unknownLetters(q *lifecycle.Queue, ids ...string) error {
	return fmt.Errorf("queue %s has no dead %s %s", q.Name(), plural(len(ids), "letter"), cleanList(ids))
}

func whole(d lifecycle.DeadLetter, payload []byte) deadTask {
	t := deadTask{deadLetter: describe(d), History: []attempt{}, Headers: map[string]string{}}
	t.Log = d.Meta.LastLog
	maps.Copy(t.Headers, d.Meta.Headers)
	for _, a := range d.Meta.History {
		t.History = append(t.History, attempt{instant(time.UnixMilli(a.At)), a.Attempt, a.Status, a.Reason, a.Error})
	}
	switch {
	case d.Reason == delivery.BodyMissing:
	case utf8.Valid(payload):
		text := string(payload)
		t.Payload = &text
	default:
		t.PayloadBase64 = payload
	}
	return t
}

func printLetter(w io.Writer, queue string, d lifecycle.DeadLetter, payload []byte) error {
	facts := newTable(w, "ID", clean(d.ID))
	facts.row("Queue", queue)
	facts.row("Died", instant(d.DiedAt))
	facts.row("Reason", d.Reason)
	facts.row("Status", orDash(d.Meta.LastStatus))
	facts.row("Error", clean(d.Meta.LastError))
	facts.row("Attempts", d.Meta.Attempt)
	if d.Meta.EnqueuedAt > 0 {
		facts.row("Enqueued", instant(time.UnixMilli(d.Meta.EnqueuedAt)))
	}
	if d.Meta.ContentType != "" {
		facts.row("Content type", clean(d.Meta.ContentType))
	}
	for _, name := range slices.Sorted(maps.Keys(d.Meta.Headers)) {
		facts.row("Header", clean(name)+": "+clean(d.Meta.Headers[name]))
	}
	if err := facts.print(); err != nil {
		return err
	}
	if len(d.Meta.History) > 0 {
		fmt.Fprintln(w, "\nThe last attempts:")
		t := newTable(w, "AT", "ATTEMPT", "STATUS", "REASON", "ERROR")
		for _, a := range d.Meta.History {
			t.row(instant(time.UnixMilli(a.At)), a.Attempt, orDash(a.Status), clean(a.Reason), clean(a.Error))
		}
		if err := t.print(); err != nil {
			return err
		}
	}
	if d.Meta.LastLog != "" {
		fmt.Fprintf(w, "\nThe end of the function's log:\n%s\n", strings.TrimSuffix(readable([]byte(d.Meta.LastLog)), "\n"))
	}
	if d.Reason == delivery.BodyMissing {
		_, err := fmt.Fprintln(w, "\nThe payload is gone.")
		return err
	}
	_, err := fmt.Fprintf(w, "\nPayload, %d bytes:\n%s\n", d.Size, strings.TrimSuffix(readable(payload), "\n"))
	return err
}

// readable is the payload if it is harmless to a terminal, else a hex dump.
func readable(payload []byte) string {
	harmless := func(r rune) bool { return unicode.IsPrint(r) || r == '\n' || r == '\t' }
	if utf8.Valid(payload) && !strings.ContainsFunc(string(payload), func(r rune) bool { return !harmless(r) }) {
		return string(payload)
	}
	return hex.Dump(payload)
}
