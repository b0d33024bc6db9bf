package webhook

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/signing"
	"github.com/queuehook/queuehook/task"
)

// FuzzTaskHeaders: whatever headers a task has, it is unsendable exactly when one of them is illegal, and then nothing
// is sent. Otherwise the request on the wire is that of a task without headers, plus those headers that a task may set:
// nothing else is added, missing or changed, and the request ends where it should. Which headers are illegal, and which
// a task may set, is written down here a second time.
func FuzzTaskHeaders(f *testing.F) {
	for i, seed := range [][6]string{ // two headers, the content type and the trace
		{"X-A", "1", "x-a", "2", "", ""},
		{"X-A", "1\r\nHost: evil", "X-B", "1", "", ""},
		{"X-A", "1\r\n\r\nGET / HTTP/1.1", "", "", "", ""},
		{"X-A\r\nDispatch-Attempt", "1", "", "", "", ""},
		{"X-A", "1", "", "", "text/plain\r\nX-B: 1", ""},
		{"X-A", "1", "", "", "", "00\r\nX-B: 1"},
		{"X A", "1", "", "", "", ""},
		{"X-A:", "1", "", "", "", ""},
		{"X-\xe9", "1", "", "", "", ""},
		{"", "1", "", "", "", ""},
		{"Host", "\x00", "", "", "", ""},
		{"X-A", "\x7f", "", "", "", ""},
		{"X-A", " \xe9\t\xff ", "X-B", "", " text/plain ", "00-4bf9-00f0-01"},
		{"authorization", "Bearer evil", "x-team", "evil", "", ""},
		{"x-aws-sqsd-msgid", "evil", "X-Idempotency-Key", "1", "", ""},
		{"ce-id", "evil", "CE-ID", " 1\t", "", ""},
	} {
		for which := range uint8(4) {
			f.Add(which, seed[0], seed[1], seed[2], seed[3], seed[4], seed[5], uint32(i))
		}
	}
	for i, name := range []string{
		"Host", "Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive", "TE", "Trailer", "Upgrade", "Expect",
		"HTTP2-Settings", "Accept-Encoding", "User-Agent", "Content-Type", "Traceparent", "Proxy-Connection",
		"Dispatch-Task-Id", "Dispatch-Redelivered", "Dispatch-New", "Webhook-Id", "Webhook-Signature", "Idempotency-Key",
	} {
		f.Add(uint8(i), name, "chunked", strings.ToLower(name), "99", "", "", uint32(0xaaaaaaaa<<(i%2)))
	}
	var wires [4]*wire
	for i := range wires {
		wires[i] = newWire(f, Compat([]string{"", "", "aws-sqsd", "cloudevents"}[i]), i%2 == 1)
	}
	f.Fuzz(func(t *testing.T, which uint8, name1, value1, name2, value2, contentType, trace string, flip uint32) {
		w := wires[int(which)%len(wires)]
		own := map[string]string{flipCase(name1, flip): value1}
		if name2 != "" {
			own[name2] = value2
		}
		got, err := w.send(t, task.Meta{Headers: own, ContentType: contentType, TraceParent: trace})

		illegal := !legalValue(contentType)
		for name, value := range own {
			illegal = illegal || !legalName(name) || !legalValue(value)
		}
		if illegal {
			if reason := delivery.FromError(err).Reason; reason != delivery.Unsendable || got != "" {
				t.Fatalf("%q: %v, sent %q; want nothing sent, and unsendable", own, reason, got)
			}
			return
		}
		if err != nil {
			t.Fatalf("%q: %v", own, err)
		}
		want := w.want(own, contentType, trace)
		if diff := cmp.Diff(want, sentLines(t, got)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", own, diff)
		}
		// A receiver written in Go reads the same request.
		req, err := http.ReadRequest(bufio.NewReader(strings.NewReader(got)))
		if err != nil || req.Host != wireHost || req.ContentLength != int64(len(wirePayload)) || req.TransferEncoding != nil {
			t.Errorf("%q: read as %+v, %v", own, req, err)
		}
	})
}

// What the tasks on one wire have in common.
const (
	wireHost    = "a.example"
	wirePayload = "payload"
)

// wire is a target whose connections end in this process, with the request that it sends for a task without headers.
type wire struct {
	target  *Target
	sent    chan string // each request, byte for byte
	compat  Compat
	usually []string // its lines, in order
}

