package lifecycle

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/queuehook/queuehook/internal/audit"
	"github.com/queuehook/queuehook/internal/script"
	"github.com/queuehook/queuehook/keyspace"
)

func (b *bench) queue() *Queue { return &Queue{rdb: b.rdb, keys: b.keys} }

// deep makes one deep look and sorts the ids that it found.
func (b *bench) deep(d *Deep) Deepened {
	b.Helper()
	found, err := d.Look(b.ctx)
	if err != nil {
		b.Fatal(err)
	}
	slices.Sort(found.Strays)
	slices.Sort(found.Bodiless)
	return found
}

func TestDeepFindsNothingInAQueueThatIsWell(t *testing.T) {
	onBoth(t, func(b *bench) {
		b.alive("w", "v")
		b.push("a", "b", "c")
		b.enqueue("later", "x", 60_000, "", 0)
		b.take(leaseCall{n: 2}, "a", "b")
		d := NewDeep(b.queue())
		for range 3 {
			if found := b.deep(d); found.Any() {
				b.Errorf("found %+v", found)
			}
		}
	})
}

func TestDeepMakesAnOrphanKnownToSweeps(t *testing.T) {
	onBoth(t, func(b *bench) {
		b.alive("w")
		b.push("a", "b")
		b.take(leaseCall{n: 2}, "a", "b")
		b.do("zrem", b.keys.Ticks, "w")
		d := NewDeep(b.queue())
		b.equal("orphans", b.deep(d).Orphans, []string{"w"})
		b.equal("orphans of the next look", b.deep(d).Orphans, []string(nil))
		b.equal("first sweep", b.sweep(look{id: "w", grace: 1, batch: 100})[:6], "MARKED")
		b.eventually("the orphan is swept", func() bool {
			return b.sweep(look{id: "w", grace: 1, batch: 100}) == "SWEPT 2 0 0"
		})
	})
}

func TestDeepLooksForFewTasksAtATimeAmongManyDispatchers(t *testing.T) {
	for _, tt := range []struct{ dispatchers, want int }{{0, maxSweep}, {3, maxSweep}, {2000, 2}, {1 << 30, 1}} {
		if got := mendBatch(tt.dispatchers); got != tt.want {
			t.Errorf("among %d dispatchers %d tasks, want %d", tt.dispatchers, got, tt.want)
		}
	}
}

func TestDeepMendsOnTheSecondLook(t *testing.T) {
	onBoth(t, func(b *bench) {
		b.allowed = []audit.Kind{audit.Invented, audit.NoBody, audit.NoPlace}
		b.alive("w")
		b.push("a")
		b.take(leaseCall{n: 1}, "a")
		for i := range 250 {
			b.do("hset", b.keys.Body, fmt.Sprintf("stray-%03d", i), "x")
		}
		b.do("zadd", b.keys.Delayed, 1<<50, "bodiless")

		d := NewDeep(b.queue())
		b.equal("first look", b.deep(d), Deepened{Suspects: 251})
		b.do("zadd", b.keys.Dead, 1, "stray-000") // found its place meanwhile
		found := b.deep(d)
		b.equal("strays", len(found.Strays), 249)
		b.equal("bodiless", found.Bodiless, []string{"bodiless"})
		b.equal("due at once", fmt.Sprint(b.do("zcount", b.keys.Delayed, 0, 0)), "249")
		b.equal("in doubt", fmt.Sprint(b.do("hget", b.keys.Crashes, "stray-249")), "1")
		b.equal("third look", b.deep(d), Deepened{})
	})
}

// What comes and goes between two looks must not be repaired.
func TestDeepForgetsWhatItDidNotSeeAgain(t *testing.T) {
	onBoth(t, func(b *bench) {
		b.allowed = []audit.Kind{audit.Invented}
		d := NewDeep(b.queue())
		b.do("hset", b.keys.Body, "t", "x")
		b.equal("first look", b.deep(d).Suspects, 1)
		b.do("hdel", b.keys.Body, "t")
		b.equal("second look", b.deep(d).Suspects, 0)
		b.do("hset", b.keys.Body, "t", "x")
		b.equal("third look", b.deep(d), Deepened{Suspects: 1})
		b.do("hdel", b.keys.Body, "t")
	})
}

func TestMendLooksAtNothingWhenDispatchersChanged(t *testing.T) {
	onBoth(t, func(b *bench) {
		b.alive("w")
		k := b.keys
		keys := []string{k.Ticks, k.Body, k.Delayed, k.Dead, k.Crashes}
		b.equal("one too few", b.run(mendScript, keys, 1, 0, "t"), list("RETRY"))
		b.equal("another", b.run(mendScript, append(keys, k.Worker("v")), 1, 1, "v", "t"), list("RETRY"))
		b.equal("those of ticks", b.run(mendScript, append(keys, k.Worker("w")), 1, 1, "w", "t"), list("LOOKED"))
	})
}

