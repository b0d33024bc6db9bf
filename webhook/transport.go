package webhook

import (
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"time"
)

const (
	// idleTimeout is below what common servers keep (nginx 75 s, Node 5 s), so that this side closes first and no
	// request meets a connection that the receiver is closing.
	idleTimeout = 4 * time.Second
	// maxAnswerHeader bounds an answer's header in bytes.
	maxAnswerHeader = 64 << 10
	// pingAfter and pingTimeout find an HTTP/2 connection whose other end is gone: it would swallow every later
	// request of the route until its deadline.
	pingAfter   = 10 * time.Second
	pingTimeout = 5 * time.Second

	minQuickWait = 50 * time.Millisecond
	maxQuickWait = 250 * time.Millisecond
)

// newTransport makes the target's own transport, so that it shares nothing with other routes: no pool, no limit, no
// closing.
func newTransport(cfg Config, dialer *net.Dialer, proxy *url.URL) *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyURL(proxy),
		OnProxyConnectResponse: checkProxy,
		DialContext:            dialer.DialContext,
		TLSClientConfig:        cfg.TLS.Clone(),
		TLSHandshakeTimeout:    cfg.ConnectTimeout,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
		MaxConnsPerHost:        cfg.MaxConns,
		MaxIdleConnsPerHost:    cfg.MaxConns,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxAnswerHeader,
		// Without it net/http would ask for gzip and inflate what comes, a bomb too.
		DisableCompression: true,
	}
}

// newClient never follows a redirect and has no Timeout: an attempt's context is its deadline.
func newClient(transport *http.Transport) *http.Client {
	return &http.Client{
		Transport:     lasting{transport},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// lasting is a transport without its CloseIdleConnections: go-retryablehttp calls that whenever an attempt fails, which
// would cost the attempts beside it their connections.
type lasting struct{ transport *http.Transport }

// RoundTrip also takes away a Location that is no URL: http.Client would make an error of it, though nobody follows it,
// and the answer would be lost.
func (l lasting) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := l.transport.RoundTrip(req)
	if err != nil {
		return nil, err //nolint:wrapcheck // a RoundTripper's error is its transport's
	}
	if _, err := url.Parse(resp.Header.Get("Location")); err != nil {
		resp.Header.Del("Location")
	}
	return resp, nil
}

// quickWait is the pause before a quick retry, drawn so that attempts which failed together do not return together.
func quickWait(least, most time.Duration, _ int, _ *http.Response) time.Duration {
	return least + rand.N(most-least) //nolint:gosec // jitter needs no secrecy
}
