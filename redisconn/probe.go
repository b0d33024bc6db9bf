package redisconn

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

// probeFor bounds one look at a port.
const probeFor = time.Second

// target returns the address that a client connects to, and its TLS settings there, nil without TLS. The address of a
// client that asks Sentinels is not known.
func target(rdb redis.UniversalClient) (addr string, withTLS *tls.Config, ok bool) {
	switch client := rdb.(type) {
	case *redis.Client:
		opt := client.Options()
		_, _, err := net.SplitHostPort(opt.Addr)
		return opt.Addr, opt.TLSConfig, opt.Network == "tcp" && err == nil
	case *redis.ClusterClient:
		opt := client.Options()
		if len(opt.Addrs) == 0 {
			return "", nil, false
		}
		return opt.Addrs[0], opt.TLSConfig, true
	}
	return "", nil, false
}

// probe looks whether the port speaks the other language than the one configured, or wants another certificate: the error
// of the connection itself does not tell, for a plain server waits for the end of the line that a TLS greeting never has,
// a TLS server hangs up on plain text, and its alert about a certificate is lost when a command was on its way. It sends no
// credentials.
func probe(ctx context.Context, addr string, withTLS *tls.Config) error {
	ctx, cancel := context.WithTimeout(ctx, probeFor)
	defer cancel()
	if withTLS != nil {
		if err := alert(ctx, addr, withTLS); err != nil {
			return fmt.Errorf("%w: %w", ErrTLS, err)
		}
		if answersPlain(ctx, addr) {
			return fmt.Errorf("%w: the port answers without TLS; use a redis:// URL", ErrTLS)
		}
		return nil
	}
	// Whose certificate it is does not matter: nothing is sent.
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // see above
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil
	}
	_ = conn.Close()
	return fmt.Errorf("%w: the port wants TLS; use a rediss:// URL", ErrTLS)
}

// alert returns the TLS alert with which the server ends a connection on which nothing is sent, nil when it does not. From
// TLS 1.3 on it comes after the handshake. What is left of ctx goes to the next look.
func alert(ctx context.Context, addr string, cfg *tls.Config) error {
	ctx, cancel := context.WithTimeout(ctx, probeFor/2)
	defer cancel()
	dialer := tls.Dialer{Config: cfg}
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err == nil {
		defer func() { _ = conn.Close() }()
		deadline, _ := ctx.Deadline()
		_ = conn.SetDeadline(deadline) // then the read ends at once
		_, err = conn.Read(make([]byte, 1))
	}
	if alerted(err) {
		return err
	}
	return nil
}

// answersPlain reports whether a Redis answers plain text, be it with an error.
func answersPlain(ctx context.Context, addr string) bool {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline) // then the read ends at once
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return false
	}
	first := make([]byte, 1)
	if _, err := conn.Read(first); err != nil {
		return false
	}
	return first[0] == '+' || first[0] == '-'
}
