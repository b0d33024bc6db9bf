package chaos_test

import (
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/queuehook/queuehook/internal/fleet"
	"github.com/queuehook/queuehook/internal/receiver"
	"github.com/queuehook/queuehook/internal/redistest"
	"github.com/queuehook/queuehook/keyspace"
)

// TestEmptiedRedis flushes everything under a running fleet whose tasks are all out. The attempts under way end, the
// dispatchers register anew and go on with new tasks, and there is no hot loop.
func TestEmptiedRedis(t *testing.T) {
	t.Parallel()
	const rounds, fleetSize, slots, fresh = 3, 2, 8, 100
	server := redistest.Start(t, redistest.Config{})
	var hold atomic.Pointer[chan struct{}] // requests wait for it
	q := fleet.NewQueue(t, server, receiver.Config{Script: func(receiver.Request) receiver.Answer {
		if wait := hold.Load(); wait != nil {
			<-*wait
		}
		return receiver.Status(204)
	}})
	var dispatchers []*fleet.Server
	for range fleetSize {
		dispatchers = append(dispatchers, fleet.StartDispatcher(t, server.URL(), fleet.Routes(q), beats, "CONCURRENCY="+strconv.Itoa(slots)))
	}
	admin := server.Admin(t)
	for range rounds {
		answer := make(chan struct{})
		hold.Store(&answer)
		q.PushN(t, fleetSize*slots)
		q.AwaitInFlight(t, fleetSize*slots)
		if err := admin.FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		hold.Store(nil)
		close(answer)

		q.AwaitInFlight(t, 0)
		q.PushN(t, fresh)
		q.AwaitDrained(t)
		fleet.AwaitTrue(t, fleet.Patience, "the fleet is known again", func() bool {
			return q.Depth(t).Dispatchers == fleetSize && admin.SIsMember(t.Context(), keyspace.Queues, q.Name).Val()
		})
		for _, d := range dispatchers {
			d.AwaitReady(t)
		}
	}
	if got, want := q.Receiver.Count(), int64(rounds*(fleetSize*slots+fresh)); got != want {
		t.Errorf("%d requests, want %d", got, want)
	}

	const idle = 2 * time.Second
	before := commands(t, server)
	fleet.Pass(idle)
	// Idle dispatchers wait, beat and look for the dead, some ten times a second each; a loop without a wait makes thousands.
	if n := commands(t, server) - before; n > 2000 {
		t.Errorf("%d commands in %s of an idle fleet", n, idle)
	}
	for _, d := range dispatchers {
		d.Stop(t)
		if lines := strings.Count(d.Log(), "\n"); lines > rounds*(slots+10)+20 {
			t.Errorf("%d lines in the log:\n%s", lines, d.Log())
		}
	}
	q.Law(t)
}

// commands is how many commands a server has processed so far.
func commands(t *testing.T, server *redistest.Server) int {
	t.Helper()
	info := server.Admin(t).Info(t.Context(), "stats").Val()
	_, rest, _ := strings.Cut(info, "total_commands_processed:")
	count, _, _ := strings.Cut(rest, "\r\n")
	n, err := strconv.Atoi(count)
	if err != nil {
		t.Fatalf("read the number of commands: %v", err)
	}
	return n
}
