package faultproxy

import (
	"bytes"
	"slices"
	"sync"
)

// Loss is a number of requests or replies that are to be lost, each with its connection.
type Loss struct {
	replies bool
	needle  []byte

	mu      sync.Mutex
	pending int // still to be matched; < 0 = no end
	wanted  int // hits until done
	hits    int
	done    chan struct{}
}

// LoseReplies lets the next n requests that contain a text through to the server, drops their replies when they come
// and then resets the connection: the server has done it, the client can't know. An empty text is in every request,
// n < 0 means all until Restore. To lose one script's reply give its SHA-1, and load the script before: a lost NOSCRIPT
// means that nothing ran.
func (p *Proxy) LoseReplies(n int, containing string) *Loss {
	return p.lose(&Loss{replies: true, needle: []byte(containing), pending: n, wanted: n})
}

// LoseRequests resets the connection of the next n requests that contain a text before they reach the server: to the
// client it looks like LoseReplies, but nothing has happened.
func (p *Proxy) LoseRequests(n int, containing string) *Loss {
	return p.lose(&Loss{needle: []byte(containing), pending: n, wanted: n})
}

func (p *Proxy) lose(l *Loss) *Loss {
	l.done = make(chan struct{})
	if l.wanted == 0 {
		close(l.done)
		return l
	}
	p.change(func(f *faults) { f.losses = append(f.losses, l) })
	return l
}

// Done is closed when all n are lost and their connections are cut.
func (l *Loss) Done() <-chan struct{} { return l.done }

// Count is how many are lost so far.
func (l *Loss) Count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hits
}

// claim takes one of the losses that are still to come.
func (l *Loss) claim() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pending == 0 {
		return false
	}
	if l.pending > 0 {
		l.pending--
	}
	return true
}

// unclaim gives back what was claimed for a connection that ended before its reply came.
func (l *Loss) unclaim() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pending >= 0 {
		l.pending++
	}
}

// hit counts a claimed loss as done.
func (l *Loss) hit() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hits++
	if l.hits == l.wanted {
		close(l.done)
	}
}

// matcher finds texts in a stream that comes in chunks. It keeps the end of what it saw, in which a text may begin.
type matcher struct {
	tail    []byte
	matched bool // one end is enough for a connection
}

const keepTail = 1 << 10 // longest text that is found over the edge of a chunk

// find claims the first of the losses whose text ends in chunk.
func (m *matcher) find(chunk []byte, losses []*Loss) *Loss {
	if m.matched {
		return nil
	}
	seen := len(m.tail)
	window := slices.Concat(m.tail, chunk[max(0, len(chunk)-keepTail):])
	if len(losses) > 0 {
		window = slices.Concat(m.tail, chunk)
	}
	m.tail = slices.Clone(window[max(0, len(window)-keepTail):])
	for _, l := range losses {
		// A text that ended before this chunk was another request's.
		from := max(0, seen-max(0, len(l.needle)-1))
		if bytes.Contains(window[from:], l.needle) && l.claim() {
			m.matched = true
			return l
		}
	}
	return nil
}
