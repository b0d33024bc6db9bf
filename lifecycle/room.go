package lifecycle

import (
	"errors"
	"net"
	"sync"
	"time"
)

const (
	// leastRoom is what a reply may always hold: small tasks never feel the difference.
	leastRoom = 256 << 10
	// growEvery is how long a narrowed reply stays so before it is let grow: each try that proves too large costs a
	// client's whole read timeout.
	growEvery = time.Minute
)

// room is how many payload bytes one reply may hold. A reply that takes longer than the client's read timeout is lost
// as a whole, and so would be the reply that adopts the same tasks. So when one was late the next must be smaller.
type room struct {
	most int

	mu      sync.Mutex
	narrow  int // how often most was quartered
	changed time.Time
}

// bytes returns how many a reply may hold now.
func (r *room) bytes() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.narrow > 0 && time.Since(r.changed) >= growEvery {
		r.narrow--
		r.changed = time.Now()
	}
	return max(r.most>>(2*r.narrow), min(r.most, leastRoom))
}

// failed takes a call's error into account: only one that says that a reply was late is of interest.
func (r *room) failed(err error) {
	late, ok := errors.AsType[net.Error](err)
	if !ok || !late.Timeout() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.most>>(2*r.narrow) > leastRoom {
		r.narrow++
	}
	r.changed = time.Now()
}
