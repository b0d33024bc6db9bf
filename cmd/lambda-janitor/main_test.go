package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/queuehook/queuehook/heartbeat"
	"github.com/queuehook/queuehook/internal/redistest"
	"github.com/queuehook/queuehook/lifecycle"
)

func TestMain(m *testing.M) {
	code := redistest.Main(m)
	_ = os.RemoveAll(built.dir)
	os.Exit(code)
}

// ttl is how long the dispatchers that leaveDead leaves count as alive; their grace is two thirds of it.
const ttl = 600 * time.Millisecond

// leave leaves a dispatcher behind that leased this many tasks and never beats again.
func leave(t *testing.T, rdb redis.UniversalClient, queue string, tasks int) string {
	t.Helper()
	heart, err := heartbeat.New(rdb, queue, heartbeat.Config{Interval: ttl / 3})
	if err != nil {
		t.Fatal(err)
	}
	if err := heart.Register(t.Context()); err != nil {
		t.Fatal(err)
	}
	payloads := make([]any, tasks)
	for i := range payloads {
		payloads[i] = i
	}
	for some := range slices.Chunk(payloads, 10_000) {
		if err := rdb.LPush(t.Context(), queue, some...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	life, err := lifecycle.New(rdb, queue, heart.ID(), lifecycle.Config{Concurrency: tasks})
	if err != nil {
		t.Fatal(err)
	}
	for leased, deadline := 0, time.Now().Add(patience); leased < tasks; {
		if err := heart.Beat(t.Context()); err != nil {
			t.Fatal(err)
		}
		got, err := life.Lease(t.Context(), tasks-leased) // nothing, when the time has run out since the beat
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("leased %d of %d: %v", leased, tasks, err)
		}
		leased += len(got)
	}
	return heart.ID()
}

// awaitDead returns when the time of a dispatcher has run out.
func awaitDead(t *testing.T, rdb redis.UniversalClient, queue, id string) {
	t.Helper()
	detector, err := heartbeat.NewDetector(rdb, queue)
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; <-time.After(5 * time.Millisecond) {
		ids, err := detector.Detect(t.Context())
		if slices.Contains(ids, id) {
			return
		}
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("dead dispatchers: %q, %v", ids, err)
		}
	}
}

func leaveDead(t *testing.T, rdb redis.UniversalClient, queue string, tasks int) string {
	t.Helper()
	id := leave(t, rdb, queue, tasks)
	awaitDead(t, rdb, queue, id)
	return id
}

// clearEnvironment unsets what the shell that runs the tests may have set.
func clearEnvironment(t *testing.T) {
	t.Helper()
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		ours := strings.HasPrefix(name, "JANITOR_") || strings.HasPrefix(name, "DISPATCHER_")
		if ours || strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "") // restores it at the end
			if err := os.Unsetenv(name); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// environment points the janitor at a Redis and some of its queues, and unsets everything else.
func environment(t *testing.T, url string, queues ...string) {
	t.Helper()
	clearEnvironment(t)
	t.Setenv("JANITOR_REDIS_URL", url)
	t.Setenv("JANITOR_GRACE", "50ms")
	t.Setenv("JANITOR_LOG_FORMAT", "text")
	if len(queues) > 0 {
		t.Setenv("JANITOR_QUEUES", strings.Join(queues, " "))
	}
}

// call runs the program in this process and reads the answer.
func call(t *testing.T, args ...string) (code int, a answer, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, &out, &errs)
	if err := json.Unmarshal(out.Bytes(), &a); err != nil {
		t.Fatalf("standard output %q: %v; standard error: %s", &out, err, &errs)
	}
	return code, a, errs.String()
}

func TestOneRunRecovers(t *testing.T) {
	s := redistest.Start(t, redistest.Config{})
	rdb := s.Client(t)
	dead := leaveDead(t, rdb, "orders", 150)
	if err := rdb.SAdd(t.Context(), "queuehook:queues", "empty").Err(); err != nil {
		t.Fatal(err)
	}
	environment(t, s.URL())

	var out, errs bytes.Buffer
	if code := run(t.Context(), nil, &out, &errs); code != exitOK {
		t.Fatalf("exit %d: %s", code, &errs)
	}
	want := fmt.Sprintf(`{"queues":[`+
		`{"queue":"empty","dead_dispatchers":[],"recovered":0,"buried":0,"left":0,"ready":0,"delayed":0,"in_flight":0,`+
		`"dead":0,"oldest_ready_seconds":0,"live_dispatchers":0},`+
		`{"queue":"orders","dead_dispatchers":[%q],"recovered":150,"buried":0,"left":0,"ready":150,"delayed":0,"in_flight":0,`+
		`"dead":0,"oldest_ready_seconds":0,"live_dispatchers":0}],"errors":[]}`+"\n", dead)
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("standard output (-want +got):\n%s", diff)
	}
	if log := errs.String(); strings.Count(log, "\n") != 1 || !strings.Contains(log, `msg="sweep waits for the grace of suspects" queue=orders`) {
		t.Errorf("a clean run logs that it waits, and nothing else: %s", log)
	}
}

