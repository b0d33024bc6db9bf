// Package faultproxy stands between a client and a real redis-server in a test and breaks their connection on command.
//
//	p := faultproxy.Start(t, redistest.Shared(t).Addr())
//	... give p.Addr() to the dispatcher ...
//	lost := p.LoseReplies(1, leaseSHA)
//	<-lost.Done() // the script has run, its reply is gone, the connection is cut
//
// It knows nothing of Redis's protocol but this: a client writes a request (or a pipeline), then waits for the reply.
// That holds for go-redis. A matched string may be split over packets; what follows it on the same connection shares
// its fate.
//
// Faults add up until Restore ends them all. What a fault has done to a connection stays: one that lost bytes never
// delivers another, as after a partition.
package faultproxy

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"
)

// Direction is a way through the proxy, or both.
type Direction int

// The ways.
const (
	Requests Direction = 1 << iota // from client to server
	Replies                        // from server to client
	Both     = Requests | Replies
)

// Proxy is one listener on loopback. Its methods may be called at any time.
type Proxy struct {
	target string
	ln     net.Listener
	wg     sync.WaitGroup // the accept loop and all links

	mu       sync.Mutex
	faults   faults
	changed  chan struct{} // closed and replaced when faults change
	links    map[*link]struct{}
	accepted int
	closed   bool
}

// faults is what goes wrong now.
type faults struct {
	cut     bool
	swallow Direction
	delay   map[Direction]time.Duration // keys Requests and Replies
	rate    map[Direction]int           // bytes a second
	losses  []*Loss
}

// Start listens for t in front of target (host:port) and stops when t ends.
func Start(t testing.TB, target string) *Proxy {
	t.Helper()
	var lc net.ListenConfig
	ln, err := lc.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("start fault proxy: %v", err)
	}
	p := &Proxy{target: target, ln: ln, changed: make(chan struct{}), links: map[*link]struct{}{}}
	p.wg.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// Addr is where clients connect, 127.0.0.1:port.
func (p *Proxy) Addr() string { return p.ln.Addr().String() }

// Connections is how many clients have ever connected, including those turned away, and how many connections are open.
func (p *Proxy) Connections() (accepted, open int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.accepted, len(p.links)
}

// Cut resets every connection, on both sides, and each new one as soon as it is made, until Restore.
func (p *Proxy) Cut() {
	p.change(func(f *faults) { f.cut = true })
	p.Sever()
}

// Sever resets every connection that there is now; new ones work.
func (p *Proxy) Sever() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.cut()
	}
}

// Swallow makes the bytes of a direction vanish until Restore, and the ends of connections too: neither side learns
// of anything. Connections made meanwhile are accepted and never reach the server.
func (p *Proxy) Swallow(d Direction) {
	p.change(func(f *faults) { f.swallow |= d })
}

// Delay holds all that goes in a direction back by d, until Restore or another Delay.
func (p *Proxy) Delay(dir Direction, d time.Duration) {
	p.change(func(f *faults) { set(&f.delay, dir, d) })
}

// Throttle lets bytesPerSecond through in a direction, on each connection, until Restore; 0 lifts it.
func (p *Proxy) Throttle(dir Direction, bytesPerSecond int) {
	p.change(func(f *faults) { set(&f.rate, dir, bytesPerSecond) })
}

func set[V any](m *map[Direction]V, dir Direction, v V) {
	if *m == nil {
		*m = map[Direction]V{}
	}
	for _, one := range []Direction{Requests, Replies} {
		if dir&one != 0 {
			(*m)[one] = v
		}
	}
}

// Restore ends all faults. What Delay and Throttle held back goes out at once.
func (p *Proxy) Restore() {
	p.change(func(f *faults) { *f = faults{} })
}

func (p *Proxy) change(f func(*faults)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(&p.faults)
	close(p.changed)
	p.changed = make(chan struct{})
}

// now asks for one fault's state and a channel that closes when it may have changed.
func now[V any](p *Proxy, ask func(*faults) V) (V, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return ask(&p.faults), p.changed
}

func (p *Proxy) accept() {
	for {
		client, err := p.ln.Accept()
		if err != nil {
			return // closed
		}
		p.wg.Go(func() { p.serve(client) })
	}
}

// serve runs one connection to its end.
func (p *Proxy) serve(client net.Conn) {
	l := &link{proxy: p, client: client, closed: make(chan struct{})}
	p.mu.Lock()
	p.accepted++
	refuse, hold := p.faults.cut || p.closed, p.faults.swallow != 0
	if !refuse {
		p.links[l] = struct{}{}
	}
	p.mu.Unlock()
	if refuse {
		l.cut()
		return
	}
	defer func() {
		l.end()
		if loss := l.takeLosing(); loss != nil {
			loss.unclaim()
		}
		p.mu.Lock()
		delete(p.links, l)
		p.mu.Unlock()
	}()
	if hold {
		<-l.closed
		return
	}
	var d net.Dialer
	server, err := d.DialContext(context.Background(), "tcp", p.target)
	if err != nil || !l.join(server) {
		l.cut()
		return
	}
	var wg sync.WaitGroup
	wg.Go(func() { l.pump(Requests, client, server) })
	wg.Go(func() { l.pump(Replies, server, client) })
	wg.Wait()
}

// close ends the proxy, and returns when nothing of it runs any more.
func (p *Proxy) close() {
	_ = p.ln.Close()
	p.mu.Lock()
	p.closed = true
	for l := range p.links {
		l.cut()
	}
	p.mu.Unlock()
	p.wg.Wait()
}
