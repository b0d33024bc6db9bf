package lifecycle

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/queuehook/queuehook/internal/audit"
	"github.com/queuehook/queuehook/internal/faultproxy"
	"github.com/queuehook/queuehook/internal/redistest"
	"github.com/queuehook/queuehook/internal/script"
)

// numbered are n payloads, each with its number.
func (b *bench) numbered(n int) [][]byte {
	payloads := make([][]byte, n)
	for i := range payloads {
		payloads[i] = fmt.Appendf(nil, "%05d", i)
		b.trial.Pushed[audit.Sum(payloads[i])]++
	}
	return payloads
}

// inOrder leases everything and fails the test unless it comes in the order of the numbers, under the ids that AddAll
// returned.
func (b *bench) inOrder(added []Enqueued) {
	b.Helper()
	b.alive("w")
	for i := 0; i < len(added); {
		tasks := b.lease(leaseCall{n: 1000, d: 1000}).Tasks
		if len(tasks) == 0 {
			b.Fatalf("%d tasks, want %d", i, len(added))
		}
		for _, t := range tasks {
			if want := fmt.Sprintf("%05d", i); t.Payload != want || t.ID != added[i].ID {
				b.Fatalf("%d: payload %s of task %s, want %s of %s", i, t.Payload, t.ID, want, added[i].ID)
			}
			i++
		}
	}
	b.take(leaseCall{})
}

func TestAddAllKeepsTheOrder(t *testing.T) {
	onBoth(t, func(b *bench) {
		q, payloads := b.queue(), b.numbered(2310)
		var all []Enqueued
		for _, n := range []int{1, 2200, 9, 100} {
			added, err := q.AddAll(b.ctx, payloads[:n], EnqueueOptions{MaxAttempts: 3})
			if err != nil || len(added) != n {
				b.Fatalf("AddAll = %d, %v, want %d", len(added), err, n)
			}
			all, payloads = append(all, added...), payloads[n:]
		}
		if late := time.Since(all[0].Due); late < -time.Minute || late > time.Minute {
			b.Errorf("due %s ago, want now", late)
		}
		b.inOrder(all)
	})
}

func TestAddAllSendsWhatGotNoAnswerAgain(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	proxy := faultproxy.Start(t, server.Addr())
	o := server.Options()
	o.Addr = proxy.Addr()
	far := redis.NewClient(o)
	t.Cleanup(func() { _ = far.Close() })
	b := newBench(t, server.Client(t))
	q, err := Open(far, b.keys.Source)
	if err != nil {
		t.Fatal(err)
	}
	replies, requests := proxy.LoseReplies(2, b.keys.Body), proxy.LoseRequests(1, b.keys.Body)
	added, err := q.AddAll(b.ctx, b.numbered(1500), EnqueueOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if replies.Count() != 2 || requests.Count() != 1 {
		t.Errorf("lost %d replies and %d requests, want 2 and 1", replies.Count(), requests.Count())
	}
	b.inOrder(added)
}

func TestAddAllSaysWhichWereNotAdded(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t, redistest.Config{}).Client(t)
	b := newBench(t, rdb)
	b.allowed = []audit.Kind{audit.Lost}
	q := b.queue()
	if err := rdb.ConfigSet(b.ctx, "maxmemory", "3mb").Err(); err != nil {
		t.Fatal(err)
	}
	var payloads [][]byte
	for range 40 {
		payloads = append(payloads, make([]byte, 200_000))
		b.trial.Pushed[audit.Sum(payloads[0])]++
	}
	added, err := q.AddAll(b.ctx, payloads, EnqueueOptions{})
	if !errors.Is(err, ErrFull) || added[0].ID == "" || added[39].ID != "" {
		t.Fatalf("AddAll = %+v, %v, want the first added and the last not", added, err)
	}
	for i, a := range added {
		if there := rdb.HExists(b.ctx, b.keys.Body, a.ID).Val(); there != (a.ID != "") {
			t.Errorf("%d: said %q, there: %v", i, a.ID, there)
		}
	}

	for _, o := range []EnqueueOptions{{ID: "x"}, {DedupKey: "k", DedupTTL: time.Hour}, {Delay: -1}} {
		if _, err := q.AddAll(b.ctx, payloads[:1], o); !errors.Is(err, ErrOption) {
			t.Errorf("AddAll with %+v = %v, want ErrOption", o, err)
		}
	}
}

func TestAddAllEndsWithWhatDoesNotPass(t *testing.T) {
	onBoth(t, func(b *bench) {
		b.do("set", b.keys.Delayed, "not ours")
		if _, err := b.queue().AddAll(b.ctx, [][]byte{nil, nil}, EnqueueOptions{}); !script.Answered(err) {
			b.Errorf("AddAll = %v, want Redis's own error", err)
		}
		b.do("del", b.keys.Delayed)
	})
}
