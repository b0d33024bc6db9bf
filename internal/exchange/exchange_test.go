package exchange

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http/httptrace"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/queuehook/queuehook/delivery"
)

// step is what net/http tells of a request on its way.
type step func(*httptrace.ClientTrace)

var (
	get     step = func(t *httptrace.ClientTrace) { t.GetConn("") }
	shake   step = func(t *httptrace.ClientTrace) { t.TLSHandshakeStart() }
	shaken  step = func(t *httptrace.ClientTrace) { t.TLSHandshakeDone(tls.ConnectionState{}, nil) }
	fresh   step = func(t *httptrace.ClientTrace) { t.GotConn(httptrace.GotConnInfo{}) }
	kept    step = func(t *httptrace.ClientTrace) { t.GotConn(httptrace.GotConnInfo{Reused: true}) }
	answers step = func(t *httptrace.ClientTrace) { t.GotFirstResponseByte() }
)

// after is an exchange after these steps.
func after(ctx context.Context, steps ...step) *Exchange {
	var x Exchange
	trace := httptrace.ContextClientTrace(x.Watch(ctx))
	for _, s := range steps {
		s(trace)
	}
	return &x
}

// ended is a context that has ended with this error.
type ended struct {
	context.Context
	err error
}

func (e ended) Err() error { return e.err }

// of is the outcome of a reason, with this detail.
func of(r delivery.Reason, detail string) delivery.Outcome {
	o := delivery.Of(r)
	o.Detail = detail
	return o
}

// unsent is an outcome with which nothing can have been sent.
func unsent(o delivery.Outcome) delivery.Outcome {
	o.Unknown = false
	return o
}

// TestFailed is the table of what an attempt without an answer means, by how far it had come and why it ended.
func TestFailed(t *testing.T) {
	live := t.Context()
	late, cut := ended{live, context.DeadlineExceeded}, ended{live, context.Canceled}
	const refused, reset = syscall.ECONNREFUSED, syscall.ECONNRESET
	for name, c := range map[string]struct {
		ctx   context.Context
		steps []step
		err   error
		last  string
		want  delivery.Outcome
	}{
		"not begun":               {live, nil, io.EOF, "", of(delivery.Connect, "connection closed")},
		"no connection":           {live, []step{get}, refused, "", of(delivery.Connect, "connection refused")},
		"no handshake":            {live, []step{get, shake}, reset, "", of(delivery.TLS, "handshake: connection reset by peer")},
		"a handshake, and no use": {live, []step{get, shake, shaken}, reset, "", of(delivery.Connect, "connection reset by peer")},

		"sent on a new one":       {live, []step{get, fresh}, reset, "", of(delivery.Reset, "connection reset by peer")},
		"sent on a kept one":      {live, []step{get, kept}, io.EOF, "", of(delivery.StaleConnection, "connection closed")},
		"the same, after others":  {live, []step{get, kept}, io.EOF, "timeout", of(delivery.StaleConnection, "connection closed")},
		"the same, twice in turn": {live, []step{get, kept}, io.EOF, "stale_connection", of(delivery.Reset, "connection closed")},
		"half an answer":          {live, []step{get, kept, answers}, io.ErrUnexpectedEOF, "", of(delivery.Reset, "connection closed")},
		"no answer of HTTP": {
			live,
			[]step{get, fresh, answers},
			errors.New("malformed"), "",
			of(delivery.Reset, "the answer is not HTTP, or its header is too long"),
		},
		"what nobody knows": {live, []step{get, fresh}, errors.New("http://user:pw@h/"), "", of(delivery.Reset, "connection failed")},

		// A kept connection that took no byte: net/http tries again by itself, and that try counts alone.
		"a new try without a connection": {live, []step{get, kept, answers, get}, refused, "", of(delivery.Connect, "connection refused")},
		"a new try that is sent":         {live, []step{get, kept, get, fresh}, reset, "", of(delivery.Reset, "connection reset by peer")},
		"a new try in its handshake":     {live, []step{get, shake, get}, reset, "", of(delivery.Connect, "connection reset by peer")},

		"deadline before a connection": {late, []step{get}, refused, "", unsent(of(delivery.Timeout, "before there was a connection"))},
		"deadline in a handshake":      {late, []step{get, shake}, refused, "", unsent(of(delivery.Timeout, "before there was a connection"))},
		"deadline after sending":       {late, []step{get, kept}, reset, "", of(delivery.Timeout, "before the answer")},
		"stop before a connection":     {cut, []step{get}, refused, "", unsent(of(delivery.Shutdown, "before there was a connection"))},
		"stop after sending":           {cut, []step{get, fresh}, reset, "", of(delivery.Shutdown, "before the answer")},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, after(c.ctx, c.steps...).Failed(c.ctx, c.err, c.last)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestUnsent is the table of what may be sent again at once.
func TestUnsent(t *testing.T) {
	live := t.Context()
	for name, c := range map[string]struct {
		ctx   context.Context
		steps []step
		err   error
		want  bool
	}{
		"no connection":       {live, []step{get}, syscall.ECONNREFUSED, true},
		"no handshake":        {live, []step{get, shake}, io.EOF, true},
		"a connection":        {live, []step{get, fresh}, io.EOF, false},
		"a kept connection":   {live, []step{get, kept}, io.EOF, false},
		"no failure":          {live, []step{get}, nil, false},
		"its time is over":    {ended{live, context.DeadlineExceeded}, []step{get}, syscall.ECONNREFUSED, false},
		"the dispatcher ends": {ended{live, context.Canceled}, []step{get}, syscall.ECONNREFUSED, false},
	} {
		if got := after(c.ctx, c.steps...).Unsent(c.ctx, c.err); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestADeadlineHidesNoFailureToConnect has tries that found no connection, and then no time for more.
func TestADeadlineHidesNoFailureToConnect(t *testing.T) {
	live := t.Context()
	late, cut := ended{live, context.DeadlineExceeded}, ended{live, context.Canceled}
	x := after(live, get)
	x.Unsent(live, syscall.ECONNREFUSED)
	x.Unsent(live, syscall.EHOSTUNREACH)
	for name, c := range map[string]struct{ got, want delivery.Outcome }{
		"the first counts":   {x.Failed(late, context.DeadlineExceeded, ""), of(delivery.Connect, "connection refused")},
		"a stop is a stop":   {x.Failed(cut, context.Canceled, ""), unsent(of(delivery.Shutdown, "before there was a connection"))},
		"the last by itself": {x.Failed(live, syscall.EHOSTUNREACH, ""), of(delivery.Connect, "no route to host")},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	// What was sent later has an unknown outcome.
	trace := httptrace.ContextClientTrace(x.Watch(live))
	get(trace)
	fresh(trace)
	if diff := cmp.Diff(of(delivery.Timeout, "before the answer"), x.Failed(late, context.DeadlineExceeded, "")); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
}