func TestGracesOfManyQueuesPassTogether(t *testing.T) {
	rdb := redistest.Shared(t).Client(t)
	var queues, ids []string
	for range 3 * parallel {
		queue := redistest.Queue(t)
		queues, ids = append(queues, queue), append(ids, leave(t, rdb, queue, 1))
	}
	for i, queue := range queues {
		awaitDead(t, rdb, queue, ids[i])
	}
	environment(t, redistest.Shared(t).URL(), queues...)
	t.Setenv("JANITOR_GRACE", "2s")
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second) // one after another they would take 48 s
	defer cancel()
	var out, errs bytes.Buffer
	if code := run(ctx, nil, &out, &errs); code != exitOK {
		t.Fatalf("exit %d: %s", code, &errs)
	}
	if n := strings.Count(out.String(), `"recovered":1,`); n != len(queues) {
		t.Errorf("%d of %d queues recovered: %s", n, len(queues), &errs)
	}
}

func TestOneQueuesErrorHurtsNoOther(t *testing.T) {
	rdb := redistest.Shared(t).Client(t)
	good, bad := redistest.Queue(t), redistest.Queue(t)
	leaveDead(t, rdb, good, 3)
	if err := rdb.Set(t.Context(), "{"+bad+"}:ticks", "no zset", 0).Err(); err != nil {
		t.Fatal(err)
	}
	environment(t, redistest.Shared(t).URL(), bad, good)
	code, a, stderr := call(t)
	if code != exitFailure || len(a.Errors) == 0 || !strings.Contains(a.Errors[0], bad) || !strings.Contains(stderr, "sweep failed") {
		t.Errorf("exit %d, errors %q, log %s; want 1 and the bad queue named", code, a.Errors, stderr)
	}
	for _, q := range a.Queues {
		if q.Name == good && q.Recovered != 3 {
			t.Errorf("the good queue: %+v, want 3 tasks back", q)
		}
	}
	if len(a.Queues) != 2 {
		t.Errorf("%d queues in the answer, want both", len(a.Queues))
	}
}

func TestTwoAtOnceShareTheWork(t *testing.T) {
	rdb, queue := redistest.Shared(t).Client(t), redistest.Queue(t)
	leaveDead(t, rdb, queue, 500)
	environment(t, redistest.Shared(t).URL(), queue)
	t.Setenv("JANITOR_BATCH", "7")
	type result struct {
		code int
		out  bytes.Buffer
	}
	done := make(chan *result)
	for range 2 {
		go func() {
			r := &result{}
			r.code = run(t.Context(), nil, &r.out, &bytes.Buffer{})
			done <- r
		}()
	}
	recovered := 0
	for range 2 {
		r := <-done
		var a answer
		if err := json.Unmarshal(r.out.Bytes(), &a); err != nil || r.code != exitOK {
			t.Fatalf("exit %d, %q: %v", r.code, &r.out, err)
		}
		recovered += a.Queues[0].Recovered
	}
	if recovered != 500 {
		t.Errorf("%d recovered by both, want 500", recovered)
	}
}

func TestRedisAway(t *testing.T) {
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	environment(t, "redis://:hunter2@"+addr)
	code, a, stderr := call(t)
	if code != exitFailure || len(a.Errors) != 1 || !strings.Contains(a.Errors[0], "can't be reached") {
		t.Errorf("exit %d, answer %+v", code, a)
	}
	if strings.Contains(stderr+a.Errors[0], "hunter2") {
		t.Error("the password was told")
	}
}

func TestRedisFrozen(t *testing.T) {
	s := redistest.Start(t, redistest.Config{})
	s.Pause(t)
	defer s.Continue(t)
	environment(t, s.URL()+"?read_timeout=100ms")
	if code, a, _ := call(t); code != exitFailure || len(a.Errors) != 1 {
		t.Errorf("exit %d, answer %+v", code, a)
	}
}

