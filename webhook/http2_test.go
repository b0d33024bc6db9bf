package webhook_test

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/task"
	"github.com/queuehook/queuehook/webhook"
)

// serve2 is a server that speaks HTTP/2 over TLS, and a target that trusts it.
func serve2(t testing.TB, maxConns int, h http.HandlerFunc) (*httptest.Server, *webhook.Target, *conns) {
	t.Helper()
	var c conns
	srv := httptest.NewUnstartedServer(h)
	srv.EnableHTTP2 = true
	srv.Config.ErrorLog = quiet()
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			c.opened.Add(1)
		}
	}
	srv.StartTLS()
	t.Cleanup(srv.Close)
	trust := &tls.Config{RootCAs: srv.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	return srv, newTarget(t, webhook.Config{URL: srv.URL, MaxConns: maxConns, TLS: trust, QuickRetries: 1}), &c
}

func TestHTTP2(t *testing.T) {
	var seen atomic.Int64
	_, tg, c := serve2(t, 8, func(w http.ResponseWriter, r *http.Request) {
		seen.Add(1)
		body, _ := io.ReadAll(r.Body)
		if r.ProtoMajor != 2 || string(body) != `{"id":1}` || r.ContentLength != 8 || r.Header.Get("Dispatch-Task-Id") == "" {
			t.Errorf("%s, %d bytes, %v", r.Proto, r.ContentLength, r.Header)
		}
		if r.Header.Get("Accept-Encoding") != "" || r.Header.Get("Expect") != "" {
			t.Errorf("%v", r.Header)
		}
		w.WriteHeader(http.StatusNoContent)
	})
	together(t, tg, 500, 8, patience, func(o delivery.Outcome) { wantReason(t, o, delivery.OK) })
	if seen.Load() != 500 || c.opened.Load() > 8 {
		t.Errorf("%d requests over %d connections", seen.Load(), c.opened.Load())
	}
}

// TestHTTP2Outcomes runs on one kept connection, since an HTTP/2 failure of one request leaves the connection alone.
func TestHTTP2Outcomes(t *testing.T) {
	var seen atomic.Int64
	srv, tg, c := serve2(t, 1, nil)
	srv.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		switch r.Header.Get("X-Do") {
		case "abort":
			panic(http.ErrAbortHandler)
		case "cut the body":
			w.WriteHeader(http.StatusAccepted)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		case "redirect":
			w.Header().Set("Location", "/x")
			w.WriteHeader(http.StatusTemporaryRedirect)
		case "hang":
			<-r.Context().Done()
		}
	})
	do := func(what, payload string) *task.Task {
		return newTask(payload, task.Meta{Headers: map[string]string{"X-Do": what, "Idempotency-Key": "k"}})
	}
	for _, payload := range []string{"", "{}"} {
		for _, step := range []struct {
			what   string
			reason delivery.Reason
		}{
			{"answer", delivery.OK},
			{"abort", delivery.Reset}, // the receiver's own act: neither stale nor free of charge
			{"cut the body", delivery.OK},
			{"redirect", delivery.Redirect},
			{"answer", delivery.OK},
		} {
			seen.Store(0)
			wantReason(t, deliver(t, tg, do(step.what, payload)), step.reason)
			if n := seen.Load(); n != 1 {
				t.Errorf("%s: %d requests", step.what, n)
			}
		}
	}
	together(t, tg, 100, 4, patience, func(o delivery.Outcome) { wantReason(t, o, delivery.OK) })
	if n := c.opened.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

func TestHTTP2ConnectionCut(t *testing.T) {
	var srv *httptest.Server
	var seen atomic.Int64
	srv, tg, _ := serve2(t, 4, func(_ http.ResponseWriter, r *http.Request) {
		if seen.Add(1) == 2 {
			srv.CloseClientConnections()
			<-r.Context().Done()
		}
	})
	wantReason(t, deliver(t, tg, newTask("{}", task.Meta{})), delivery.OK)
	got := deliver(t, tg, newTask("{}", task.Meta{}))
	wantReason(t, got, delivery.StaleConnection)
	wantReason(t, deliver(t, tg, newTask("{}", task.Meta{})), delivery.OK)
	if n := seen.Load(); n != 3 {
		t.Errorf("%d requests for 3 attempts", n)
	}
}

func TestHTTP2HangEndsAtTheDeadline(t *testing.T) {
	const rounds, width = 5, 4
	hanging := make(chan struct{}, width)
	_, tg, c := serve2(t, 2, func(_ http.ResponseWriter, r *http.Request) {
		hanging <- struct{}{}
		<-r.Context().Done()
	})
	for range rounds {
		ctx := newDue(t)
		go func() {
			for range width {
				<-hanging
			}
			ctx.end()
		}()
		var all sync.WaitGroup
		for range width {
			all.Go(func() {
				wantReason(t, delivery.FromError(tg.Deliver(ctx, newTask("{}", task.Meta{}))), delivery.Timeout)
			})
		}
		all.Wait()
	}
	if n := c.opened.Load(); n > 2 {
		t.Errorf("%d connections", n)
	}
}

// TestHTTP1OverTLS: a server that does not offer HTTP/2.
func TestHTTP1OverTLS(t *testing.T) {
	srv := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 1 {
			t.Error(r.Proto)
		}
	}))
	t.Cleanup(srv.Close)
	trust := &tls.Config{RootCAs: srv.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	tg := newTarget(t, webhook.Config{URL: srv.URL, TLS: trust})
	wantReason(t, deliver(t, tg, newTask("{}", task.Meta{})), delivery.OK)
}

// TestIdempotencyKeyControl shows what wireKey prevents: net/http repeats a POST that carries the canonical name.
func TestIdempotencyKeyControl(t *testing.T) {
	var seen atomic.Int64
	addr := listen(t, func(c *net.TCPConn) {
		r := bufio.NewReader(c)
		for i := 0; readRequest(r); i++ {
			if seen.Add(1); i == 1 {
				reset(c)
				return
			}
			_, _ = io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
		}
	})
	var transport http.Transport
	defer transport.CloseIdleConnections()
	for range 2 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Idempotency-Key", "k")
		resp, err := (&http.Client{Transport: &transport}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	if diff := cmp.Diff(int64(3), seen.Load()); diff != "" {
		t.Errorf("net/http no longer repeats such a POST; wireKey can go (-want +got):\n%s", diff)
	}
}