// newWire returns a plain target, or one that signs and has an authorization and a header of the route.
func newWire(f *testing.F, compat Compat, rich bool) *wire {
	f.Helper()
	cfg := Config{URL: "http://" + wireHost + "/hook", Compat: compat, Now: func() time.Time { return time.Unix(1_800_000_000, 0) }}
	if rich {
		secrets, err := signing.Parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
		if err != nil {
			f.Fatal(err)
		}
		cfg.Secrets, cfg.Authorization, cfg.Headers = secrets, "Bearer route", map[string]string{"X-Team": "route"}
	}
	target, err := New(cfg)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(target.Close)
	w := &wire{target: target, sent: make(chan string, 1), compat: compat}
	target.transport.Proxy = nil
	target.transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		go w.receive(far)
		return near, nil
	}
	usually, err := w.send(f, task.Meta{})
	if err != nil {
		f.Fatal(err)
	}
	w.usually = sentLines(f, usually)
	return w
}

// receive takes one request, which ends with the payload, whatever its header says. It ends with the connection.
func (w *wire) receive(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	var got strings.Builder
	for buf := make([]byte, 4096); !strings.HasSuffix(got.String(), "\r\n\r\n"+wirePayload); {
		n, err := conn.Read(buf)
		if err != nil {
			break
		}
		got.Write(buf[:n])
	}
	w.sent <- got.String()
	_, _ = io.WriteString(conn, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
}

// send delivers a task and returns what went over the wire for it; nothing when no connection was made.
func (w *wire) send(t testing.TB, meta task.Meta) (string, error) {
	t.Helper()
	tk := task.From(task.Spec{ID: "id", Queue: "orders", Payload: []byte(wirePayload), Meta: meta, Context: t.Context()})
	err := w.target.Deliver(t.Context(), tk)
	select {
	case sent := <-w.sent:
		return sent, err
	default:
		return "", err
	}
}

// want is the request for a task with these headers, all of them legal.
func (w *wire) want(own map[string]string, contentType, trace string) []string {
	add := map[string][]string{} // by names in small letters
	for name, value := range own {
		if name = strings.ToLower(name); !oursAlone(name) {
			add[name] = append(add[name], value)
		}
	}
	if contentType != "" {
		add["content-type"] = []string{contentType}
	}
	if trace != "" && legalValue(trace) {
		add["traceparent"] = []string{trace}
	}
	var want []string
	for _, line := range w.usually {
		name, _, _ := strings.Cut(line, ": ")
		if name == "content-type" || w.compat == CompatCloudEvents && strings.HasPrefix(name, "ce-") {
			if add[name] != nil {
				continue // a task knows better what it is
			}
		}
		delete(add, name)
		want = append(want, line)
	}
	for name, values := range add {
		for _, value := range values {
			want = append(want, name+": "+strings.Trim(value, " \t"))
		}
	}
	slices.Sort(want)
	return want
}

// oursAlone says whether a task may never set a header, whose name is in lower case.
func oursAlone(name string) bool {
	for _, prefix := range []string{"dispatch-", "webhook-", "proxy-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return slices.Contains([]string{
		"host", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer", "upgrade",
		"http2-settings", "expect", "accept-encoding", "user-agent", "content-type", "traceparent", "tracestate",
	}, name)
}

// legalName is RFC 9110's token.
func legalName(name string) bool {
	const token = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return name != "" && strings.Trim(name, token) == ""
}

// legalValue is RFC 9110's field-value, with white space around it that is not sent.
func legalValue(value string) bool {
	for _, b := range []byte(value) {
		if b < ' ' && b != '\t' || b == 0x7f {
			return false
		}
	}
	return true
}

// sentLines checks a request's first line and returns its header lines, sorted and with names in lower case.
func sentLines(t testing.TB, request string) []string {
	t.Helper()
	header, body, _ := strings.Cut(request, "\r\n\r\n")
	lines := strings.Split(header, "\r\n")
	if lines[0] != "POST /hook HTTP/1.1" || body != wirePayload {
		t.Fatalf("not one POST with the payload: %q", request)
	}
	for i, line := range lines[1:] {
		name, value, _ := strings.Cut(line, ": ")
		lines[i+1] = strings.ToLower(name) + ": " + value
	}
	return slices.Sorted(slices.Values(lines[1:]))
}

// flipCase changes the case of the letters for which flip, its bits repeated, has a 1.
func flipCase(name string, flip uint32) string {
	b := []byte(name)
	for i, c := range b {
		if letter := c | 0x20; flip>>(i%32)&1 == 1 && 'a' <= letter && letter <= 'z' {
			b[i] ^= 0x20
		}
	}
	return string(b)
}
