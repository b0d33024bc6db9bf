package receiver

import (
	"net/http"
	"time"
)

// Answer is what the receiver does with one request. Build it with a constructor below and adjust the fields. The zero
// value reads the request and answers 204.
type Answer struct {
	Status int           // 0 is 204
	Header http.Header   // added to what net/http sets
	Body   []byte        // not sent with 1xx, 204, 304
	Delay  time.Duration // between the request's last byte and the answer's first

	// NoRead leaves the request's body unread. Over HTTP/1.1 a client that leaves is then noticed only by a write.
	NoRead bool

	// Fault breaks the answer at the point When.
	Fault Fault
	When  When

	// Drip, when positive, sends the body a byte at a time, this long apart; with DripHead the status line and the
	// headers too. HTTP/2 can't send part of a head: there, DripHead sends none at all until the client leaves.
	Drip     time.Duration
	DripHead bool

	// Endless repeats Body (1 KiB of dots when empty) in chunks, Drip apart, until the client leaves.
	Endless bool
}

// Fault is a way in which an answer never comes or never ends.
type Fault int

// Hang, Reset and Close say what happens to the connection; over HTTP/2, Reset and Close hit every request on it.
const (
	NoFault Fault = iota
	Hang          // nothing more comes until the client leaves or the receiver closes
	Reset         // the connection ends with a TCP RST (SO_LINGER 0)
	Close         // the connection ends with a TCP FIN
	Abort         // the request ends: HTTP/2 RST_STREAM, HTTP/1.1 Close
)

// When is the point of an exchange at which a fault strikes.
type When int

// The points in their order.
const (
	AfterRead    When = iota // the request is read, Delay is over, nothing is answered
	BeforeRead               // the request's headers are read, its body is not
	AfterHeaders             // the answer's headers are sent, none of its body is
	AfterBody                // all of Body is sent, but Content-Length promised one byte more
)

// Status answers with a code and no body.
func Status(code int) Answer { return Answer{Status: code} }

// Text answers with a code and a body.
func Text(code int, body string) Answer { return Answer{Status: code, Body: []byte(body)} }

// Redirect answers with a code and a Location.
func Redirect(code int, location string) Answer {
	return Status(code).With("Location", location)
}

// HangUp is an answer that breaks in a given way at a given point; before that it would have been 200 "ok".
func HangUp(f Fault, w When) Answer {
	return Answer{Status: http.StatusOK, Body: []byte("ok"), Fault: f, When: w}
}

// Never is no answer at all: the request is read, then nothing comes until the client leaves or the receiver closes.
func Never() Answer { return HangUp(Hang, AfterRead) }

// EndlessBody answers with a code and a chunked body that never ends, a chunk each interval (0 = as fast as it goes).
func EndlessBody(code int, interval time.Duration) Answer {
	return Answer{Status: code, Endless: true, Drip: interval}
}

// DripBody answers with a code and a body of which one byte comes each interval.
func DripBody(code int, body string, interval time.Duration) Answer {
	return Answer{Status: code, Body: []byte(body), Drip: interval}
}

// DripAll is DripBody with the status line and the headers dripped too.
func DripAll(code int, body string, interval time.Duration) Answer {
	a := DripBody(code, body, interval)
	a.DripHead = true
	return a
}

// With returns the answer with one more header.
func (a Answer) With(name, value string) Answer {
	a.Header = a.Header.Clone()
	if a.Header == nil {
		a.Header = http.Header{}
	}
	a.Header.Add(name, value)
	return a
}

// After returns the answer delayed by d.
func (a Answer) After(d time.Duration) Answer {
	a.Delay = d
	return a
}

// Unread returns the answer given without reading the request's body.
func (a Answer) Unread() Answer {
	a.NoRead = true
	return a
}

func (a Answer) status() int {
	if a.Status == 0 {
		return http.StatusNoContent
	}
	return a.Status
}

// bodyless says that HTTP forbids a body with the status (RFC 9110, section 6.4.1).
func (a Answer) bodyless() bool {
	code := a.status()
	return code < 200 || code == http.StatusNoContent || code == http.StatusNotModified
}
