package redisconn

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"
)

type dial = func(ctx context.Context, network, addr string) (net.Conn, error)

// dialer returns how a client dials: by given when it has a way of its own, else by TCP and, with trust, TLS.
//
// To go-redis no dial fails: the connection does, at its first use. A pool that has seen as many failed dials as it has
// room for answers the last error without dialing, and looks only once a second whether the server is back. For a
// heartbeat, whose client has room for one, that second is a part of the grace after which its tasks are taken.
func dialer(given dial, timeout time.Duration, trust *tls.Config) dial {
	if given == nil {
		given = plain(timeout, trust)
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := given(ctx, network, addr)
		if err != nil {
			return failed{fmt.Errorf("connect: %w", err)}, nil // go-redis answers what this wraps
		}
		return conn, nil
	}
}

func plain(timeout time.Duration, trust *tls.Config) dial {
	tcp := &net.Dialer{Timeout: timeout}
	if trust == nil {
		return tcp.DialContext
	}
	return (&tls.Dialer{NetDialer: tcp, Config: trust}).DialContext
}

// failed is a connection that could not be made.
type failed struct{ err error }

func (f failed) Read([]byte) (int, error)         { return 0, f.err }
func (f failed) Write([]byte) (int, error)        { return 0, f.err }
func (f failed) SetDeadline(time.Time) error      { return f.err }
func (f failed) SetReadDeadline(time.Time) error  { return f.err }
func (f failed) SetWriteDeadline(time.Time) error { return f.err }
func (failed) Close() error                       { return nil }
func (failed) LocalAddr() net.Addr                { return &net.TCPAddr{} }
func (failed) RemoteAddr() net.Addr               { return &net.TCPAddr{} }
