// Package metrics names every metric and holds its value. All of them are in one private registry, so two dispatchers
// may live in one process. Labels are queues, targets as scheme://host, and closed sets of values, never ids or URLs. The
// closed sets are there from the start at 0, so that a rate shows the first failure too.
package metrics

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

const namespace = "dispatcher"

// Metrics are those of one process. Its methods may be called by many goroutines.
type Metrics struct {
	registry *prometheus.Registry

	attempts                                    *prometheus.CounterVec
	completed, buried, recovered, lost, trimmed *prometheus.CounterVec
	redisErrors                                 *prometheus.CounterVec
	duration, lag                               *prometheus.HistogramVec
	inFlight                                    *prometheus.GaugeVec
	ready, delayed, dead, oldest, paused        *prometheus.GaugeVec

	mu     sync.Mutex
	routes map[*Route]struct{}
	polls  map[string]int // how many run, by queue
}

// New returns the metrics of a dispatcher of this version, with those of the Go runtime and the process.
func New(version string) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		routes:   make(map[*Route]struct{}),
		polls:    make(map[string]int),

		attempts: counter("attempts_total", "Deliveries that ended, by how the task was settled and why.",
			"queue", "target", "outcome", "reason"),
		completed:   counter("tasks_completed_total", "Tasks that were delivered.", "queue"),
		buried:      counter("tasks_buried_total", "Tasks that went to the dead letters.", "queue", "reason"),
		recovered:   counter("tasks_recovered_total", "Tasks that were taken back from dead dispatchers.", "queue"),
		lost:        counter("leases_lost_total", "Settlements refused because the task was no longer ours.", "queue"),
		trimmed:     counter("tasks_trimmed_total", "Dead letters deleted since they were past their retention.", "queue"),
		redisErrors: counter("redis_errors_total", "Calls of Redis that failed, by what they were for.", "op"),

		// Timeouts are set between fractions of a second and a minute.
		duration: histogram("attempt_duration_seconds", "How long deliveries took, answer included.",
			[]float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60}, "queue", "target"),
		// From an idle queue to a day of retries.
		lag: histogram("lag_seconds", "Time from enqueueing, for raw payloads from the first lease, to completion.",
			[]float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 3 * 3600, 6 * 3600, 12 * 3600, 24 * 3600},
			"queue"),

		inFlight: gauge("in_flight", "Deliveries under way in this dispatcher.", "queue"),
		ready:    gauge("queue_ready", "Tasks of the whole fleet that could be leased now.", "queue"),
		delayed:  gauge("queue_delayed", "Tasks of the whole fleet that wait until they are due.", "queue"),
		dead:     gauge("queue_dead", "Dead letters.", "queue"),
		oldest: gauge("oldest_ready_seconds",
			"For how long the oldest ready task has been overdue; in a raw list, for how long its head has been seen.", "queue"),
		paused: gauge("route_paused", "1 while nothing is leased for this cause.", "queue", "cause"),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: namespace, Name: "build_info", Help: "1, with the version.", ConstLabels: prometheus.Labels{"version": version},
	})
	build.Set(1)
	m.registry.MustRegister(
		m.attempts, m.completed, m.buried, m.recovered, m.lost, m.trimmed, m.redisErrors, m.duration, m.lag,
		m.inFlight, m.ready, m.delayed, m.dead, m.oldest, m.paused, build, heartbeat{m, heartbeatDesc()},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	for _, op := range ops() {
		m.redisErrors.WithLabelValues(op)
	}
	return m
}

// Gatherer is what a metrics page reads.
func (m *Metrics) Gatherer() prometheus.Gatherer { return m.registry }

// What a call to Redis was for: the words of dispatcher.Observer, and those of this package.
const (
	opBeat   = "beat"  // and register
	opLease  = "lease" // and adopt
	opWait   = "wait"
	opSettle = "settle"
	opSweep  = "sweep" // and looking for the dead, or for what meddling left behind
	opTrim   = "trim"
	opDepth  = "depth"
	opOther  = "other"
)

func ops() []string {
	return []string{opBeat, opLease, opWait, opSettle, opSweep, opTrim, opDepth, opOther}
}

// RedisError counts a call that failed. An op that is not one of those above counts as "other".
func (m *Metrics) RedisError(op string) {
	if !slices.Contains(ops(), op) {
		op = opOther
	}
	m.redisErrors.WithLabelValues(op).Inc()
}

// snapshot lists the routes there are.
func (m *Metrics) snapshot() []*Route {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Keys(m.routes))
}

// heartbeat is the time of the last good beat of the route for which it is longest ago, since a single route without
// heartbeat loses its tasks to a sweep. It is 0 while a route has had none, and absent without routes.
type heartbeat struct {
	m    *Metrics
	desc *prometheus.Desc
}

func heartbeatDesc() *prometheus.Desc {
	return prometheus.NewDesc(namespace+"_heartbeat_last_success_timestamp_seconds",
		"Unix time of the last good heartbeat, of the route for which it is longest ago; 0 = a route never had one.", nil, nil)
}

func (h heartbeat) Describe(to chan<- *prometheus.Desc) { to <- h.desc }

func (h heartbeat) Collect(to chan<- prometheus.Metric) {
	var beats []int64
	for _, r := range h.m.snapshot() {
		beats = append(beats, r.beat.Load())
	}
	if len(beats) > 0 {
		at := time.Duration(slices.Min(beats)).Seconds()
		to <- prometheus.MustNewConstMetric(h.desc, prometheus.GaugeValue, at)
	}
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

func gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

// histogram is both a classic one, with these buckets in seconds, and a native one for servers that ask for it.
func histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: namespace, Name: name, Help: help, Buckets: buckets,
		NativeHistogramBucketFactor:     1.1,
		NativeHistogramMaxBucketNumber:  160,
		NativeHistogramMinResetDuration: time.Hour,
	}, labels)
}
