package webhook_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/task"
	"github.com/queuehook/queuehook/webhook"
)

// patience bounds what a test waits for that should come at once.
const patience = 20 * time.Second

func newTarget(t testing.TB, cfg webhook.Config) *webhook.Target {
	t.Helper()
	tg, err := webhook.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tg.Close)
	return tg
}

func newTask(payload string, meta task.Meta) *task.Task {
	return task.From(task.Spec{
		ID: "01J0TASK", Queue: "orders", Payload: []byte(payload), Meta: meta, Context: context.Background(),
	})
}

// deliver makes one attempt with plenty of time and returns its outcome.
func deliver(t testing.TB, tg *webhook.Target, tk *task.Task) delivery.Outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return outcome(t, tg.Deliver(ctx, tk))
}

// outcome returns an error's outcome, and fails the test when the error is neither nil nor a *delivery.Error.
func outcome(t testing.TB, err error) delivery.Outcome {
	t.Helper()
	if _, ok := errors.AsType[*delivery.Error](err); err != nil && !ok {
		t.Fatalf("Deliver returned a %T: %v", err, err)
	}
	return delivery.FromError(err)
}

func wantReason(t testing.TB, got delivery.Outcome, want delivery.Reason) {
	t.Helper()
	if got.Reason != want {
		t.Errorf("got %v (status %d, %q), want %v", got.Reason, got.Status, got.Detail, want)
	}
}

// due is a context whose deadline comes when end is called: the test decides what it comes after.
type due struct {
	context.Context
	over chan struct{}
}

func newDue(t testing.TB) due {
	t.Helper()
	return due{t.Context(), make(chan struct{})}
}

func (d due) end() { close(d.over) }

func (d due) Done() <-chan struct{} { return d.over }

func (d due) Err() error {
	select {
	case <-d.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// conns counts the connections that a server accepted.
type conns struct{ opened atomic.Int64 }

func serve(t testing.TB, h http.HandlerFunc) (*httptest.Server, *conns) {
	t.Helper()
	var c conns
	srv := httptest.NewUnstartedServer(h)
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			c.opened.Add(1)
		}
	}
	srv.Start()
	t.Cleanup(srv.Close)
	return srv, &c
}

// listen serves every connection with handle, which owns it, and returns the address.
func listen(t testing.TB, handle func(*net.TCPConn)) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, c)
			mu.Unlock()
			all.Go(func() { handle(c.(*net.TCPConn)) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for _, c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		all.Wait()
	})
	return l.Addr().String()
}

// readRequest reads one whole request, and reports whether there was one.
func readRequest(r *bufio.Reader) bool {
	req, err := http.ReadRequest(r)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, req.Body)
	return err == nil
}

// reset closes c with a RST.
func reset(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}

// refused is an address at which nobody listens.
func refused(t testing.TB) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// eventually waits until ok holds.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("in vain waited for: %s", what)
		}
	}
}

// flat fails the test when there are still more goroutines than before.
func flat(t testing.TB, before int) {
	t.Helper()
	eventually(t, "goroutines to end", func() bool { return runtime.NumGoroutine() <= before })
}

// quiet is a logger for servers whose clients misbehave on purpose.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

func ignoreDetail() cmp.Option { return cmpopts.IgnoreFields(delivery.Outcome{}, "Detail") }
