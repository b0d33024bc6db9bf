package webhook

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/signing"
)

const (
	defaultConcurrency    = 32
	defaultConnectTimeout = 5 * time.Second
)

// Config is what a route says about its endpoint. URL is required; a zero value elsewhere means the default. It holds
// secrets in clear: it is not for printing.
type Config struct {
	// URL is http or https. A user and password in it become an Authorization header; they, the path and the query
	// never appear in errors and logs.
	URL string
	// Method is POST (the default), PUT or PATCH.
	Method string
	// ContentType is application/json by default; a task's own wins.
	ContentType string
	// Headers are sent with every task of the route. They win over a task's own.
	Headers map[string]string
	// MaxConns bounds the connections to the endpoint, busy and idle; it is the route's concurrency, 32 by default.
	MaxConns int
	// ConnectTimeout bounds the look-up and the connection, and again the TLS handshake; 5 s by default.
	ConnectTimeout time.Duration
	// QuickRetries is how often, within one attempt, a connection that could not be made is tried again; 0 = never. (The
	// default of routes is 1.)
	QuickRetries int
	// MaxAttempts is what the receiver is told, unless the task has a limit of its own; 0 = no limit.
	MaxAttempts int
	// Rules say what the endpoint's answers mean.
	Rules delivery.Rules
	// TLS is for an https URL or proxy; nil trusts the system's roots and presents no certificate. It is cloned.
	TLS *tls.Config
	// Authorization is the value of that header for every attempt; a task's own is not sent. It excludes a user in the URL
	// and an Authorization among Headers.
	Authorization string
	// Secrets sign every attempt; several sign in parallel, so that receivers can change theirs one by one.
	Secrets []signing.Secret
	// Proxy is the http, https or socks5 URL of a proxy, whose user and password never appear in errors and logs; by default
	// the environment's (HTTPS_PROXY, HTTP_PROXY, NO_PROXY).
	Proxy string
	// DenyPrivate refuses connections to all but public addresses, whatever the host's name resolves to: loopback,
	// private, link-local and cloud metadata among them. A proxy makes connections of its own, which cannot be judged
	// from here, so that the two go together only for a URL whose host is an address.
	DenyPrivate bool
	// Compat adds the headers of another system; none by default.
	Compat Compat
	// Resolver looks the host up; nil = the system's.
	Resolver *net.Resolver
	// Now is the clock that signatures and dates in answers go by; time.Now by default.
	Now func() time.Time
	// Version is this program's, for User-Agent.
	Version string
}

func (c Config) withDefaults() (Config, error) {
	if c.Method == "" {
		c.Method = http.MethodPost
	}
	if c.ContentType == "" {
		c.ContentType = "application/json"
	}
	if c.MaxConns == 0 {
		c.MaxConns = defaultConcurrency
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = defaultConnectTimeout
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	var errs []error
	if !slices.Contains([]string{http.MethodPost, http.MethodPut, http.MethodPatch}, c.Method) {
		errs = append(errs, errors.New("method is not POST, PUT or PATCH"))
	}
	if c.MaxConns < 0 || c.ConnectTimeout < 0 || c.QuickRetries < 0 || c.MaxAttempts < 0 {
		errs = append(errs, errors.New("max conns, connect timeout, quick retries and max attempts must not be negative"))
	}
	if slices.Contains(c.Secrets, signing.Secret{}) {
		errs = append(errs, errors.New("a signing secret is empty"))
	}
	if c.Compat != "" && c.Compat != CompatSqsd && c.Compat != CompatCloudEvents {
		errs = append(errs, fmt.Errorf("compat is not %s or %s", CompatSqsd, CompatCloudEvents))
	}
	return c, errors.Join(append(errs, checkRules(c.Rules))...)
}

// checkRules refuses statuses that can never match, since an answer's status has three digits: they are slips of the pen.
func checkRules(r delivery.Rules) error {
	var errs []error
	for _, s := range r.Success {
		if s.Low < 100 || s.High > 999 || s.Low > s.High {
			errs = append(errs, fmt.Errorf("success: %d-%d is not a range of statuses", s.Low, s.High))
		}
	}
	for _, status := range r.Reject {
		if status < 100 || status > 999 {
			errs = append(errs, fmt.Errorf("reject: %d is not a status", status))
		}
	}
	if r.MaxRetryAfter < 0 {
		errs = append(errs, errors.New("max retry after must not be negative"))
	}
	return errors.Join(errs...)
}
