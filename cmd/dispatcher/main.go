// Command dispatcher leases tasks from Redis and delivers them to webhooks; its other verbs look after the queues.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"golang.org/x/term"

	"github.com/queuehook/queuehook/config"
	"github.com/queuehook/queuehook/redisconn"
)

// version is stamped at build time.
var version = "dev"

// Exit codes.
const (
	exitOK      = 0
	exitFailure = 1 // at run time
	exitUsage   = 2 // configuration, arguments
)

func main() {
	redisconn.LogTo(slog.New(slog.DiscardHandler)) // who serves has a logger for it, the other verbs answer errors
	// What is logged without a logger is net/http's: it may hold bytes of receivers.
	slog.SetDefault(slog.New(slog.DiscardHandler))
	closing, halting := stopSignals()
	os.Exit(run(closing, halting, os.Args[1:], stdio{
		in: os.Stdin, out: os.Stdout, err: os.Stderr, asks: isTerminal(os.Stdin), shows: isTerminal(os.Stderr),
	}))
}

// stdio is what a process talks through.
type stdio struct {
	in       io.Reader
	out, err io.Writer
	asks     bool // in is a terminal: somebody may answer
	shows    bool // err is a terminal: somebody may watch
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// run is the whole program, for main and for tests: closing ends at the first signal to stop, halting at the second.
func run(closing, halting context.Context, args []string, std stdio) int {
	root := newRoot(halting, std)
	root.SetArgs(args)
	err := root.ExecuteContext(closing)
	if err == nil {
		return exitOK
	}
	if invalid, ok := errors.AsType[*config.Error](err); ok {
		fmt.Fprintln(std.err, invalid) // a line for each variable, with its name
		return exitUsage
	}
	text := oneLine(err)
	if closing.Err() != nil && errors.Is(err, context.Canceled) {
		text = "interrupted"
	}
	fmt.Fprintf(std.err, "dispatcher: %s\n", text)
	if isUsage(err) {
		return exitUsage
	}
	return exitFailure
}

// oneLine writes an error, which may join many, in one line: all mistakes of usage, but only the first few other
// faults.
func oneLine(err error) string {
	const most = 5
	lines := strings.Split(err.Error(), "\n")
	if more := len(lines) - most; more > 0 && !isUsage(err) {
		lines = append(lines[:most], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, "; ")
}

// usage marks an error as a mistake in what the user typed or set.
type usage struct{ error }

func (u usage) Unwrap() error { return u.error }

func isUsage(err error) bool {
	_, ok := errors.AsType[usage](err)
	return ok
}

// stopSignals returns two contexts: the first ends at the first SIGTERM or SIGINT, the second at the next. Both are
// caught until the process has exited, so that a late one does not change how it ends.
func stopSignals() (closing, halting context.Context) {
	closing, closeNow := context.WithCancel(context.Background())
	halting, haltNow := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-signals
		closeNow()
		<-signals
		haltNow()
	}()
	return closing, halting
}
