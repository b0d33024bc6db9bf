package webhook_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/internal/localca"
	"github.com/queuehook/queuehook/task"
	"github.com/queuehook/queuehook/webhook"
)

// descriptors is how many files and sockets this process has open.
func descriptors(t *testing.T) int {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("the system does not list descriptors")
	}
	return len(open)
}

// heap is the memory in use, and all that was ever allocated, in bytes.
func heap() (used, ever uint64) {
	runtime.GC()
	runtime.GC() // what pools kept over the first goes with the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc, m.TotalAlloc
}

// hold makes n deliveries, 8 at a time. It fails when one costs more memory than a bound, or when anything stays
// behind: memory, a goroutine, a descriptor.
func hold(t *testing.T, cfg webhook.Config, n int, deadline time.Duration, check func(delivery.Outcome)) {
	t.Helper()
	const allowance = 8 << 20 // bytes a delivery, both sides counted; what is hostile here offers far more
	goroutines, files := runtime.NumGoroutine(), descriptors(t)
	used, ever := heap()
	cfg.MaxConns = 8
	tg := newTarget(t, cfg)
	together(t, tg, n, 8, deadline, check)
	eventually(t, "goroutines to end and descriptors to be closed", func() bool {
		tg.Close() // a connection may become idle a moment after its delivery
		return runtime.NumGoroutine() <= goroutines && descriptors(t) <= files
	})
	usedThen, everThen := heap()
	if usedThen > used+8<<20 || everThen-ever > uint64(n)*allowance {
		t.Errorf("%d bytes in use before, %d after; %d a delivery", used, usedThen, (everThen-ever)/uint64(n))
	}
}

