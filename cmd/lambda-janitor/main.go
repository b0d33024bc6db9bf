// Command lambda-janitor gives the tasks of dead dispatchers back. As a Lambda function it sweeps at each scheduled
// event; anywhere else it sweeps once and exits, for cron or a Kubernetes CronJob.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

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

func main() { os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr)) }

// run is the whole program, for main and for tests. The first SIGTERM or SIGINT ends a sweep between two calls to Redis,
// the second ends the process.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	context.AfterFunc(ctx, stop)

	flags := flag.NewFlagSet("lambda-janitor", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {} // asked for, it goes to stdout
	showVersion := flags.Bool("version", false, "")
	showConfig := flags.Bool("print-config", false, "")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		usage(stdout)
		return exitOK
	case err != nil:
		fmt.Fprintln(stderr, "see --help")
		return exitUsage
	case flags.NArg() > 0:
		fmt.Fprintf(stderr, "lambda-janitor: unexpected argument %q; see --help\n", flags.Arg(0))
		return exitUsage
	case *showVersion:
		return done(fmt.Fprintln(stdout, version))
	}

	cfg, err := config.LoadJanitor()
	if err != nil {
		fmt.Fprintln(stderr, err)
		return exitUsage
	}
	if *showConfig {
		return done(0, cfg.Settings.Print(stdout))
	}
	logger := cfg.Log.Logger(stderr)
	redisconn.LogTo(logger)
	for _, warning := range cfg.Warnings {
		logger.WarnContext(ctx, "configuration", "warning", warning)
	}
	s := sweeper{cfg: cfg, vault: newVault(cfg.RedisPasswordSecret), logger: logger}
	if os.Getenv("AWS_LAMBDA_RUNTIME_API") != "" {
		return serve(ctx, s, stdout)
	}
	return once(ctx, s, stdout)
}

// once sweeps and prints the answer.
func once(ctx context.Context, s sweeper, stdout io.Writer) int {
	a := s.sweep(ctx)
	if err := a.print(stdout); err != nil || len(a.Errors) > 0 {
		return exitFailure
	}
	return exitOK
}

// done is the exit code after printing.
func done(_ int, err error) int {
	if err != nil {
		return exitFailure
	}
	return exitOK
}

func usage(w io.Writer) {
	fmt.Fprint(w, `Usage: lambda-janitor [--help | --version | --print-config]

Gives the tasks of dead dispatchers back to their queues. Under AWS Lambda it sweeps at each event. Elsewhere it sweeps
once, prints what it did as JSON, and exits with 0 when all went well, 1 when something failed, 2 for bad configuration.

A task whose dispatchers died 5 times in a row becomes a dead letter instead.

Environment:
`)
	for _, v := range config.JanitorVariables() {
		fmt.Fprintf(w, "  %s\n    \t%s", v.Name, v.Doc)
		if v.Default != "" {
			fmt.Fprintf(w, " (default %s)", v.Default)
		}
		fmt.Fprintln(w)
	}
}
