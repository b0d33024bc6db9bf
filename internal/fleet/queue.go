package fleet

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/queuehook/queuehook/heartbeat"
	"github.com/queuehook/queuehook/internal/audit"
	"github.com/queuehook/queuehook/internal/receiver"
	"github.com/queuehook/queuehook/internal/redistest"
	"github.com/queuehook/queuehook/keyspace"
	"github.com/queuehook/queuehook/lifecycle"
)

// maxPush is how many payloads one LPUSH carries.
const maxPush = 500

// Queue is one queue under test: its receiver, and all that the law must know of it. Pushing and counting may be done
// by several goroutines.
type Queue struct {
	Name     string
	Receiver *receiver.Server
	Redis    redis.UniversalClient // of the test, not by way of any proxy

	mu     sync.Mutex
	pushed map[string]int
	maybe  map[string]bool // payloads, by their sum, of which nobody knows whether Redis took them
	causes map[string]string
	late   map[int64]bool // requests that others may have overtaken
	undone string         // why Redis forgot writes; empty = it did not
	judged bool
}

// NewQueue makes a queue that nobody else uses, with a receiver of its own. The test must end with its Law.
func NewQueue(t testing.TB, server *redistest.Server, cfg receiver.Config) *Queue {
	t.Helper()
	return NewQueueOn(t, server.Client(t), cfg)
}

// NewQueueOn is NewQueue for any kind of Redis.
func NewQueueOn(t testing.TB, rdb redis.UniversalClient, cfg receiver.Config) *Queue {
	t.Helper()
	srv, err := receiver.Start(cfg)
	if err != nil {
		t.Fatalf("start receiver: %v", err)
	}
	t.Cleanup(srv.Close)
	q := &Queue{
		Name: redistest.Queue(t), Receiver: srv, Redis: rdb,
		pushed: map[string]int{}, maybe: map[string]bool{}, causes: map[string]string{}, late: map[int64]bool{},
	}
	t.Cleanup(func() {
		if !q.judged && !t.Failed() && !t.Skipped() {
			t.Errorf("queue %s: the test did not end with the law", q.Name)
		}
	})
	return q
}

// Routes is the queues' setting for a dispatcher.
func Routes(queues ...*Queue) string {
	entries := make([]string, 0, len(queues))
	for _, q := range queues {
		entries = append(entries, q.Name+"="+q.Receiver.URL()+"/hook")
	}
	return strings.Join(entries, " ")
}

// Push does what a producer does: LPUSH, raw.
func (q *Queue) Push(t testing.TB, payloads ...[]byte) {
	t.Helper()
	for part := range slices.Chunk(payloads, maxPush) {
		values := make([]any, len(part))
		for i, p := range part {
			values[i] = p
		}
		if err := q.Redis.LPush(t.Context(), q.Name, values...).Err(); err != nil {
			t.Fatalf("push: %v", err)
		}
		q.count(part...)
	}
}

// PushN pushes n different payloads.
func (q *Queue) PushN(t testing.TB, n int) {
	t.Helper()
	payloads := make([][]byte, n)
	for i := range payloads {
		payloads[i] = fmt.Appendf(nil, `{"n":%d}`, i)
	}
	q.Push(t, payloads...)
}

// Enqueue adds a task with options, and returns its id.
func (q *Queue) Enqueue(t testing.TB, payload []byte, o lifecycle.EnqueueOptions) string {
	t.Helper()
	id, err := q.open(t).Enqueue(t.Context(), payload, o)
	if err != nil {
		t.Fatal(err)
	}
	q.count(payload)
	return id
}

// Handed notes a payload that was pushed by other means than this queue's methods.
func (q *Queue) Handed(payloads ...[]byte) { q.count(payloads...) }

// Dead returns the dead letters.
func (q *Queue) Dead(t testing.TB) []lifecycle.DeadLetter {
	t.Helper()
	letters, next, err := q.open(t).Dead(t.Context(), "", 1000)
	if err != nil || next != "" {
		t.Fatalf("dead letters: %v, next %q", err, next)
	}
	return letters
}

