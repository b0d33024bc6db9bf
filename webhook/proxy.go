package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
)

// proxyFor is the proxy through which the target is reached, nil for none: the route's own, else the environment's
// (HTTPS_PROXY, HTTP_PROXY, NO_PROXY), which never holds for loopback. Its errors never hold the proxy's URL.
func proxyFor(own string, target *url.URL, environment func(*http.Request) (*url.URL, error)) (*url.URL, error) {
	if own == "" {
		u, err := environment(&http.Request{URL: target})
		if err != nil {
			return nil, errors.New("the environment's proxy is not a URL")
		}
		return u, nil
	}
	u, err := url.Parse(own)
	if err != nil || !slices.Contains([]string{"http", "https", "socks5"}, u.Scheme) || u.Hostname() == "" {
		return nil, errors.New("proxy is not an absolute http, https or socks5 URL")
	}
	return u, nil
}

// proxyError is a proxy's refusal to connect. net/http would keep only the text of its status line.
type proxyError struct{ status int }

func (e *proxyError) Error() string { return fmt.Sprintf("proxy answered %d", e.status) }

// Refusal makes it the detail of the attempt.
func (e *proxyError) Refusal() string { return e.Error() }

func checkProxy(_ context.Context, _ *url.URL, _ *http.Request, resp *http.Response) error {
	if resp.StatusCode != http.StatusOK {
		return &proxyError{resp.StatusCode}
	}
	return nil
}