func TestConfigurationErrors(t *testing.T) {
	for name, c := range map[string]struct {
		variable, value string
		args            []string
	}{
		"bad value":  {variable: "JANITOR_GRACE", value: "10"},
		"misspelt":   {variable: "JANITOR_GARCE", value: "10s"},
		"bad flag":   {args: []string{"--once"}},
		"a word":     {args: []string{"orders"}},
		"half a URL": {variable: "JANITOR_REDIS_URL", value: "localhost"},
	} {
		t.Run(name, func(t *testing.T) {
			clearEnvironment(t)
			if c.variable != "" {
				t.Setenv(c.variable, c.value)
			}
			var out, errs bytes.Buffer
			if code := run(t.Context(), c.args, &out, &errs); code != exitUsage || out.Len() > 0 || errs.Len() == 0 {
				t.Errorf("exit %d, %q, %q; want 2 and a text on standard error", code, &out, &errs)
			}
			if !strings.Contains(errs.String(), c.variable) {
				t.Errorf("%s is not named: %s", c.variable, &errs)
			}
		})
	}
}

func TestFlags(t *testing.T) {
	environment(t, "redis://alice:hunter2@localhost:6379")
	for flag, want := range map[string]string{
		"--version": "dev\n", "--print-config": "JANITOR_GRACE=50ms\n", "--help": "JANITOR_REDIS_URL",
	} {
		var out, errs bytes.Buffer
		code := run(t.Context(), []string{flag}, &out, &errs)
		if code != exitOK || errs.Len() > 0 || !strings.Contains(out.String(), want) {
			t.Errorf("%s: exit %d, %q, stderr %q; want %q in it and no complaint", flag, code, &out, &errs, want)
		}
		if strings.Contains(out.String(), "hunter2") {
			t.Errorf("%s tells the password", flag)
		}
	}
}

func TestLegacy(t *testing.T) {
	rdb, queue := redistest.Shared(t).Client(t), redistest.Queue(t)
	if err := rdb.LPush(t.Context(), queue+":worker_a", "first", "second", "third").Err(); err != nil {
		t.Fatal(err)
	}
	if err := rdb.HSet(t.Context(), queue+":ticks", "a", "1500000000").Err(); err != nil {
		t.Fatal(err)
	}
	environment(t, redistest.Shared(t).URL(), queue)
	leaveDead(t, rdb, queue, 2)
	var out, errs bytes.Buffer
	want := `"recovered":2,"buried":0,"left":0,"ready":5,"delayed":0,"in_flight":0,"dead":0,"oldest_ready_seconds":0,` +
		`"live_dispatchers":0,"legacy_workers":["a"],"legacy_recovered":3}],"errors":[]}`
	t.Setenv("JANITOR_LEGACY", "true")
	if code := run(t.Context(), nil, &out, &errs); code != exitOK || !strings.Contains(out.String(), want) {
		t.Errorf("exit %d, %s, %s; want %s", code, &out, &errs, want)
	}
	if got := rdb.LRange(t.Context(), queue, 0, -1).Val(); !slices.Equal(got, []string{"third", "second", "first"}) {
		t.Errorf("queue %q, want the oldest at the right end", got)
	}
}

// A run without time for the second look takes nothing and says so.
func TestLegacyKeepsToTheDeadline(t *testing.T) {
	rdb, queue := redistest.Shared(t).Client(t), redistest.Queue(t)
	if err := rdb.HSet(t.Context(), queue+":ticks", "a", "1500000000").Err(); err != nil {
		t.Fatal(err)
	}
	environment(t, redistest.Shared(t).URL(), queue)
	t.Setenv("JANITOR_LEGACY", "true")
	t.Setenv("JANITOR_GRACE", "1h")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out, errs bytes.Buffer
	if code := run(ctx, nil, &out, &errs); code != exitOK || !strings.Contains(errs.String(), "sweep ended early") ||
		!strings.Contains(out.String(), `"legacy_workers":[],"legacy_recovered":0}`) {
		t.Errorf("exit %d, %s, %s", code, &out, &errs)
	}
}

func TestCluster(t *testing.T) {
	cluster := redistest.StartCluster(t, 3)
	rdb := cluster.Client(t)
	for _, queue := range []string{"orders", "thumbs", "mails"} {
		leaveDead(t, rdb, queue, 3)
	}
	environment(t, cluster.URL())
	t.Setenv("JANITOR_REDIS_CLUSTER", "true")
	code, a, stderr := call(t)
	if code != exitOK || len(a.Queues) != 3 {
		t.Fatalf("exit %d, answer %+v: %s", code, a, stderr)
	}
	for _, q := range a.Queues {
		if q.Recovered != 3 || q.Ready != 3 {
			t.Errorf("%+v, want 3 tasks back", q)
		}
	}
}
