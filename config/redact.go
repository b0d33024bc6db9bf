package config

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/queuehook/queuehook/signing"
)

// RouteView is a route as it may be shown: by the names of the routes file, secrets redacted. A path that is a secret
// by itself, as in some webhook services, is shown.
type RouteView struct {
	Queue          string            `json:"queue" yaml:"queue"`
	URL            string            `json:"url,omitempty" yaml:"url,omitempty"`
	Lambda         string            `json:"lambda,omitempty" yaml:"lambda,omitempty"`
	Region         string            `json:"region,omitempty" yaml:"region,omitempty"`
	Method         string            `json:"method,omitempty" yaml:"method,omitempty"`
	ContentType    string            `json:"content_type,omitempty" yaml:"content_type,omitempty"`
	Headers        map[string]string `json:"headers,omitempty" yaml:"headers,omitempty"`
	Authorization  string            `json:"authorization,omitempty" yaml:"authorization,omitempty"`
	SigningSecrets []string          `json:"signing_secrets,omitempty" yaml:"signing_secrets,omitempty"`
	TLS            *TLSView          `json:"tls,omitempty" yaml:"tls,omitempty"`
	Proxy          string            `json:"proxy,omitempty" yaml:"proxy,omitempty"`
	DenyPrivate    bool              `json:"deny_private,omitempty" yaml:"deny_private,omitempty"`
	Concurrency    int               `json:"concurrency" yaml:"concurrency"`
	Rate           *RateView         `json:"rate,omitempty" yaml:"rate,omitempty"`
	Timeout        string            `json:"timeout" yaml:"timeout"`
	Ordered        bool              `json:"ordered" yaml:"ordered"`
	ConnectTimeout string            `json:"connect_timeout,omitempty" yaml:"connect_timeout,omitempty"`
	QuickRetries   *int              `json:"quick_retries,omitempty" yaml:"quick_retries,omitempty"`
	Retry          RetryView         `json:"retry" yaml:"retry"`
	Success        []string          `json:"success,omitempty" yaml:"success,omitempty"`
	Reject         []int             `json:"reject,omitempty" yaml:"reject,omitempty"`
	Breaker        any               `json:"breaker" yaml:"breaker"` // a BreakerView or "off"
	RequireAck     bool              `json:"require_ack,omitempty" yaml:"require_ack,omitempty"`
	Compat         Compat            `json:"compat,omitempty" yaml:"compat,omitempty"`
	Invoke         string            `json:"invoke,omitempty" yaml:"invoke,omitempty"`
	Payload        Payload           `json:"payload,omitempty" yaml:"payload,omitempty"`
	Batch          *BatchView        `json:"batch,omitempty" yaml:"batch,omitempty"`
}

// The parts of a RouteView; durations are Go strings.
type (
	// TLSView shows where the contents are from, none of them.
	TLSView struct {
		CAFile     string `json:"ca_file,omitempty" yaml:"ca_file,omitempty"`
		CertFile   string `json:"cert_file,omitempty" yaml:"cert_file,omitempty"`
		KeyFile    string `json:"key_file,omitempty" yaml:"key_file,omitempty"`
		ServerName string `json:"server_name,omitempty" yaml:"server_name,omitempty"`
		MinVersion string `json:"min_version,omitempty" yaml:"min_version,omitempty"`
	}
	// RateView shows a Rate.
	RateView struct {
		Limit int    `json:"limit" yaml:"limit"`
		Per   string `json:"per" yaml:"per"`
		Burst int    `json:"burst" yaml:"burst"`
	}
	// RetryView shows a Retry; with a schedule it has no base and cap.
	RetryView struct {
		MaxAttempts int      `json:"max_attempts" yaml:"max_attempts"`
		MaxAge      string   `json:"max_age" yaml:"max_age"`
		Base        string   `json:"base,omitempty" yaml:"base,omitempty"`
		Cap         string   `json:"cap,omitempty" yaml:"cap,omitempty"`
		Schedule    []string `json:"schedule,omitempty" yaml:"schedule,omitempty"`
	}
	// BreakerView shows a Breaker.
	BreakerView struct {
		Consecutive int    `json:"consecutive" yaml:"consecutive"`
		Pause       string `json:"pause" yaml:"pause"`
	}
	// BatchView shows how tasks share one call.
	BatchView struct {
		Size int    `json:"size" yaml:"size"`
		Wait string `json:"wait" yaml:"wait"`
	}
)

