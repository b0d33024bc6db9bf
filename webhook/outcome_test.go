package webhook_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/task"
	"github.com/queuehook/queuehook/webhook"
)

// TestEveryStatusIsItsRow also proves that no request is sent twice, whatever go-retryablehttp's own policy is.
func TestEveryStatusIsItsRow(t *testing.T) {
	var seen atomic.Int64
	srv, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		seen.Add(1)
		status, _ := strconv.Atoi(r.Header.Get("X-Status"))
		w.WriteHeader(status)
	})
	tg := newTarget(t, webhook.Config{URL: srv.URL, QuickRetries: 3})
	var sent int64
	for status := 200; status <= 999; status++ {
		sent++
		want := delivery.Classify(status, nil, delivery.Rules{})
		if want.Reason == delivery.OK {
			want = delivery.FromError(nil)
		}
		tk := newTask("{}", task.Meta{Headers: map[string]string{"X-Status": strconv.Itoa(status)}})
		if diff := cmp.Diff(want, deliver(t, tg, tk)); diff != "" {
			t.Errorf("%d (-want +got):\n%s", status, diff)
		}
	}
	if seen.Load() != sent {
		t.Errorf("%d requests for %d attempts", seen.Load(), sent)
	}
}

func TestAnswerHeadersCount(t *testing.T) {
	answer := func(h map[string]string, status int) delivery.Outcome {
		srv, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			for k, v := range h {
				w.Header().Set(k, v)
			}
			w.WriteHeader(status)
		})
		return deliver(t, newTarget(t, webhook.Config{URL: srv.URL}), newTask("{}", task.Meta{}))
	}
	wantReason(t, answer(map[string]string{"Dispatch-No-Retry": "true"}, 500), delivery.Rejected)
	date := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	in5 := map[string]string{"Date": date.Format(http.TimeFormat), "Retry-After": date.Add(5 * time.Second).Format(http.TimeFormat)}
	if got := answer(in5, 503); got.Reason != delivery.Throttled || got.RetryAfter != 5*time.Second {
		t.Errorf("got %+v", got)
	}
	past := map[string]string{"Retry-After": date.Format(http.TimeFormat)}
	if got := answer(past, 503); got.Reason != delivery.Status || got.RetryAfter != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	elsewhere, touched := serve(t, func(http.ResponseWriter, *http.Request) {})
	for _, location := range []string{elsewhere.URL + "/x?token=secret", "/same", "http://[::1", "%zz", ""} {
		for _, status := range []int{300, 301, 302, 303, 304, 305, 307, 308} {
			var methods []string
			srv, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
				methods = append(methods, r.Method)
				w.Header().Set("Location", location)
				w.WriteHeader(status)
			})
			err := newTarget(t, webhook.Config{URL: srv.URL}).Deliver(t.Context(), newTask("{}", task.Meta{}))
			if got := outcome(t, err); got.Reason != delivery.Redirect || got.Status != status {
				t.Errorf("%d to %q: %+v", status, location, got)
			}
			if diff := cmp.Diff([]string{"POST"}, methods); diff != "" || strings.Contains(err.Error(), "secret") {
				t.Errorf("%d to %q: %v\n%s", status, location, err, diff)
			}
		}
	}
	if n := touched.opened.Load(); n != 0 {
		t.Errorf("the other host saw %d connections", n)
	}
}

