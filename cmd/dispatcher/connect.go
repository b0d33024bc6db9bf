package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/queuehook/queuehook/config"
	"github.com/queuehook/queuehook/lifecycle"
	"github.com/queuehook/queuehook/redisconn"
)

const (
	// parallel bounds the queues that a verb asks about at a time.
	parallel = 16
	// completeFor bounds how long a shell waits after the Tab key.
	completeFor = 2 * time.Second
)

// client is the Redis of the environment, for one verb.
type client struct {
	redis.UniversalClient

	cfg config.Dispatcher
}

// open reads the environment. It makes no connection, so that mistakes in arguments show first.
func open() (client, error) {
	cfg, err := config.LoadOperator()
	if err != nil {
		return client{}, err
	}
	rdb, err := redisconn.Open(cfg.Redis, redisconn.Options{PoolSize: parallel})
	if err != nil {
		return client{}, usage{fmt.Errorf("DISPATCHER_REDIS_URL: %w", err)}
	}
	return client{rdb, cfg}, nil
}

// onRedis opens the Redis of the environment for do, once it answers.
func onRedis(ctx context.Context, do func(context.Context, client) error) error {
	return onQueues(ctx, nil, func(ctx context.Context, c client, _ []*lifecycle.Queue) error { return do(ctx, c) })
}

// onQueue opens one queue for do, once Redis answers.
func onQueue(
	ctx context.Context, name string, do func(context.Context, client, *lifecycle.Queue) error,
) error {
	return onQueues(ctx, []string{name}, func(ctx context.Context, c client, queues []*lifecycle.Queue) error {
		return do(ctx, c, queues[0])
	})
}

// onQueues opens these queues for do, once Redis answers. A name that cannot be used shows before that.
func onQueues(
	ctx context.Context, names []string, do func(context.Context, client, []*lifecycle.Queue) error,
) error {
	c, err := open()
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // nothing waits for it
	queues := make([]*lifecycle.Queue, len(names))
	for i, name := range names {
		if queues[i], err = lifecycle.Open(c.UniversalClient, name); err != nil {
			return usage{err}
		}
	}
	if err := redisconn.Reach(ctx, c.UniversalClient); err != nil {
		return err
	}
	return do(ctx, c, queues)
}

// known lists, in order, the queues that a dispatcher ever served and those that the environment routes.
func (c client) known(ctx context.Context) ([]string, error) {
	names, err := lifecycle.Queues(ctx, c.UniversalClient)
	if err != nil {
		return nil, err
	}
	for _, r := range c.cfg.Routes {
		names = append(names, r.Queue)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// orKnown lists, in order, the queues named, or the known ones when none is.
func (c client) orKnown(ctx context.Context, named []string) ([]string, error) {
	if len(named) == 0 {
		return c.known(ctx)
	}
	names := slices.Sorted(slices.Values(named))
	return slices.Compact(names), nil
}

// warnUnknown warns when no dispatcher ever served the queue, since its name may be mistyped. When Redis cannot be
// asked it says nothing.
func (c client) warnUnknown(ctx context.Context, std stdio, queue string) {
	if known, err := c.known(ctx); err == nil && !slices.Contains(known, queue) {
		fmt.Fprintf(std.err, "dispatcher: no dispatcher ever served a queue named %s\n", queue)
	}
}

// args makes an argument check's errors errors of usage.
func args(check cobra.PositionalArgs, want string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, given []string) error {
		if err := check(cmd, given); err != nil {
			return usage{fmt.Errorf("%s takes %s; see %[1]s --help", cmd.CommandPath(), want)}
		}
		return nil
	}
}

// completeQueue offers the known queues for the first argument, and none when anything goes wrong.
func completeQueue(cmd *cobra.Command, given []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(given) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return completeQueues(cmd, given, "")
}

// completeQueues offers the known queues that are not given yet.
func completeQueues(cmd *cobra.Command, given []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completeFor)
	defer cancel()
	var names []cobra.Completion
	_ = onRedis(ctx, func(ctx context.Context, c client) (err error) {
		names, err = c.known(ctx)
		return err
	})
	names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(given, name) })
	return names, cobra.ShellCompDirectiveNoFileComp
}
