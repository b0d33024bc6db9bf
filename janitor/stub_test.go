package janitor_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/queuehook/queuehook/janitor"
	"github.com/queuehook/queuehook/lifecycle"
)

var errStub = errors.New("stub fault")

// dispatcher is a dead dispatcher as the stub queue keeps it.
type dispatcher struct {
	tasks  int
	grace  time.Duration // 0 = it has been suspected for long enough
	marked time.Time
	late   int   // so many looks come too late, and mark it anew
	err    error // what every call about it answers
}

// queue is a stub of both interfaces, with the rules of sweep.lua as far as policy depends on them.
type queue struct {
	mu        sync.Mutex
	dead      map[string]*dispatcher
	detectErr error
	log       []string
	passes    []time.Time // when Detect was called
	during    func()      // called within each Sweep that takes
	slow      time.Duration
}

func (q *queue) Name() string { return "orders" }

func (q *queue) Detect(ctx context.Context) ([]string, error) {
	if err := q.answer(ctx); err != nil {
		return nil, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.passes = append(q.passes, time.Now())
	if q.detectErr != nil {
		return nil, q.detectErr
	}
	var ids []string
	for id := range q.dead {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids, nil
}

func (q *queue) Sweep(ctx context.Context, id string, s lifecycle.Sweep) (lifecycle.Swept, error) {
	if err := q.answer(ctx); err != nil {
		return lifecycle.Swept{}, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	d := q.dead[id]
	switch {
	case d == nil:
		q.log = append(q.log, "gone "+id)
		return lifecycle.Swept{State: lifecycle.Gone}, nil
	case d.err != nil:
		q.log = append(q.log, "error "+id)
		return lifecycle.Swept{}, d.err
	case d.grace > 0 && (d.marked.IsZero() || d.late > 0):
		if !d.marked.IsZero() {
			d.late--
		}
		d.marked = time.Now()
		q.log = append(q.log, "mark "+id)
		return lifecycle.Swept{State: lifecycle.Marked, Wait: d.grace}, nil
	case d.grace > 0 && time.Since(d.marked) < d.grace:
		q.log = append(q.log, "wait "+id)
		return lifecycle.Swept{State: lifecycle.Waiting, Wait: d.grace - time.Since(d.marked)}, nil
	case s.Batch == 0:
		q.log = append(q.log, "ready "+id)
		return lifecycle.Swept{State: lifecycle.Ready}, nil
	}
	if q.during != nil {
		q.during()
	}
	took := min(s.Batch, d.tasks)
	d.tasks -= took
	if d.tasks == 0 && (s.HookToken == "" || took == 0) {
		delete(q.dead, id)
		q.log = append(q.log, "forget "+id)
	} else {
		q.log = append(q.log, "take "+id)
	}
	return lifecycle.Swept{State: lifecycle.Taken, Back: took, Left: d.tasks}, nil
}

// answer takes the stub's time for a call, unless ctx ends before.
func (q *queue) answer(ctx context.Context) error {
	if ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(q.slow):
			return nil
		}
	}
	return context.Cause(ctx)
}

func (q *queue) config() janitor.Config { return janitor.Config{Detector: q, Sweeper: q} }

// hooks write into the queue's log, under its lock.
type hooks struct {
	q         *queue
	pre, post error
	only      string // the ids that pre is for; empty = all
}

func (h *hooks) OnPreConcat(_ context.Context, queue, dead string) error {
	h.q.mu.Lock()
	defer h.q.mu.Unlock()
	h.q.log = append(h.q.log, "pre "+queue+" "+dead)
	if !strings.Contains(h.only, dead) && h.only != "" {
		return nil
	}
	return h.pre
}

func (h *hooks) OnPostConcat(_ context.Context, queue, dead string) error {
	h.q.mu.Lock()
	defer h.q.mu.Unlock()
	h.q.log = append(h.q.log, "post "+queue+" "+dead)
	return h.post
}
