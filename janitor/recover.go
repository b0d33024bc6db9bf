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

// Look is a look at the queue besides sweeping, which acts only on what a second look, a grace later, finds again. It
// returns whether there is something for a second look.
type Look func(ctx context.Context) (again bool, err error)

// Recover is for a run by itself, from a schedule or a command line, while no other janitor may be alive. It looks and
// sweeps, waits for the grace of those that it suspects, and does so again, so that this one run recovers what a dead
// dispatcher held. Looks come before the sweep each time, so that what they make known is swept too.
//
// It waits at most Config.Grace for looks, and then at most twice as long as its passes announced, or five seconds when
// that is longer. It does not begin to wait when ctx would end before: then the report's Suspects says who remains, and
// Stopped that a look does. A dispatcher or a look that failed is left alone for the rest of the run. For everything
// else see Sweep.
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
