package faultproxy

import (
	"net"
	"sync"
	"time"
)

// link is one client's connection and the one to the server behind it.
type link struct {
	proxy  *Proxy
	client net.Conn
	closed chan struct{} // closed when the link ends

	mu      sync.Mutex
	server  net.Conn // nil until dialled
	over    bool
	lost    Direction // directions in which bytes vanished: they never deliver again
	losing  *Loss     // the next reply is this one's
	matcher matcher   // of requests
}

// join adds the server's side; false when the link has ended meanwhile.
func (l *link) join(server net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.server = server
	if l.over {
		_ = server.Close()
	}
	return !l.over
}

// cut ends both connections with a TCP RST.
func (l *link) cut() { l.finish(true) }

// end closes both connections.
func (l *link) end() { l.finish(false) }

func (l *link) finish(reset bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return
	}
	l.over = true
	close(l.closed)
	for _, c := range []net.Conn{l.client, l.server} {
		if c == nil {
			continue
		}
		if tcp, ok := c.(*net.TCPConn); ok && reset {
			_ = tcp.SetLinger(0) // fails only on a dead connection
		}
		_ = c.Close()
	}
}

// pump moves bytes in one direction until the link ends.
func (l *link) pump(dir Direction, from, to net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && !l.forward(dir, buf[:n], to) {
			return
		}
		if err != nil {
			if l.swallowed(dir) {
				<-l.closed // the other side must not learn of it
			}
			l.end()
			return
		}
	}
}

// forward passes a chunk on through the faults; false when the link is over.
func (l *link) forward(dir Direction, chunk []byte, to net.Conn) bool {
	if !l.hold(dir) {
		return false
	}
	if l.swallowed(dir) {
		return true
	}
	switch dir {
	case Requests:
		if loss := l.match(chunk); loss != nil && !loss.replies {
			l.cut()
			loss.hit()
			return false
		}
	case Replies:
		if loss := l.takeLosing(); loss != nil {
			l.cut()
			loss.hit()
			return false
		}
	case Both:
	}
	return l.write(dir, chunk, to)
}

// swallowed reports whether bytes of dir vanish, and remembers it.
func (l *link) swallowed(dir Direction) bool {
	swallow, _ := now(l.proxy, func(f *faults) Direction { return f.swallow })
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost |= swallow & dir
	return l.lost&dir != 0
}

// match looks for a request whose end is decided and, if its reply is to be lost, notes that before the request leaves.
func (l *link) match(chunk []byte) *Loss {
	l.proxy.mu.Lock()
	defer l.proxy.mu.Unlock()
	loss := l.matcher.find(chunk, l.proxy.faults.losses)
	if loss != nil && loss.replies {
		l.mu.Lock()
		l.losing = loss
		l.mu.Unlock()
	}
	return loss
}

// takeLosing is the Loss that the coming reply belongs to, once.
func (l *link) takeLosing() *Loss {
	l.mu.Lock()
	defer l.mu.Unlock()
	loss := l.losing
	l.losing = nil
	return loss
}

// hold waits as long as Delay says, also when it changes its mind; false when the link is over.
func (l *link) hold(dir Direction) bool {
	came := time.Now()
	for {
		delay, changed := now(l.proxy, func(f *faults) time.Duration { return f.delay[dir] })
		left := delay - time.Since(came)
		if delay <= 0 || left <= 0 {
			return true
		}
		if !l.wait(left, changed) {
			return false
		}
	}
}

// write sends a chunk as fast as Throttle allows; false when the link is over.
func (l *link) write(dir Direction, chunk []byte, to net.Conn) bool {
	const perSecond = 50 // slices, when throttled
	for len(chunk) > 0 {
		rate, changed := now(l.proxy, func(f *faults) int { return f.rate[dir] })
		n := len(chunk)
		if rate > 0 {
			n = min(n, max(1, rate/perSecond))
		}
		if _, err := to.Write(chunk[:n]); err != nil {
			if !l.swallowed(dir) {
				l.end()
			}
			return false
		}
		chunk = chunk[n:]
		if rate > 0 && !l.wait(time.Duration(n)*time.Second/time.Duration(rate), changed) {
			return false
		}
	}
	return true
}

// wait returns after d or a change of the faults; false when the link is over.
func (l *link) wait(d time.Duration, changed <-chan struct{}) bool {
	late := time.NewTimer(d)
	defer late.Stop()
	select {
	case <-late.C:
		return true
	case <-changed:
		return true
	case <-l.closed:
		return false
	}
}
