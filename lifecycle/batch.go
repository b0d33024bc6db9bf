package lifecycle

import (
	"context"
	"sync"
)

// batch sends whatever waits in one call. The first caller sends for all that came in the meantime, then hands the
// sending over to one of those that came after. So there is no goroutine to own, a single item waits for nobody, and
// under load a call carries as many items as arrive during one round trip.
type batch struct {
	// send tries once to settle the items, of which no two have one id, and answers the ids that are not ours.
	send func(ctx context.Context, items []*item) (refused map[string]bool, err error)

	mu      sync.Mutex
	waiting []*item
	sending bool
}

// item is one task to settle.
type item struct {
	id, token string
	ours      bool
	err       error
	turn      chan bool // true: tried; false: it is this one's turn to send
}

// try settles one task, or says why that failed: with an error of its own call or of the one that it travelled in.
func (b *batch) try(ctx context.Context, id, token string) (ours bool, err error) {
	it := &item{id: id, token: token, turn: make(chan bool, 1)}
	b.mu.Lock()
	b.waiting = append(b.waiting, it)
	first := !b.sending
	b.sending = true
	b.mu.Unlock()

	if first || !<-it.turn {
		b.lead(ctx)
		<-it.turn
	}
	return it.ours, it.err
}

// lead sends what waits, the caller's own item first, tells everybody, and names the next to lead.
func (b *batch) lead(ctx context.Context) {
	b.mu.Lock()
	n := distinct(b.waiting)
	items := b.waiting[:n:n]
	b.waiting = b.waiting[n:]
	b.mu.Unlock()

	refused, err := b.send(ctx, items)
	for _, it := range items {
		it.ours, it.err = err == nil && !refused[it.id], err
		it.turn <- true
	}

	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) == 0 {
		b.sending = false
		return
	}
	b.waiting[0].turn <- false
}

// distinct is how many of the items one call can carry. One whose id is in it already waits for the next call, since
// answers go by the id: another lease's, of a task that was enqueued anew while the reply that ended it was lost.
func distinct(items []*item) int {
	items = items[:min(len(items), maxBatch)]
	ids := make(map[string]bool, len(items))
	for i, it := range items {
		if ids[it.id] {
			return i
		}
		ids[it.id] = true
	}
	return len(items)
}
