package chaos_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/queuehook/queuehook/internal/faultproxy"
	"github.com/queuehook/queuehook/internal/fleet"
	"github.com/queuehook/queuehook/internal/receiver"
	"github.com/queuehook/queuehook/internal/redistest"
	"github.com/queuehook/queuehook/keyspace"
	"github.com/queuehook/queuehook/lifecycle"
)

func long() bool { return os.Getenv("QUEUEHOOK_LONG") != "" }

// cpu is the CPU time that a process has used.
func cpu(t *testing.T, pid int) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Skipf("no processor time here: %v", err)
	}
	const ticks = 100 // a second, on every Linux that Go runs on
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	user, err1 := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	if err1 != nil || err2 != nil {
		t.Fatalf("read processor time: %s", text)
	}
	return time.Duration(user+system) * time.Second / ticks
}

// TestOutageCostsLittle takes Redis away, in several ways, from a dispatcher of five queues. It must not spin or fill
// its log, must say that it is not ready, and must be back soon.
func TestOutageCostsLittle(t *testing.T) {
	t.Parallel()
	const queues = 5
	away := 4 * time.Second
	if long() {
		away = time.Minute
	}
	for name, fault := range map[string]struct {
		begin, end func(*testing.T, *redistest.Server, *faultproxy.Proxy)
	}{
		"refused": {
			func(t *testing.T, s *redistest.Server, _ *faultproxy.Proxy) { s.Stop(t) },
			func(t *testing.T, s *redistest.Server, _ *faultproxy.Proxy) { s.Start(t) },
		},
		"cut":       {func(_ *testing.T, _ *redistest.Server, p *faultproxy.Proxy) { p.Cut() }, restore},
		"half open": {func(_ *testing.T, _ *redistest.Server, p *faultproxy.Proxy) { p.Swallow(faultproxy.Both) }, restore},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t, redistest.Config{AppendOnly: true})
			proxy := faultproxy.Start(t, server.Addr())
			url := "redis://" + proxy.Addr() + "/0"
			if name == "refused" {
				url = server.URL()
			}
			var all []*fleet.Queue
			for range queues {
				all = append(all, fleet.NewQueue(t, server, receiver.Config{}))
			}
			d := fleet.StartDispatcher(t, url, fleet.Routes(all...), beats)
			for _, q := range all {
				q.PushN(t, 10)
				q.AwaitRequests(t, 10)
			}
			fault.begin(t, server, proxy)
			fleet.AwaitTrue(t, fleet.Patience, "not ready", func() bool { return d.Ready(t) == 503 })
			before, logged := cpu(t, d.PID()), len(d.Log())
			fleet.Pass(away)
			// The promise is 5 % of a core for the program as it is shipped; the race detector makes it several times
			// slower. A loop without a wait would take the whole core.
			used := cpu(t, d.PID()) - before
			t.Logf("%.1f %% of a core while Redis is away", 100*used.Seconds()/away.Seconds())
			if used > away/5 {
				t.Errorf("it used %s of processor time in %s without Redis", used, away)
			}
			if ready := d.Ready(t); ready != 503 {
				t.Errorf("readiness %d without Redis, want 503", ready)
			}
			lines := strings.Count(d.Log()[logged:], "\n")
			if most := queues * 4; lines > most {
				t.Errorf("%d lines in the log of %s without Redis, want %d at most:\n%s", lines, away, most, d.Log()[logged:])
			}
			fault.end(t, server, proxy)
			back := time.Now()
			for _, q := range all {
				q.PushN(t, 10)
				q.AwaitRequests(t, 20)
			}
			d.AwaitReady(t)
			took := time.Since(back)
			t.Logf("it went on %s after Redis was back", took)
			if took > 15*time.Second { // three times the promise, for a busy machine
				t.Errorf("it went on %s after Redis was back, want 5s", took)
			}
			for _, q := range all {
				q.AwaitDrained(t)
			}
			d.Stop(t)
			for _, q := range all {
				if n := q.Recovered(t); n != 0 {
					t.Errorf("%d tasks were taken from the living", n)
				}
				q.Law(t)
			}
		})
	}
}

func restore(_ *testing.T, _ *redistest.Server, p *faultproxy.Proxy) { p.Restore() }

