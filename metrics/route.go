package metrics

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/queuehook/queuehook/delivery"
)

// Route observes one route: it is a dispatcher.Observer. Its methods may be called by many goroutines. After Forget they
// do no harm, and what they are told is not shown.
type Route struct {
	m             *Metrics
	queue, target string

	attempts map[end]prometheus.Counter
	buried   map[delivery.Reason]prometheus.Counter

	completed, recovered, lost, trimmed prometheus.Counter

	duration, lag prometheus.Observer
	inFlight      prometheus.Gauge
	held          map[string]bool // for which causes nothing is leased; guarded by m.mu

	beat atomic.Int64 // Unix time of the last good heartbeat, ns; 0 = none yet
}

// end is how an attempt can end.
type end struct {
	settlement delivery.Settlement
	reason     delivery.Reason
}

// ends lists them: as the reason says, buried since the retry budget is used up or the receiver forbade more, or given
// back since its time was over before anything was sent.
func ends() []end {
	all := []end{{delivery.Release, delivery.Timeout}}
	for _, r := range delivery.Reasons() {
		s := delivery.Of(r).Settlement
		all = append(all, end{s, r})
		if s == delivery.Abandon {
			all = append(all, end{delivery.Bury, r})
		}
	}
	return all
}

// Route returns the observer of the route from queue to target. The target is shown as given: scheme://host for a URL,
// never its path. While a route is replaced, the old and the new one may exist side by side and count together.
func (m *Metrics) Route(queue, target string) *Route {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := &Route{
		m: m, queue: queue, target: target,
		attempts:  make(map[end]prometheus.Counter),
		buried:    make(map[delivery.Reason]prometheus.Counter),
		completed: m.completed.WithLabelValues(queue),
		recovered: m.recovered.WithLabelValues(queue),
		lost:      m.lost.WithLabelValues(queue),
		trimmed:   m.trimmed.WithLabelValues(queue),
		duration:  m.duration.WithLabelValues(queue, target),
		lag:       m.lag.WithLabelValues(queue),
		inFlight:  m.inFlight.WithLabelValues(queue),
		held:      make(map[string]bool),
	}
	for _, e := range ends() {
		r.attempts[e] = m.attempts.WithLabelValues(queue, target, e.settlement.String(), e.reason.String())
		if e.settlement == delivery.Bury {
			r.buried[e.reason] = m.buried.WithLabelValues(queue, e.reason.String())
		}
	}
	m.routes[r] = struct{}{}
	m.showHeld(queue)
	return r
}

// Attempt counts a delivery by how it ended, and the time that it took.
func (r *Route) Attempt(s delivery.Settlement, reason delivery.Reason, took time.Duration) {
	if c, known := r.attempts[end{s, reason}]; known {
		c.Inc()
	} else {
		r.unforeseen(r.m.attempts, r.queue, r.target, s.String(), reason.String())
	}
	r.duration.Observe(took.Seconds())
}

// Completed counts a delivered task; lag is the time since it was enqueued or, for a raw one, first leased. The two moments
// may come from two clocks: a lag below zero counts as zero.
func (r *Route) Completed(lag time.Duration) {
	r.completed.Inc()
	r.lag.Observe(max(0, lag).Seconds())
}

// Buried counts a task that went to the dead letters.
func (r *Route) Buried(reason delivery.Reason) {
	if c, known := r.buried[reason]; known {
		c.Inc()
	} else {
		r.unforeseen(r.m.buried, r.queue, reason.String())
	}
}

// unforeseen counts what no label was prepared for: better late than lost. It must not bring a forgotten route back.
func (r *Route) unforeseen(v *prometheus.CounterVec, labels ...string) {
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	if _, there := r.m.routes[r]; there {
		v.WithLabelValues(labels...).Inc()
	}
}

// Recovered counts n tasks that were taken back from a dead dispatcher.
func (r *Route) Recovered(n int) { r.recovered.Add(float64(max(0, n))) }

// LeaseLost counts a settlement that was refused because the task was no longer ours.
func (r *Route) LeaseLost() { r.lost.Inc() }

// Trimmed counts n dead letters that were deleted since they were past their retention.
func (r *Route) Trimmed(n int) { r.trimmed.Add(float64(max(0, n))) }

// InFlight adds delta to the deliveries under way.
func (r *Route) InFlight(delta int) { r.inFlight.Add(float64(delta)) }

// causes are why a dispatcher holds a route back: its receiver asks for time, its target is at fault, or it rejects nearly
// everything. That an operator paused the queue is told by its depths.
func causes() []string { return []string{"throttled", "breaker", "rejections"} }

// Paused says that nothing, or one probe, is leased for this cause, or no longer. A cause that is none of the known ones
// is not shown.
func (r *Route) Paused(cause string, on bool) {
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	r.held[cause] = on
	if _, there := r.m.routes[r]; there {
		r.m.showHeld(r.queue)
	}
}

// showHeld shows for which causes a queue is held back: by any of its routes, of which one that was replaced while it was
// held tells of no end. The caller holds mu.
func (m *Metrics) showHeld(queue string) {
	for _, cause := range causes() {
		value := 0.0
		for r := range m.routes {
			if r.queue == queue && r.held[cause] {
				value = 1
			}
		}
		m.paused.WithLabelValues(queue, cause).Set(value)
	}
}

// Beat notes a good heartbeat, sent at this time.
func (r *Route) Beat(at time.Time) { r.beat.Store(at.UnixNano()) }

// Forget takes the route's metrics off the page, save for those that another Route of the same queue, or of the same
// queue and target, still shows.
func (r *Route) Forget() {
	m := r.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, there := m.routes[r]; !there {
		return
	}
	delete(m.routes, r)
	var sameQueue, sameTarget bool
	for other := range m.routes {
		sameQueue = sameQueue || other.queue == r.queue
		sameTarget = sameTarget || other.queue == r.queue && other.target == r.target
	}
	if !sameTarget {
		m.attempts.DeletePartialMatch(prometheus.Labels{"queue": r.queue, "target": r.target})
		m.duration.DeleteLabelValues(r.queue, r.target)
	}
	if sameQueue {
		m.showHeld(r.queue)
	} else {
		m.buried.DeletePartialMatch(prometheus.Labels{"queue": r.queue})
		for _, v := range []interface{ DeleteLabelValues(...string) bool }{
			m.completed, m.recovered, m.lost, m.trimmed, m.lag, m.inFlight,
		} {
			v.DeleteLabelValues(r.queue)
		}
		for _, cause := range causes() {
			m.paused.DeleteLabelValues(r.queue, cause)
		}
	}
}

// RedisError counts a call to Redis that failed: see Metrics.RedisError.
func (r *Route) RedisError(op string) { r.m.RedisError(op) }