// Redacted returns the route without its secrets. Headers are shown by name only, since nobody knows which of them are
// secret.
func (r Route) Redacted() RouteView {
	v := RouteView{
		Queue: r.Queue, Concurrency: r.Concurrency, Timeout: r.Timeout.String(), Ordered: r.Ordered,
		Retry: RetryView{MaxAttempts: r.Retry.MaxAttempts, MaxAge: r.Retry.MaxAge.String()},
	}
	if r.Retry.Schedule != nil {
		v.Retry.Schedule = texts(r.Retry.Schedule, time.Duration.String)
	} else {
		v.Retry.Base, v.Retry.Cap = r.Retry.BackoffBase.String(), r.Retry.BackoffCap.String()
	}
	if r.Rate.Limit > 0 {
		v.Rate = &RateView{Limit: r.Rate.Limit, Per: r.Rate.Per.String(), Burst: r.Rate.Burst}
	}
	if r.Breaker == (Breaker{}) {
		v.Breaker = "off"
	} else {
		v.Breaker = BreakerView{Consecutive: r.Breaker.Consecutive, Pause: r.Breaker.Pause.String()}
	}
	if r.Target.URL == nil {
		r.showFunction(&v)
	} else {
		r.showURL(&v)
	}
	return v
}

func (r Route) showFunction(v *RouteView) {
	l := r.Target.Lambda
	v.Lambda, v.Region, v.Payload = l.Function, l.Region, r.Invocation.Payload
	if l.Qualifier != "" {
		v.Lambda += ":" + l.Qualifier
	}
	v.Invoke = "sync"
	if r.Invocation.Async {
		v.Invoke = "async"
	}
	if r.Invocation.BatchSize > 1 {
		v.Batch = &BatchView{Size: r.Invocation.BatchSize, Wait: r.Invocation.BatchWait.String()}
	}
}

func (r Route) showURL(v *RouteView) {
	h := r.HTTP
	v.URL, v.Method, v.ContentType = r.Target.Redacted(), h.Method, h.ContentType
	if len(h.Headers) > 0 {
		v.Headers = make(map[string]string)
		for _, name := range slices.Sorted(maps.Keys(h.Headers)) {
			v.Headers[name] = redacted
		}
	}
	v.Authorization = h.Authorization.String()
	v.SigningSecrets = texts(h.SigningSecrets, signing.Secret.String)
	if h.TLS != (TLS{}) {
		v.TLS = &TLSView{
			CAFile: h.TLS.CAFile, CertFile: h.TLS.CertFile, KeyFile: h.TLS.KeyFile, ServerName: h.TLS.ServerName,
			MinVersion: h.TLS.minVersion(),
		}
	}
	if u, err := url.Parse(string(h.Proxy)); err == nil && h.Proxy != "" {
		v.Proxy = redactURL(u, nil)
	}
	v.DenyPrivate, v.RequireAck, v.Compat = h.DenyPrivate, h.RequireAck, h.Compat
	v.ConnectTimeout, v.QuickRetries = h.ConnectTimeout.String(), &h.QuickRetries
	v.Success = texts(h.succeeding(), StatusRange.String)
	v.Reject = slices.Clone(h.Reject)
}

// String is the range as the routes file has it.
func (s StatusRange) String() string {
	if s.Low == s.High {
		return strconv.Itoa(s.Low)
	}
	return fmt.Sprintf("%d-%d", s.Low, s.High)
}

func texts[T any](all []T, show func(T) string) []string {
	var shown []string
	for _, v := range all {
		shown = append(shown, show(v))
	}
	return shown
}
