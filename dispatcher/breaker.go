package dispatcher

import (
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/queuehook/queuehook/delivery"
)

const (
	// faultWindow, faultShare and faultFloor open a breaker whose target fails nearly always, though not in a row: more
	// than this share of the last minute's attempts, if there were at least so many.
	faultWindow = time.Minute
	faultShare  = 0.9
	faultFloor  = 20
	// rejectWindow and rejectShare guard the backlog against a bad deploy or a wrong URL: a breaker opens when more than
	// this share of so many settled tasks were rejected.
	rejectWindow = 50
	rejectShare  = 0.5
)

// Breaker says when a dispatcher stops leasing because the target, rather than a task, is at fault. Tasks then wait in
// the queue, uncharged. After the pause one task is tried; when it gets through, the route reopens step by step.
type Breaker struct {
	// Consecutive is how many target faults in a row open the breaker; 0 = 20, below 0 = no breaker.
	Consecutive int
	// Pause is the time between opening and a probe, more or less a quarter of it; 0 = 30 s.
	Pause time.Duration
}

// errFault and errIdle are what gobreaker is told of an outcome: it speaks against the target, or says nothing of it.
var (
	errFault = errors.New("target fault")
	errIdle  = errors.New("no verdict")
)

// breaker is two circuit breakers, one for target faults and one for mass rejections, and the ramp by which a route
// reopens: 1, 2, 4, ... slots, each step when as many attempts got through.
type breaker struct {
	faults, rejections *gobreaker.TwoStepCircuitBreaker[struct{}]
	slots              int64
	ramp, steps        atomic.Int64
	// row counts target faults in a row. Each change of state begins a new count, since attempts that began before it say
	// nothing of now. gobreaker's own count forgets attempts that are older, or took longer, than its window.
	row atomic.Pointer[atomic.Int64]

	mu       sync.Mutex
	recent   [rejectWindow]bool // whether each of the last settled tasks was rejected
	settled  int
	rejected int
}

// newBreaker returns the breaker of a route; changed is told when one of its halves opens or closes, and must not call
// back.
func newBreaker(cfg Breaker, slots int, changed func(cause string, open bool)) *breaker {
	if cfg.Consecutive < 0 {
		return nil
	}
	b := &breaker{slots: int64(slots)}
	b.ramp.Store(b.slots)
	b.row.Store(new(atomic.Int64))
	pause := cfg.Pause*3/4 + rand.N(cfg.Pause/2+1) //nolint:gosec // jitter: a fleet must not probe in step
	settings := func(cause string, trip func(gobreaker.Counts) bool) gobreaker.Settings {
		return gobreaker.Settings{
			Name: cause, Interval: faultWindow, BucketPeriod: faultWindow / 12, Timeout: pause, ReadyToTrip: trip,
			IsExcluded: func(err error) bool { return errors.Is(err, errIdle) },
			OnStateChange: func(cause string, from, to gobreaker.State) {
				b.row.Store(new(atomic.Int64))
				switch {
				case to == gobreaker.StateClosed:
					b.ramp.Store(1)
					b.steps.Store(0)
					changed(cause, false)
				case from == gobreaker.StateClosed: // else it stays held back: a probe, or one that failed
					changed(cause, true)
				}
			},
		}
	}
	b.faults = gobreaker.NewTwoStepCircuitBreaker[struct{}](settings(causeBreaker, func(c gobreaker.Counts) bool {
		ended := c.TotalFailures + c.TotalSuccesses // Requests has those that are under way, too
		return b.row.Load().Load() >= int64(cfg.Consecutive) ||
			ended >= faultFloor && float64(c.TotalFailures) > faultShare*float64(ended)
	}))
	b.rejections = gobreaker.NewTwoStepCircuitBreaker[struct{}](settings(causeRejections, func(gobreaker.Counts) bool {
		return b.massRejection()
	}))
	return b
}

// enter lets an attempt begin, or not. Whoever is let in tells how it ended.
func (b *breaker) enter() (leave func(delivery.Outcome), ok bool) {
	if b == nil {
		return func(delivery.Outcome) {}, true
	}
	fault, err := b.faults.Allow()
	if err != nil {
		return nil, false
	}
	rejection, err := b.rejections.Allow()
	if err != nil {
		fault(errIdle)
		return nil, false
	}
	row := b.row.Load()
	return func(o delivery.Outcome) {
		verdict, refusal := b.judge(o)
		switch {
		case verdict == nil:
			row.Store(0)
		case errors.Is(verdict, errFault):
			row.Add(1)
		}
		fault(verdict)
		rejection(refusal)
		if verdict == nil && refusal == nil {
			b.climb()
		}
	}, true
}

// judge says what an outcome means to the two halves.
func (b *breaker) judge(o delivery.Outcome) (verdict, refusal error) {
	switch {
	case o.Settlement == delivery.Release || o.Reason == delivery.Unsendable || o.Shared:
		return errIdle, errIdle
	case o.TargetFault:
		return errFault, errIdle
	}
	rejected := o.Reason == delivery.Rejected
	b.remember(rejected)
	if rejected {
		return nil, errFault
	}
	return nil, nil
}

// remember keeps the last settled tasks. An abandoned task counts too: it shows a receiver that does not reject.
func (b *breaker) remember(rejected bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := b.settled % rejectWindow
	if b.recent[at] {
		b.rejected--
	}
	if rejected {
		b.rejected++
	}
	b.recent[at] = rejected
	b.settled++
}

// massRejection says that more than half of the last 50 were rejected, and then forgets them: the probe decides.
func (b *breaker) massRejection() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if float64(b.rejected) <= rejectShare*rejectWindow {
		return false
	}
	b.recent, b.settled, b.rejected = [rejectWindow]bool{}, 0, 0
	return true
}

// climb takes a step up the ramp when as many attempts as it is wide got through.
func (b *breaker) climb() {
	width := b.ramp.Load()
	if width < b.slots && b.steps.Add(1) >= width && b.ramp.CompareAndSwap(width, min(2*width, b.slots)) {
		b.steps.Store(0)
	}
}

// limit is how many attempts may be under way: none while open, one to probe, then up the ramp.
func (b *breaker) limit() int {
	if b == nil {
		return int(^uint(0) >> 1)
	}
	limit := int(b.ramp.Load())
	for _, half := range []*gobreaker.TwoStepCircuitBreaker[struct{}]{b.faults, b.rejections} {
		switch half.State() {
		case gobreaker.StateOpen:
			return 0
		case gobreaker.StateHalfOpen:
			limit = 1
		case gobreaker.StateClosed:
		}
	}
	return limit
}
