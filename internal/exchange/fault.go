package exchange

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"

	"github.com/queuehook/queuehook/delivery"
)

// Errors of net/http hold the URL, so that their text is never used: the details below are made from the causes inside.

// Refusal is an error of a dialer that tells in one line, without an address or a URL, why there is no connection.
type Refusal interface {
	error
	Refusal() string
}

// connectFault is the outcome of a try that got no connection: nothing was sent.
func (p progress) connectFault(err error) delivery.Outcome {
	var whose string
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "proxyconnect" {
		whose = "proxy: "
	}
	if e, ok := errors.AsType[*net.DNSError](err); ok {
		return delivery.Errorf(delivery.DNS, "%s%s", whose, lookupCause(e)).Outcome
	}
	if p.shaking || isHandshake(err) {
		return delivery.Errorf(delivery.TLS, "%s%s", whose, handshakeCause(err)).Outcome
	}
	return delivery.Errorf(delivery.Connect, "%s%s", whose, cause(err)).Outcome
}

// cut is the outcome of a request that was on its way when the connection failed.
//
// On a kept connection, before any answer, the likely cause is that the receiver had just closed it for idling: that is
// nobody's failure, so the attempt is not charged. But it happens once: a receiver that cuts every request would else
// be tried for ever. An HTTP/2 stream that was reset alone is its receiver's own act, not a sign of an idle connection.
func (p progress) cut(err error, lastReason string) delivery.Outcome {
	if isAlert(err) {
		o := delivery.Errorf(delivery.TLS, "%s", handshakeCause(err)).Outcome
		o.Unknown = true
		return o
	}
	if stream, ok := errors.AsType[streamError](err); ok {
		return delivery.Errorf(delivery.Reset, "HTTP/2 stream reset with code %d", stream.Code).Outcome
	}
	if p.reused && !p.answered && lastReason != delivery.StaleConnection.String() {
		return delivery.Errorf(delivery.StaleConnection, "%s", cause(err)).Outcome
	}
	if p.answered {
		return delivery.Errorf(delivery.Reset, "%s", causeOr(err, "the answer is not HTTP, or its header is too long")).Outcome
	}
	return delivery.Errorf(delivery.Reset, "%s", cause(err)).Outcome
}

// streamError has the shape of net/http's own error for one HTTP/2 stream, which errors.As matches field by field.
type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (e streamError) Error() string { return fmt.Sprintf("stream %d: code %d", e.StreamID, e.Code) }

// isHandshake says whether err can only come from a TLS handshake.
func isHandshake(err error) bool {
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	_, record := errors.AsType[tls.RecordHeaderError](err)
	return certificate || record || errors.Is(err, http.ErrSchemeMismatch) || isAlert(err)
}

// isAlert says whether the other side sent a TLS alert. In TLS 1.3 the refusal of a client certificate comes as one
// after the handshake, so that the request seems to be on its way already.
func isAlert(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "remote error"
}

func lookupCause(e *net.DNSError) string {
	switch {
	case e.IsNotFound:
		return "no such host"
	case e.IsTimeout:
		return "lookup timed out"
	default:
		return "lookup failed"
	}
}

func handshakeCause(err error) string {
	if e, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return e.Err.Error()
	}
	_, record := errors.AsType[tls.RecordHeaderError](err)
	if record || errors.Is(err, http.ErrSchemeMismatch) {
		return "the endpoint does not speak TLS"
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "remote error" {
		return op.Err.Error()
	}
	return "handshake: " + cause(err)
}

// cause is the innermost thing that is known of a network error.
func cause(err error) string { return causeOr(err, "connection failed") }

func causeOr(err error, unknown string) string {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno.Error()
	}
	if e, ok := errors.AsType[Refusal](err); ok {
		return e.Refusal()
	}
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		return "timed out"
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "connection closed"
	}
	return unknown
}
