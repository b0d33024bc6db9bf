package webhook_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/task"
	"github.com/queuehook/queuehook/webhook"
)

// capture answers 204 to one request on each connection and keeps its bytes; a request ends with end.
func capture(t *testing.T, end string) (addr string, seen chan string) {
	seen = make(chan string, 1)
	addr = listen(t, func(c *net.TCPConn) {
		var got bytes.Buffer
		buf := make([]byte, 4096)
		for !strings.HasSuffix(got.String(), end) {
			n, err := c.Read(buf)
			if err != nil {
				return
			}
			got.Write(buf[:n])
		}
		seen <- got.String()
		_, _ = io.WriteString(c, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
		_ = c.Close()
	})
	return addr, seen
}

func lines(s ...string) string { return strings.Join(s, "\r\n") }

func TestFirstAttemptOnTheWire(t *testing.T) {
	addr, seen := capture(t, "{}")
	tg := newTarget(t, webhook.Config{URL: "http://" + addr + "/hook?token=a%2Cb#part", Version: "1.2.3"})
	if err := tg.Deliver(t.Context(), newTask("{}", task.Meta{})); err != nil {
		t.Fatal(err)
	}
	want := lines(
		"POST /hook?token=a%2Cb HTTP/1.1",
		"Host: "+addr,
		"User-Agent: queuehook/1.2.3",
		"Content-Length: 2",
		"Content-Type: application/json",
		"Dispatch-Attempt: 1",
		"Dispatch-Queue: orders",
		"Dispatch-Task-Id: 01J0TASK",
		"", "{}",
	)
	if diff := cmp.Diff(want, <-seen); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLaterAttemptOnTheWire(t *testing.T) {
	addr, seen := capture(t, "x")
	tg := newTarget(t, webhook.Config{
		URL: "http://user:p%40ss@" + addr, Method: http.MethodPut, ContentType: "text/plain", MaxAttempts: 40,
		Headers: map[string]string{"x-team": "payments", "X-Both": "route", "idempotency-key": "r"},
	})
	ctx, cancel := context.WithDeadline(t.Context(), time.Date(2126, 1, 2, 3, 4, 5, 678e6, time.FixedZone("", 3600)))
	defer cancel()
	err := tg.Deliver(ctx, newTask("x", task.Meta{
		Attempt: 6, MaxAttempts: 7, EnqueuedAt: 1_800_000_000_123, ContentType: "application/xml",
		LastStatus: 503, LastReason: "throttled", Redelivered: true,
		TraceParent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", TraceState: "a=b",
		Headers: map[string]string{
			"x-shop": "7", "X-SHOP": "8", "x-both": "task", "x-idempotency-key": "t", "Authorization": "Bearer task",
			"Accept": "application/json",
		},
	}))
	if err != nil {
		t.Fatal(err)
	}
	want := lines(
		"PUT / HTTP/1.1",
		"Host: "+addr,
		"User-Agent: queuehook/dev",
		"Content-Length: 1",
		"Accept: application/json",
		"Authorization: Basic dXNlcjpwQHNz",
		"Content-Type: application/xml",
		"Dispatch-Attempt: 7",
		"Dispatch-Deadline: 2126-01-02T02:04:05.678Z",
		"Dispatch-Enqueued-At: 2027-01-15T08:00:00.123Z",
		"Dispatch-Max-Attempts: 7",
		"Dispatch-Previous-Reason: throttled",
		"Dispatch-Previous-Status: 503",
		"Dispatch-Queue: orders",
		"Dispatch-Redelivered: true",
		"Dispatch-Task-Id: 01J0TASK",
		"Traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		"Tracestate: a=b",
		"X-Both: route",
		"X-Shop: 8",
		"X-Shop: 7",
		"X-Team: payments",
		"idempotency-key: r",
		"x-idempotency-key: t",
		"", "x",
	)
	if diff := cmp.Diff(want, <-seen); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestOursWin has a task set every header that it may not set, in odd case, and looks for the values on the wire.
func TestOursWin(t *testing.T) {
	addr, seen := capture(t, "{}")
	own := map[string]string{}
	for _, name := range []string{
		"host", "Content-length", "TRANSFER-ENCODING", "connection", "Keep-alive", "te", "trailer", "upgrade",
		"http2-settings", "expect", "accept-encoding", "user-agent", "content-type", "traceparent", "TraceState",
		"dispatch-task-id", "DISPATCH-ATTEMPT", "Dispatch-Anything", "wEbHoOk-SiGnAtUrE", "webhook-id",
		"webhook-timestamp", "proxy-authorization", "Proxy-Connection",
	} {
		own[name] = "99evil"
	}
	tg := newTarget(t, webhook.Config{URL: "http://" + addr})
	if err := tg.Deliver(t.Context(), newTask("{}", task.Meta{Headers: own})); err != nil {
		t.Fatal(err)
	}
	got := <-seen
	if strings.Contains(got, "99evil") {
		t.Errorf("a task overrode what is ours:\n%s", got)
	}
	for _, name := range []string{"Accept-Encoding", "Expect", "Traceparent", "Transfer-Encoding"} {
		if strings.Contains(got, name) {
			t.Errorf("%s is on the wire:\n%s", name, got)
		}
	}
}

func TestUnsendable(t *testing.T) {
	srv, c := serve(t, func(http.ResponseWriter, *http.Request) {})
	tg := newTarget(t, webhook.Config{URL: srv.URL})
	spec := func(id, queue string, m task.Meta) *task.Task {
		return task.From(task.Spec{ID: id, Queue: queue, Meta: m, Context: t.Context()})
	}
	headers := func(name, value string) *task.Task {
		return spec("id", "orders", task.Meta{Headers: map[string]string{name: value}})
	}
	for name, tk := range map[string]*task.Task{
		"value with CR LF":          headers("X-A", "1\r\nX-B: secret"),
		"value with NUL":            headers("X-A", "secret\x00"),
		"name with a space":         headers("X secret", "1"),
		"name with CR LF":           headers("X-A\r\nX-secret", "1"),
		"name with a colon":         headers(":authority", "1"),
		"empty name":                headers("", "1"),
		"reserved name, bad value":  headers("Webhook-Signature", "secret\n"),
		"content type with LF":      spec("id", "orders", task.Meta{ContentType: "text/plain\nsecret"}),
		"queue with LF":             spec("id", "ord\nsecret", task.Meta{}),
		"id with LF":                spec("secret\n", "orders", task.Meta{}),
		"last reason of odd origin": spec("id", "orders", task.Meta{LastReason: "secret\r\n"}),
	} {
		t.Run(name, func(t *testing.T) {
			err := tg.Deliver(t.Context(), tk)
			got := outcome(t, err)
			wantReason(t, got, delivery.Unsendable)
			if got.Settlement != delivery.Bury || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v: %v", got.Settlement, err)
			}
		})
	}
	if n := c.opened.Load(); n != 0 {
		t.Errorf("%d connections were made", n)
	}
}

func TestUnreadableTraceIsLeftOut(t *testing.T) {
	got := make(chan http.Header, 1)
	srv, _ := serve(t, func(_ http.ResponseWriter, r *http.Request) { got <- r.Header })
	tg := newTarget(t, webhook.Config{URL: srv.URL})
	for name, m := range map[string]task.Meta{
		"illegal parent": {TraceParent: "00\r\n", TraceState: "a=b"},
		"state alone":    {TraceState: "a=b"},
		"illegal state":  {TraceParent: "00-a", TraceState: "\x00"},
	} {
		wantReason(t, deliver(t, tg, newTask("", m)), delivery.OK)
		if h := <-got; h.Get("Tracestate") != "" || strings.Contains(h.Get("Traceparent"), "\r") {
			t.Errorf("%s: %v", name, h)
		}
	}
}

func TestPayloadIsByteExact(t *testing.T) {
	type seen struct {
		body   []byte
		length int64
		coding []string
	}
	got := make(chan seen, 1)
	srv, _ := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got <- seen{b, r.ContentLength, r.TransferEncoding}
	})
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for name, payload := range map[string]string{
		"empty": "", "NUL": "\x00", "line ends": "\r\n\r\n", "invalid UTF-8": "\xff\xfe\xc3(", "every byte": string(all),
		"1 MB": strings.Repeat(string(all), 4096),
	} {
		for _, method := range []string{"POST", "PUT", "PATCH"} {
			tg := newTarget(t, webhook.Config{URL: srv.URL, Method: method})
			wantReason(t, deliver(t, tg, newTask(payload, task.Meta{})), delivery.OK)
			s := <-got
			if string(s.body) != payload || s.length != int64(len(payload)) || s.coding != nil {
				t.Errorf("%s %s: %d bytes, length %d, coding %v", method, name, len(s.body), s.length, s.coding)
			}
		}
	}
}

