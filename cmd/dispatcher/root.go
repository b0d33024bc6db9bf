package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/queuehook/queuehook/config"
)

// The groups that help lists the verbs in.
const (
	groupServe   = "serve"
	groupTasks   = "tasks"
	groupOperate = "operate"
)

// newRoot is the command line. Without a verb it serves.
func newRoot(halting context.Context, std stdio) *cobra.Command {
	printConfig := false
	serveRoutes := func(cmd *cobra.Command, _ []string) error {
		cfg, err := config.LoadDispatcher()
		if err != nil {
			return err
		}
		if printConfig {
			return cfg.Print(std.out)
		}
		return serve(cmd.Context(), halting, cfg, cfg.Log.Logger(std.err))
	}
	root := &cobra.Command{
		Use:   "dispatcher",
		Short: "Deliver tasks from Redis to HTTP endpoints and Lambda functions",
		Long: `dispatcher leases tasks from Redis lists and POSTs each to its route's endpoint, or
gives it to its route's Lambda function. A 2xx answer completes a task. Otherwise it
is tried again after a backoff, and in the end becomes a dead letter.

DISPATCHER_* environment variables configure it and all its verbs; "dispatcher help
environment" lists them. The exit status is 0 when all is well, 1 after a failure,
2 for bad configuration or arguments.`,
		Example: `  DISPATCHER_REDIS_URL=redis://127.0.0.1:6379/0 \
  DISPATCHER_ROUTES='orders=https://api.example.com/hooks/orders' dispatcher
  redis-cli LPUSH orders '{"id":1}'`,
		Args:          noArgs,
		RunE:          serveRoutes,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version,
	}
	root.SetIn(std.in)
	root.SetOut(std.out)
	root.SetErr(std.err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage{fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())}
	})
	serving := &cobra.Command{
		Use: "run", Short: "Serve the routes (what dispatcher does without a verb)", GroupID: groupServe,
		Example: `  DISPATCHER_ROUTES='orders=https://api.example.com/hooks/orders' dispatcher run
  dispatcher run --print-config`,
		Args: noArgs, RunE: serveRoutes,
	}
	for _, cmd := range []*cobra.Command{root, serving} {
		cmd.Flags().BoolVar(&printConfig, "print-config", false, "print the configuration as it is understood, secrets redacted, and exit")
	}
	root.AddGroup(
		&cobra.Group{ID: groupServe, Title: "Serve:"},
		&cobra.Group{ID: groupTasks, Title: "Tasks:"},
		&cobra.Group{ID: groupOperate, Title: "Operate:"},
	)
	root.AddCommand(
		serving, newDev(halting, std), newCheck(std), newHealth(), newEnqueue(std), newDead(std), newQueues(std),
		newPause(std), newResume(std), newSweep(std), newVersion(std), newEnvironment(std),
	)
	root.SetHelpCommand(newHelp(root))
	return root
}

// newHelp is cobra's help, except that an unknown command is an error.
func newHelp(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "help [command]", Short: "Help about any command", Example: "  dispatcher help dead redrive\n  dispatcher help environment",
		ValidArgsFunction: func(_ *cobra.Command, given []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			about, _, err := root.Find(given)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var names []cobra.Completion
			for _, c := range about.Commands() {
				names = append(names, cobra.CompletionWithDesc(c.Name(), c.Short))
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, given []string) error {
			about, rest, err := root.Find(given)
			if err != nil {
				return usage{err}
			}
			if err := noArgs(about, rest); err != nil {
				return err
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}

// noArgs refuses arguments of a verb that takes none; most often they are misspelt verbs.
func noArgs(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case !cmd.HasSubCommands():
		return usage{fmt.Errorf("unexpected argument %q; see %s --help", args[0], cmd.CommandPath())}
	}
	cmd.SuggestionsMinimumDistance = 2 // cobra's own default, which it sets where it looks itself
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return usage{fmt.Errorf("unknown command %q; did you mean %s?", args[0], strings.Join(near, " or "))}
	}
	return usage{fmt.Errorf("unknown command %q; see %s --help", args[0], cmd.CommandPath())}
}

// needVerb is the error of a command that only groups verbs.
func needVerb(cmd *cobra.Command, _ []string) error {
	var verbs []string
	for _, c := range cmd.Commands() {
		verbs = append(verbs, c.Name())
	}
	return usage{fmt.Errorf("%s needs one of %s; see %[1]s --help", cmd.CommandPath(), strings.Join(verbs, ", "))}
}

func newVersion(std stdio) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Example: "  dispatcher version", Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(std.out, version)
			return err
		},
	}
}
