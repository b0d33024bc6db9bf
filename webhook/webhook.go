// Package webhook puts a task on the wire as an HTTP request and hands the answer to package delivery for judgement.
//
// A request is built (request.go), signed (sign.go), sent with go-retryablehttp over the target's own transport
// (transport.go), and watched while it runs (package exchange), since what a broken connection means depends on how far
// the request had come. The package decides nothing about the task: it waits for no backoff and settles nothing.
package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/internal/exchange"
	"github.com/queuehook/queuehook/task"
)

// maxDrain is how much of an answer's body is read so that its connection can be used again. Past it a new connection
// is cheaper than the rest of the body.
const maxDrain = 64 << 10

// Target is one endpoint. Its methods may be called by many goroutines at once; Close it after the last delivery.
type Target struct {
	cfg       Config
	url       *url.URL
	fixed     http.Header // what every request of the route carries
	transport *http.Transport
	client    *http.Client
}

// New returns the target that cfg describes. Its errors hold neither URLs nor secrets nor paths of files.
func New(cfg Config) (*Target, error) {
	tg, err := build(cfg)
	if err != nil {
		return nil, fmt.Errorf("new webhook: %w", err)
	}
	return tg, nil
}

func build(cfg Config) (*Target, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" {
		return nil, errors.New("the URL is not an absolute http or https one")
	}
	cfg, err = cfg.withDefaults()
	errs := []error{err}
	fixed, err := fixedHeader(cfg, u.User)
	errs = append(errs, err)
	proxy, err := proxyFor(cfg.Proxy, u, http.ProxyFromEnvironment)
	errs = append(errs, err)
	if proxy != nil && proxy.Scheme == "https" && cfg.TLS != nil && cfg.TLS.ServerName != "" {
		errs = append(errs, errors.New("server_name cannot hold for an https proxy and the endpoint alike"))
	}
	dialer, err := newDialer(cfg, u.Hostname(), proxy)
	errs = append(errs, err)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}

	u.User, u.Fragment, u.RawFragment = nil, "", ""
	transport := newTransport(cfg, dialer, proxy)
	return &Target{cfg: cfg, url: u, fixed: fixed, transport: transport, client: newClient(transport)}, nil
}

// String is the endpoint's scheme and host, the only part of its URL that may be logged.
func (tg *Target) String() string { return tg.url.Scheme + "://" + tg.url.Host }

// Close closes idle connections; busy ones end with their deliveries.
func (tg *Target) Close() { tg.transport.CloseIdleConnections() }

// Deliver makes one attempt to deliver t within ctx, and tells the receiver ctx's deadline. It returns nil when the
// receiver took the task, else a *delivery.Error. A ctx that is cancelled, rather than past its deadline, means that the
// dispatcher stops.
func (tg *Target) Deliver(ctx context.Context, t *task.Task) error {
	var x exchange.Exchange
	req, err := tg.request(x.Watch(ctx), t)
	if err != nil {
		return &delivery.Error{Outcome: delivery.FromError(err)}
	}
	resp, err := tg.quick(&x).Do(req)
	if err != nil {
		return &delivery.Error{Outcome: x.Failed(ctx, err, t.Meta().LastReason)}
	}
	rules := tg.cfg.Rules
	rules.Now = tg.cfg.Now()
	outcome := delivery.Classify(resp.StatusCode, resp.Header, rules)
	drain(resp)
	if outcome.Reason != delivery.OK {
		return &delivery.Error{Outcome: outcome}
	}
	return nil
}

// quick returns the client for one attempt. It repeats only what never left this host, and only within the attempt's
// deadline. Longer waits are Redis's work, so that no slot sleeps through a backoff.
func (tg *Target) quick(x *exchange.Exchange) *retryablehttp.Client {
	return &retryablehttp.Client{
		HTTPClient:   tg.client,
		RetryMax:     tg.cfg.QuickRetries,
		RetryWaitMin: minQuickWait,
		RetryWaitMax: maxQuickWait,
		// Not its own policy, which would repeat a request that was answered 429 or 5xx.
		CheckRetry:   func(ctx context.Context, _ *http.Response, err error) (bool, error) { return x.Unsent(ctx, err), nil },
		Backoff:      quickWait,
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
}

// drain reads a body to its end, if that is near, so that the connection lives on. The status line has decided: what
// happens here changes nothing, and the request's context ends it at the deadline. A connection that switched
// protocols has no body and would never end.
func drain(resp *http.Response) {
	if resp.StatusCode != http.StatusSwitchingProtocols {
		_, _ = io.CopyN(io.Discard, resp.Body, maxDrain+1)
	}
	_ = resp.Body.Close()
}
