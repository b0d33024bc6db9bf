package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/queuehook/queuehook/awslambda"
	"github.com/queuehook/queuehook/config"
	"github.com/queuehook/queuehook/lifecycle"
	"github.com/queuehook/queuehook/redisconn"
)

// resolveFor bounds the look-up of one host.
const resolveFor = 5 * time.Second

// dryRunFor bounds the question about one function.
const dryRunFor = 15 * time.Second

// The levels of a finding.
const (
	levelOK      = "ok"
	levelWarning = "warning"
	levelError   = "error"
)

// finding is one thing that was looked at, as JSON shows it.
type finding struct {
	Level   string `json:"level"`
	Subject string `json:"subject"` // a variable, a file and line, "redis", or a queue
	Text    string `json:"text"`
}

func newCheck(std stdio) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check the configuration and what it names, without serving",
		Long: `Check the configuration and what it names, without serving: whether Redis answers
and allows what is needed, whether the queues can be used, whether the hosts of the
endpoints, or of the proxies before them, have an address, and whether the Lambda
functions exist and may be invoked. Nothing is sent to an endpoint, no function runs,
and nothing is written to Redis. Each finding is a line. The exit status is 0 without
errors, 2 for errors in the configuration, else 1.`,
		Example: `  dispatcher check
  DISPATCHER_ROUTES_FILE=routes.yaml dispatcher check --json | jq '.findings[]'`,
		GroupID: groupServe, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			said, meet := checkConfiguration(cmd.Context())
			findings := said.findings
			if meet != nil {
				findings = append(findings, meet(cmd.Context())...)
			}
			if err := printFindings(std, findings, asJSON); err != nil {
				return err
			}
			return verdict(cmd.Context(), findings, said.errors)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, `print {"findings":[{"level","subject","text"}]}`)
	return cmd
}

// verdict is nil when nothing is wrong, and an error of usage when the configuration is.
func verdict(ctx context.Context, findings []finding, invalid int) error {
	wrong := 0
	for _, f := range findings {
		if f.Level == levelError {
			wrong++
		}
	}
	err := fmt.Errorf("check: %d %s", wrong, plural(wrong, "error"))
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case invalid > 0:
		return usage{err}
	case wrong > 0:
		return err
	}
	return nil
}

func printFindings(std stdio, findings []finding, asJSON bool) error {
	if asJSON {
		return printJSON(std.out, map[string][]finding{"findings": findings})
	}
	t := newTable(std.out, "LEVEL", "SUBJECT", "FINDING")
	for _, f := range findings {
		t.row(f.Level, clean(f.Subject), clean(f.Text))
	}
	return t.print()
}

// reading is what the configuration says of itself.
type reading struct {
	findings []finding
	errors   int
}

func (r *reading) add(level, subject, text string) {
	if level == levelError {
		r.errors++
	}
	r.findings = append(r.findings, finding{level, subject, strings.ReplaceAll(text, "\n", "; ")})
}

// checkConfiguration reads the environment and the routes. It also returns a function that looks at what they name, nil
// when that would be of no use.
func checkConfiguration(ctx context.Context) (reading, func(context.Context) []finding) {
	var r reading
	cfg, err := config.LoadDispatcher()
	if invalid, ok := errors.AsType[*config.Error](err); ok {
		for _, p := range invalid.Problems {
			r.add(levelError, p.Name, p.Text)
		}
		return r, nil
	}
	if err != nil {
		r.add(levelError, "configuration", err.Error())
		return r, nil
	}
	for _, warning := range cfg.Warnings {
		r.add(levelWarning, "configuration", warning)
	}
	if len(cfg.Routes) == 0 {
		r.add(levelError, "DISPATCHER_ROUTES", "nothing to serve")
	}
	rdb, err := redisconn.Open(cfg.Redis, redisconn.Options{PoolSize: parallel})
	if err != nil {
		r.add(levelError, "DISPATCHER_REDIS_URL", err.Error())
		return r, nil
	}
	for _, route := range cfg.Routes {
		if err := tryRoute(ctx, rdb, route); err != nil {
			r.add(levelError, route.Queue, err.Error())
		}
	}
	if r.errors == 0 {
		r.add(levelOK, "configuration", fmt.Sprintf("%d %s", len(cfg.Routes), plural(len(cfg.Routes), "route")))
	}
	return r, func(ctx context.Context) []finding {
		defer func() { _ = rdb.Close() }() // nothing waits for it
		return append(meetRedis(ctx, rdb, cfg.Routes), resolve(ctx, cfg.Routes)...)
	}
}

