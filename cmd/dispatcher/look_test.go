package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/queuehook/queuehook/internal/redistest"
)

// send sends plain commands.
func send(t *testing.T, rdb redis.UniversalClient, cmds ...[]any) {
	t.Helper()
	for _, cmd := range cmds {
		if err := rdb.Do(t.Context(), cmd...).Err(); err != nil {
			t.Fatalf("%v: %v", cmd, err)
		}
	}
}

// TestDeepSweepRecoversWhatNobodyKnows: a dispatcher lost its tick, then died; its tasks come back within one run.
func TestDeepSweepRecoversWhatNobodyKnows(t *testing.T) {
	rdb, queue := shared(t)
	other := redistest.Queue(t)
	send(t, rdb, []any{"lpush", queue, "a", "b", "c"})
	life, _ := leased(t, rdb, queue, 10*time.Millisecond)
	send(t, rdb, []any{"zrem", "{" + queue + "}:ticks", life.ID()})
	if out := ok(t, call(t, "sweep", queue, "--grace", "50ms", "--json")); !strings.Contains(out, `"recovered":0`) || strings.Contains(out, "orphans") {
		t.Errorf("without --deep: %s", out)
	}

	want := fmt.Sprintf(`{"queue":"%s","dead_dispatchers":["%s"],"recovered":3,"buried":0,"left":0,"suspects":[],`+
		`"orphans":["%[2]s"],"strays":0,"bodiless":0}`, queue, life.ID())
	none := fmt.Sprintf(`{"queue":"%s","dead_dispatchers":[],"recovered":0,"buried":0,"left":0,"suspects":[],`+
		`"orphans":[],"strays":0,"bodiless":0}`, other)
	out := ok(t, call(t, "sweep", queue, other, "--deep", "--grace", "50ms", "--json"))
	if !strings.Contains(out, want) || !strings.Contains(out, none) || !strings.HasSuffix(out, `],"errors":[]}`+"\n") {
		t.Errorf("%s\nwant %s\nand %s", out, want, none)
	}
	if _, tasks := leased(t, rdb, queue, time.Minute); len(tasks) != 3 {
		t.Errorf("%d tasks can be leased, want 3", len(tasks))
	}
}

func TestDeepSweepMendsInOneRun(t *testing.T) {
	rdb, queue := shared(t)
	send(
		t, rdb, []any{"hset", "{" + queue + "}:body", "stray-1", "x", "stray-2", "y"},
		[]any{"zadd", "{" + queue + "}:delayed", 1 << 50, "bodiless"},
	)
	want := fmt.Sprintf(`QUEUE%*s  DEAD DISPATCHERS  RECOVERED  BURIED  LEFT  SUSPECTS  ORPHANS  STRAYS  BODILESS
%s  0                 0          0       0     0         0        2       1
`, len(queue)-5, "", queue)
	if diff := cmp.Diff(want, ok(t, call(t, "sweep", queue, "--deep", "--grace", "1ms"))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := dead(t, rdb, queue); !cmp.Equal(got, []string{"bodiless"}) {
		t.Errorf("dead letters %q", got)
	}
}

// TestLegacySweepReturnsTheOldestFirst: what redutil's dead worker held comes back ahead of the waiting tasks.
func TestLegacySweepReturnsTheOldestFirst(t *testing.T) {
	rdb, queue := shared(t)
	send(
		t, rdb, []any{"lpush", queue + ":worker_a", "first", "second", "third"},
		[]any{"hset", queue + ":ticks", "a", "1500000000"}, []any{"lpush", queue, "waiting"},
	)
	want := fmt.Sprintf(`{"queues":[{"queue":"%s","dead_dispatchers":[],"recovered":0,"buried":0,"left":0,"suspects":[],`+
		`"legacy_workers":["a"],"legacy_recovered":3}],"errors":[]}`+"\n", queue)
	if diff := cmp.Diff(want, ok(t, call(t, "sweep", queue, "--legacy", "--grace", "1ms", "--json"))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	_, tasks := leased(t, rdb, queue, time.Minute)
	var payloads []string
	for _, task := range tasks {
		payloads = append(payloads, string(task.Bytes()))
	}
	if diff := cmp.Diff([]string{"first", "second", "third", "waiting"}, payloads); diff != "" {
		t.Errorf("payloads (-want +got):\n%s", diff)
	}
	want = fmt.Sprintf(`QUEUE%*s  DEAD DISPATCHERS  RECOVERED  BURIED  LEFT  SUSPECTS  ORPHANS  STRAYS  BODILESS  LEGACY WORKERS  LEGACY RECOVERED
%s  0                 0          0       0     0         0        0       0         0               0
`, len(queue)-5, "", queue)
	if diff := cmp.Diff(want, ok(t, call(t, "sweep", queue, "--legacy", "--deep", "--grace", "1ms"))); diff != "" {
		t.Errorf("nothing left (-want +got):\n%s", diff)
	}
}

func TestLegacySweepInACluster(t *testing.T) {
	cluster := redistest.StartCluster(t, 3)
	environment(t, cluster.URL(), "REDIS_CLUSTER=true")
	rdb := cluster.Client(t)
	send(
		t, rdb, []any{"lpush", "{orders}:worker_a", "x"}, []any{"hset", "{orders}:ticks", "a", "1"},
		[]any{"hset", "{thumbs}:body", "stray", "x"},
	)
	got := call(t, "sweep", "{orders}", "thumbs", "--legacy", "--deep", "--grace", "1ms", "--json")
	if got.code != exitFailure || !strings.Contains(got.err, "queue thumbs: legacy sweep: in a cluster") ||
		!strings.Contains(got.out, `"strays":1,"bodiless":0,"legacy_workers":[],"legacy_recovered":0}`) ||
		!strings.Contains(got.out, `"legacy_workers":["a"],"legacy_recovered":1}`) {
		t.Errorf("%+v", got)
	}
}

func TestLooksThatFailLeaveTheRestOfTheSweep(t *testing.T) {
	s := redistest.Start(t, redistest.Config{})
	rdb := s.Client(t)
	environment(t, s.URL())
	leaveDead(t, rdb, "orders", 2)
	send(t, rdb, []any{"set", "orders:ticks", "another program's"})
	got := call(t, "sweep", "orders", "--legacy", "--grace", "50ms", "--json")
	if got.code != exitFailure || strings.Count(got.err, "\n") != 1 || !strings.Contains(got.err, "queue orders: legacy sweep: WRONGTYPE") ||
		!strings.Contains(got.out, `"recovered":2`) {
		t.Errorf("%+v", got)
	}
}
