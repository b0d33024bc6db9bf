package janitor

import (
	"context"
	"errors"
	"time"
)

const (
	// minWait keeps a suspect whose time is just up from being looked at in a hot loop.
	minWait = 10 * time.Millisecond
	// patience is how long a run goes on with suspects of a short grace. A look that comes late, as on a busy machine,
	// begins the suspicion anew.
	patience = 5 * time.Second
)

// Look is done besides sweeping: it finds what only a second look, a grace later, may act on. Again says that there is
// such a thing.
type Look func(ctx context.Context) (again bool, err error)

// Recover is for a run of its own, from a schedule or a command line: it looks and sweeps, waits the grace of those it
// found suspect out, and does so again, so that one run recovers what a dead dispatcher held, with no other janitor
// alive. Looks come before the sweep each time: what they make known is swept too. It waits at most Config.Grace for
// looks, then at most twice what its passes announced, or five seconds when that is longer, and not at all where ctx
// would end before; then Suspects says who remains, and Stopped that a look does. A dispatcher that gave an error is left
// alone for the rest of the run, and so is such a look. Otherwise as Sweep.
func Recover(ctx context.Context, cfg Config) (Report, error) {
	if cfg.Detector == nil || cfg.Sweeper == nil {
		return Report{}, errIncomplete
	}
	p := newPass(cfg, newToken(cfg))
	looks, err := look(ctx, cfg.Looks)
	errs := []error{err}
	report, err := p.sweep(ctx)
	errs = append(errs, err)
	if len(looks) > 0 && !report.Stopped {
		if !wait(ctx, cfg.Grace) {
			report.Stopped = true
			return report, errors.Join(errs...)
		}
		_, err := look(ctx, looks)
		errs = append(errs, err)
		report, err = p.sweep(ctx)
		errs = append(errs, err)
	}
	// Twice: a suspect may have beaten and died anew meanwhile. No more: a flapping fleet must not keep the run going.
	told := cfg.Logger == nil
	for end := time.Now().Add(max(2*report.Wait, patience)); len(report.Suspects) > 0 && !report.Stopped; {
		soon := max(p.soon, minWait)
		if time.Now().Add(soon).After(end) || !fits(ctx, soon) {
			break
		}
		if !told {
			cfg.Logger.InfoContext(ctx, "sweep waits for the grace of suspects", "queue", report.Queue,
				"suspects", report.Suspects, "wait_ms", report.Wait.Milliseconds())
			told = true
		}
		if !wait(ctx, soon) {
			report.Stopped = true
			break
		}
		report, err = p.sweep(ctx)
		errs = append(errs, err)
	}
	return report, errors.Join(errs...)
}

// look does all looks and answers those that want to be done again. That ctx cut one short is no error of its own.
func look(ctx context.Context, looks []Look) (again []Look, err error) {
	var errs []error
	for _, do := range looks {
		if ctx.Err() != nil {
			break
		}
		switch more, err := do(ctx); {
		case err != nil && ctx.Err() == nil:
			errs = append(errs, err)
		case err == nil && more:
			again = append(again, do)
		}
	}
	return again, errors.Join(errs...)
}

// wait reports whether so much time has passed before ctx ended; it does not begin to wait when ctx would end before.
func wait(ctx context.Context, d time.Duration) bool {
	if !fits(ctx, d) {
		return false
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

func fits(ctx context.Context, d time.Duration) bool {
	deadline, bounded := ctx.Deadline()
	return !bounded || time.Now().Add(d).Before(deadline)
}
