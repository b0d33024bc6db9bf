package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/queuehook/queuehook/config"
)

// reloadEvery is how often the routes file, and the files that it names, are looked at without a signal.
const reloadEvery = 5 * time.Second

// hangups catches SIGHUP until the process has exited. It means a reload, and is at no moment a reason to die: neither
// while Redis is asked first, nor while all is being closed, nor without a routes file.
func hangups() <-chan os.Signal {
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGHUP)
	return told
}

// follow keeps the fleet at what the routes file says, when told to and when it has changed, until ctx ends. A bad file is
// refused whole: the old routes go on, and the log and the readiness page say so.
func (f *fleet) follow(ctx context.Context, told <-chan os.Signal, cfg config.Dispatcher, log *slog.Logger) error {
	every := time.NewTicker(reloadEvery)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-told:
		case <-every.C:
		}
		if cfg.RoutesFile != nil {
			f.reload(ctx, cfg, log)
		}
	}
}

// reload applies the file when it has changed.
func (f *fleet) reload(ctx context.Context, cfg config.Dispatcher, log *slog.Logger) {
	routes, changed, err := cfg.RoutesFile.Check(ctx)
	if !changed {
		return
	}
	if err == nil {
		err = f.apply(routes)
	}
	if err != nil {
		f.refused.Store(&err)
		log.ErrorContext(ctx, "routes file refused, the old routes go on", "error", err)
		return
	}
	f.refused.Store(nil)
	warn(ctx, log, cfg.RouteWarnings(routes))
	log.InfoContext(ctx, "routes file applied", "queues", queuesOf(routes))
}

// note is what the readiness page adds: that the routes are not those of the file.
func (f *fleet) note() string {
	if err := f.refused.Load(); err != nil {
		return "routes file refused, the old routes go on; the log says why"
	}
	return ""
}
