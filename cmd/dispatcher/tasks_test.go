package main

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/queuehook/queuehook/heartbeat"
	"github.com/queuehook/queuehook/internal/redistest"
	"github.com/queuehook/queuehook/keyspace"
	"github.com/queuehook/queuehook/lifecycle"
	"github.com/queuehook/queuehook/task"
)

// shared points the program at the package's Redis, and returns a client of it and a queue of the test's own.
func shared(t *testing.T) (*redis.Client, string) {
	t.Helper()
	s := redistest.Shared(t)
	environment(t, s.URL())
	rdb, name := s.Client(t), redistest.Queue(t)
	if err := rdb.SAdd(t.Context(), keyspace.Queues, name).Err(); err != nil {
		t.Fatal(err)
	}
	return rdb, name
}

// leased leaves a dispatcher behind that has beaten once and holds all ready tasks.
func leased(t *testing.T, rdb redis.UniversalClient, queue string, interval time.Duration) (*lifecycle.DefaultLifecycle, []*task.Task) {
	t.Helper()
	heart, err := heartbeat.New(rdb, queue, heartbeat.Config{Interval: interval})
	if err != nil {
		t.Fatal(err)
	}
	if err := heart.Register(t.Context()); err != nil {
		t.Fatal(err)
	}
	life, err := lifecycle.New(rdb, queue, heart.ID(), lifecycle.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for {
		tasks, err := life.Lease(t.Context(), 100)
		if err != nil {
			t.Fatal(err)
		}
		if len(tasks) > 0 || heart.Alive() { // else its time may have run out before the lease
			return life, tasks
		}
		if err := heart.Beat(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestEnqueue(t *testing.T) {
	rdb, queue := shared(t)
	id := strings.TrimSpace(ok(t, call(t, "enqueue", queue, "--data", "{\"id\":\x00\xff}", "--header", "X-Team=pay=ments", "--header",
		"X-Empty=", "--content-type", "text/plain", "--max-attempts", "3")))
	if !regexp.MustCompile(`^[0-9A-Z]{26}$`).MatchString(id) {
		t.Errorf("id %q", id)
	}
	_, tasks := leased(t, rdb, queue, time.Minute)
	if len(tasks) != 1 || tasks[0].ID() != id || string(tasks[0].Bytes()) != "{\"id\":\x00\xff}" {
		t.Fatalf("leased %v", tasks)
	}
	got := tasks[0].Meta()
	want := map[string]string{"X-Team": "pay=ments", "X-Empty": ""}
	if diff := cmp.Diff(want, got.Headers); diff != "" || got.ContentType != "text/plain" || got.MaxAttempts != 3 {
		t.Errorf("metadata %+v, headers (-want +got):\n%s", got, diff)
	}
}

// TestEnqueueFieldHeaders gives headers that a task has fields for.
func TestEnqueueFieldHeaders(t *testing.T) {
	rdb, queue := shared(t)
	ok(t, call(t, "enqueue", queue, "--data", "x", "--header", "content-type=text/plain",
		"--header", "traceparent=00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "--header", "TraceState=a=b"))
	_, tasks := leased(t, rdb, queue, time.Minute)
	if len(tasks) != 1 {
		t.Fatalf("leased %v", tasks)
	}
	got := tasks[0].Meta()
	if got.ContentType != "text/plain" || got.TraceState != "a=b" || len(got.Headers) > 0 ||
		got.TraceParent != "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" {
		t.Errorf("metadata %+v", got)
	}
}

func TestEnqueueJSON(t *testing.T) {
	_, queue := shared(t)
	var got struct {
		ID, Queue string
		Due       time.Time
	}
	before := time.Now()
	out := ok(t, call(t, "enqueue", queue, "--data", "", "--id", "order-1", "--delay", "1h", "--json"))
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if wait := got.Due.Sub(before); wait < 59*time.Minute || wait > 61*time.Minute {
		t.Errorf("due in %s", wait)
	}
	want := `{"id":"order-1","queue":"` + queue + `","due":"` + got.Due.Format(task.TimeFormat) + "\"}\n"
	if out != want || !strings.HasSuffix(want, "Z\"}\n") {
		t.Errorf("%s, want %s", out, want)
	}
	fails(t, call(t, "enqueue", queue, "--data", "", "--id", "order-1"), exitFailure, "task id exists: order-1")
}

func TestEnqueueDeduplicates(t *testing.T) {
	rdb, queue := shared(t)
	again := []string{"enqueue", queue, "--data", "x", "--dedup-key", "k", "--dedup-ttl", "1h"}
	first := ok(t, call(t, again...))
	if second := call(t, again...); second.code != exitOK || second.out != first || !strings.Contains(second.err, "nothing added") {
		t.Errorf("again: %+v", second)
	}
	leased(t, rdb, queue, time.Minute)
	want := `{"id":"` + strings.TrimSpace(first) + `","queue":"` + queue + `","due":null}` + "\n"
	if out := ok(t, call(t, append(again, "--json")...)); out != want {
		t.Errorf("once it is in flight: %s, want %s", out, want)
	}
}

func TestEnqueueRefusesBadArguments(t *testing.T) {
	environment(t, "redis://"+nobody(t)) // arguments are looked at before Redis is
	for _, c := range []struct{ args, want string }{
		{"enqueue", "takes one queue"},
		{"enqueue a b --data x", "takes one queue"},
		{"enqueue a", "--data is missing"},
		{"enqueue a:qh:dead --data x", "bad queue name"},
		{"enqueue a --data x --header X", "NAME=VALUE"},
		{"enqueue a --data x --header X:Y=1", "is not a header name"},
		{"enqueue a --data x --header X=s\u0001cret", "the value of X cannot be sent"},
		{"enqueue a --data x --header X=1 --header x=2", "x is given twice"},
		{"enqueue a --data x --header content-type=a/b --content-type c/d", "do not go together"},
		{"enqueue a --data x --content-type a\u0001b", "--content-type"},
		{"enqueue a --data x --id é", "1 to 128 visible ASCII characters"},
		{"enqueue a --data x --id=", "--id is empty"},
		{"enqueue a --data x --delay -1s", "must not be negative"},
		{"enqueue a --data x --delay 5", "invalid argument"},
		{"enqueue a --data x --dedup-key k", "go together"},
		{"enqueue a --data x --max-attempts -1", "must not be negative"},
		{"enqueue a --data x --file f", "--data and --file do not go together"},
		{"enqueue a --file - --id x", "--id does not go with --file"},
		{"enqueue a --file - --dedup-key x --dedup-ttl 1h", "--dedup-key does not go with --file"},
		{"enqueue a --file /nowhere/f", "--file: open /nowhere/f"},
	} {
		s := call(t, strings.Fields(c.args)...)
		fails(t, s, exitUsage, c.want)
		if strings.Contains(s.err, "cret") {
			t.Errorf("%q shows a header's value", s.err)
		}
	}
}

func TestEnqueueIntoAFullRedis(t *testing.T) {
	s := redistest.Start(t, redistest.Config{MaxMemory: 1})
	environment(t, s.URL())
	fails(t, call(t, "enqueue", "orders", "--data", "x"), exitFailure, "redis is full")
}

// TestRedisIsAway runs every verb that needs Redis without one, and with one that refuses the password.
func TestRedisIsAway(t *testing.T) {
	closed := redistest.Start(t, redistest.Config{Password: "sesame"})
	for _, c := range []struct{ url, want string }{
		{"redis://" + nobody(t), "Redis can't be reached"},
		{"redis://:hunter2@" + closed.Addr(), "Redis refuses the user name or the password"},
	} {
		environment(t, c.url)
		for _, args := range []string{
			"enqueue q --data x", "enqueue q --file -", "queues", "queues --json", "dead list q", "dead show q id", "dead redrive q id --yes",
			"dead purge q --all --yes", "sweep", "sweep q --json", "pause q", "resume q --json",
		} {
			fails(t, call(t, strings.Fields(args)...), exitFailure, c.want)
		}
	}
}

func TestQueues(t *testing.T) {
	s := redistest.Start(t, redistest.Config{})
	environment(t, s.URL())
	if out := ok(t, call(t, "queues", "--json")); out != "[]\n" {
		t.Errorf("none: %q", out)
	}
	rdb := s.Client(t)
	mistyped := call(t, "enqueue", "orders", "--data", "in flight")
	if mistyped.code != 0 || mistyped.err != "dispatcher: no dispatcher ever served a queue named orders\n" {
		t.Errorf("a queue that nobody knows: %+v", mistyped)
	}
	if err := rdb.SAdd(t.Context(), keyspace.Queues, "orders").Err(); err != nil {
		t.Fatal(err)
	}
	leased(t, rdb, "orders", time.Minute)
	ok(t, call(t, "enqueue", "orders", "--data", "later", "--delay", "1h"))
	for _, cmd := range [][]any{
		{"lpush", "orders", "a", "b"},
		{"zadd", "{orders}:dead", 1, "x", 2, "y", 3, "z"},
		{"set", "{orders}:paused", ""},
		{"sadd", keyspace.Queues, "thumbs"},
	} {
		if err := rdb.Do(t.Context(), cmd...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	environment(t, s.URL(), "ROUTES=a=http://127.0.0.1:1/ thumbs=http://127.0.0.1:1/")
	none := `,"ready":0,"delayed":0,"in_flight":0,"dead":0,"dispatchers":0,"paused":false}`
	want := `[{"queue":"a"` + none +
		`,{"queue":"orders","ready":2,"delayed":1,"in_flight":1,"dead":3,"dispatchers":1,"paused":true}` +
		`,{"queue":"thumbs"` + none + "]\n"
	if diff := cmp.Diff(want, ok(t, call(t, "queues", "--json"))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want = `QUEUE   READY  DELAYED  IN FLIGHT  DEAD  DISPATCHERS  PAUSED
a       0      0        0          0     0            no
orders  2      1        1          3     1            yes
thumbs  0      0        0          0     0            no
`
	if diff := cmp.Diff(want, ok(t, call(t, "queues"))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(ok(t, call(t, "queues", "thumbs", "a", "a")), "QUEUE   READY  DELAYED  IN FLIGHT  DEAD  DISPATCHERS  PAUSED\n"+
		"a       0      0        0          0     0            no\nthumbs  0      0        0          0     0            no\n"); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	if out := call(t, "__complete", "dead", "list", "").out; !strings.HasPrefix(out, "a\norders\nthumbs\n") {
		t.Errorf("completion: %q", out)
	}

	if err := rdb.Set(t.Context(), "{thumbs}:dead", "not ours", 0).Err(); err != nil {
		t.Fatal(err)
	}
	got := call(t, "queues", "--json")
	if got.code != exitFailure || !strings.Contains(got.err, "queue thumbs: ") || strings.Count(got.out, `"queue"`) != 2 {
		t.Errorf("with a queue whose keys hold something else: %+v", got)
	}
}
