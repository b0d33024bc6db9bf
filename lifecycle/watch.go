package lifecycle

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"
)

// A look at a payload costs Redis some ms per MB, and every dispatcher has a Watch: two looks at a payload above
// cheapLook bytes are lookEvery apart at least, per MB above.
const (
	cheapLook = 100_000
	lookEvery = 30 * time.Second
)

// Watch looks at a queue again and again, and so can tell for how long raw payloads, which carry no time, have waited:
// for as long as it has seen the same one at the head of the lists. It knows nothing of the time before its first look.
//
// Whether two looks saw the same payload is an educated guess: it has the same length and the same first and last 2 KiB,
// and no task of the queue was completed or buried in between, since each of these frees a slot that takes the head. The
// time is too short by at most two looks, or by more while a paused queue finishes what is in flight. It is too long by at
// most 30 s per MB of the payload, since large ones are looked at less often.
type Watch struct {
	queue *Queue

	mu   sync.Mutex
	seen sighting
}

// NewWatch returns a watch of the queue that has not looked yet.
func NewWatch(q *Queue) *Watch { return &Watch{queue: q} }

// Depth is Queue.Depth with HeadSeen.
func (w *Watch) Depth(ctx context.Context) (Depth, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d, err := w.queue.Depth(ctx)
	if err != nil {
		return Depth{}, err
	}
	known, look := w.seen.ask(time.Now())
	h, err := w.queue.head(ctx, known, look)
	if err != nil {
		return Depth{}, err
	}
	d.HeadSeen = w.seen.update(h, time.Now())
	return d, nil
}

// head is what one look at the head of the lists finds.
type head struct {
	gone   int64  // tasks completed or buried so far
	length int64  // of its payload, bytes; or none, or unseen
	digest string // of its payload's ends
}

// Lengths that are none.
const (
	none   = -1 // there is no head, or another than before which was not looked at
	unseen = -2 // there is one, which was not looked at
)

func (q *Queue) head(ctx context.Context, known string, look bool) (head, error) {
	mode := ""
	if look {
		mode = "1"
	}
	reply, err := q.run(ctx, headScript, []string{q.keys.Source, q.keys.Landing, q.keys.Stats}, known, mode)
	if err != nil {
		return head{}, fmt.Errorf("look at queue head: %w", err)
	}
	r := reader{items: reply}
	h := head{gone: r.number(), length: r.number(), digest: r.text()}
	if r.err != nil {
		return head{}, fmt.Errorf("look at queue head: %w", r.err)
	}
	return h, nil
}

// sighting is since when the head has been the same. The zero sighting saw nothing.
type sighting struct {
	head   head
	since  time.Time // zero = never asked
	looked time.Time
}

// ask says what to ask Redis at this time: what is known, and whether to look at the payload.
func (s *sighting) ask(now time.Time) (known string, look bool) {
	if s.since.IsZero() {
		return "", true
	}
	due := s.looked.Add(time.Duration(max(0, s.head.length-cheapLook)) * (lookEvery / 1_000_000))
	return strconv.FormatInt(s.head.gone, 10), !now.Before(due)
}

// update takes what was found at this time, and answers for how long it has been so.
func (s *sighting) update(h head, now time.Time) time.Duration {
	if h.length == unseen {
		return now.Sub(s.since)
	}
	s.looked = now
	if h != s.head || h.length == none || s.since.IsZero() {
		s.head, s.since = h, now
	}
	return now.Sub(s.since)
}
