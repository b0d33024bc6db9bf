// Package exchange watches one HTTP request of a target and says what its failure means: that depends on how far the
// request had come, which net/http's errors alone do not tell.
package exchange

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http/httptrace"
	"sync"

	"github.com/queuehook/queuehook/delivery"
)

// Exchange is how far one attempt has come; the zero Exchange has not begun. net/http calls the hooks from its own
// goroutines, those of a dial even after the attempt has ended, hence the mutex.
type Exchange struct {
	mu sync.Mutex
	progress
	// unconnected is the first failure to connect, which a later deadline must not hide.
	unconnected *delivery.Outcome
}

// progress is how far one try has come.
type progress struct {
	shaking  bool // a TLS handshake began and did not succeed
	handed   bool // a connection was handed over: from here on the request may be on the wire
	reused   bool // that connection had carried an earlier request
	answered bool // the first byte of an answer came
}

// Watch returns ctx with hooks that follow the attempt. GetConn begins every try, also one that net/http makes by
// itself because a kept connection took not a single byte.
func (x *Exchange) Watch(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn:           func(string) { x.note(func(p *progress) { *p = progress{} }) },
		TLSHandshakeStart: func() { x.note(func(p *progress) { p.shaking = true }) },
		TLSHandshakeDone: func(_ tls.ConnectionState, err error) {
			x.note(func(p *progress) { p.shaking = err != nil })
		},
		GotConn: func(info httptrace.GotConnInfo) {
			x.note(func(p *progress) { p.handed, p.reused = true, info.Reused })
		},
		GotFirstResponseByte: func() { x.note(func(p *progress) { p.answered = true }) },
	})
}

func (x *Exchange) note(change func(*progress)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	change(&x.progress)
}

// Unsent says that a request which ended with err was never given a connection, so that not one byte of it can have
// been sent and it may be tried again. The first such failure is remembered, since a later deadline must not hide it.
func (x *Exchange) Unsent(ctx context.Context, err error) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err == nil || ctx.Err() != nil || x.handed {
		return false
	}
	if x.unconnected == nil {
		o := x.connectFault(err)
		x.unconnected = &o
	}
	return true
}

// Failed is the outcome of an attempt that ended in err, without an answer. lastReason is how the attempt before it
// ended.
func (x *Exchange) Failed(ctx context.Context, err error, lastReason string) delivery.Outcome {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case ctx.Err() == nil && x.handed:
		return x.cut(err, lastReason)
	case ctx.Err() == nil:
		return x.connectFault(err)
	case !errors.Is(ctx.Err(), context.DeadlineExceeded):
		return x.ended(delivery.Shutdown)
	case x.unconnected != nil && !x.handed:
		return *x.unconnected
	default:
		return x.ended(delivery.Timeout)
	}
}

// ended is the outcome of an attempt that this side ended. What was never sent has no unknown outcome.
func (x *Exchange) ended(r delivery.Reason) delivery.Outcome {
	o := delivery.Of(r)
	o.Unknown = x.handed
	o.Detail = "before the answer"
	if !x.handed {
		o.Detail = "before there was a connection"
	}
	return o
}
