// Package receiver is a scripted HTTP endpoint: it answers well, badly, slowly or not at all, as its script says, and
// logs what came. Tests of the delivery run against it, and `dispatcher dev` shows queuehook at work with it.
//
//	srv, err := receiver.Start(receiver.Config{Script: receiver.ByAttempt(receiver.Status(500), receiver.Status(204))})
//	defer srv.Close()
//	... deliver to srv.URL() ...
//	err = srv.WaitCount(ctx, 2)
//	requests := srv.ByTask(id)
//
// Memory is bounded by Config.LogLimit, whatever comes.
package receiver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"sync"
	"time"
)

// Headers of the dispatcher's requests that the receiver understands.
const (
	TaskIDHeader  = "Dispatch-Task-Id"
	AttemptHeader = "Dispatch-Attempt"
)

const defaultLogLimit = 100_000

// Config describes a receiver. The zero value answers 204 to everything, over plain HTTP on a free loopback port.
type Config struct {
	Script   Script // nil = Always(Status(204))
	LogLimit int    // requests that the log keeps, the last ones; 0 = 100 000
	KeepBody int    // bytes of each body that the log keeps; 0 = none, only size and SHA-256

	// The rest concerns Start alone.

	Addr              string // host:port to listen on, "" = 127.0.0.1:0
	TLS               bool   // HTTPS, signed by an authority of its own: Server.CAPEM
	HTTP1             bool   // with TLS: no HTTP/2
	Expired           bool   // with TLS: the certificate has expired
	RequireClientCert bool   // with TLS: only clients that show Server.ClientTLS's certificate get through
}

// Receiver is an http.Handler that plays a script and logs. All its methods may be called at any time.
type Receiver struct {
	keepBody int
	journal  *journal
	closed   context.Context //nolint:containedctx // not a request's: its end releases what hangs
	release  context.CancelFunc

	mu     sync.Mutex
	script Script
}

// New makes a receiver for a server of the caller's own. Without Start's server a connection fault only aborts the
// request, and the caller must end what hangs with Release.
func New(cfg Config) *Receiver {
	if cfg.LogLimit <= 0 {
		cfg.LogLimit = defaultLogLimit
	}
	r := &Receiver{keepBody: cfg.KeepBody, journal: newJournal(cfg.LogLimit)}
	r.closed, r.release = context.WithCancel(context.Background())
	r.SetScript(cfg.Script)
	return r
}

// SetScript changes the script for the requests that come from now on; nil answers 204.
func (r *Receiver) SetScript(s Script) {
	if s == nil {
		s = Always(Answer{})
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.script = s
}

// Release ends every answer that hangs, drips or waits, now and from now on.
func (r *Receiver) Release() { r.release() }

// ServeHTTP plays the script.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	rec := &Request{
		Arrived: time.Now(),
		Proto:   req.Proto,
		Method:  req.Method,
		Host:    req.Host,
		Path:    req.URL.Path,
		Query:   req.URL.RawQuery,
		Header:  req.Header.Clone(),
		TaskID:  req.Header.Get(TaskIDHeader),
	}
	if c := connOf(req.Context()); c != nil {
		rec.Conn = c.id
	}
	r.journal.arrive(rec)

	x := &exchange{receiver: r, record: rec, w: w, req: req}
	defer func() {
		x.over()
		r.journal.finish(rec, x.sent)
	}()
	r.mu.Lock()
	script := r.script
	r.mu.Unlock()
	x.answer = script(*rec)
	if !x.play() {
		panic(http.ErrAbortHandler) // net/http's own way to end a request without an answer
	}
}

// readBody reads the body to its end and notes what it was.
func (r *Receiver) readBody(rec *Request, req *http.Request) {
	sum := sha256.New()
	buf := make([]byte, 32<<10)
	for {
		n, err := req.Body.Read(buf)
		sum.Write(buf[:n])
		rec.Size += int64(n)
		if room := r.keepBody - len(rec.Body); room > 0 {
			rec.Body = append(rec.Body, buf[:min(n, room)]...)
		}
		if err != nil {
			rec.BodyRead = isEOF(err)
			break
		}
	}
	if rec.BodyRead {
		rec.SHA256 = hex.EncodeToString(sum.Sum(nil))
	}
}
