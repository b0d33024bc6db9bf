package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/queuehook/queuehook/config"
)

// fleet is the routes that this process serves. They change as a whole or not at all, and without a gap: a route that
// is replaced lets its attempts end while its successor already leases.
type fleet struct {
	open    func(config.Route) (*route, error)
	serving context.Context //nolint:containedctx // ends when the fleet is told to stop
	group   *errgroup.Group // every route that runs, those that are on their way out too

	refused atomic.Pointer[error] // why the routes file is not in force; nil = it is

	mu      sync.Mutex
	routes  map[string]member // by queue
	running map[*route]bool   // these, and those on their way out
}

// member is one route of the fleet.
type member struct {
	*route
	leave context.CancelFunc
}

// newFleet returns a fleet without routes. It stops when serving ends, or when one of its routes fails.
func newFleet(serving context.Context, open func(config.Route) (*route, error)) *fleet {
	group, serving := errgroup.WithContext(serving)
	return &fleet{open: open, serving: serving, group: group, routes: make(map[string]member), running: make(map[*route]bool)}
}

// apply makes these the fleet's routes. Routes that have not changed go on undisturbed. When one cannot be opened
// nothing changes, and the error names every such route.
func (f *fleet) apply(routes []config.Route) error {
	if len(routes) == 0 {
		return errors.New("nothing to serve")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.serving.Err() != nil {
		return nil // it ends anyway
	}
	var coming []*route
	var faults []error
	wanted := make(map[string]bool, len(routes))
	for _, r := range routes {
		wanted[r.Queue] = true
		if old, there := f.routes[r.Queue]; there && reflect.DeepEqual(old.cfg, r) {
			continue
		}
		opened, err := f.open(r)
		if err != nil {
			faults = append(faults, fmt.Errorf("queue %s: %w", r.Queue, err))
			continue
		}
		coming = append(coming, opened)
	}
	if len(faults) > 0 {
		for _, r := range coming {
			r.close()
		}
		return errors.Join(faults...)
	}

	for queue, old := range f.routes {
		if !wanted[queue] {
			old.leave()
			delete(f.routes, queue)
		}
	}
	for _, r := range coming {
		if old, there := f.routes[r.cfg.Queue]; there {
			old.leave()
		}
		ctx, leave := context.WithCancel(f.serving)
		f.routes[r.cfg.Queue] = member{route: r, leave: leave}
		f.running[r] = true
		f.group.Go(func() error {
			defer leave()
			defer f.gone(r)
			return r.run(ctx)
		})
	}
	return nil
}

// gone forgets a route that has stopped. It waits for an apply under way, so that the group never runs empty, which would
// end the process, while one set of routes takes the other's place.
func (f *fleet) gone(r *route) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.running, r)
}

// halt stops every route at once.
func (f *fleet) halt(halting context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for r := range f.running {
		_ = r.dispatcher.Halt(halting) // only gives the signal: halting has ended
	}
}

// wait returns when no route runs any more.
func (f *fleet) wait() error { return f.group.Wait() }

// ready returns nil when every route can lease.
func (f *fleet) ready(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for queue, r := range f.routes {
		if err := r.dispatcher.Ready(); err != nil {
			return fmt.Errorf("queue %s: %w", queue, err)
		}
	}
	return nil
}