// TestReadOnly has Redis refuse all writes for longer than a dispatcher counts as alive, as one that a failover has
// made a replica does. Nobody may be swept, and nothing may be delivered twice.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Config{})
	q := fleet.NewQueue(t, server, receiver.Config{Script: receiver.Always(receiver.Status(204).After(20 * time.Millisecond))})
	var dispatchers []*fleet.Server
	for range 2 {
		dispatchers = append(dispatchers, fleet.StartDispatcher(t, server.URL(), fleet.Routes(q), beats, "CONCURRENCY=4"))
	}
	q.PushN(t, 1000)
	q.AwaitRequests(t, 50)
	admin := server.Admin(t)
	if err := admin.ReplicaOf(t.Context(), "127.0.0.1", "1").Err(); err != nil { // where no primary is
		t.Fatal(err)
	}
	fleet.AwaitTrue(t, fleet.Patience, "not ready", func() bool { return dispatchers[0].Ready(t) == 503 })
	fleet.Pass(6 * interval)
	if err := admin.ReplicaOf(t.Context(), "no", "one").Err(); err != nil {
		t.Fatal(err)
	}
	q.AwaitDrained(t)
	for _, d := range dispatchers {
		d.AwaitReady(t)
		d.Stop(t)
	}
	if n := q.Recovered(t); n != 0 {
		t.Errorf("%d tasks were taken from the living", n)
	}
	if got := q.Receiver.Count(); got != 1000 {
		t.Errorf("%d requests, want 1000", got)
	}
	q.Law(t)
}

// TestForgottenScripts flushes the scripts and kills all connections again and again.
func TestForgottenScripts(t *testing.T) {
	t.Parallel()
	const tasks = 2000
	server := redistest.Start(t, redistest.Config{})
	q := fleet.NewQueue(t, server, receiver.Config{Script: receiver.Fraction(3, 0.2, 500, 204)})
	q.PushN(t, tasks)
	d := fleet.StartDispatcher(t, server.URL(), fleet.Routes(q), "CONCURRENCY=8")
	admin := server.Admin(t)
	flushed := 0
	for ; q.Receiver.Count() < tasks; flushed++ {
		if err := admin.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		if flushed%4 == 0 {
			if err := admin.ClientKillByFilter(t.Context(), "TYPE", "normal", "SKIPME", "yes").Err(); err != nil {
				t.Fatal(err)
			}
		}
		fleet.Pass(20 * time.Millisecond)
	}
	if flushed < 10 {
		t.Errorf("only %d flushes: the test shows little", flushed)
	}
	fleet.Await(t, fleet.Patience, "this test's own connection", func() error { return q.Redis.Ping(t.Context()).Err() })
	q.AwaitDrained(t)
	d.Stop(t)
	q.Law(t)
}

// TestFullRedis has Redis over its memory limit. Producers are refused, and everything else goes on, the recovery of a
// dead dispatcher's tasks included.
func TestFullRedis(t *testing.T) {
	t.Parallel()
	const tasks, held = 500, 8
	server := redistest.Start(t, redistest.Config{})
	q := fleet.NewQueue(t, server, receiver.Config{Script: receiver.Always(receiver.Never())})
	victim := fleet.StartDispatcher(t, server.URL(), fleet.Routes(q), beats, "CONCURRENCY=8")
	q.PushN(t, tasks)
	q.AwaitInFlight(t, held)
	q.Crash(t, victim)
	admin := server.Admin(t)
	if err := admin.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	if err := q.Offer(t.Context(), []byte("one more")); err == nil {
		t.Fatal("a full Redis took a task: the test shows nothing")
	}
	q.Receiver.SetScript(receiver.EachTask(func() receiver.Script { // one attempt of each fails
		return receiver.Sequence(receiver.Status(500), receiver.Status(204))
	}))
	heirs := []*fleet.Server{
		fleet.StartDispatcher(t, server.URL(), fleet.Routes(q), beats),
		fleet.StartDispatcher(t, server.URL(), fleet.Routes(q), beats),
	}
	q.AwaitRequests(t, held+2*tasks)
	fleet.Await(t, fleet.Patience, "drained", func() error {
		if d := q.Depth(t); d.Ready+d.Delayed+d.InFlight > 0 {
			return fmt.Errorf("%+v", d)
		}
		return nil
	})
	fleet.Pass(4 * interval) // they beat
	for _, d := range heirs {
		d.AwaitReady(t)
		d.Stop(t)
		if len(d.Logged("dispatcher was given up by the others")) > 0 {
			t.Error("a beat was refused")
		}
	}
	if err := admin.ConfigSet(t.Context(), "maxmemory", "0").Err(); err != nil {
		t.Fatal(err)
	}
	if n := q.Recovered(t); n != held {
		t.Errorf("recovered %d, want %d", n, held)
	}
	q.Law(t)
}

// TestForeignKey puts somebody else's value under one of a queue's keys. Only that route may stand still.
func TestForeignKey(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	bad, good := fleet.NewQueue(t, server, receiver.Config{}), fleet.NewQueue(t, server, receiver.Config{})
	d := fleet.StartDispatcher(t, server.URL(), fleet.Routes(bad, good), beats)
	foreign := bad.Keys(t).Delayed
	if err := bad.Redis.Set(t.Context(), foreign, "not ours", 0).Err(); err != nil {
		t.Fatal(err)
	}
	bad.PushN(t, 10)
	fleet.AwaitTrue(t, fleet.Patience, "not ready", func() bool { return d.Ready(t) == 503 })
	logged := len(d.Log())
	for range 20 {
		before := good.Receiver.Count()
		good.PushN(t, 10)
		good.AwaitRequests(t, before+10)
		fleet.Pass(100 * time.Millisecond)
	}
	if n := bad.Receiver.Count(); n != 0 {
		t.Errorf("%d tasks of the broken queue were delivered", n)
	}
	if !strings.Contains(d.Log(), "WRONGTYPE") || !strings.Contains(d.Log(), foreign) {
		t.Errorf("its log does not name the key:\n%s", d.Log())
	}
	if lines := strings.Count(d.Log()[logged:], "\n"); lines > 20 {
		t.Errorf("%d lines in the log meanwhile:\n%s", lines, d.Log()[logged:])
	}
	if err := bad.Redis.Del(t.Context(), foreign).Err(); err != nil {
		t.Fatal(err)
	}
	bad.AwaitRequests(t, 10)
	d.AwaitReady(t)
	bad.AwaitDrained(t)
	good.AwaitDrained(t)
	d.Stop(t)
	bad.Law(t)
	good.Law(t)
}