func TestNewRefuses(t *testing.T) {
	const good = "https://a.example/secret"
	for name, cfg := range map[string]webhook.Config{
		"no URL":            {},
		"no scheme":         {URL: "a.example/secret"},
		"another scheme":    {URL: "ftp://a.example/secret"},
		"no host":           {URL: "http:///secret"},
		"port only":         {URL: "http://:80/secret"},
		"unparsable":        {URL: "http://a.example:secret/%zz"},
		"method":            {URL: good, Method: "GET"},
		"max conns":         {URL: good, MaxConns: -1},
		"connect timeout":   {URL: good, ConnectTimeout: -1},
		"quick retries":     {URL: good, QuickRetries: -1},
		"reserved header":   {URL: good, Headers: map[string]string{"dispatch-x": "secret"}},
		"illegal header":    {URL: good, Headers: map[string]string{"a b": "secret"}},
		"illegal value":     {URL: good, Headers: map[string]string{"a": "secret\n"}},
		"illegal version":   {URL: good, Version: "secret\n"},
		"illegal type":      {URL: good, ContentType: "secret\n"},
		"two at once":       {URL: good, Method: "GET", MaxConns: -1},
		"host-only with pw": {URL: "//user:secret@a.example"},
	} {
		_, err := webhook.New(cfg)
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestStringIsOriginOnly(t *testing.T) {
	tg := newTarget(t, webhook.Config{URL: "https://user:pw@a.example:8443/path?token=x"})
	if got := tg.String(); got != "https://a.example:8443" {
		t.Error(got)
	}
}
