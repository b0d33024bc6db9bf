package receiver_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queuehook/queuehook/internal/receiver"
)

func start(t *testing.T, cfg receiver.Config) *receiver.Server {
	t.Helper()
	s, err := receiver.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// client talks only to s and follows no redirect.
func client(t *testing.T, s *receiver.Server) *http.Client {
	t.Helper()
	conf, err := s.ClientTLS()
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{TLSClientConfig: conf, ForceAttemptHTTP2: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{
		Transport:     tr,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func patient(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// post sends body for a task and reads the answer to its end, or until it breaks off.
func post(ctx context.Context, c *http.Client, url, task, body string) (status int, answer string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set(receiver.TaskIDHeader, task)
	res, err := c.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = res.Body.Close() }()
	read, err := io.ReadAll(res.Body)
	return res.StatusCode, string(read), err
}

func sha(body string) string {
	sum := sha256.Sum256([]byte(body))
	return hex.EncodeToString(sum[:])
}

// protocols runs f over HTTP/1.1, HTTPS/1.1 and HTTP/2.
func protocols(t *testing.T, f func(t *testing.T, cfg receiver.Config, proto string)) {
	t.Helper()
	t.Run("http1", func(t *testing.T) { t.Parallel(); f(t, receiver.Config{}, "HTTP/1.1") })
	t.Run("https1", func(t *testing.T) { t.Parallel(); f(t, receiver.Config{TLS: true, HTTP1: true}, "HTTP/1.1") })
	t.Run("http2", func(t *testing.T) { t.Parallel(); f(t, receiver.Config{TLS: true}, "HTTP/2.0") })
}

func TestAnswersAndLog(t *testing.T) {
	t.Parallel()
	protocols(t, func(t *testing.T, cfg receiver.Config, proto string) {
		cfg.KeepBody = 3
		cfg.Script = receiver.Sequence(
			receiver.Text(500, "went wrong").With("Retry-After", "7").With("X-Twice", "a").With("X-Twice", "b"),
			receiver.Redirect(307, "http://127.0.0.1:1/"),
			receiver.Status(204),
		)
		s := start(t, cfg)
		c := client(t, s)

		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, s.URL()+"/hook?x=1", strings.NewReader("payload"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(receiver.TaskIDHeader, "A")
		req.Header.Set("X-Mine", "yes")
		res, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != 500 || string(text) != "went wrong" || res.Header.Get("Retry-After") != "7" ||
			!cmp.Equal(res.Header.Values("X-Twice"), []string{"a", "b"}) {
			t.Errorf("first answer %d %q %v", res.StatusCode, text, res.Header)
		}
		if status, _, err := post(t.Context(), c, s.URL(), "B", ""); status != 307 || err != nil {
			t.Errorf("second answer %d, %v, want 307", status, err)
		}
		for range 2 {
			if status, _, err := post(t.Context(), c, s.URL(), "A", "payload"); status != 204 || err != nil {
				t.Errorf("later answer %d, %v, want 204", status, err)
			}
		}

		if err := s.WaitIdle(patient(t)); err != nil {
			t.Fatal(err)
		}
		if s.Count() != 4 || s.Dropped() != 0 || len(s.Log()) != 4 {
			t.Errorf("count %d, dropped %d, log of %d, want 4, 0, 4", s.Count(), s.Dropped(), len(s.Log()))
		}
		first := s.ByTask("A")[0]
		if first.Header.Get("X-Mine") != "yes" || first.Arrived.IsZero() || first.Over.Before(first.Arrived) ||
			first.Finished.Before(first.Over) {
			t.Errorf("first request %+v", first)
		}
		first.Header, first.Arrived, first.Over, first.Finished = nil, time.Time{}, time.Time{}, time.Time{}
		want := receiver.Request{
			Seq: 1, Conn: 1, Proto: proto, Method: "PUT", Host: s.Addr(), Path: "/hook", Query: "x=1", TaskID: "A",
			BodyRead: true, SHA256: sha("payload"), Size: 7, Body: []byte("pay"), Status: 500, Sent: true,
		}
		if diff := cmp.Diff(want, first); diff != "" {
			t.Errorf("first request (-want +got):\n%s", diff)
		}
		if n := len(s.ByBody(sha("payload"))); n != 3 {
			t.Errorf("%d requests with the payload, want 3", n)
		}
		if n := len(s.ByBody(sha(""))); n != 1 {
			t.Errorf("%d requests with an empty body, want 1", n)
		}
		if got, want := s.Connections(), (receiver.Connections{Accepted: 1, Open: 1, Peak: 1}); got != want {
			t.Errorf("connections %+v, want %+v", got, want)
		}
	})
}

func TestEveryStatus(t *testing.T) {
	t.Parallel()
	s := start(t, receiver.Config{Script: func(r receiver.Request) receiver.Answer {
		code, _ := strconv.Atoi(strings.TrimPrefix(r.Path, "/"))
		return receiver.Status(code)
	}})
	c := client(t, s)
	for code := 200; code <= 999; code++ {
		if got, _, err := post(t.Context(), c, s.URL()+"/"+strconv.Itoa(code), "", "x"); got != code || err != nil {
			t.Errorf("status %d: got %d, %v", code, got, err)
		}
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	protocols(t, func(t *testing.T, cfg receiver.Config, proto string) {
		for _, fault := range []receiver.Fault{receiver.Reset, receiver.Close, receiver.Abort} {
			for _, when := range []receiver.When{
				receiver.BeforeRead, receiver.AfterRead, receiver.AfterHeaders, receiver.AfterBody,
			} {
				cfg.Script = receiver.Always(receiver.HangUp(fault, when))
				s := start(t, cfg)
				status, body, err := post(patient(t), client(t, s), s.URL(), "A", "payload")
				if err == nil {
					t.Errorf("fault %d at %d: no error", fault, when)
				}
				if err := s.WaitIdle(patient(t)); err != nil {
					t.Fatal(err)
				}
				// The client has what was flushed before the end, unless an RST destroyed it on its way. The kernel sends
				// one for a Close too while bytes of the client are unread, as HTTP/2's control frames may be.
				surely := fault == receiver.Abort || fault == receiver.Close && proto == "HTTP/1.1"
				wantStatus, wantBody := 0, ""
				if when == receiver.AfterHeaders || when == receiver.AfterBody {
					wantStatus = 200
				}
				if when == receiver.AfterBody {
					wantBody = "ok"
				}
				if surely && (status != wantStatus || body != wantBody) {
					t.Errorf("fault %d at %d: got %d %q, want %d %q", fault, when, status, body, wantStatus, wantBody)
				}
				if fault == receiver.Reset && when == receiver.AfterRead && proto == "HTTP/1.1" && !errors.Is(err, syscall.ECONNRESET) {
					t.Errorf("reset: %v, want ECONNRESET", err)
				}
				for _, r := range s.ByTask("A") {
					if r.Sent || r.Status != wantStatus || r.BodyRead != (when != receiver.BeforeRead) {
						t.Errorf("fault %d at %d: logged %+v", fault, when, r)
					}
				}
				if now, _ := s.InFlight(); now != 0 {
					t.Errorf("fault %d at %d: %d in flight", fault, when, now)
				}
			}
		}
	})
}

func TestHangEndsWithTheClient(t *testing.T) {
	t.Parallel()
	protocols(t, func(t *testing.T, cfg receiver.Config, _ string) {
		for name, answer := range map[string]receiver.Answer{
			"never":         receiver.Never(),
			"after headers": receiver.HangUp(receiver.Hang, receiver.AfterHeaders),
			"delay":         receiver.Status(204).After(time.Hour),
			"endless":       receiver.EndlessBody(200, time.Millisecond),
			"flood":         receiver.EndlessBody(200, 0),
			"drip":          receiver.DripBody(200, strings.Repeat("x", 1<<20), time.Millisecond),
			"drip all":      receiver.DripAll(200, strings.Repeat("x", 1<<20), time.Millisecond),
		} {
			cfg.Script = receiver.Always(answer)
			s := start(t, cfg)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				_, _, err := post(ctx, client(t, s), s.URL(), "A", "payload")
				done <- err
			}()
			if err := s.WaitCount(patient(t), 1); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if now, _ := s.InFlight(); now != 1 {
				t.Errorf("%s: %d in flight, want 1", name, now)
			}
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("%s: client got %v, want its own cancel", name, err)
			}
			if err := s.WaitIdle(patient(t)); err != nil {
				t.Errorf("%s: still busy after the client left: %v", name, err)
			}
			if r := s.Log()[0]; r.Sent {
				t.Errorf("%s: logged as sent", name)
			}
		}
	})
}

func TestHangEndsWithClose(t *testing.T) {
	t.Parallel()
	protocols(t, func(t *testing.T, cfg receiver.Config, _ string) {
		for name, answer := range map[string]receiver.Answer{
			"never":    receiver.Never(),
			"unread":   receiver.Never().Unread(),
			"delay":    receiver.Status(204).After(time.Hour),
			"flood":    receiver.EndlessBody(200, 0),
			"drip all": receiver.DripAll(200, "x", time.Hour),
		} {
			cfg.Script = receiver.Always(answer)
			s := start(t, cfg)
			done := make(chan error, 1)
			go func() {
				_, _, err := post(patient(t), client(t, s), s.URL(), "A", "payload")
				done <- err
			}()
			if err := s.WaitCount(patient(t), 1); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			s.Close()
			if err := <-done; err == nil || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: client got %v, want a broken connection", name, err)
			}
			if c := s.Connections(); c.Open != 0 {
				t.Errorf("%s: %d connections open after Close", name, c.Open)
			}
		}
	})
}

func TestDripArrives(t *testing.T) {
	t.Parallel()
	protocols(t, func(t *testing.T, cfg receiver.Config, proto string) {
		cfg.Script = receiver.Sequence(
			receiver.DripBody(200, "drop by drop", time.Millisecond),
			receiver.DripAll(503, "all of it", time.Millisecond).With("Retry-After", "1"),
		)
		s := start(t, cfg)
		c := client(t, s)
		if status, body, err := post(t.Context(), c, s.URL(), "A", ""); status != 200 || body != "drop by drop" || err != nil {
			t.Errorf("dripped body: %d %q, %v", status, body, err)
		}
		if proto == "HTTP/2.0" {
			return // can't drip its head
		}
		if status, body, err := post(t.Context(), c, s.URL(), "A", ""); status != 503 || body != "all of it" || err != nil {
			t.Errorf("dripped answer: %d %q, %v", status, body, err)
		}
		if err := s.WaitIdle(patient(t)); err != nil {
			t.Fatal(err)
		}
		for _, r := range s.Log() {
			if !r.Sent {
				t.Errorf("request %d logged as not sent", r.Seq)
			}
		}
	})
}

func TestUnreadBody(t *testing.T) {
	t.Parallel()
	protocols(t, func(t *testing.T, cfg receiver.Config, _ string) {
		cfg.Script = receiver.Always(receiver.Text(413, "too much").Unread())
		s := start(t, cfg)
		// A client that is still sending may see the answer or the broken connection; both are the receiver's right.
		_, _, _ = post(patient(t), client(t, s), s.URL(), "A", strings.Repeat("x", 8<<20))
		if err := s.WaitIdle(patient(t)); err != nil {
			t.Fatal(err)
		}
		if r := s.Log()[0]; r.BodyRead || r.SHA256 != "" || r.Size != 0 || r.Status != 413 {
			t.Errorf("logged %+v, want an unread body and 413", r)
		}
	})
}

func TestClientLeavesAmidItsBody(t *testing.T) {
	t.Parallel()
	s := start(t, receiver.Config{})
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), "tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\n\r\nhalf"); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.WaitCount(patient(t), 1); err != nil {
		t.Fatal(err)
	}
	if err := s.WaitIdle(patient(t)); err != nil {
		t.Fatal(err)
	}
	if r := s.Log()[0]; r.BodyRead || r.SHA256 != "" || r.Size != 4 || r.Status != 0 || r.Sent {
		t.Errorf("logged %+v, want half a body and no answer", r)
	}
}

func TestLogIsBounded(t *testing.T) {
	t.Parallel()
	s := start(t, receiver.Config{LogLimit: 3})
	c := client(t, s)
	for _, task := range []string{"A", "B", "A", "C", "A"} {
		if _, _, err := post(t.Context(), c, s.URL(), task, task); err != nil {
			t.Fatal(err)
		}
	}
	var kept []string
	for _, r := range s.Log() {
		kept = append(kept, r.TaskID)
	}
	if diff := cmp.Diff([]string{"A", "C", "A"}, kept); diff != "" {
		t.Errorf("kept tasks (-want +got):\n%s", diff)
	}
	if a, b, body := len(s.ByTask("A")), len(s.ByTask("B")), len(s.ByBody(sha("B"))); a != 2 || b != 0 || body != 0 {
		t.Errorf("A %d times, B %d times, its body %d times, want 2, 0, 0", a, b, body)
	}
	if s.Count() != 5 || s.Dropped() != 2 {
		t.Errorf("count %d, dropped %d, want 5 and 2", s.Count(), s.Dropped())
	}
}

func TestPeakInFlight(t *testing.T) {
	t.Parallel()
	const width = 4
	s := start(t, receiver.Config{Script: receiver.Always(receiver.Text(200, "ok"))})
	c := &http.Client{Transport: &http.Transport{MaxConnsPerHost: width, MaxIdleConnsPerHost: width}}
	defer c.CloseIdleConnections()
	var wg sync.WaitGroup
	for range width {
		wg.Go(func() {
			for range 200 {
				if _, _, err := post(t.Context(), c, s.URL(), "A", "x"); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	// A client never has more than width requests unanswered, so neither may the receiver think so.
	if now, peak := s.InFlight(); now != 0 || peak < 1 || peak > width {
		t.Errorf("in flight %d, peak %d, want 0 and 1 to %d", now, peak, width)
	}
	// That of connections is not its bound: one that it gives up may still be open here when its successor comes.
	if got := s.Connections(); got.Peak < 1 || int64(got.Peak) > got.Accepted || got.Open > got.Peak {
		t.Errorf("connections %+v, want no more open than at the peak, and no more then than all", got)
	}
}

func TestTLSVariants(t *testing.T) {
	t.Parallel()
	t.Run("expired", func(t *testing.T) {
		t.Parallel()
		s := start(t, receiver.Config{TLS: true, Expired: true})
		_, _, err := post(t.Context(), client(t, s), s.URL(), "A", "")
		if err == nil || !strings.Contains(err.Error(), "expired") {
			t.Errorf("got %v, want an expired certificate", err)
		}
	})
	t.Run("client certificate", func(t *testing.T) {
		t.Parallel()
		s := start(t, receiver.Config{TLS: true, RequireClientCert: true})
		c := client(t, s)
		if status, _, err := post(t.Context(), c, s.URL(), "A", ""); status != 204 || err != nil {
			t.Errorf("with certificate: %d, %v", status, err)
		}
		conf, err := s.ClientTLS()
		if err != nil {
			t.Fatal(err)
		}
		conf.Certificates = nil
		bare := &http.Client{Transport: &http.Transport{TLSClientConfig: conf}}
		if _, _, err := post(t.Context(), bare, s.URL(), "B", ""); err == nil {
			t.Error("let in without a certificate")
		}
		if len(s.ByTask("B")) != 0 {
			t.Error("a refused client reached the script")
		}
	})
	t.Run("untrusted", func(t *testing.T) {
		t.Parallel()
		s := start(t, receiver.Config{TLS: true})
		if _, _, err := post(t.Context(), &http.Client{Transport: &http.Transport{}}, s.URL(), "A", ""); err == nil {
			t.Error("trusted by a client that does not know its authority")
		}
		if !bytes.Contains(s.CAPEM(), []byte("BEGIN CERTIFICATE")) {
			t.Errorf("CAPEM is %q", s.CAPEM())
		}
	})
}

func TestWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	r := receiver.New(receiver.Config{})
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if err := r.WaitCount(ctx, 1); !errors.Is(err, cause) {
		t.Errorf("WaitCount = %v, want the cause", err)
	}
	if err := r.WaitIdle(ctx); err != nil {
		t.Errorf("WaitIdle of an idle receiver = %v", err)
	}
}
