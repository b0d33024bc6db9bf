package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/queuehook/queuehook/config"
	"github.com/queuehook/queuehook/internal/dev"
)

// newDev shows everything at work. The dispatcher is the one that serves in production.
func newDev(halting context.Context, std stdio) *cobra.Command {
	o := dev.Options{Out: std.out, Program: os.Args[0], Version: version}
	var limit time.Duration
	cmd := &cobra.Command{
		Use: "dev", GroupID: groupServe,
		Short: "Try it out: Redis, receiver, sample tasks and dispatcher in this process, all in memory",
		Long: `dev starts a Redis in this process, a receiver that answers well, badly and slowly,
and a dispatcher between the two. It pushes sample tasks and shows what becomes of
each. It needs nothing else and reads no DISPATCHER_* variable. Everything is in
memory and gone when it ends.`,
		Example: `  dispatcher dev
  dispatcher dev --for 30s
  redis-cli -p 6399 LPUSH orders hello`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 0 {
				return usage{errors.New("--for: a duration such as 30s is accepted; 0 runs until stopped")}
			}
			closing, cancel := within(cmd.Context(), limit)
			defer cancel()
			o.Color = colored(std.out)
			play := func(ctx context.Context, cfg config.Dispatcher, log *slog.Logger) error {
				return serve(ctx, halting, cfg, log)
			}
			return dev.Run(closing, o, play)
		},
	}
	cmd.Flags().DurationVar(&limit, "for", 0, "stop after this long; 0 = when told to")
	cmd.Flags().StringVar(&o.AdminAddr, "admin-addr", "127.0.0.1:8080",
		"`host:port` of health and metrics; the next free port when it is in use")
	return cmd
}

// within is ctx that also ends after the limit, if there is one.
func within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if limit == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, limit)
}

// colored says whether colours may be written to out: it is a terminal, and NO_COLOR does not forbid it
// (https://no-color.org).
func colored(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && isTerminal(file) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
