package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// depthInterval is the time between two looks at a queue: most servers scrape less often.
const depthInterval = 5 * time.Second

// causePaused is the cause that an operator makes; it holds for the whole fleet, so the depths tell it.
const causePaused = "paused"

// Depth is how many of a queue's tasks are where.
type Depth struct {
	Ready, Delayed, Dead int64
	OldestReady          time.Duration
	Paused               bool
}

// Poll keeps the depths of one queue on the page. They are those of the whole fleet, and every dispatcher shows them: a
// query must take the max over dispatchers, not the sum.
type Poll struct {
	m     *Metrics
	queue string
	read  func(context.Context) (Depth, error)
}

// Poll returns the poll of a queue; read reads its depth.
func (m *Metrics) Poll(queue string, read func(context.Context) (Depth, error)) *Poll {
	return &Poll{m: m, queue: queue, read: read}
}

// Run looks every 5 s until ctx ends. Then it takes the depths off the page, unless another poll of the queue runs, that
// of a route that replaces this one. Looks that fail are counted and otherwise ignored: what makes them fail makes leasing
// fail too, and that is logged. It returns nil.
func (p *Poll) Run(ctx context.Context) error {
	p.count(1)
	defer p.count(-1)
	every := time.NewTicker(depthInterval)
	defer every.Stop()
	for ctx.Err() == nil {
		_ = p.Look(ctx)
		select {
		case <-ctx.Done():
		case <-every.C:
		}
	}
	return nil
}

// Look reads the depths once. When they can't be read they are off the page until the next good look, since a depth
// that was true before an outage would be taken for today's.
func (p *Poll) Look(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, depthInterval)
	defer cancel()
	d, err := p.read(bounded)
	if err != nil {
		p.drop()
		if ctx.Err() == nil {
			p.m.RedisError(opDepth)
		}
		return err
	}
	p.m.ready.WithLabelValues(p.queue).Set(float64(d.Ready))
	p.m.delayed.WithLabelValues(p.queue).Set(float64(d.Delayed))
	p.m.dead.WithLabelValues(p.queue).Set(float64(d.Dead))
	p.m.oldest.WithLabelValues(p.queue).Set(max(0, d.OldestReady).Seconds())
	paused := 0.0
	if d.Paused {
		paused = 1
	}
	p.m.paused.WithLabelValues(p.queue, causePaused).Set(paused)
	return nil
}

func (p *Poll) count(delta int) {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	p.m.polls[p.queue] += delta
	if p.m.polls[p.queue] == 0 {
		delete(p.m.polls, p.queue)
		p.drop()
	}
}

func (p *Poll) drop() {
	for _, v := range []*prometheus.GaugeVec{p.m.ready, p.m.delayed, p.m.dead, p.m.oldest} {
		v.DeleteLabelValues(p.queue)
	}
	p.m.paused.DeleteLabelValues(p.queue, causePaused)
}
