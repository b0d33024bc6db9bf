package receiver

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

// exchange is one request on its way through its answer. One goroutine owns it.
type exchange struct {
	receiver *Receiver
	record   *Request
	w        http.ResponseWriter
	req      *http.Request
	answer   Answer

	isOver bool // the client may know the end of its request
	sent   bool // all went out while the client was there
}

// play acts the answer out. It returns false when the request must be aborted.
func (x *exchange) play() (keep bool) {
	a := x.answer
	if a.Fault != NoFault && a.When == BeforeRead {
		x.receiver.journal.record(x.record)
		return x.fault()
	}
	if !a.NoRead {
		x.receiver.readBody(x.record, x.req)
	}
	x.receiver.journal.record(x.record)
	if !a.NoRead && !x.record.BodyRead || !x.pause(a.Delay) {
		return false
	}
	if a.Fault != NoFault && a.When == AfterRead {
		return x.fault()
	}
	if a.DripHead {
		return x.dripAll()
	}
	return x.write()
}

// fault breaks the exchange.
func (x *exchange) fault() (keep bool) {
	if x.answer.Fault != Hang {
		x.over()
	}
	switch x.answer.Fault {
	case Hang:
		x.hang()
	case Reset:
		if c := connOf(x.req.Context()); c != nil {
			c.reset()
		}
	case Close:
		if c := connOf(x.req.Context()); c != nil {
			_ = c.Close()
		}
	case Abort, NoFault:
	}
	return false
}

// hang waits until the client leaves or the receiver is released.
func (x *exchange) hang() {
	select {
	case <-x.req.Context().Done():
	case <-x.receiver.closed.Done():
	}
}

// pause waits for d and reports whether both sides are still there.
func (x *exchange) pause(d time.Duration) bool {
	if d > 0 {
		late := time.NewTimer(d)
		defer late.Stop()
		select {
		case <-late.C:
		case <-x.req.Context().Done():
		case <-x.receiver.closed.Done():
		}
	}
	return x.req.Context().Err() == nil && (d <= 0 || x.receiver.closed.Err() == nil)
}

// write sends the answer through net/http, flushing so that errors show.
func (x *exchange) write() (keep bool) {
	a := x.answer
	faulty := a.Fault != NoFault
	body := a.Body
	if a.bodyless() {
		body = nil
	}
	for name, values := range a.Header {
		x.w.Header()[name] = append([]string(nil), values...)
	}
	if !a.bodyless() && !a.Endless {
		length := len(body)
		if faulty {
			length++ // the client must wait for what never comes
		}
		x.w.Header().Set("Content-Length", strconv.Itoa(length))
	}
	if x.req.Context().Err() != nil {
		return false // the client has left
	}
	x.receiver.journal.answering(x.record, a.status())
	if !faulty && !a.Endless && (len(body) == 0 || a.Drip <= 0) {
		x.over()
	}
	x.w.WriteHeader(a.status())
	switch {
	case a.Endless:
		x.endless()
		return false
	case faulty && a.When == AfterHeaders:
		_ = x.flush()
		return x.fault()
	case faulty:
		_ = x.drip(body)
		return x.fault()
	}
	x.sent = x.drip(body) == nil
	return true
}

// over is called before the client can know the end of its request.
func (x *exchange) over() {
	if !x.isOver {
		x.isOver = true
		x.receiver.journal.over(x.record)
	}
}

// drip sends body, at once or a byte at a time.
func (x *exchange) drip(body []byte) error {
	if x.answer.Drip <= 0 || len(body) == 0 {
		if _, err := x.w.Write(body); err != nil && !errors.Is(err, http.ErrBodyNotAllowed) {
			return err
		}
		return x.flush()
	}
	if err := x.flush(); err != nil {
		return err
	}
	for i := range body {
		if !x.pause(x.answer.Drip) {
			return errGone
		}
		if i == len(body)-1 && x.answer.Fault == NoFault {
			x.over()
		}
		if _, err := x.w.Write(body[i : i+1]); err != nil {
			return err
		}
		if err := x.flush(); err != nil {
			return err
		}
	}
	return nil
}

var errGone = errors.New("client left or receiver closed")

// endless sends chunks until the client leaves or the receiver is released.
func (x *exchange) endless() {
	chunk := x.answer.Body
	if len(chunk) == 0 {
		chunk = bytes.Repeat([]byte("."), 1<<10)
	}
	for x.flush() == nil && x.pause(x.answer.Drip) && x.receiver.closed.Err() == nil {
		if _, err := x.w.Write(chunk); err != nil {
			return
		}
	}
}

func (x *exchange) flush() error {
	if err := http.NewResponseController(x.w).Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("flush: %w", err)
	}
	return nil
}

// dripAll writes status line, headers and body to the bare connection, a byte at a time, and closes it.
func (x *exchange) dripAll() (keep bool) {
	conn, _, err := http.NewResponseController(x.w).Hijack()
	if err != nil { // HTTP/2
		x.hang()
		return false
	}
	defer func() { _ = conn.Close() }()

	a := x.answer
	res := http.Response{
		StatusCode: a.status(), ProtoMajor: 1, ProtoMinor: 1, Close: true, Header: a.Header.Clone(),
		ContentLength: int64(len(a.Body)), Body: io.NopCloser(bytes.NewReader(a.Body)),
	}
	if a.bodyless() {
		res.ContentLength, res.Body = 0, http.NoBody
	}
	var wire bytes.Buffer
	if err := res.Write(&wire); err != nil {
		return true
	}
	x.dripWire(conn, wire.Bytes())
	return true // hijacked: net/http is done with it
}

func (x *exchange) dripWire(conn net.Conn, wire []byte) {
	x.receiver.journal.answering(x.record, x.answer.status())
	tick := time.NewTicker(max(x.answer.Drip, time.Nanosecond))
	defer tick.Stop()
	for i := range wire {
		select {
		case <-tick.C:
		case <-x.receiver.closed.Done():
			return
		}
		if i == len(wire)-1 {
			x.over()
		}
		if _, err := conn.Write(wire[i : i+1]); err != nil {
			return
		}
	}
	x.sent = true
}

func isEOF(err error) bool { return errors.Is(err, io.EOF) }
