package e2e_test

import (
	"crypto/sha1"
	"encoding/hex"
	"os"
	"testing"
	"time"

	"github.com/queuehook/queuehook/internal/faultproxy"
	"github.com/queuehook/queuehook/internal/fleet"
	"github.com/queuehook/queuehook/internal/receiver"
	"github.com/queuehook/queuehook/internal/redistest"
)

// TestRedisAway takes Redis away from a busy fleet, in several ways, for longer than it takes to give up a dead
// dispatcher. When it is back everything goes on, nobody was swept, and what the receiver had accepted is not delivered
// again.
func TestRedisAway(t *testing.T) {
	t.Parallel()
	away := []time.Duration{4 * time.Second}
	if long() {
		away = append(away, time.Second, 10*time.Second, time.Minute)
	}
	for name, fault := range map[string]struct {
		begin, end func(*redistest.Server, *testing.T)
	}{
		"frozen": {
			func(s *redistest.Server, t *testing.T) { s.Pause(t) },
			func(s *redistest.Server, t *testing.T) { s.Continue(t) },
		},
		"killed": {
			func(s *redistest.Server, t *testing.T) { s.Kill(t) },
			func(s *redistest.Server, t *testing.T) { s.Start(t) },
		},
		"restarted": {
			func(s *redistest.Server, t *testing.T) { s.Stop(t) },
			func(s *redistest.Server, t *testing.T) { s.Start(t) },
		},
	} {
		for _, d := range away {
			t.Run(name+" for "+d.String(), func(t *testing.T) {
				t.Parallel()
				server := redistest.Start(t, redistest.Config{AppendOnly: true})
				redisAway(t, server, func() {
					fault.begin(server, t)
					fleet.Pass(d)
					fault.end(server, t)
				})
			})
		}
	}
}

func redisAway(t *testing.T, server *redistest.Server, outage func()) {
	t.Helper()
	const tasks, early = 4000, 300
	q := fleet.NewQueue(t, server, receiver.Config{Script: receiver.Always(receiver.Status(204).After(50 * time.Millisecond))})
	q.PushN(t, tasks)
	var dispatchers []*fleet.Server
	for range 3 {
		dispatchers = append(dispatchers, fleet.Launch(t, server.URL(), fleet.Routes(q), beats, "CONCURRENCY=16"))
	}
	for _, d := range dispatchers {
		d.AwaitReady(t)
	}
	q.AwaitRequests(t, early)
	outage()
	before := q.Receiver.Count()
	if before == tasks {
		t.Fatal("all were delivered before Redis went away: the test shows nothing")
	}
	back := time.Now()
	q.AwaitRequests(t, before+100)
	took := time.Since(back)
	t.Logf("deliveries went on %s after Redis came back", took)
	if took > 20*time.Second {
		t.Errorf("deliveries went on %s after Redis came back, want 5s on a machine with nothing else to do", took)
	}
	q.AwaitDrained(t)
	if n := q.Recovered(t); n != 0 {
		t.Errorf("%d tasks were taken from living dispatchers", n)
	}
	for _, d := range dispatchers {
		d.Stop(t)
	}
	if got := q.Receiver.Count(); got != tasks {
		t.Errorf("%d requests, want %d", got, tasks)
	}
	q.Law(t)
}

// TestLostLease drops the reply of the lease that took the tasks: Redis has them in flight at a dispatcher that was
// never told.
func TestLostLease(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("../../lifecycle/lua/lease.lua")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha1.Sum(source)
	server := redistest.Start(t, redistest.Config{})
	q := fleet.NewQueue(t, server, receiver.Config{})
	if err := q.Redis.ScriptLoad(t.Context(), string(source)).Err(); err != nil {
		t.Fatal(err)
	}
	q.PushN(t, 10)
	proxy := faultproxy.Start(t, server.Addr())
	lost := proxy.LoseReplies(1, hex.EncodeToString(sum[:]))
	d := fleet.Launch(t, "redis://"+proxy.Addr()+"/0", fleet.Routes(q))
	select {
	case <-lost.Done():
	case <-time.After(fleet.Patience):
		t.Fatal("no lease was sent")
	}
	q.AwaitDrained(t)
	d.AwaitReady(t)
	if got := q.Receiver.Count(); got != 10 {
		t.Errorf("%d requests, want 10", got)
	}
	d.Stop(t)
	if len(d.Logged("adopted tasks of a lost lease")) == 0 {
		t.Error("nothing was adopted: the test shows nothing")
	}
	q.Law(t)
}
