package chaos_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/queuehook/queuehook/heartbeat"
	"github.com/queuehook/queuehook/internal/fleet"
	"github.com/queuehook/queuehook/internal/receiver"
	"github.com/queuehook/queuehook/internal/redistest"
	"github.com/queuehook/queuehook/lifecycle"
)

// TestManyTasksOfTheDead has a dispatcher die with many tasks in flight. Taking them back must not hold Redis up for
// longer than other calls do.
func TestManyTasksOfTheDead(t *testing.T) {
	t.Parallel()
	tasks := 10_000
	if long() {
		tasks = 100_000
	}
	server := redistest.Start(t, slowLog())
	q := fleet.NewQueue(t, server, receiver.Config{})
	q.PushN(t, tasks)
	hold(t, q, tasks)
	if err := server.Admin(t).SlowLogReset(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	var janitors []*fleet.Process
	for range 2 {
		janitors = append(janitors, fleet.Start(t, fleet.Janitor, nil,
			prefixed("JANITOR_", "REDIS_URL="+server.URL(), "GRACE=100ms")))
	}
	for _, j := range janitors {
		if code := j.Wait(t); code != 0 {
			t.Errorf("janitor: exit code %d\n%s", code, j.Log())
		}
	}
	tellSlow(t, server)
	if n := q.Recovered(t); n != tasks {
		t.Errorf("%d tasks recovered, want %d", n, tasks)
	}
	if d := q.Depth(t); d.Ready != int64(tasks) || d.InFlight != 0 || d.Dispatchers != 0 {
		t.Errorf("depths %+v, want %d ready", d, tasks)
	}
	q.Law(t)
}

// TestDeepSweepAmongManyDispatchers looks for tasks among those of many dispatchers. That must not hold Redis up for
// longer either.
func TestDeepSweepAmongManyDispatchers(t *testing.T) {
	t.Parallel()
	dispatchers, tasks := 200, 400
	if long() {
		dispatchers, tasks = 2000, 2000
	}
	server := redistest.Start(t, slowLog())
	q := fleet.NewQueue(t, server, receiver.Config{})
	k := q.Keys(t)
	until := float64(time.Now().Add(time.Hour).UnixMilli())
	_, err := q.Redis.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for i := range dispatchers {
			p.ZAdd(t.Context(), k.Ticks, redis.Z{Member: strconv.Itoa(i), Score: until})
		}
		for i := range tasks { // every second one is in no index
			id := fmt.Sprintf("task-%04d", i)
			p.HSet(t.Context(), k.Body, id, "x")
			if i%2 == 0 {
				p.HSet(t.Context(), k.Worker(strconv.Itoa(i%dispatchers)), id, "token")
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	queue, err := lifecycle.Open(q.Redis, q.Name)
	if err != nil {
		t.Fatal(err)
	}
	deep := lifecycle.NewDeep(queue)
	if found, err := deep.Look(t.Context()); err != nil || found.Suspects != tasks/2 {
		t.Errorf("first look: %+v, %v; want %d suspects", found, err, tasks/2)
	}
	if found, err := deep.Look(t.Context()); err != nil || len(found.Strays) != tasks/2 {
		t.Errorf("second look: %d strays, %v; want %d", len(found.Strays), err, tasks/2)
	}
	tellSlow(t, server)
	if err := q.Redis.FlushAll(t.Context()).Err(); err != nil { // nobody pushed them
		t.Fatal(err)
	}
	q.Law(t)
}

// slowLog starts a Redis that notes commands of more than 10 ms.
func slowLog() redistest.Config {
	return redistest.Config{Directives: []string{"slowlog-log-slower-than 10000", "slowlog-max-len 10000"}}
}

// tellSlow tells of these commands. They are a figure, not a verdict: a busy machine takes the processor away from Redis
// in the middle of a command, and the slow log counts that too. How much a call does at most is tested beside the scripts.
func tellSlow(t *testing.T, server *redistest.Server) {
	t.Helper()
	slow, err := server.Admin(t).SlowLogGet(t.Context(), -1).Result()
	if err != nil {
		t.Fatal(err)
	}
	for i, command := range slow {
		t.Logf("%d of %d commands over 10ms: %s, %.80q", i+1, len(slow), command.Duration, command.Args[:min(3, len(command.Args))])
	}
}

// hold leases n tasks as a dispatcher that is never heard of again.
func hold(t *testing.T, q *fleet.Queue, n int) {
	t.Helper()
	heart, err := heartbeat.New(q.Redis, q.Name, heartbeat.Config{Interval: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if err := heart.Register(t.Context()); err != nil {
		t.Fatal(err)
	}
	life, err := lifecycle.New(q.Redis, q.Name, heart.ID(), lifecycle.Config{Concurrency: n})
	if err != nil {
		t.Fatal(err)
	}
	for life.Out() < n {
		if _, err := life.Lease(t.Context(), 1000); err != nil {
			t.Fatal(err)
		}
		if err := heart.Beat(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	fleet.Pass(3 * time.Second) // its time runs out
}
