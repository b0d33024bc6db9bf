package lifecycle

import (
	"context"
	"math/rand/v2"
	"time"
)

// The waits between tries while Redis does not answer: short enough that work goes on soon after it is back, long enough
// that an outage costs next to nothing.
const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = 2 * time.Second
)

// backoff waits ever longer between tries of one thing.
type backoff struct{ next time.Duration }

// wait sleeps for this time's share, drawn from its upper half, or answers ctx's cause when that ends first.
func (b *backoff) wait(ctx context.Context) error {
	b.next = min(max(2*b.next, firstRetry), lastRetry)
	return sleep(ctx, b.next/2+rand.N(b.next/2)) //nolint:gosec // jitter
}

func sleep(ctx context.Context, d time.Duration) error { return sleepUnless(ctx, nil, d) }

// sleepUnless sleeps for d, less when woken before, or answers ctx's cause when that ends first.
func sleepUnless(ctx context.Context, woken <-chan struct{}, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-woken:
		return nil
	case <-timer.C:
		return nil
	}
}
