package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	"golang.org/x/net/http/httpguts"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/task"
)

// request is t as a request to the target. Its error is a *delivery.Error that says why it can't be sent.
func (tg *Target) request(ctx context.Context, t *task.Task) (*retryablehttp.Request, error) {
	header, err := tg.header(ctx, t)
	if err != nil {
		return nil, err
	}
	req := (&http.Request{
		Method: tg.cfg.Method, URL: tg.url, Host: tg.url.Host, Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(ctx)

	r := &retryablehttp.Request{Request: req}
	// Without a body at all, an empty payload has Content-Length: 0 rather than an unknown length.
	var body any
	if len(t.Bytes()) > 0 {
		body = t.Bytes()
	}
	if err := r.SetBody(body); err != nil {
		return nil, delivery.Errorf(delivery.Unsendable, "the payload cannot be read")
	}
	return r, nil
}

// header is everything that is said about t besides its payload. What this program says comes before what the route
// says, and that before what the task says.
func (tg *Target) header(ctx context.Context, t *task.Task) (http.Header, error) {
	meta := t.Meta()
	h := tg.fixed.Clone()
	if meta.ContentType != "" {
		h.Set("Content-Type", meta.ContentType)
	}
	h.Set("Dispatch-Task-Id", t.ID())
	h.Set("Dispatch-Queue", t.Queue())
	h.Set("Dispatch-Attempt", strconv.Itoa(t.Attempt()))
	if limit := cmp.Or(meta.MaxAttempts, tg.cfg.MaxAttempts); limit > 0 {
		h.Set("Dispatch-Max-Attempts", strconv.Itoa(limit))
	}
	if meta.EnqueuedAt > 0 {
		h.Set("Dispatch-Enqueued-At", time.UnixMilli(meta.EnqueuedAt).UTC().Format(task.TimeFormat))
	}
	if deadline, ok := ctx.Deadline(); ok {
		h.Set("Dispatch-Deadline", deadline.UTC().Format(task.TimeFormat))
	}
	if meta.LastStatus != 0 {
		h.Set("Dispatch-Previous-Status", strconv.Itoa(meta.LastStatus))
	}
	if meta.LastReason != "" {
		h.Set("Dispatch-Previous-Reason", meta.LastReason)
	}
	if t.Redelivered() {
		h.Set("Dispatch-Redelivered", "true")
	}
	addTrace(h, meta)
	if len(tg.cfg.Secrets) > 0 {
		if err := sign(h, tg.cfg.Secrets, t.ID(), tg.cfg.Now(), t.Bytes()); err != nil {
			return nil, err
		}
	}
	if tg.cfg.Compat == CompatSqsd {
		addSqsd(h, t)
	}
	if err := addOwn(h, meta.Headers); err != nil {
		return nil, err
	}
	if tg.cfg.Compat == CompatCloudEvents {
		addCloudEvents(h, t)
	}
	return h, validate(h)
}

// addTrace passes the producer's trace on. An illegal header value is left out, as W3C Trace Context asks, and so is a
// tracestate without a traceparent.
func addTrace(h http.Header, meta task.Meta) {
	if meta.TraceParent == "" || !httpguts.ValidHeaderFieldValue(meta.TraceParent) {
		return
	}
	h.Set("Traceparent", meta.TraceParent)
	if meta.TraceState != "" && httpguts.ValidHeaderFieldValue(meta.TraceState) {
		h.Set("Tracestate", meta.TraceState)
	}
}

// addOwn adds a task's own headers. One that is ours to set, or the route's, is dropped whatever its case; one that is
// illegal makes the task unsendable, since sending it otherwise than its producer wrote it would be a guess.
func addOwn(h http.Header, own map[string]string) error {
	if len(own) == 0 {
		return nil
	}
	theirs := make(http.Header, len(own))
	for _, name := range slices.Sorted(maps.Keys(own)) {
		if !httpguts.ValidHeaderFieldName(name) {
			return delivery.Errorf(delivery.Unsendable, "a header has an illegal name")
		}
		key := wireKey(name)
		if !httpguts.ValidHeaderFieldValue(own[name]) {
			return delivery.Errorf(delivery.Unsendable, "header %s has an illegal value", key)
		}
		if _, taken := h[key]; !taken && !task.ReservedHeader(key) {
			theirs[key] = append(theirs[key], own[name])
		}
	}
	maps.Copy(h, theirs)
	return nil
}

// validate looks at the values that are not this program's own words: ids, queue names and content types may hold any
// bytes.
func validate(h http.Header) error {
	for key, values := range h {
		for _, v := range values {
			if !httpguts.ValidHeaderFieldValue(v) {
				return delivery.Errorf(delivery.Unsendable, "header %s has an illegal value", key)
			}
		}
	}
	return nil
}

// wireKey is the map key under which a header is sent. net/http takes a POST with an (X-)Idempotency-Key for one that
// it may repeat by itself, which would be a second delivery that nobody knows of; it looks under the canonical name
// only, and header names have no case for the receiver.
func wireKey(name string) string {
	key := textproto.CanonicalMIMEHeaderKey(name)
	if key == "Idempotency-Key" || key == "X-Idempotency-Key" {
		return strings.ToLower(key)
	}
	return key
}

// fixedHeader is what every request of a route carries. A route may not set what a task may not.
func fixedHeader(cfg Config, user *url.Userinfo) (http.Header, error) {
	h := http.Header{
		"User-Agent":   {"queuehook/" + cmp.Or(cfg.Version, "dev")},
		"Content-Type": {cfg.ContentType},
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Headers)) {
		key := wireKey(name)
		if !httpguts.ValidHeaderFieldName(name) || task.ReservedHeader(key) {
			return nil, fmt.Errorf("header %q cannot be set by a route", name)
		}
		h[key] = []string{cfg.Headers[name]}
	}
	authorize, err := authorization(cfg.Authorization, user)
	if err != nil {
		return nil, err
	}
	if authorize != "" {
		if _, given := h["Authorization"]; given {
			return nil, errors.New("there is an authorization beside the header Authorization; one is accepted")
		}
		h.Set("Authorization", authorize)
	}
	if err := validate(h); err != nil {
		return nil, err
	}
	return h, nil
}