// TestCutAfterSending has the ways in which a fresh connection fails once the request is out.
func TestCutAfterSending(t *testing.T) {
	for name, end := range map[string]func(*net.TCPConn){
		"reset":                 reset,
		"closed":                func(c *net.TCPConn) { _ = c.Close() },
		"cut in the status":     func(c *net.TCPConn) { _, _ = io.WriteString(c, "HTTP/1.1 20"); _ = c.Close() },
		"cut in the header":     func(c *net.TCPConn) { _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nX: "); _ = c.Close() },
		"no HTTP":               func(c *net.TCPConn) { _, _ = io.WriteString(c, "220 mail.example ESMTP\r\n"); _ = c.Close() },
		"status of no digits":   func(c *net.TCPConn) { _, _ = io.WriteString(c, "HTTP/1.1 abc\r\n\r\n"); _ = c.Close() },
		"header without an end": func(c *net.TCPConn) { endless(c, "HTTP/1.1 200 OK\r\nX: ") },
	} {
		t.Run(name, func(t *testing.T) {
			var seen atomic.Int64
			addr := listen(t, func(c *net.TCPConn) {
				if readRequest(bufio.NewReader(c)) {
					seen.Add(1)
				}
				end(c)
			})
			tg := newTarget(t, webhook.Config{URL: "http://" + addr, QuickRetries: 2})
			own := map[string]string{"Idempotency-Key": "k", "X-Idempotency-Key": "k"}
			got := deliver(t, tg, newTask("{}", task.Meta{Headers: own}))
			wantReason(t, got, delivery.Reset)
			if !got.Unknown || !got.Charged || seen.Load() != 1 {
				t.Errorf("%d requests, %+v", seen.Load(), got)
			}
		})
	}
}

func endless(c *net.TCPConn, begin string) {
	_, err := io.WriteString(c, begin)
	for err == nil {
		_, err = io.WriteString(c, strings.Repeat("x", 4096))
	}
}

// TestStaleConnection has the receiver answer one request on each connection, then read the next and cut.
func TestStaleConnection(t *testing.T) {
	for name, end := range map[string]func(*net.TCPConn){
		"reset": reset, "closed": func(c *net.TCPConn) { _ = c.Close() },
	} {
		for _, payload := range []string{"", "{}"} {
			t.Run(fmt.Sprintf("%s, %d bytes", name, len(payload)), func(t *testing.T) {
				var seen atomic.Int64
				addr := listen(t, func(c *net.TCPConn) {
					r := bufio.NewReader(c)
					for i := 0; readRequest(r); i++ {
						seen.Add(1)
						if i == 1 {
							end(c)
							return
						}
						_, _ = io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
					}
				})
				tg := newTarget(t, webhook.Config{URL: "http://" + addr, QuickRetries: 2})
				// These would make net/http repeat a POST by itself if they were sent under their canonical names.
				own := map[string]string{"Idempotency-Key": "k", "X-Idempotency-Key": "k"}
				first, again := newTask(payload, task.Meta{Headers: own}), newTask(payload, task.Meta{Headers: own, LastReason: "stale_connection"})

				wantReason(t, deliver(t, tg, first), delivery.OK)
				stale := deliver(t, tg, first)
				wantReason(t, stale, delivery.StaleConnection)
				if stale.Charged || !stale.Unknown {
					t.Errorf("got %+v", stale)
				}
				wantReason(t, deliver(t, tg, first), delivery.OK)
				twice := deliver(t, tg, again)
				wantReason(t, twice, delivery.Reset)
				if !twice.Charged || !twice.Unknown {
					t.Errorf("got %+v", twice)
				}
				if n := seen.Load(); n != 4 {
					t.Errorf("the receiver saw %d requests for 4 attempts", n)
				}
			})
		}
	}
}

func TestCutWithinAnAnswerIsNotStale(t *testing.T) {
	addr := listen(t, func(c *net.TCPConn) {
		r := bufio.NewReader(c)
		readRequest(r)
		_, _ = io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
		readRequest(r)
		_, _ = io.WriteString(c, "HTTP/1.1 20")
		_ = c.Close()
	})
	tg := newTarget(t, webhook.Config{URL: "http://" + addr})
	wantReason(t, deliver(t, tg, newTask("{}", task.Meta{})), delivery.OK)
	wantReason(t, deliver(t, tg, newTask("{}", task.Meta{})), delivery.Reset)
}

func TestNoConnection(t *testing.T) {
	secure := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	secure.Config.ErrorLog = quiet()
	t.Cleanup(secure.Close)
	plain, _ := serve(t, func(http.ResponseWriter, *http.Request) {})
	roots := secure.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	late := func() time.Time { return time.Now().AddDate(200, 0, 0) }
	cut := listen(t, func(c *net.TCPConn) { _ = c.Close() })
	for name, c := range map[string]struct {
		url    string
		tls    *tls.Config
		reason delivery.Reason
		detail string
	}{
		"refused": {"http://" + refused(t), nil, delivery.Connect, "connection refused"},
		// A label of 64 bytes is refused by every resolver without a query.
		"no such name":        {"http://" + strings.Repeat("a", 64) + ".invalid", nil, delivery.DNS, "no such host"},
		"unknown authority":   {secure.URL, nil, delivery.TLS, "unknown authority"},
		"expired certificate": {secure.URL, &tls.Config{RootCAs: roots, Time: late}, delivery.TLS, "expired"},
		"another name":        {secure.URL, &tls.Config{RootCAs: roots, ServerName: "other.invalid"}, delivery.TLS, "other.invalid"},
		"plain HTTP":          {strings.Replace(plain.URL, "http:", "https:", 1), nil, delivery.TLS, "does not speak TLS"},
		"cut handshake":       {"https://" + cut, nil, delivery.TLS, "handshake: "},
	} {
		t.Run(name, func(t *testing.T) {
			u := strings.Replace(c.url, "://", "://user:secret@", 1) + "/secret?token=secret"
			tg := newTarget(t, webhook.Config{URL: u, TLS: c.tls, QuickRetries: 1})
			got := deliver(t, tg, newTask("{}", task.Meta{}))
			wantReason(t, got, c.reason)
			if !strings.Contains(got.Detail, c.detail) || strings.Contains(got.Detail, "secret") {
				t.Errorf("detail %q, want %q in it", got.Detail, c.detail)
			}
			if got.Unknown || !got.Charged || !got.TargetFault || got.Status != 0 {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestPlainHTTPOnATLSPort(t *testing.T) {
	secure := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	secure.Config.ErrorLog = quiet()
	t.Cleanup(secure.Close)
	tg := newTarget(t, webhook.Config{URL: strings.Replace(secure.URL, "https:", "http:", 1)})
	if got := deliver(t, tg, newTask("{}", task.Meta{})); got.Reason != delivery.Status || got.Status != 400 {
		t.Errorf("got %+v", got)
	}
}

// TestMissingClientCertificate: in TLS 1.3 the refusal comes after the handshake, when the request is out already.
func TestMissingClientCertificate(t *testing.T) {
	srv := httptest.NewTLSServer(nil)
	t.Cleanup(srv.Close)
	strict := &tls.Config{
		Certificates: srv.TLS.Certificates, ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS13,
	}
	// The connection stays open after the alert, since a close with unread bytes may overtake it as a RST.
	addr := listen(t, func(c *net.TCPConn) { _ = tls.Server(c, strict).HandshakeContext(context.Background()) })
	roots := srv.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	tg := newTarget(t, webhook.Config{URL: "https://" + addr, TLS: &tls.Config{RootCAs: roots}})
	got := deliver(t, tg, newTask("{}", task.Meta{}))
	wantReason(t, got, delivery.TLS)
	if !strings.Contains(got.Detail, "certificate required") || !got.Unknown {
		t.Errorf("got %+v", got)
	}
}

// TestQuickRetry cuts the first handshake, so that nothing of the request left this host.
func TestQuickRetry(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	var accepted atomic.Int64
	srv.Listener = cutFirst{srv.Listener, &accepted}
	srv.Config.ErrorLog = quiet()
	srv.StartTLS()
	t.Cleanup(srv.Close)
	trust := &tls.Config{RootCAs: srv.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}

	once := newTarget(t, webhook.Config{URL: srv.URL, TLS: trust})
	wantReason(t, deliver(t, once, newTask("{}", task.Meta{})), delivery.TLS)
	accepted.Store(0)
	twice := newTarget(t, webhook.Config{URL: srv.URL, TLS: trust, QuickRetries: 1})
	wantReason(t, deliver(t, twice, newTask("{}", task.Meta{})), delivery.OK)
	if n := accepted.Load(); n != 2 {
		t.Errorf("%d connections", n)
	}
}

// cutFirst closes the first connection that it accepts.
type cutFirst struct {
	net.Listener
	accepted *atomic.Int64
}

func (l cutFirst) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil && l.accepted.Add(1) == 1 {
		_ = c.Close()
	}
	return c, err
}

// TestDeadlineKeepsTheFirstFault retries without end, so that the deadline comes during a retry or the wait for one.
func TestDeadlineKeepsTheFirstFault(t *testing.T) {
	ctx := newDue(t)
	var tries atomic.Int64
	addr := listen(t, func(c *net.TCPConn) {
		_ = c.Close()
		if tries.Add(1) == 3 {
			ctx.end()
		}
	})
	tg := newTarget(t, webhook.Config{URL: "https://" + addr, QuickRetries: 1_000_000})
	got := outcome(t, tg.Deliver(ctx, newTask("{}", task.Meta{})))
	wantReason(t, got, delivery.TLS)
	if got.Unknown {
		t.Errorf("got %+v", got)
	}
}

func TestDeadlineAndShutdown(t *testing.T) {
	arrived, let := make(chan struct{}, 1), make(chan struct{})
	srv, _ := serve(t, func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		<-let
	})
	t.Cleanup(func() { close(let) })
	tg := newTarget(t, webhook.Config{URL: srv.URL})

	t.Run("deadline", func(t *testing.T) {
		ctx := newDue(t)
		go func() { <-arrived; ctx.end() }()
		got := outcome(t, tg.Deliver(ctx, newTask("{}", task.Meta{})))
		if diff := cmp.Diff(delivery.Of(delivery.Timeout), got, ignoreDetail()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	for name, cause := range map[string]error{"shutdown": delivery.ErrShutdown, "cancelled": nil} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			go func() { <-arrived; cancel(cause) }()
			got := outcome(t, tg.Deliver(ctx, newTask("{}", task.Meta{})))
			if diff := cmp.Diff(delivery.Of(delivery.Shutdown), got, ignoreDetail()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	t.Run("before anything was sent", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(delivery.ErrShutdown)
		got := outcome(t, tg.Deliver(ctx, newTask("{}", task.Meta{})))
		wantReason(t, got, delivery.Shutdown)
		if got.Unknown {
			t.Errorf("got %+v", got)
		}
		late, stop := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
		defer stop()
		got = outcome(t, tg.Deliver(late, newTask("{}", task.Meta{})))
		wantReason(t, got, delivery.Timeout)
		if got.Unknown {
			t.Errorf("got %+v", got)
		}
	})
}

// TestSlowAnswers: whatever a receiver does, the slot is free at the deadline, and the status line, once it is there,
// decides. A machine that is too busy to read it within the deadline gets a longer one.
func TestSlowAnswers(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	drip := func(c *net.TCPConn, s string) {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for i := 0; ; i++ {
			if _, err := c.Write([]byte{s[i%len(s)]}); err != nil {
				return
			}
			<-tick.C
		}
	}
	for name, c := range map[string]struct {
		answer func(*net.TCPConn)
		reason delivery.Reason
	}{
		"endless chunked body": {func(c *net.TCPConn) {
			_, err := io.WriteString(c, ok)
			for err == nil {
				_, err = io.WriteString(c, "1000\r\n"+strings.Repeat("x", 4096)+"\r\n")
			}
		}, delivery.OK},
		"dripped body":   {func(c *net.TCPConn) { _, _ = io.WriteString(c, ok); drip(c, "1\r\nx\r\n") }, delivery.OK},
		"silent body":    {func(c *net.TCPConn) { _, _ = io.WriteString(c, ok) }, delivery.OK},
		"broken chunk":   {func(c *net.TCPConn) { _, _ = io.WriteString(c, ok+"zz"); _ = c.Close() }, delivery.OK},
		"cut body":       {func(c *net.TCPConn) { _, _ = io.WriteString(c, ok+"5\r\nx"); reset(c) }, delivery.OK},
		"dripped header": {func(c *net.TCPConn) { drip(c, "HTTP/1.1 200 OK\r\nX-Drip: "+strings.Repeat("x", 1e4)) }, delivery.Timeout},
		"silence":        {func(*net.TCPConn) {}, delivery.Timeout},
		"switch protocols": {func(c *net.TCPConn) {
			_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n")
		}, delivery.Status},
		"early hints": {func(c *net.TCPConn) {
			_, _ = io.WriteString(c, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n")
		}, delivery.OK},
	} {
		t.Run(name, func(t *testing.T) {
			addr := listen(t, func(conn *net.TCPConn) {
				if readRequest(bufio.NewReader(conn)) {
					c.answer(conn)
				}
			})
			tg := newTarget(t, webhook.Config{URL: "http://" + addr})
			var got delivery.Outcome
			for limit := 300 * time.Millisecond; got.Reason != c.reason && limit < patience; limit *= 3 {
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				got = outcome(t, tg.Deliver(ctx, newTask("{}", task.Meta{})))
				cancel()
			}
			wantReason(t, got, c.reason)
		})
	}
}

// TestNeverReads has a receiver that accepts and never reads, which must not hold a large request past the deadline.
func TestNeverReads(t *testing.T) {
	addr := listen(t, func(*net.TCPConn) {})
	tg := newTarget(t, webhook.Config{URL: "http://" + addr})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	got := outcome(t, tg.Deliver(ctx, newTask(strings.Repeat("x", 32<<20), task.Meta{})))
	wantReason(t, got, delivery.Timeout)
}
