package e2e_test

import (
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/queuehook/queuehook/internal/fleet"
	"github.com/queuehook/queuehook/internal/receiver"
	"github.com/queuehook/queuehook/internal/redistest"
)

// TestRouteRemoved takes a queue out of the routes file while tasks of it wait and others are in flight. Some of these
// end in time, well or badly, and some do not. All tasks stay in Redis, nobody touches them, and the other route goes
// on.
func TestRouteRemoved(t *testing.T) {
	t.Parallel()
	const slots, waiting = 12, 200
	server := redistest.Shared(t)
	removed := make(chan struct{})
	gone := fleet.NewQueue(t, server, receiver.Config{Script: func(r receiver.Request) receiver.Answer {
		if r.Seq%3 == 0 {
			return receiver.Never()
		}
		<-removed
		if r.Seq%3 == 1 {
			return receiver.Status(204)
		}
		return receiver.Status(500)
	}})
	answer := sync.OnceFunc(func() { close(removed) })
	t.Cleanup(answer) // else its receiver would wait for it
	stays := fleet.NewQueue(t, server, receiver.Config{})
	path := write(t, "routes.yaml", routes(route(gone, "concurrency: 12", "timeout: 10m"), route(stays)))
	d := fleet.StartDispatcher(t, server.URL(), "", "ROUTES_FILE="+path, "SHUTDOWN_GRACE=10s")
	gone.PushN(t, waiting)
	gone.AwaitInFlight(t, slots)

	replace(t, path, routes(route(stays)))
	fleet.AwaitTrue(t, fleet.Patience, "file applied", func() bool { return len(d.Logged("routes file applied")) == 1 })
	answer()
	fleet.AwaitTrue(t, fleet.Patience, "the route has let go", func() bool { return gone.Depth(t).Dispatchers == 0 })
	before := gone.Receiver.Count()
	if before != slots {
		t.Errorf("%d requests, want the %d that were in flight when the route went", before, slots)
	}
	if depth := gone.Depth(t); depth.Ready+depth.Delayed != waiting-slots/3 || depth.InFlight != 0 {
		t.Errorf("depths %+v, want %d waiting", depth, waiting-slots/3)
	}
	gone.Law(t)
	stays.PushN(t, 500)
	stays.AwaitDrained(t)
	if got := gone.Receiver.Count(); got != before {
		t.Errorf("%d requests for a queue without a route", got-before)
	}

	gone.Receiver.SetScript(nil)
	replace(t, path, routes(route(stays), route(gone)))
	gone.AwaitDrained(t)
	d.Stop(t)
	if got := gone.Receiver.Count(); got != slots+waiting-slots/3 {
		t.Errorf("%d requests in all, want %d", got, slots+waiting-slots/3)
	}
	gone.Law(t)
	stays.Law(t)
}

// TestReloadAtTheStart sends SIGHUP before there are routes, while Redis takes its time to answer.
func TestReloadAtTheStart(t *testing.T) {
	t.Parallel()
	silent, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	_ = silent.SetDeadline(time.Now().Add(fleet.Patience)) // then Accept says why
	d := fleet.Launch(t, "redis://"+silent.Addr().String(), "orders=http://127.0.0.1:1")
	conn, err := silent.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := syscall.Kill(d.PID(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	d.Stop(t)
}
