package dispatcher

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/queuehook/queuehook/delivery"
)

// Defaults of Retry: about a day of attempts.
const (
	defaultMaxAttempts = 40
	defaultMaxAge      = 24 * time.Hour
	defaultBase        = time.Second
	defaultCap         = time.Hour
)

// Unlimited as MaxAttempts or MaxAge sets no bound.
const Unlimited = -1

// Retry says when a task whose attempt failed is tried again, and when it is given up. It is pure: the same facts and
// the same draw give the same decision.
type Retry struct {
	// MaxAttempts is how many charged attempts a task has, unless the task has a limit of its own; 0 = 40, below 0 = no
	// bound.
	MaxAttempts int
	// MaxAge is for how long a task is tried, counted from when it was first due; 0 = 24 h, below 0 = no bound. It is
	// checked only after a failed attempt: nothing expires untried.
	MaxAge time.Duration
	// Base and Cap give the delay after attempt n: min(Cap, Base x 2^(n-1)), of which a random part between half and all
	// is taken; 0 = 1 s and 1 h.
	Base, Cap time.Duration
	// Schedule, when given, replaces Base and Cap: the delay after attempt n is its nth entry, or its last.
	Schedule []time.Duration
}

func (r *Retry) validate() error {
	setDefault(&r.MaxAttempts, defaultMaxAttempts)
	setDefault(&r.MaxAge, defaultMaxAge)
	setDefault(&r.Base, defaultBase)
	setDefault(&r.Cap, max(defaultCap, r.Base))
	if r.Base < 0 || r.Cap < r.Base {
		return fmt.Errorf("backoff base %s and cap %s: 0 < base <= cap is accepted", r.Base, r.Cap)
	}
	for _, d := range r.Schedule {
		if d < 0 {
			return errors.New("a delay of the retry schedule is negative")
		}
	}
	return nil
}

// facts are what a decision goes by.
type facts struct {
	charged     int           // charged attempts before this one
	throttles   int           // uncharged ones before this one
	maxAttempts int           // the task's own; 0 = the route's
	age         time.Duration // since the task was first due
	draw        float64       // of [0, 1)
}

// decision is how an attempt's outcome is settled.
type decision struct {
	settlement delivery.Settlement
	reason     delivery.Reason // of a burial; else the outcome's
	delay      time.Duration   // of an abandonment
}

// decide turns an outcome into a settlement: an abandonment becomes a burial when the task's attempts or its age are
// used up.
func (r Retry) decide(o delivery.Outcome, f facts) decision {
	d := decision{settlement: o.Settlement, reason: o.Reason}
	if o.Settlement != delivery.Abandon {
		return d
	}
	limit := r.limit(f.maxAttempts)
	switch {
	case o.Charged && limit > 0 && f.charged >= limit-1:
		return decision{settlement: delivery.Bury, reason: delivery.Exhausted}
	case r.MaxAge > 0 && f.age > r.MaxAge:
		return decision{settlement: delivery.Bury, reason: delivery.Expired}
	}
	switch {
	case o.Charged:
		d.delay = r.delay(f.charged+1, f.draw)
	case o.Reason == delivery.Throttled:
		d.delay = r.delay(f.throttles+1, f.draw)
	}
	d.delay = max(d.delay, o.RetryAfter)
	return d
}

// limit is how many charged attempts a task has; own is its own limit, 0 for none. 0 or below = no bound.
func (r Retry) limit(own int) int {
	if own > 0 {
		return own
	}
	return r.MaxAttempts
}

// delay is the wait after attempt n, for a draw of [0, 1). It never overflows: for any n it lies in [Base/2, Cap]. An n
// below 1, which only spoilt metadata can say, counts as 1.
func (r Retry) delay(n int, draw float64) time.Duration {
	n = max(n, 1)
	if len(r.Schedule) > 0 {
		return r.Schedule[min(n, len(r.Schedule))-1]
	}
	full := r.Cap
	if d := math.Ldexp(float64(r.Base), n-1); d < float64(r.Cap) {
		full = time.Duration(d)
	}
	return full/2 + time.Duration(draw*float64(full-full/2))
}