// TestDeletedKeys deletes keys of a queue while its tasks are out. The dispatcher goes on with new tasks, and the deep
// sweep finds what can be found.
func TestDeletedKeys(t *testing.T) {
	t.Parallel()
	const tasks = 8
	for name, which := range map[string]func(keyspace.Keys) string{
		"ticks":     func(k keyspace.Keys) string { return k.Ticks },
		"info":      func(k keyspace.Keys) string { return k.Info },
		"in flight": func(k keyspace.Keys) string { return k.Worker("") },
		"bodies":    func(k keyspace.Keys) string { return k.Body },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t, redistest.Config{})
			deleted := make(chan struct{})
			q := fleet.NewQueue(t, server, receiver.Config{Script: func(receiver.Request) receiver.Answer {
				<-deleted
				return receiver.Status(204).After(2 * time.Second)
			}})
			answer := sync.OnceFunc(func() { close(deleted) })
			t.Cleanup(answer) // else its receiver would wait for it
			d := fleet.StartDispatcher(t, server.URL(), fleet.Routes(q), beats)
			q.PushN(t, tasks)
			q.AwaitInFlight(t, tasks)
			for id := range q.Places(t).Of() {
				q.Cause("a key was deleted", id)
			}
			victims, err := q.Redis.Keys(t.Context(), strings.NewReplacer("{", `\{`).Replace(which(q.Keys(t)))+"*").Result()
			if err != nil || len(victims) == 0 {
				t.Fatalf("keys to delete: %v, %v", victims, err)
			}
			if err := q.Redis.Del(t.Context(), victims...).Err(); err != nil {
				t.Fatal(err)
			}
			q.Receiver.SetScript(nil)
			answer()
			fleet.Pass(6 * interval)
			before := q.Receiver.Count()
			q.PushN(t, 100)
			q.AwaitRequests(t, before+100)
			d.AwaitReady(t)
			d.Stop(t)
			mend(t, q)
			heir := fleet.StartDispatcher(t, server.URL(), fleet.Routes(q), beats)
			q.AwaitDrained(t)
			heir.Stop(t)
			q.Law(t)
		})
	}
}

// mend runs deep looks until they find nothing.
func mend(t *testing.T, q *fleet.Queue) {
	t.Helper()
	queue, err := lifecycle.Open(q.Redis, q.Name)
	if err != nil {
		t.Fatal(err)
	}
	deep := lifecycle.NewDeep(queue)
	fleet.Await(t, fleet.Patience, "mended", func() error {
		found, err := deep.Look(t.Context())
		if err == nil && found.Any() {
			err = fmt.Errorf("found %+v", found)
		}
		return err
	})
}

// TestSlowLink leases large payloads over a link that takes longer for them than a dispatcher counts as alive.
func TestSlowLink(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	tasks := 6
	if long() {
		tasks = 64
	}
	for name, rate := range map[string]int{"slow": 4 << 20, "slower than a reply may be": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t, redistest.Config{})
			q := fleet.NewQueue(t, server, receiver.Config{})
			proxy := faultproxy.Start(t, server.Addr())
			d := fleet.StartDispatcher(t, "redis://"+proxy.Addr()+"/0", fleet.Routes(q), beats, "CONCURRENCY=64")
			payloads := make([][]byte, tasks)
			for i := range payloads {
				payloads[i] = fleet.Payload(i, size)
			}
			proxy.Throttle(faultproxy.Both, rate)
			q.Push(t, payloads...)
			for n := range tasks { // all together may take longer than anybody's patience
				q.AwaitRequests(t, int64(n+1))
			}
			q.AwaitDrained(t)
			proxy.Restore()
			d.Stop(t)
			if n := len(d.Logged("dispatcher was given up by the others")); n > 0 {
				t.Errorf("the dispatcher was given up %d times: its beats came late", n)
			}
			if n := q.Recovered(t); n != 0 {
				t.Errorf("%d tasks were taken from the living", n)
			}
			if got := q.Receiver.Count(); got != int64(tasks) {
				t.Errorf("%d requests, want %d", got, tasks)
			}
			q.Law(t)
		})
	}
}
