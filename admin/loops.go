package admin

import (
	"slices"
	"sync"
	"time"
)

// Loops knows which of the process's loops make progress. The zero Loops has none. Its methods may be called by many
// goroutines.
type Loops struct {
	mu    sync.Mutex
	loops map[*Loop]struct{}
}

// Loop is one loop, which reports its progress by Beat. Its methods may be called by many goroutines.
type Loop struct {
	in       *Loops
	name     string
	patience time.Duration
	last     time.Time // guarded by in.mu
}

// Watch adds a loop of this name, which strangers can read on /healthz. The loop counts as stuck when its last Beat, or
// Watch itself, is longer ago than patience. That should be several times what a round takes at worst, timeouts included,
// since a stuck loop gets the process restarted. Time while the host is suspended does not count.
func (ls *Loops) Watch(name string, patience time.Duration) *Loop {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.loops == nil {
		ls.loops = make(map[*Loop]struct{})
	}
	l := &Loop{in: ls, name: name, patience: patience, last: time.Now()}
	ls.loops[l] = struct{}{}
	return l
}

// Beat says that the loop makes progress.
func (l *Loop) Beat() {
	l.in.mu.Lock()
	defer l.in.mu.Unlock()
	l.last = time.Now()
}

// Done says that the loop has ended as it should. It is no longer watched.
func (l *Loop) Done() {
	l.in.mu.Lock()
	defer l.in.mu.Unlock()
	delete(l.in.loops, l)
}

// Stuck returns the names of the loops that make no progress, sorted.
func (ls *Loops) Stuck() []string {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	var names []string
	for l := range ls.loops {
		if time.Since(l.last) > l.patience {
			names = append(names, l.name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
