package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"
)

// checkTimeout bounds a check, below the default of `docker run --health-timeout`, 30 s.
const checkTimeout = 5 * time.Second

// Check asks the dispatcher that listens on addr, the host:port of its own configuration, whether its loops make progress.
// It returns nil when they do, and when addr is empty, since then there is nobody to ask. It asks /healthz and not
// /readyz, because it is for a container's health check: a restart would not bring Redis back, and must not cut a stop
// short.
func Check(ctx context.Context, addr string) error {
	if addr == "" {
		return nil
	}
	near, err := nearby(addr)
	if err != nil {
		return fmt.Errorf("check health: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()

	client := &http.Client{
		// No proxy, whatever the environment says, and no kept connection.
		Transport: &http.Transport{
			DisableKeepAlives: true,
			DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return dialFirst(ctx, near) },
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+healthPath, http.NoBody)
	if err != nil {
		return fmt.Errorf("check health: %w", err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("check health: %w", err)
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(io.LimitReader(resp.Body, 4*maxLine))
	if err != nil {
		return fmt.Errorf("check health: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("check health: %d: %s", resp.StatusCode, line(string(said)))
	}
	return nil
}

// nearby lists where on this host a listener on addr is reached: an unspecified address means every interface, and one
// cannot connect to it.
func nearby(addr string) ([]string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	if port == "0" {
		return nil, errors.New("port 0 is one that the kernel picks: which is not known here")
	}
	ip, err := netip.ParseAddr(host)
	switch {
	case host == "", err == nil && ip.IsUnspecified():
		// A host may have only one of the two, even where the listener is bound to [::].
		return []string{net.JoinHostPort("127.0.0.1", port), net.JoinHostPort("::1", port)}, nil
	default:
		return []string{addr}, nil
	}
}

// dialFirst returns a connection to the first address that takes one.
func dialFirst(ctx context.Context, addrs []string) (net.Conn, error) {
	var d net.Dialer
	var errs []error
	for _, addr := range addrs {
		c, err := d.DialContext(ctx, "tcp", addr)
		if err == nil {
			return c, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}
