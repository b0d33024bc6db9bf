package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/queuehook/queuehook/awslambda"
	"github.com/queuehook/queuehook/config"
	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/dispatcher"
	"github.com/queuehook/queuehook/webhook"
)

// target is where a route's tasks go.
type target interface {
	dispatcher.Target
	Close()
}

// newTarget makes a route's target, which opens no connection.
func newTarget(ctx context.Context, r config.Route) (target, error) {
	if r.Target.URL == nil {
		return awslambda.New(ctx, function(r))
	}
	about, err := endpoint(r)
	if err != nil {
		return nil, err
	}
	return webhook.New(about)
}

// checkRoutes returns what routes ask for and cannot have, of all routes at once.
func checkRoutes(ctx context.Context, routes []config.Route) error {
	var faults []error
	for _, r := range routes {
		t, err := newTarget(ctx, r)
		if err != nil {
			faults = append(faults, fmt.Errorf("queue %s: %w", r.Queue, err))
			continue
		}
		t.Close()
	}
	return errors.Join(faults...)
}

// function is a route's function for package awslambda.
func function(r config.Route) awslambda.Config {
	return awslambda.Config{
		Function: r.Target.Lambda.Function, Qualifier: r.Target.Lambda.Qualifier, Region: r.Target.Lambda.Region,
		Async: r.Invocation.Async, Payload: awslambda.Payload(r.Invocation.Payload),
		BatchSize: r.Invocation.BatchSize, BatchWait: r.Invocation.BatchWait,
		Concurrency: r.Concurrency, Timeout: r.Timeout,
		MaxAttempts: r.Retry.MaxAttempts, MaxRetryAfter: r.Retry.MaxRetryAfter,
	}
}

// slots is how many tasks of a route may be out at once, how many bytes these may have (0 = no bound), and how long a
// task may be out. With batches each of them is more than for one call.
func slots(r config.Route) (tasks, bytes int, patience time.Duration) {
	if r.Target.URL == nil {
		f := function(r)
		return f.Slots(), f.Bytes(), f.Patience()
	}
	return r.Concurrency, 0, r.Timeout
}

// endpoint is a route's URL for package webhook.
func endpoint(r config.Route) (webhook.Config, error) {
	trust, err := r.HTTP.TLS.Config()
	if err != nil {
		return webhook.Config{}, err
	}
	headers := make(map[string]string, len(r.HTTP.Headers))
	for name, value := range r.HTTP.Headers {
		headers[name] = string(value)
	}
	rules := delivery.Rules{
		Reject: r.HTTP.Reject, RequireAck: r.HTTP.RequireAck, MaxRetryAfter: r.Retry.MaxRetryAfter,
	}
	for _, s := range r.HTTP.Success {
		rules.Success = append(rules.Success, delivery.Range(s))
	}
	target := *r.Target.URL
	if r.HTTP.Authorization != "" {
		target.User = nil // the other one wins
	}
	return webhook.Config{
		URL: target.String(), Method: r.HTTP.Method, ContentType: r.HTTP.ContentType, Headers: headers,
		MaxConns: r.Concurrency, ConnectTimeout: r.HTTP.ConnectTimeout, QuickRetries: r.HTTP.QuickRetries,
		MaxAttempts: r.Retry.MaxAttempts, Rules: rules, TLS: trust,
		Authorization: string(r.HTTP.Authorization), Secrets: r.HTTP.SigningSecrets,
		Proxy: string(r.HTTP.Proxy), DenyPrivate: r.HTTP.DenyPrivate, Compat: webhook.Compat(r.HTTP.Compat), Version: version,
	}, nil
}

// retry is a route's retry policy for package dispatcher.
func retry(r config.Retry) dispatcher.Retry {
	return dispatcher.Retry{
		MaxAttempts: orUnlimited(r.MaxAttempts), MaxAge: orUnlimited(r.MaxAge),
		Base: r.BackoffBase, Cap: r.BackoffCap, Schedule: r.Schedule,
	}
}

// breaker is a route's breaker for package dispatcher, whose zero is the default rather than none.
func breaker(b config.Breaker) dispatcher.Breaker {
	if b == (config.Breaker{}) {
		return dispatcher.Breaker{Consecutive: dispatcher.Unlimited}
	}
	return dispatcher.Breaker{Consecutive: b.Consecutive, Pause: b.Pause}
}

// orUnlimited turns the environment's 0 for "no limit" into the API's.
func orUnlimited[T int | time.Duration](v T) T {
	if v == 0 {
		return dispatcher.Unlimited
	}
	return v
}
