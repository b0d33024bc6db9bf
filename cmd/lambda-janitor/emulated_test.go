package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/queuehook/queuehook/internal/redistest"
	"github.com/queuehook/queuehook/internal/sweepanswer"
)

func TestEmulatedSchedulerRecoversManyQueues(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Config{})
	rdb := s.Client(t)
	const queues = 200
	ids := map[string]string{}
	for i := range queues {
		queue := fmt.Sprintf("orders-%03d", i)
		ids[queue] = leave(t, rdb, queue, 3)
	}
	for queue, id := range ids {
		awaitDead(t, rdb, queue, id)
	}
	e := emulate(t, time.Minute, "JANITOR_REDIS_URL="+s.URL())
	a := decode(t, []byte(e.invoke(t, scheduled)))
	if len(a.Queues) != queues || len(a.Errors) > 0 {
		t.Errorf("%d queues, errors %q; want %d and none", len(a.Queues), a.Errors, queues)
	}
	for _, q := range a.Queues {
		if q.Recovered != 3 || q.Ready != 3 || !slices.Equal(q.Dead, []string{ids[q.Name]}) {
			t.Errorf("%+v, want the 3 tasks of %s", q, ids[q.Name])
		}
	}
	if lines := e.metrics(t, queues); len(lines) != queues {
		t.Errorf("%d lines of metrics, want one for each queue", len(lines))
	}
}

func TestEmulatedTwiceAtOnceEachTaskComesBackOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Config{})
	rdb := s.Client(t)
	queues := []string{"mails", "orders", "thumbs"}
	const tasks = 2000
	for _, queue := range queues {
		leaveDead(t, rdb, queue, tasks)
	}
	settings := []string{"JANITOR_REDIS_URL=" + s.URL(), "JANITOR_BATCH=7"}
	type result struct {
		body string
		err  error
	}
	results := make(chan result)
	for _, e := range []*emulator{emulate(t, time.Minute, settings...), emulate(t, time.Minute, settings...)} {
		go func() {
			body, err := e.post(t.Context(), scheduled)
			results <- result{body, err}
		}()
	}
	recovered := map[string]int{}
	for range 2 {
		r := <-results
		if r.err != nil {
			t.Fatal(r.err)
		}
		a := decode(t, []byte(r.body))
		if len(a.Errors) > 0 {
			t.Errorf("errors: %q", a.Errors)
		}
		for _, q := range a.Queues {
			recovered[q.Name] += q.Recovered
		}
	}
	for _, queue := range queues {
		if recovered[queue] != tasks {
			t.Errorf("%s: both say that they recovered %d tasks, want %d", queue, recovered[queue], tasks)
		}
		backOnce(t, rdb, queue, tasks)
	}
}

// The first function has far too little time for so many tasks; the second one goes on where it stopped.
func TestEmulatedRecovers100kTasks(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Config{})
	rdb := s.Client(t)
	const tasks = 100_000
	hasty := emulate(t, 4*time.Second, "JANITOR_REDIS_URL="+s.URL(), "JANITOR_BATCH=1")
	hasty.invoke(t, scheduled) // its start takes from no other call's time
	id := leaveDead(t, rdb, "orders", tasks)

	recovered, left := 0, 0
	for deadline := time.Now().Add(patience); recovered == 0; {
		if time.Now().After(deadline) {
			t.Fatal("nothing was recovered")
		}
		body := hasty.invoke(t, scheduled)
		if strings.Contains(body, "timed out") || strings.Contains(body, "errorMessage") {
			t.Fatalf("answer %s; want it in time", body)
		}
		a := decode(t, []byte(body))
		recovered, left = a.Queues[0].Recovered, a.Queues[0].Left
		if got := recovered + int(a.Queues[0].InFlight); got != tasks {
			t.Errorf("%d tasks recovered or in flight, want %d: %s", got, tasks, body)
		}
	}
	if left != tasks-recovered || left == 0 {
		t.Errorf("recovered %d, left %d; want some left", recovered, left)
	}
	hasty.logs(t, "sweep ended early, the next run goes on", 1)

	e := emulate(t, 5*time.Minute, "JANITOR_REDIS_URL="+s.URL())
	a := decode(t, []byte(e.invoke(t, scheduled)))
	want := swept{
		Queue: sweepanswer.Queue{Name: "orders", Dead: []string{id}, Recovered: left},
		Ready: tasks, OldestReady: a.Queues[0].OldestReady,
	}
	if diff := compare(want, a.Queues[0]); diff != "" {
		t.Errorf("second function (-want +got):\n%s", diff)
	}
	backOnce(t, rdb, "orders", tasks)
}

// backOnce checks that the tasks are due, each after one sweep, and that nobody holds them any more.
func backOnce(t *testing.T, rdb redis.UniversalClient, queue string, tasks int) {
	t.Helper()
	if n := rdb.ZCard(t.Context(), "{"+queue+"}:delayed").Val(); n != int64(tasks) {
		t.Errorf("%s: %d tasks due, want %d", queue, n, tasks)
	}
	crashes := rdb.HVals(t.Context(), "{"+queue+"}:crashes").Val()
	for _, n := range crashes {
		if n != "1" {
			t.Fatalf("%s: a task was swept %s times", queue, n)
		}
	}
	if len(crashes) != tasks {
		t.Errorf("%s: %d tasks were swept, want %d", queue, len(crashes), tasks)
	}
	held := rdb.Keys(t.Context(), "{"+queue+"}:worker_*").Val()
	if len(held) > 0 {
		t.Errorf("%s: %q are still there", queue, held)
	}
}

func TestEmulatedRedisAway(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Config{Password: "hunter2"})
	leaveDead(t, s.Client(t), "orders", 3)
	e := emulate(t, time.Minute, "JANITOR_REDIS_URL="+s.URL()) // the URL has the password
	s.Stop(t)
	body := e.invoke(t, scheduled)
	const want = `"errorMessage":"sweep: check Redis: Redis can't be reached: `
	if !strings.Contains(body, want) {
		t.Errorf("answer %s, want %s in it", body, want)
	}
	e.logs(t, `"msg":"sweep failed","error":"check Redis: Redis can't be reached: `, 1)
	s.Start(t)
	if a := decode(t, []byte(e.invoke(t, scheduled))); len(a.Errors) > 0 {
		t.Errorf("Redis is back: %q", a.Errors)
	}
	if strings.Contains(e.log.String()+body, "hunter2") {
		t.Error("the password was told")
	}
}