func bomb(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	zeros := make([]byte, 1<<20)
	for range 48 {
		if _, err := z.Write(zeros); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestHostileAnswers gives every answer some dozens of times.
func TestHostileAnswers(t *testing.T) {
	const unreadable = "the answer is not HTTP, or its header is too long"
	text := func(s string) func(*net.TCPConn) {
		return func(c *net.TCPConn) { _, _ = io.WriteString(c, s) }
	}
	endlessly := func(begin, again string) func(*net.TCPConn) {
		return func(c *net.TCPConn) {
			_, err := io.WriteString(c, begin)
			for more := strings.Repeat(again, 1+4096/len(again)); err == nil; {
				_, err = io.WriteString(c, more)
			}
		}
	}
	inflating := bomb(t)
	for name, c := range map[string]struct {
		answer func(*net.TCPConn)
		reason delivery.Reason
		detail string
	}{
		"gzip bomb": {text("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n" +
			"fff\r\n" + inflating[:4095] + "\r\n0\r\n\r\n"), delivery.OK, ""},
		"closed after a bomb":    {text("HTTP/1.1 500 x\r\nContent-Encoding: gzip\r\n\r\n" + inflating), delivery.Status, ""},
		"endless body":           {endlessly("HTTP/1.1 200 OK\r\n\r\n", "x"), delivery.OK, ""},
		"endless chunks":         {endlessly("HTTP/1.1 500 x\r\nTransfer-Encoding: chunked\r\n\r\n", "20\r\n"+strings.Repeat("x", 32)+"\r\n"), delivery.Status, ""},
		"endless trailer":        {endlessly("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", "X-A: b\r\n"), delivery.OK, ""},
		"endless chunk line":     {endlessly("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "0"), delivery.OK, ""},
		"endless status line":    {endlessly("HTTP/1.1 200 ", "x"), delivery.Reset, unreadable},
		"endless header":         {endlessly("HTTP/1.1 200 OK\r\nX-A: ", "x"), delivery.Reset, unreadable},
		"headers without end":    {endlessly("HTTP/1.1 200 OK\r\n", "X-A: b\r\n"), delivery.Reset, unreadable},
		"early hints for ever":   {endlessly("", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"), delivery.Reset, unreadable},
		"large header":           {text("HTTP/1.1 200 OK\r\nX-A: " + strings.Repeat("x", 1<<20) + "\r\n\r\n"), delivery.Reset, unreadable},
		"header below the bound": {text("HTTP/1.1 204 x\r\nX-A: " + strings.Repeat("x", 60<<10) + "\r\n\r\n"), delivery.OK, ""},
		"early hints":            {text(strings.Repeat("HTTP/1.1 103 x\r\nLink: </a>\r\n\r\n", 3) + "HTTP/1.1 204 x\r\n\r\n"), delivery.OK, ""},
		"100 nobody asked for":   {text("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 500 x\r\nContent-Length: 0\r\n\r\n"), delivery.Status, ""},
		"invalid UTF-8":          {text("HTTP/1.1 200 \xff\xfe\r\nX-A: \xc3(\r\nContent-Length: 2\r\n\r\n\xff\xfe"), delivery.OK, ""},
		"invalid UTF-8 location": {text("HTTP/1.1 302 x\r\nLocation: https://\xff\xfe/\r\nContent-Length: 0\r\n\r\n"), delivery.Redirect, ""},
		"body on a 204":          {text("HTTP/1.1 204 x\r\nConnection: close\r\nContent-Length: 9\r\n\r\nunwelcome"), delivery.OK, ""},
		"body on a 304":          {text("HTTP/1.1 304 x\r\nConnection: close\r\nContent-Length: 9\r\n\r\nunwelcome"), delivery.Redirect, ""},
		"closed on each answer":  {text("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"), delivery.OK, ""},
		"closed unannounced":     {text("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), delivery.OK, ""},
		"two lengths":            {text("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx"), delivery.Reset, unreadable},
		"negative length":        {text("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"), delivery.Reset, unreadable},
		"length beyond int64":    {text("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n"), delivery.Reset, unreadable},
		"closed before its end":  {text("HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\nx"), delivery.OK, ""},
	} {
		t.Run(name, func(t *testing.T) {
			addr := listen(t, func(conn *net.TCPConn) {
				for r := bufio.NewReader(conn); readRequest(r); {
					c.answer(conn)
					if strings.HasPrefix(name, "closed") {
						break
					}
				}
				_ = conn.Close()
			})
			hold(t, webhook.Config{URL: "http://" + addr}, 32, patience, func(o delivery.Outcome) {
				// Now and then a later request meets a kept connection that was closed unannounced.
				if name == "closed unannounced" && o.Reason == delivery.StaleConnection {
					return
				}
				wantReason(t, o, c.reason)
				if c.detail != "" && o.Detail != c.detail {
					t.Errorf("detail %q, want %q", o.Detail, c.detail)
				}
			})
		})
	}
}

// TestHostileHTTP2 is TestHostileAnswers on HTTP/2.
func TestHostileHTTP2(t *testing.T) {
	junk := make([]byte, 32<<10)
	inflating, long := bomb(t), strings.Repeat("x", 256<<10)
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		reason delivery.Reason
	}{
		"endless body": {func(w http.ResponseWriter, _ *http.Request) {
			for _, err := w.Write(junk); err == nil; {
				_, err = w.Write(junk)
			}
		}, delivery.OK},
		"gzip bomb": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = io.WriteString(w, inflating)
		}, delivery.OK},
		"large header": {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-A", long) }, delivery.Reset},
		"early hints": {func(w http.ResponseWriter, _ *http.Request) {
			for range 3 {
				w.WriteHeader(http.StatusEarlyHints)
			}
			w.WriteHeader(http.StatusNoContent)
		}, delivery.OK},
		"GOAWAY after each answer": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Connection", "close")
		}, delivery.OK},
	} {
		t.Run(name, func(t *testing.T) {
			srv, tg, _ := serve2(t, 8, c.answer)
			tg.Close()
			trust := &tls.Config{RootCAs: srv.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
			cfg := webhook.Config{URL: srv.URL, TLS: trust}
			hold(t, cfg, 32, patience, func(o delivery.Outcome) {
				// net/http then gives up the connection, and with it the other requests on it.
				if name == "large header" && o.Reason == delivery.StaleConnection {
					return
				}
				wantReason(t, o, c.reason)
			})
		})
	}
}

// TestGoAwayInsteadOfAnAnswer ends the connection with the message that the request was not looked at, or that it may
// have been. Either way the attempt ends by its deadline, abandoned.
func TestGoAwayInsteadOfAnAnswer(t *testing.T) {
	ca, err := localca.New()
	if err != nil {
		t.Fatal(err)
	}
	pair, err := ca.Issue(localca.Leaf{Name: "server"})
	if err != nil {
		t.Fatal(err)
	}
	own, err := pair.TLS()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		last uint32
		code http2.ErrCode
	}{
		"not looked at":       {0, http2.ErrCodeNo},
		"enhance your calm":   {0, http2.ErrCodeEnhanceYourCalm},
		"perhaps looked at":   {1, http2.ErrCodeNo},
		"perhaps, in trouble": {1, http2.ErrCodeInternal},
	} {
		t.Run(name, func(t *testing.T) {
			addr := listen(t, func(raw *net.TCPConn) {
				defer raw.Close()
				conn := tls.Server(raw, &tls.Config{
					Certificates: []tls.Certificate{own}, NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12,
				})
				preface := make([]byte, len(http2.ClientPreface))
				if _, err := io.ReadFull(conn, preface); err != nil {
					return
				}
				framer := http2.NewFramer(conn, conn)
				framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
				_ = framer.WriteSettings()
				for {
					frame, err := framer.ReadFrame()
					if err != nil {
						return
					}
					// A GOAWAY before the whole request has come would have net/http ask whether the body was read
					// while it reads it.
					if end, ok := frame.(interface{ StreamEnded() bool }); ok && end.StreamEnded() {
						_ = framer.WriteGoAway(c.last, c.code, []byte("MARKER"))
						return
					}
				}
			})
			goroutines, files := runtime.NumGoroutine(), descriptors(t)
			tg := newTarget(t, webhook.Config{
				URL: "https://" + addr, TLS: &tls.Config{RootCAs: ca.Pool(), MinVersion: tls.VersionTLS12},
			})
			for range 3 {
				ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
				err := tg.Deliver(ctx, newTask("{}", task.Meta{}))
				cancel()
				got := outcome(t, err)
				if got.Settlement != delivery.Abandon || strings.Contains(err.Error(), "MARKER") {
					t.Errorf("got %+v", got)
				}
			}
			tg.Close()
			flat(t, goroutines)
			eventually(t, "descriptors to be closed", func() bool { return descriptors(t) <= files })
		})
	}
}