// Depth returns how many tasks are where.
func (q *Queue) Depth(t testing.TB) lifecycle.Depth {
	t.Helper()
	d, err := q.open(t).Depth(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Recovered returns how many tasks were taken back from dispatchers that died.
func (q *Queue) Recovered(t testing.TB) int {
	t.Helper()
	n, err := q.Redis.HGet(t.Context(), q.Keys(t).Stats, "recovered").Int()
	if err != nil && !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
	return n
}

// Keys names the queue's keys.
func (q *Queue) Keys(t testing.TB) keyspace.Keys {
	t.Helper()
	k, err := keyspace.New(q.Name)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func (q *Queue) open(t testing.TB) *lifecycle.Queue {
	t.Helper()
	queue, err := lifecycle.Open(q.Redis, q.Name)
	if err != nil {
		t.Fatal(err)
	}
	return queue
}

// count notes what was handed over.
func (q *Queue) count(payloads ...[]byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, p := range payloads {
		q.pushed[audit.Sum(p)]++
	}
}

// Pushed is how many tasks were handed over.
func (q *Queue) Pushed() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for _, times := range q.pushed {
		n += times
	}
	return n
}

// Places is where each task is.
func (q *Queue) Places(t testing.TB) audit.Places {
	t.Helper()
	p, err := audit.Read(t.Context(), q.Redis, q.Name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// AwaitDrained returns once Redis holds nothing but dead letters.
func (q *Queue) AwaitDrained(t testing.TB) {
	t.Helper()
	q.AwaitLeft(t, 0)
}

// AwaitLeft returns once Redis holds at most n tasks, dead letters not counted. It asks for depths, which costs Redis
// little, before it looks at everything.
func (q *Queue) AwaitLeft(t testing.TB, n int) {
	t.Helper()
	awaitLess(t, "queue "+q.Name+" drained", func() (int, error) {
		d := q.Depth(t)
		left := int(d.Ready + d.Delayed + d.InFlight)
		if left <= n {
			left = q.Places(t).Waiting() // those of dispatchers that nobody knows too
		}
		if left > n {
			return left, fmt.Errorf("%d tasks left, %+v; %d requests", left, d, q.Receiver.Count())
		}
		return left, nil
	})
}

// AwaitRequests returns once n requests came.
func (q *Queue) AwaitRequests(t testing.TB, n int64) {
	t.Helper()
	awaitLess(t, "requests to "+q.Name, func() (int, error) {
		got := q.Receiver.Count()
		if got < n {
			return int(n - got), fmt.Errorf("%d came, want %d", got, n)
		}
		return 0, nil
	})
}

// AwaitInFlight returns once the receiver has n unanswered requests.
func (q *Queue) AwaitInFlight(t testing.TB, n int) {
	t.Helper()
	Await(t, Patience, "in flight", func() error {
		if now, _ := q.Receiver.InFlight(); now != n {
			return fmt.Errorf("%d requests unanswered, want %d", now, n)
		}
		return nil
	})
}

// Of returns the ids of the tasks in flight at a dispatcher. It must be frozen or idle for that to mean anything.
func (q *Queue) Of(t testing.TB, s *Server) []string {
	t.Helper()
	detector, err := heartbeat.NewDetector(q.Redis, q.Name)
	if err != nil {
		t.Fatal(err)
	}
	seen, err := detector.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, d := range seen {
		if d.Info.PID != s.PID() {
			continue
		}
		held, err := q.Redis.HKeys(t.Context(), q.Keys(t).Worker(d.ID)).Result()
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, held...)
	}
	return ids
}

// Leftovers are those of the queue's keys that exist, except for the counters.
func (q *Queue) Leftovers(t testing.TB) []string {
	t.Helper()
	k := q.Keys(t)
	var left []string
	all := q.Redis.Scan(t.Context(), 0, k.All(), 1000).Iterator()
	for all.Next(t.Context()) {
		if all.Val() != k.Stats {
			left = append(left, all.Val())
		}
	}
	if err := all.Err(); err != nil {
		t.Fatal(err)
	}
	if q.Redis.Exists(t.Context(), k.Source).Val() > 0 {
		left = append(left, k.Source)
	}
	return left
}

// Payload is n bytes that hold every byte value, seeded so that each seed gives others.
func Payload(seed, n int) []byte {
	head := fmt.Appendf(nil, "%d\x00\r\n\xff", seed)
	b := bytes.Repeat([]byte{0}, n)
	for i := range b {
		b[i] = byte((i + seed) % 256) //nolint:gosec // the rest fits
	}
	copy(b, head)
	return b
}
