package main

import (
	"context"
	"errors"
	"fmt"
	"net/textproto"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/net/http/httpguts"

	"github.com/queuehook/queuehook/lifecycle"
	"github.com/queuehook/queuehook/task"
)

func newEnqueue(std stdio) *cobra.Command {
	var (
		options lifecycle.EnqueueOptions
		data    string
		file    string
		headers []string
		asJSON  bool
	)
	cmd := &cobra.Command{
		Use:   "enqueue QUEUE {--data D | --file F}",
		Short: "Add tasks to a queue, and print the id or the count",
		Long: `Add a task to a queue and print its id, or many from a file and print the count.

Any Redis client can add tasks: LPUSH onto the list that has the queue's name. A task
that is added here can also have an id, headers, a delay and a limit of attempts.
With --id the command can be repeated safely: a known id is refused, not added twice.

A --file has one JSON value a line; "-" is standard input. Each task's payload is the
bytes of a line, without the newline; blank lines are skipped. The tasks are leased in
the order of their lines. A line that is not a JSON value ends the command: the lines
before it are added, and the error names it. A line may have 64 MB. With --json each
task is printed as a line, {"line","id","queue","due"}.`,
		Example: `  dispatcher enqueue orders --data '{"id":1}'
  dispatcher enqueue orders --data '{"id":1}' --delay 5m --header X-Team=payments --id order-1
  dispatcher enqueue orders --data '{"id":1}' --dedup-key order-1 --dedup-ttl 1h --json
  dispatcher enqueue orders --file tasks.ndjson --max-attempts 5
  jq -c '.orders[]' export.json | dispatcher enqueue orders --file -`,
		GroupID: groupTasks, Args: args(cobra.ExactArgs(1), "one queue"), ValidArgsFunction: completeQueue,
		RunE: func(cmd *cobra.Command, given []string) error {
			if err := checkEnqueueFlags(cmd); err != nil {
				return usage{err}
			}
			own, err := parseHeaders(headers)
			if err != nil {
				return usage{fmt.Errorf("--header: %w", err)}
			}
			options.Headers = own
			if cmd.Flags().Changed("content-type") && namesType(own) {
				return usage{errors.New("--content-type and --header Content-Type do not go together")}
			}
			if !httpguts.ValidHeaderFieldValue(options.ContentType) {
				return usage{fmt.Errorf("--content-type %q cannot be sent as a header", options.ContentType)}
			}
			if err := options.Check(); err != nil {
				return usage{err}
			}
			if cmd.Flags().Changed("file") {
				tasks, done, err := openTasks(std, file)
				if err != nil {
					return err
				}
				defer done()
				return onQueue(cmd.Context(), given[0], func(ctx context.Context, c client, q *lifecycle.Queue) error {
					if err := enqueueFile(ctx, std, q, tasks, options, asJSON); err != nil {
						return err
					}
					c.warnUnknown(ctx, std, q.Name())
					return nil
				})
			}
			return onQueue(cmd.Context(), given[0], func(ctx context.Context, c client, q *lifecycle.Queue) error {
				added, err := q.Add(ctx, []byte(data), options)
				if err != nil {
					return err
				}
				c.warnUnknown(ctx, std, q.Name())
				return printAdded(std, q.Name(), added, asJSON)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&data, "data", "", "the payload, sent byte for byte")
	f.StringVar(&file, "file", "", "a `file` of many payloads, one JSON value a line; - = standard input")
	f.StringArrayVar(&headers, "header", nil, "a header to send with the task, as `NAME=VALUE`; may be repeated")
	f.StringVar(&options.ContentType, "content-type", "", "the payload's `type`, in place of the route's")
	f.DurationVar(&options.Delay, "delay", 0, "how long the task waits before it is due, such as 5m")
	f.StringVar(&options.ID, "id", "", "the task's id, 1 to 128 visible ASCII characters, without a full stop where requests are signed (default one is made)")
	f.StringVar(&options.DedupKey, "dedup-key", "", "add nothing when a task with this `key` was added less than --dedup-ttl ago")
	f.DurationVar(&options.DedupTTL, "dedup-ttl", 0, "how long --dedup-key is remembered, such as 1h")
	f.IntVar(&options.MaxAttempts, "max-attempts", 0, "attempts before the task is dead-lettered (default the route's)")
	f.BoolVar(&asJSON, "json", false, `print {"id","queue","due"}; due is null for a duplicate of a task that no longer waits`)
	return cmd
}

// checkEnqueueFlags refuses flags that do not go together.
func checkEnqueueFlags(cmd *cobra.Command) error {
	f := cmd.Flags()
	switch {
	case f.Changed("data") && f.Changed("file"):
		return errors.New("--data and --file do not go together")
	case !f.Changed("data") && !f.Changed("file"):
		return errors.New("--data is missing, or --file; --data '' adds a task without a payload")
	case f.Changed("id") && f.Lookup("id").Value.String() == "":
		return errors.New("--id is empty")
	}
	for _, name := range []string{"id", "dedup-key", "dedup-ttl"} {
		if f.Changed("file") && f.Changed(name) {
			return fmt.Errorf("--%s does not go with --file: each task has its own", name)
		}
	}
	return nil
}

func printAdded(std stdio, queue string, added lifecycle.Enqueued, asJSON bool) error {
	if !asJSON {
		if added.Duplicate {
			fmt.Fprintln(std.err, "dispatcher: nothing added: the dedup key names this task")
		}
		_, err := fmt.Fprintln(std.out, added.ID)
		return err
	}
	answer := struct {
		ID    string  `json:"id"`
		Queue string  `json:"queue"`
		Due   *string `json:"due"`
	}{ID: added.ID, Queue: queue}
	if !added.Due.IsZero() {
		due := instant(added.Due)
		answer.Due = &due
	}
	return printJSON(std.out, answer)
}

func namesType(headers map[string]string) bool {
	for name := range headers {
		if strings.EqualFold(name, "Content-Type") {
			return true
		}
	}
	return false
}

// parseHeaders reads NAME=VALUE texts. Its errors leave the values out, which may be secrets.
func parseHeaders(given []string) (map[string]string, error) {
	headers := make(map[string]string, len(given))
	seen := make(map[string]bool, len(given))
	for _, text := range given {
		name, value, found := strings.Cut(text, "=")
		key := textproto.CanonicalMIMEHeaderKey(name)
		switch {
		case !found:
			return nil, errors.New("NAME=VALUE is accepted, such as X-Team=payments")
		case !httpguts.ValidHeaderFieldName(name):
			return nil, fmt.Errorf("%q is not a header name", name)
		case !httpguts.ValidHeaderFieldValue(value):
			return nil, fmt.Errorf("the value of %s cannot be sent", name)
		case task.ReservedHeader(key) && !task.FieldHeader(key):
			return nil, fmt.Errorf("%s is not a task's to set", name)
		case seen[key]:
			return nil, fmt.Errorf("%s is given twice", name)
		}
		headers[name], seen[key] = value, true
	}
	return headers, nil
}
