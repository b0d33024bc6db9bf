package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"golang.org/x/sync/errgroup"

	"github.com/queuehook/queuehook/admin"
	"github.com/queuehook/queuehook/config"
	"github.com/queuehook/queuehook/metrics"
	"github.com/queuehook/queuehook/redisconn"
)

// roomForRoutes is for how many routes there is room in the connection pools when a routes file may add some. Unused
// room costs nothing.
const roomForRoutes = 1000

// serve runs one dispatcher for each route until closing ends, and stops them at once when halting ends too. It wires
// the whole process, and ends it in this order: each dispatcher by itself (see dispatcher.Run), then what watches them
// and the admin server, Redis's connections last. Whatever of it fails closes the rest.
func serve(closing, halting context.Context, cfg config.Dispatcher, log *slog.Logger) (err error) {
	if len(cfg.Routes) == 0 {
		return usage{errors.New("DISPATCHER_ROUTES: nothing to serve; want queue=url entries, or DISPATCHER_ROUTES_FILE")}
	}
	if err := checkRoutes(closing, cfg.Routes); err != nil {
		return usage{err}
	}
	told := hangups()
	warn(closing, log, cfg.Warnings)
	redisconn.LogTo(log)
	room := len(cfg.Routes)
	if cfg.RoutesFile != nil {
		room = max(room, roomForRoutes)
	}
	conn, err := redisconn.OpenAll(cfg.Redis, room)
	if err != nil {
		return usage{fmt.Errorf("DISPATCHER_REDIS_URL: %w", err)}
	}
	defer func() { err = errors.Join(err, conn.Close()) }()

	counts, loops := metrics.New(version), new(admin.Loops)
	closing, closeAll := context.WithCancel(closing)
	defer closeAll()
	routes := newFleet(closing, opener{cfg: cfg, conn: conn, counts: counts, loops: loops, log: log}.open)
	defer context.AfterFunc(halting, func() { routes.halt(halting) })()
	if err := checkRedis(closing, conn, cfg.Routes[0].Queue, log); err != nil {
		return err
	}

	watching, unwatch := context.WithCancel(context.WithoutCancel(closing))
	defer unwatch()
	var watchers errgroup.Group
	if cfg.AdminAddr != "" {
		server := admin.New(admin.Config{
			Addr: cfg.AdminAddr, Ready: routes.ready, Note: routes.note, Loops: loops, Metrics: counts.Gatherer(), Logger: log,
		})
		if err := server.Listen(closing); err != nil {
			return fmt.Errorf("DISPATCHER_ADMIN_ADDR: %w", err)
		}
		log.InfoContext(closing, "admin server listens", "addr", server.Addr().String())
		watchers.Go(func() error {
			defer closeAll() // nobody could tell any more whether this process lives
			return server.Run(watching)
		})
	}

	if err := routes.apply(cfg.Routes); err != nil {
		closeAll()
		unwatch()
		return errors.Join(usage{err}, watchers.Wait())
	}
	watchers.Go(func() error { return routes.follow(watching, told, cfg, log) })
	log.InfoContext(closing, "dispatcher started", "version", version, "queues", queuesOf(cfg.Routes))
	defer context.AfterFunc(closing, func() {
		log.InfoContext(closing, "dispatcher stopping", "grace", cfg.ShutdownGrace.String())
	})()
	err = routes.wait()
	unwatch()
	err = errors.Join(err, watchers.Wait())
	log.InfoContext(closing, "dispatcher stopped")
	return err
}

func queuesOf(routes []config.Route) []string {
	names := make([]string, len(routes))
	for i, r := range routes {
		names[i] = r.Queue
	}
	return names
}

// warn logs what the configuration says and may not mean.
func warn(ctx context.Context, log *slog.Logger, warnings []string) {
	for _, warning := range warnings {
		log.WarnContext(ctx, "configuration", "warning", warning)
	}
}

// checkRedis returns an error for what only people can put right. A Redis that is away comes back, which is worth a
// warning.
func checkRedis(ctx context.Context, conn redisconn.Conn, queue string, log *slog.Logger) error {
	err := redisconn.Check(ctx, conn.Commands, queue)
	switch {
	case ctx.Err() != nil: // told to stop already
		return nil
	case errors.Is(err, redisconn.ErrUnreachable):
		log.WarnContext(ctx, "redis is away, going on trying", "error", err)
		return nil
	case err != nil:
		return err
	}
	for _, warning := range redisconn.Warnings(ctx, conn.Commands) {
		log.WarnContext(ctx, "redis configuration", "warning", warning)
	}
	return nil
}
