package receiver

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
)

// Connections counts a server's connections. One that its client has closed stays open until the server sees that, so a
// client that dials anew for each request shows a few more than it has.
type Connections struct {
	Accepted int64 // ever
	Open     int   // now
	Peak     int   // most at once
}

// conns is a listener that numbers and counts what it accepts.
type conns struct {
	net.Listener

	mu    sync.Mutex
	count Connections
	open  map[*conn]struct{}
}

// conn is a TCP connection that the handler can find and break.
type conn struct {
	net.Conn

	id   int64
	from *conns
}

func (l *conns) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count.Accepted++
	c := &conn{Conn: inner, id: l.count.Accepted, from: l}
	l.open[c] = struct{}{}
	l.count.Open = len(l.open)
	l.count.Peak = max(l.count.Peak, l.count.Open)
	return c, nil
}

func (l *conns) connections() Connections {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}

// closeAll closes every connection, those that net/http gave away by Hijack included.
func (l *conns) closeAll() {
	l.mu.Lock()
	open := make([]*conn, 0, len(l.open))
	for c := range l.open {
		open = append(open, c)
	}
	l.mu.Unlock()
	for _, c := range open {
		_ = c.Close()
	}
}

func (c *conn) Close() error {
	c.from.mu.Lock()
	delete(c.from.open, c)
	c.from.count.Open = len(c.from.open)
	c.from.mu.Unlock()
	return c.Conn.Close()
}

// reset closes with a TCP RST.
func (c *conn) reset() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // fails only on a dead connection
	}
	_ = c.Close()
}

type connKey struct{}

// withConn is http.Server.ConnContext.
func withConn(ctx context.Context, c net.Conn) context.Context {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	return context.WithValue(ctx, connKey{}, c)
}

// connOf is the connection of a request's context, nil with a server that is not ours.
func connOf(ctx context.Context) *conn {
	c, _ := ctx.Value(connKey{}).(*conn)
	return c
}
