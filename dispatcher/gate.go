package dispatcher

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/queuehook/queuehook/delivery"
)

// Why a route is held back, as the metric label says it.
const (
	causeThrottled  = "throttled"
	causeBreaker    = "breaker"
	causeRejections = "rejections"
)

// gate says how much of a route may be leased now. It holds the whole route back while its receiver asks for time, since
// a throttled task would only be followed by others that are throttled too, and while its breaker is open. Tasks wait
// in the queue meanwhile, uncharged, where another dispatcher may have better luck with them.
type gate struct {
	retry   Retry
	breaker *breaker
	log     *slog.Logger
	paused  func(cause string, on bool)

	mu        sync.Mutex
	until     time.Time
	throttles int  // in a row
	throttled bool // as last told
}

func newGate(cfg Config, log *slog.Logger) *gate {
	g := &gate{retry: cfg.Retry, log: log, paused: cfg.Observer.Paused}
	g.breaker = newBreaker(cfg.Breaker, cfg.Concurrency, g.changed)
	return g
}

// changed tells operators that the breaker opened or closed.
func (g *gate) changed(cause string, open bool) {
	g.paused(cause, open)
	if open {
		g.log.WarnContext(context.Background(), "route held back", "cause", cause)
		return
	}
	g.log.InfoContext(context.Background(), "route reopens", "cause", cause)
}

// enter lets an attempt begin, or not: the breaker may have opened since its task was leased. Whoever is let in tells
// how it ended.
func (g *gate) enter() (leave func(delivery.Outcome), ok bool) {
	tell, ok := g.breaker.enter()
	if !ok {
		return nil, false
	}
	return func(o delivery.Outcome) {
		tell(o)
		g.throttle(o)
	}, true
}

// throttle takes a receiver's wish for time into account.
func (g *gate) throttle(o delivery.Outcome) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch o.Reason {
	case delivery.Throttled:
		now := time.Now()
		if !now.Before(g.until) { // else it was under way with the one before: the same sign, seen once more
			g.throttles++
		}
		wait := max(o.RetryAfter, g.retry.delay(g.throttles, rand.Float64())) //nolint:gosec // jitter
		if until := now.Add(wait); until.After(g.until) {
			g.until = until
		}
	case delivery.OK:
		g.throttles = 0
	default: // says nothing of the receiver's load
	}
}

// admit returns how many more tasks may be leased while so many are out and so many slots are free; when it is none, how
// long to wait, unless one of those that are out is settled before.
func (g *gate) admit(out, free int) (n int, wait time.Duration) {
	g.mu.Lock()
	wait = max(0, time.Until(g.until))
	if throttled := wait > 0; throttled != g.throttled {
		g.throttled = throttled
		g.paused(causeThrottled, throttled)
	}
	g.mu.Unlock()
	if wait > 0 {
		return 0, wait
	}
	return max(0, min(free, g.breaker.limit()-out)), time.Second
}
