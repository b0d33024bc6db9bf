package janitor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/queuehook/queuehook/lifecycle"
)

const (
	defaultBatch = 100
	// hookTTL is how long a hook may run before another janitor takes over; each batch renews it.
	hookTTL = time.Minute
	// linger is how long a call to Redis that is under way when the pass ends may go on.
	linger = time.Second
	// maxFaults is how many calls to Redis that fail in a row end a pass.
	maxFaults = 3
)

// Report is what one pass, or a run of several, found and did.
type Report struct {
	Queue string
	// Dead are the ids of the dispatchers that were found dead and swept, at least in part.
	Dead []string
	// Recovered and Buried count tasks: given back, past the crash limit.
	Recovered, Buried int
	// Left counts the tasks that are still in flight at dead dispatchers, as far as known, since the pass ended before.
	Left int
	// Suspects are the dispatchers that must be suspected for up to Wait longer before they count as dead.
	Suspects []string
	Wait     time.Duration
	// Stopped says that the context ended, or Alive became false, before everything was done. The next pass does the
	// rest.
	Stopped bool
}

// Sweep is one pass over a queue: it looks at each dispatcher that seems dead, once, and takes the tasks of those that
// have been suspected for their grace. When ctx ends it starts nothing more, gives the call to Redis under way another
// second, and returns Stopped and no error. An error with one dispatcher does not keep others from being swept, and the
// report is valid beside the error.
func Sweep(ctx context.Context, cfg Config) (Report, error) {
	if cfg.Detector == nil || cfg.Sweeper == nil {
		return Report{}, errIncomplete
	}
	return newPass(cfg, newToken(cfg)).sweep(ctx)
}

// pass is one or more looks at all that seem dead, by one janitor.
type pass struct {
	cfg    Config
	queue  string
	token  string
	failed map[string]bool // ids that this pass gives up on
	faults int             // calls that failed in a row

	report Report
	soon   time.Duration // the shortest wait of a suspect; the report has the longest
}

func newPass(cfg Config, token string) *pass {
	if cfg.Batch <= 0 {
		cfg.Batch = defaultBatch
	}
	queue := cfg.Sweeper.Name()
	return &pass{cfg: cfg, queue: queue, token: token, failed: map[string]bool{}, report: Report{Queue: queue}}
}

// newToken is a sweeper's name for itself, empty when no hooks are to be kept from running twice at once.
func newToken(cfg Config) string {
	if cfg.Hooks == nil {
		return ""
	}
	return rand.Text()
}

func (p *pass) sweep(ctx context.Context) (Report, error) {
	p.report.Suspects, p.report.Wait, p.report.Left, p.soon = nil, 0, 0, 0
	if p.ended(ctx) {
		return p.report, nil
	}
	ids, err := p.detect(ctx)
	if err != nil {
		return p.report, fmt.Errorf("sweep queue %s: %w", p.queue, err)
	}
	var errs []error
	p.faults = 0
	for _, id := range ids {
		if p.failed[id] {
			continue
		}
		if p.faults == maxFaults || p.ended(ctx) {
			p.report.Stopped = true
			break
		}
		if err := p.one(ctx, id); err != nil {
			errs = append(errs, fmt.Errorf("sweep queue %s, dispatcher %s: %w", p.queue, id, err))
			p.failed[id] = true
		}
	}
	return p.report, errors.Join(errs...)
}

// one sweeps one dispatcher as far as it can be.
func (p *pass) one(ctx context.Context, id string) error {
	if p.cfg.Hooks == nil {
		_, err := p.take(ctx, id)
		return err
	}
	looked, err := p.call(ctx, id, 0)
	if err != nil {
		return err
	}
	if looked.State != lifecycle.Ready {
		p.note(id, looked)
		return nil
	}
	if err := p.cfg.Hooks.OnPreConcat(ctx, p.queue, id); err != nil {
		return fmt.Errorf("hook before the sweep: %w", err)
	}
	done, err := p.take(ctx, id)
	if err != nil || !done {
		return err
	}
	if err := p.cfg.Hooks.OnPostConcat(ctx, p.queue, id); err != nil {
		return fmt.Errorf("hook after the sweep: %w", err)
	}
	// Only now, by a call that finds nothing to take, is the dispatcher forgotten.
	_, err = p.call(ctx, id, p.cfg.Batch)
	return err
}

// take takes batch after batch, and reports whether nothing is left.
func (p *pass) take(ctx context.Context, id string) (bool, error) {
	left := 0
	defer func() { p.report.Left += left }()
	for {
		if p.ended(ctx) {
			p.report.Stopped = true
			return false, nil
		}
		swept, err := p.call(ctx, id, p.cfg.Batch)
		if err != nil {
			return false, err
		}
		p.note(id, swept)
		switch swept.State {
		case lifecycle.Taken:
			left = swept.Left
			if left == 0 {
				return true, nil
			}
		case lifecycle.Gone: // others took the rest
			left = 0
			return true, nil
		default:
			return false, nil
		}
	}
}

// note puts an answer about a dispatcher into the report.
func (p *pass) note(id string, s lifecycle.Swept) {
	switch s.State {
	case lifecycle.Taken:
		if !slices.Contains(p.report.Dead, id) {
			p.report.Dead = append(p.report.Dead, id)
		}
		p.report.Recovered += s.Back
		p.report.Buried += s.Buried
	case lifecycle.Marked, lifecycle.Waiting:
		if len(p.report.Suspects) == 0 || s.Wait < p.soon {
			p.soon = s.Wait
		}
		p.report.Suspects = append(p.report.Suspects, id)
		p.report.Wait = max(p.report.Wait, s.Wait)
	case lifecycle.Gone, lifecycle.Alive, lifecycle.Held, lifecycle.Ready:
	}
}

func (p *pass) detect(ctx context.Context) ([]string, error) {
	ctx, cancel := lingering(ctx)
	defer cancel()
	return p.cfg.Detector.Detect(ctx)
}

func (p *pass) call(ctx context.Context, id string, batch int) (lifecycle.Swept, error) {
	ctx, cancel := lingering(ctx)
	defer cancel()
	swept, err := p.cfg.Sweeper.Sweep(ctx, id, lifecycle.Sweep{
		Grace: p.cfg.Grace, Batch: batch, CrashLimit: p.cfg.CrashLimit, HookToken: p.token, HookTTL: hookTTL,
	})
	if err != nil {
		p.faults++
		return lifecycle.Swept{}, err
	}
	p.faults = 0
	return swept, nil
}

func (p *pass) ended(ctx context.Context) bool { return ctx.Err() != nil || !alive(p.cfg) }

// lingering lets a call outlive ctx for a moment: cut off, its outcome would be unknown for no gain.
func lingering(ctx context.Context) (context.Context, context.CancelFunc) {
	detached := context.WithoutCancel(ctx)
	if deadline, ok := ctx.Deadline(); ok {
		return context.WithDeadline(detached, deadline.Add(linger))
	}
	return context.WithCancel(detached)
}
