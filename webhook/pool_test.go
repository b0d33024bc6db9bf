package webhook_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/task"
	"github.com/queuehook/queuehook/webhook"
)

// together makes n deliveries, width at a time, each with this deadline, and passes every outcome to check.
func together(t *testing.T, tg *webhook.Target, n, width int, deadline time.Duration, check func(delivery.Outcome)) {
	t.Helper()
	var left atomic.Int64
	left.Store(int64(n))
	var workers sync.WaitGroup
	for range width {
		workers.Go(func() {
			for left.Add(-1) >= 0 {
				ctx, cancel := context.WithTimeout(t.Context(), deadline)
				check(delivery.FromError(tg.Deliver(ctx, newTask(`{"id":1}`, task.Meta{}))))
				cancel()
			}
		})
	}
	workers.Wait()
}

// TestConnectionsAreBounded allows for connections that time out on a slow machine, but for far fewer than one for each
// delivery.
func TestConnectionsAreBounded(t *testing.T) {
	const width = 64
	srv, c := serve(t, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	tg := newTarget(t, webhook.Config{URL: srv.URL, MaxConns: width})
	together(t, tg, 10_000, width, patience, func(o delivery.Outcome) { wantReason(t, o, delivery.OK) })
	if n := c.opened.Load(); n > 2*width {
		t.Errorf("%d connections for %d slots", n, width)
	}
}

// TestMaxConnsHolds makes more deliveries at once than the target may open connections.
func TestMaxConnsHolds(t *testing.T) {
	let := make(chan struct{})
	var most, now atomic.Int64
	srv, c := serve(t, func(http.ResponseWriter, *http.Request) {
		most.Store(max(most.Load(), now.Add(1)))
		<-let
		now.Add(-1)
	})
	tg := newTarget(t, webhook.Config{URL: srv.URL, MaxConns: 3})
	go func() {
		defer close(let)
		eventually(t, "three requests", func() bool { return now.Load() == 3 })
	}()
	together(t, tg, 24, 12, patience, func(o delivery.Outcome) { wantReason(t, o, delivery.OK) })
	if c.opened.Load() > 3 || most.Load() > 3 {
		t.Errorf("%d connections, %d at once", c.opened.Load(), most.Load())
	}
}

// TestFailuresReuseConnections answers 500 with 64 KiB, then 204, and so on.
func TestFailuresReuseConnections(t *testing.T) {
	const width = 8
	before := runtime.NumGoroutine()
	var n atomic.Int64
	page := strings.Repeat("x", 64<<10)
	srv, c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if n.Add(1)%2 == 0 {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, page)
	})
	tg := newTarget(t, webhook.Config{URL: srv.URL, MaxConns: width})
	var failed atomic.Int64
	together(t, tg, 10_000, width, patience, func(o delivery.Outcome) {
		if o.Reason == delivery.Status {
			failed.Add(1)
		} else {
			wantReason(t, o, delivery.OK)
		}
	})
	if failed.Load() != 5000 || c.opened.Load() > 10*width {
		t.Errorf("%d failed, %d connections", failed.Load(), c.opened.Load())
	}
	tg.Close()
	srv.Close()
	flat(t, before)
}

// TestLongBodyCostsItsConnectionOnly: a body is not read beyond the limit, however fast it comes.
func TestLongBodyCostsItsConnectionOnly(t *testing.T) {
	srv, c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("x", 64<<10+2))
	})
	tg := newTarget(t, webhook.Config{URL: srv.URL})
	for range 3 {
		wantReason(t, deliver(t, tg, newTask("", task.Meta{})), delivery.OK)
	}
	if n := c.opened.Load(); n != 3 {
		t.Errorf("%d connections", n)
	}
}