// tryRoute makes what would serve the route, which opens no connection.
func tryRoute(ctx context.Context, rdb redis.UniversalClient, r config.Route) error {
	_, unusable := lifecycle.Open(rdb, r.Queue)
	target, err := newTarget(ctx, r)
	if err != nil {
		return errors.Join(unusable, err)
	}
	target.Close()
	return unusable
}

// meetRedis checks Redis as a dispatcher does at its start, and reads each queue's keys. Without a queue permissions
// cannot be checked.
func meetRedis(ctx context.Context, rdb redis.UniversalClient, routes []config.Route) []finding {
	says, err := "answers", error(nil)
	if len(routes) == 0 {
		err = redisconn.Reach(ctx, rdb)
	} else {
		says, err = "answers, and allows what is needed", redisconn.Check(ctx, rdb, routes[0].Queue)
	}
	if err != nil {
		return []finding{{levelError, "redis", oneLine(err)}}
	}
	found := []finding{{levelOK, "redis", says}}
	for _, warning := range redisconn.Warnings(ctx, rdb) {
		found = append(found, finding{levelWarning, "redis", warning})
	}
	return append(found, each(routes, func(r config.Route) []finding {
		q, err := lifecycle.Open(rdb, r.Queue)
		if err != nil {
			return nil // told before
		}
		depth, err := q.Depth(ctx)
		switch {
		case err != nil:
			return []finding{{levelError, r.Queue, oneLine(err)}}
		case depth.Paused:
			return []finding{{levelWarning, r.Queue, "is paused"}}
		}
		return []finding{{levelOK, r.Queue, "its keys can be read"}}
	})...)
}

// resolve looks the endpoints' hosts up, without connecting to them, and asks Lambda for the functions.
func resolve(ctx context.Context, routes []config.Route) []finding {
	return each(routes, func(r config.Route) []finding {
		if r.Target.URL == nil {
			return dryRun(ctx, r)
		}
		subject, host, what := r.Queue, r.Target.URL.Hostname(), r.Target.String()
		if proxy := proxyOf(r); proxy != nil {
			host, what = proxy.Hostname(), "the proxy before "+what
		}
		ctx, cancel := context.WithTimeout(ctx, resolveFor)
		defer cancel()
		addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		if err != nil {
			return []finding{{levelError, subject, "no address of " + what + " was found"}}
		}
		return []finding{{levelOK, subject, fmt.Sprintf("%s has an address, %s", what, addrs[0].Unmap())}}
	})
}

// dryRun asks Lambda whether the function may be invoked.
func dryRun(ctx context.Context, r config.Route) []finding {
	ctx, cancel := context.WithTimeout(ctx, dryRunFor)
	defer cancel()
	tg, err := awslambda.New(ctx, function(r))
	if err != nil {
		return nil // told before
	}
	defer tg.Close()
	if err := tg.DryRun(ctx); err != nil {
		return []finding{{levelError, r.Queue, tg.String() + " cannot be invoked: " + oneLine(err)}}
	}
	return []finding{{levelOK, r.Queue, tg.String() + " may be invoked"}}
}

// proxyOf is the proxy that would resolve the endpoint's host for us; nil = none. Its URL is valid, since the route was
// tried.
func proxyOf(r config.Route) *url.URL {
	if own := string(r.HTTP.Proxy); own != "" {
		proxy, _ := url.Parse(own)
		return proxy
	}
	proxy, _ := http.ProxyFromEnvironment(&http.Request{URL: r.Target.URL})
	return proxy
}

// each looks at many routes at once and returns the findings in their order.
func each(routes []config.Route, look func(config.Route) []finding) []finding {
	found := make([][]finding, len(routes))
	var group errgroup.Group
	group.SetLimit(parallel)
	for i, r := range routes {
		group.Go(func() error {
			found[i] = look(r)
			return nil
		})
	}
	_ = group.Wait() // it has no error
	var all []finding
	for _, f := range found {
		all = append(all, f...)
	}
	return all
}
