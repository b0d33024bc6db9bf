package exchange

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/queuehook/queuehook/delivery"
)

// refusal is an error of a dialer that says why it refused.
type refusal struct{ error }

func (refusal) Refusal() string { return "address is private" }

// wrapped is err as net/http hands it out, with a URL that must show nowhere.
func wrapped(op string, err error) error {
	return &url.Error{Op: "Post", URL: "https://user:pw@secret.example/?token=x", Err: &net.OpError{
		Op: op, Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 443}, Err: err,
	}}
}

var (
	errAuthority = &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}
	errNotTLS    = tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}
	errHandshake = tls.AlertError(40)
)

// TestConnectFault is the table of why there is no connection.
func TestConnectFault(t *testing.T) {
	lookup := func(e net.DNSError) error { e.Name = "secret.example"; return &e }
	for name, c := range map[string]struct {
		err    error
		reason delivery.Reason
		detail string
	}{
		"no such host":         {wrapped("dial", lookup(net.DNSError{IsNotFound: true})), delivery.DNS, "no such host"},
		"lookup took too long": {wrapped("dial", lookup(net.DNSError{IsTimeout: true})), delivery.DNS, "lookup timed out"},
		"lookup failed":        {wrapped("dial", lookup(net.DNSError{Err: "server misbehaving"})), delivery.DNS, "lookup failed"},
		"the proxy's name":     {wrapped("proxyconnect", lookup(net.DNSError{IsNotFound: true})), delivery.DNS, "proxy: no such host"},

		"refused":           {wrapped("dial", os.NewSyscallError("connect", syscall.ECONNREFUSED)), delivery.Connect, "connection refused"},
		"refused by proxy":  {wrapped("proxyconnect", syscall.ECONNREFUSED), delivery.Connect, "proxy: connection refused"},
		"not allowed":       {wrapped("dial", refusal{errors.New("10.0.0.1 is private")}), delivery.Connect, "address is private"},
		"took too long":     {wrapped("dial", os.ErrDeadlineExceeded), delivery.Connect, "timed out"},
		"closed":            {wrapped("read", io.EOF), delivery.Connect, "connection closed"},
		"what nobody knows": {errors.New("https://user:pw@secret.example"), delivery.Connect, "connection failed"},

		"certificate":      {wrapped("read", errAuthority), delivery.TLS, "x509: certificate signed by unknown authority"},
		"no TLS":           {wrapped("read", errNotTLS), delivery.TLS, "the endpoint does not speak TLS"},
		"HTTP for HTTPS":   {fmt.Errorf("post: %w", http.ErrSchemeMismatch), delivery.TLS, "the endpoint does not speak TLS"},
		"an alert":         {wrapped("remote error", errHandshake), delivery.TLS, "tls: handshake failure"},
		"a proxy's no TLS": {wrapped("proxyconnect", errNotTLS), delivery.TLS, "proxy: the endpoint does not speak TLS"},
	} {
		if diff := cmp.Diff(of(c.reason, c.detail), progress{}.connectFault(c.err)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestCut is the table of what a connection's end means for a request that was on its way.
func TestCut(t *testing.T) {
	keptOne := progress{handed: true, reused: true}
	alert := of(delivery.TLS, "tls: handshake failure")
	alert.Unknown = true
	for name, c := range map[string]struct {
		progress progress
		err      error
		want     delivery.Outcome
	}{
		"a late alert":             {progress{handed: true}, wrapped("remote error", errHandshake), alert},
		"a late alert, kept":       {keptOne, wrapped("remote error", errHandshake), alert},
		"a stream reset":           {progress{handed: true}, streamError{StreamID: 3, Code: 2}, of(delivery.Reset, "HTTP/2 stream reset with code 2")},
		"a stream reset, kept":     {keptOne, fmt.Errorf("post: %w", streamError{StreamID: 3, Code: 7}), of(delivery.Reset, "HTTP/2 stream reset with code 7")},
		"a broken pipe, kept":      {keptOne, wrapped("write", syscall.EPIPE), of(delivery.StaleConnection, "broken pipe")},
		"answered and reset, kept": {progress{handed: true, reused: true, answered: true}, wrapped("read", syscall.ECONNRESET), of(delivery.Reset, "connection reset by peer")},
	} {
		if diff := cmp.Diff(c.want, c.progress.cut(c.err, "")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