func TestTrim(t *testing.T) {
	onBoth(t, func(b *bench) {
		b.allowed = []audit.Kind{audit.Invented}
		for i := range 2500 {
			id := fmt.Sprintf("t%04d", i)
			b.do("hset", b.keys.Body, id, "x")
			b.do("zadd", b.keys.Dead, b.now()-int64(2500-i)*1000, id)
		}
		trim := func(age time.Duration, count int) int {
			n, err := b.queue().Trim(b.ctx, age, count)
			if err != nil {
				b.Fatal(err)
			}
			return n
		}
		b.equal("no bound", trim(0, 0), 0)
		if n := trim(2400*time.Second, 0); n < 100 || n > 130 {
			b.Errorf("%d were older than 2400 s, want 100", n)
		}
		trim(0, 1100)
		b.equal("left", fmt.Sprint(b.do("zcard", b.keys.Dead)), "1100")
		b.equal("bodies", fmt.Sprint(b.do("hlen", b.keys.Body)), "1100")
		b.equal("the newest stays", fmt.Sprint(b.do("hget", b.keys.Body, "t2499")), "x")
		b.equal("again", trim(0, 1100), 0)
		b.equal("all", trim(time.Millisecond, 0) > 1000, true)
	})
}

func TestLegacy(t *testing.T) {
	onBoth(t, func(b *bench) {
		b.allowed = []audit.Kind{audit.Invented, audit.Strange}
		// As redutil leaves it: what was leased last stands at the left.
		b.do("lpush", b.keys.LegacyWorker("a"), "first", "second", "third")
		b.do("lpush", b.keys.LegacyWorker("b"), "theirs")
		b.do("hset", b.keys.LegacyTicks(), "a", "1500000000", "b", "1500000000", "empty", "1")
		b.do("lpush", b.keys.Source, "waiting")

		l, err := NewLegacy(b.queue())
		if err != nil {
			b.Fatal(err)
		}
		moved, dead, suspects, err := l.Look(b.ctx)
		b.equal("first look", words(moved, len(dead), suspects, err), "0 0 3 <nil>")
		b.do("hset", b.keys.LegacyTicks(), "b", "1500000001")
		moved, dead, suspects, err = l.Look(b.ctx)
		slices.Sort(dead)
		b.equal("second look", words(moved, dead, suspects, err), "3 [a empty] 1 <nil>")
		b.equal("known workers", fmt.Sprint(b.do("hkeys", b.keys.LegacyTicks())), "[b]")
		b.alive("w")
		b.take(leaseCall{n: 9}, "first", "second", "third", "waiting")
		b.do("del", b.keys.LegacyWorker("b"))
	})
}

func TestLegacyNeedsATagInACluster(t *testing.T) {
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	defer func() { _ = rdb.Close() }()
	for name, want := range map[string]error{
		"orders": ErrScattered, "{orders}": nil, "shop:{orders}:new": nil, "{}orders": keyspace.ErrName, "ord{ers": ErrScattered,
	} {
		q, err := Open(rdb, name)
		if err == nil {
			_, err = NewLegacy(q)
		}
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
}

func TestLegacyLeavesAWorkerThatBeats(t *testing.T) {
	onBoth(t, func(b *bench) {
		b.allowed = []audit.Kind{audit.Strange}
		k := b.keys
		b.do("lpush", k.LegacyWorker("a"), "x")
		b.do("hset", k.LegacyTicks(), "a", "2")
		keys := []string{k.Source, k.LegacyWorker("a"), k.LegacyTicks()}
		b.equal("another tick", b.run(legacyScript, keys, "a", "1", 100), list(int64(-1), int64(1)))
		b.do("del", k.LegacyWorker("a"))
	})
}

func TestDeepSaysWhatFailed(t *testing.T) {
	onBoth(t, func(b *bench) {
		b.do("set", b.keys.Body, "no hash")
		if _, err := NewDeep(b.queue()).Look(b.ctx); !script.Answered(err) {
			b.Errorf("Look = %v, want Redis's own error", err)
		}
		b.do("del", b.keys.Body)
	})
}

func TestDeepSeesEveryBody(t *testing.T) {
	onBoth(t, func(b *bench) {
		b.allowed = []audit.Kind{audit.NoPlace, audit.Invented}
		const total = 250
		for i := range total {
			b.do("hset", b.keys.Body, fmt.Sprint(i), strings.Repeat("x", i%3*50_000))
		}
		for _, small := range []int{0, total} { // by steps, and all at once
			d := NewDeep(b.queue())
			d.small = small
			seen := make(map[string]bool)
			err := d.bodies(b.ctx, func(ids []string) error {
				for _, id := range ids {
					seen[id] = true
				}
				return nil
			})
			b.equal("error", err, nil)
			b.equal("bodies seen", len(seen), total)
		}
	})
}

func TestDeepLooksAtFewLargeBodiesAtATime(t *testing.T) {
	for _, tt := range []struct {
		count  int
		copied int64
		want   int
	}{{1, 0, 2}, {64, namesBytes, namesCount}, {namesCount, 1 << 20, namesCount / 4}, {2, 1 << 20, 1}, {1, 1 << 30, 1}} {
		if got := nextCount(tt.count, tt.copied); got != tt.want {
			t.Errorf("after %d with %d bytes: %d, want %d", tt.count, tt.copied, got, tt.want)
		}
	}
}