// TestFailureLeavesOtherConnectionsOpen: go-retryablehttp closes all idle connections of its client when a request
// fails.
func TestFailureLeavesOtherConnectionsOpen(t *testing.T) {
	var both sync.WaitGroup
	both.Add(2)
	mode, hanging := make(chan string, 2), make(chan struct{}, 1)
	srv, c := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		switch <-mode {
		case "both":
			both.Done()
			both.Wait()
		case "hang":
			_, _ = io.Copy(io.Discard, r.Body)
			hanging <- struct{}{}
			<-r.Context().Done()
		}
	})
	tg := newTarget(t, webhook.Config{URL: srv.URL, MaxConns: 2})
	mode <- "both"
	mode <- "both"
	together(t, tg, 2, 2, patience, func(o delivery.Outcome) { wantReason(t, o, delivery.OK) })
	mode <- "hang"
	ctx := newDue(t)
	go func() { <-hanging; ctx.end() }()
	wantReason(t, outcome(t, tg.Deliver(ctx, newTask("{}", task.Meta{}))), delivery.Timeout)
	mode <- "answer"
	together(t, tg, 1, 1, patience, func(o delivery.Outcome) { wantReason(t, o, delivery.OK) })
	if n := c.opened.Load(); n != 2 {
		t.Errorf("%d connections, want the 2 that were there", n)
	}
}

// TestGoroutinesStayFlat makes a thousand deliveries that end in each of several ways.
func TestGoroutinesStayFlat(t *testing.T) {
	answer := func(s string, end func(*net.TCPConn)) func(*net.TCPConn) {
		return func(c *net.TCPConn) {
			for r := bufio.NewReader(c); readRequest(r); {
				_, _ = io.WriteString(c, s)
				if end != nil {
					end(c)
					return
				}
			}
			_ = c.Close()
		}
	}
	const soon = 5 * time.Millisecond
	for name, c := range map[string]struct {
		serve    func(*net.TCPConn)
		scheme   string
		deadline time.Duration
		reason   delivery.Reason
	}{
		"ok":        {answer("HTTP/1.1 204 No Content\r\n\r\n", nil), "http", patience, delivery.OK},
		"redirect":  {answer("HTTP/1.1 307 x\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n", nil), "http", patience, delivery.Redirect},
		"rejected":  {answer("HTTP/1.1 400 x\r\nDispatch-No-Retry: true\r\nContent-Length: 0\r\n\r\n", nil), "http", patience, delivery.Rejected},
		"target":    {answer("HTTP/1.1 404 x\r\nContent-Length: 2\r\n\r\nno", nil), "http", patience, delivery.Target},
		"throttled": {answer("HTTP/1.1 429 x\r\nContent-Length: 0\r\n\r\n", nil), "http", patience, delivery.Throttled},
		"status":    {answer("HTTP/1.1 500 x\r\nContent-Length: 2\r\n\r\nno", nil), "http", patience, delivery.Status},
		"switch":    {answer("HTTP/1.1 101 x\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", nil), "http", patience, delivery.Status},
		"reset":     {answer("", reset), "http", patience, delivery.Reset},
		"tls":       {func(c *net.TCPConn) { _ = c.Close() }, "https", patience, delivery.TLS},
		"connect":   {nil, "http", patience, delivery.Connect},
		"timeout":   {func(c *net.TCPConn) { _, _ = io.Copy(io.Discard, c); _ = c.Close() }, "http", soon, delivery.Timeout},
		"body":      {answer("HTTP/1.1 200 x\r\nContent-Length: 9\r\n\r\n", nil), "http", 10 * time.Millisecond, delivery.OK},
	} {
		t.Run(name, func(t *testing.T) {
			addr := refused(t)
			if c.serve != nil {
				addr = listen(t, c.serve)
			}
			tg := newTarget(t, webhook.Config{URL: c.scheme + "://" + addr, MaxConns: 8})
			before := runtime.NumGoroutine()
			together(t, tg, 1000, 8, c.deadline, func(o delivery.Outcome) {
				if name != "body" || o.Reason != delivery.Timeout { // a loaded machine may miss the status line
					wantReason(t, o, c.reason)
				}
			})
			tg.Close()
			flat(t, before)
		})
	}
}
