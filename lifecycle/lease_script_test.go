package lifecycle

import (
	"fmt"
	"strings"
	"testing"

	"github.com/oklog/ulid/v2"

	"github.com/queuehook/queuehook/internal/audit"
)

func TestLeaseTakesNothing(t *testing.T) {
	cases := []struct {
		name  string
		setUp func(b *bench)
		call  leaseCall
		want  string
	}{
		{"unknown dispatcher", func(*bench) {}, leaseCall{}, "FENCED"},
		{"condemned dispatcher", func(b *bench) { b.tick("w", -1) }, leaseCall{}, "FENCED"},
		{"late dispatcher", func(b *bench) { b.tick("w", b.now()-1) }, leaseCall{}, "LAPSED"},
		{"paused queue", func(b *bench) { b.alive("w"); b.do("set", b.keys.Paused, "") }, leaseCall{}, "PAUSED"},
		{"no tokens", func(b *bench) {
			b.alive("w")
			b.do("hset", b.keys.Rate, "tokens", "0.5", "at", b.now())
		}, leaseCall{n: 10, limit: 1, per: 3600_000, cap: 5}, "LIMITED"},
	}
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			onBoth(t, func(b *bench) {
				b.push("a")
				tt.setUp(b)
				before := b.places()
				g := b.take(tt.call)
				b.equal("code", g.Code, tt.want)
				b.equal("places", b.places(), before)
			})
		})
	}
}

func TestLeaseEmpty(t *testing.T) {
	onBoth(t, func(b *bench) {
		b.alive("w")
		g := b.take(leaseCall{})
		b.equal("code, wait", words(g.Code, g.Wait), "EMPTY -1")
		b.enqueue("later", "x", 60_000, "", 0)
		g = b.take(leaseCall{})
		if g.Code != "EMPTY" || g.Wait <= 50_000 || g.Wait > 60_000 {
			b.Errorf("%s, wait %d ms, want EMPTY and about 60000", g.Code, g.Wait)
		}
	})
}

func TestLeaseReplay(t *testing.T) {
	// A call that is carried out twice within one ms would make the same ids again and overwrite the first call's
	// tasks. Here the first id of every ms to come exists already.
	onBoth(t, func(b *bench) {
		b.alive("w")
		b.push("a")
		base := newToken()
		used := []any{"hset", b.keys.Body}
		for ms := b.now(); len(used) < 40_000; ms++ {
			var u ulid.ULID
			if err := u.SetTime(uint64(ms)); err != nil {
				b.Fatal(err)
			}
			used = append(used, u.String()[:10]+base+"000", "x")
		}
		b.do(used...)
		b.equal("code", b.take(leaseCall{base: base}).Code, "REPLAY")
		b.do("del", b.keys.Body)
		b.take(leaseCall{base: base}, "a")
	})
}

func TestLeaseOrder(t *testing.T) {
	onBoth(t, func(b *bench) {
		b.alive("w")
		b.push("first", "second", "third")
		b.do("rpush", b.keys.Source, "jumper")
		b.trial.Pushed[audit.Sum([]byte("jumper"))]++
		b.take(leaseCall{n: 1, d: 0}, "jumper")
		b.take(leaseCall{n: 1, d: 0}, "first")

		// What an idle wait has moved to the landing list comes before everything in the list.
		b.do("blmove", b.keys.Source, b.keys.Landing, "right", "left", "0.01")
		b.do("blmove", b.keys.Source, b.keys.Landing, "right", "left", "0.01")
		b.push("fourth")
		b.do("rpush", b.keys.Source, "jumper")
		b.trial.Pushed[audit.Sum([]byte("jumper"))]++
		g := b.take(leaseCall{}, "second", "third", "jumper", "fourth")

		var ids []string
		for _, task := range g.Tasks {
			ids = append(ids, task.ID)
			u, err := ulid.ParseStrict(task.ID)
			if err != nil || int64(u.Time()) != g.Now {
				b.Errorf("id %s: %v, want a ULID of the lease's time", task.ID, err)
			}
		}
		for i := 1; i < len(ids); i++ {
			if ids[i] <= ids[i-1] {
				b.Errorf("ids %v do not sort as leased", ids)
			}
		}
	})
}

func TestLeaseMintsAThousandIDs(t *testing.T) {
	onBoth(t, func(b *bench) {
		b.alive("w")
		want := make([]string, 1000)
		for i := range want {
			want[i] = fmt.Sprint(i)
		}
		b.push(want...)
		b.push("left over")
		g := b.take(leaseCall{n: 1000, d: 500}, want...)
		ids := make(map[string]bool)
		for _, task := range g.Tasks {
			ids[task.ID] = true
		}
		b.equal("different ids", len(ids), 1000)
	})
}

func TestPayloadsAreByteExact(t *testing.T) {
	payloads := []string{
		"", "", "plain", "plain", "nul\x00in\x00side", "\x00", "\xff\xfe\x80", "line\r\nbreak\r\n", "123", "1e3", "[]",
		strings.Repeat("\xc3\x28", 50_000),
	}
	onBoth(t, func(b *bench) {
		b.alive("w")
		b.push(payloads...)
		g := b.take(leaseCall{n: 100, d: 50}, payloads...)
		for _, task := range g.Tasks {
			b.equal("released", b.release("w", task.ID, g.base, ""), list())
		}
		g = b.take(leaseCall{n: 100, d: 50}, payloads...)
		for i, task := range g.Tasks {
			if i%2 == 0 {
				b.delivered(task)
				b.equal("refused", b.complete("w", task.ID, g.base), list())
			}
		}
		b.enqueue("by id", "\x00\xff\r\n", 0, "", 0)
		b.take(leaseCall{}, "\x00\xff\r\n")
	})
}

func TestLeaseMaxBytes(t *testing.T) {
	onBoth(t, func(b *bench) {
		b.alive("w")
		large := strings.Repeat("x", 100)
		b.push(large, "a", "b", "c")
		b.take(leaseCall{n: 10, maxBytes: 50}, large)   // never before one task
		b.take(leaseCall{n: 10, maxBytes: 2}, "a", "b") // stops once reached
		b.enqueue("p1", large, 0, "", 0)
		b.take(leaseCall{n: 10, d: 5, maxBytes: 50}, large) // parked ones count too
	})
}

func TestLeaseFairShares(t *testing.T) {
	fill := func(b *bench, parked, fresh int) {
		b.alive("w")
		for i := range parked {
			b.enqueue(fmt.Sprintf("p%02d", i), "p", 0, "", 0)
		}
		for range fresh {
			b.push("f")
		}
	}
	cases := []struct {
		name          string
		parked, fresh int
		call          leaseCall
		want          string
	}{
		{"half each", 9, 9, leaseCall{n: 4, d: 2}, "p p f f"},
		{"fresh first", 9, 9, leaseCall{n: 4, d: 2, freshFirst: true}, "f f p p"},
		{"one, in turn: parked", 9, 9, leaseCall{n: 1, d: 1}, "p"},
		{"one, in turn: fresh", 9, 9, leaseCall{n: 1, d: 0, freshFirst: true}, "f"},
		{"few fresh", 9, 1, leaseCall{n: 4, d: 2}, "p p f p"},
		{"few fresh, first", 9, 1, leaseCall{n: 4, d: 2, freshFirst: true}, "f p p p"},
		{"few parked", 1, 9, leaseCall{n: 4, d: 2}, "p f f f"},
		{"no fresh", 9, 0, leaseCall{n: 4, d: 0}, "p p p p"},
		{"no parked", 0, 9, leaseCall{n: 4, d: 4}, "f f f f"},
		{"one token, in turn: parked", 9, 9, leaseCall{n: 8, d: 4, limit: 1, per: 3600_000, cap: 1}, "p"},
		{"one token, in turn: fresh", 9, 9, leaseCall{n: 8, d: 4, limit: 1, per: 3600_000, cap: 1, freshFirst: true}, "f"},
		{"ordered, in turn: parked", 9, 9, leaseCall{n: 8, d: 4, ordered: true}, "p"},
		{"ordered, in turn: fresh", 9, 9, leaseCall{n: 8, d: 4, ordered: true, freshFirst: true}, "f"},
		{"few bytes, in turn: parked", 9, 9, leaseCall{n: 8, d: 4, maxBytes: 1}, "p"},
		{"few bytes, in turn: fresh", 9, 9, leaseCall{n: 8, d: 4, maxBytes: 1, freshFirst: true}, "f"},
	}
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			onBoth(t, func(b *bench) {
				fill(b, tt.parked, tt.fresh)
				b.equal("shares", b.lease(tt.call).payloads(), tt.want)
			})
		})
	}
}

func TestLeaseParkedInOrderOfDue(t *testing.T) {
	onBoth(t, func(b *bench) {
		b.alive("w")
		b.enqueue("late", "not yet", 60_000, "", 0)
		for i, id := range []string{"z", "m", "a", "k"} { // a batch keeps its order, whatever its ids
			b.enqueue(id, id, 0, "", 0)
			b.do("zadd", b.keys.Delayed, fmt.Sprintf("%f", float64(b.now()-1000)/1000*1000+float64(i)/1000), id)
		}
		b.take(leaseCall{n: 10, d: 10}, "z", "m", "a", "k")
	})
}

func TestEnqueueKeepsItsOrder(t *testing.T) {
	onBoth(t, func(b *bench) {
		b.alive("w")
		var want []string
		for i := range 60 { // most of them within one ms
			id := fmt.Sprintf("%02d", 99-i)
			b.enqueue(id, id, 0, "", 0)
			want = append(want, id)
		}
		var seen []string
		b.eventually("all due", func() bool {
			for _, task := range b.lease(leaseCall{n: 5, d: 5}).Tasks {
				seen = append(seen, task.ID)
			}
			return len(seen) == len(want)
		})
		b.equal("order", seen, want)
	})
}

func TestLeaseWithoutBody(t *testing.T) {
	onBoth(t, func(b *bench) {
		b.allowed = []audit.Kind{audit.NoBody, audit.Lost}
		b.alive("w")
		b.enqueue("hollow", "x", 0, "", 0)
		b.do("hdel", b.keys.Body, "hollow")
		b.push("a")
		g := b.lease(leaseCall{})
		b.equal("tasks", g.Tasks, []took{{"hollow", "", "", -1}, {ID: g.Tasks[1].ID, Payload: "a"}})
		b.equal("place", b.places().Of()["hollow"], []string{"dead"})
		b.equal("code", g.Code, "LEASED")

		b.enqueue("second", "x", 0, "", 0)
		b.do("hdel", b.keys.Body, "second")
		g = b.lease(leaseCall{})
		b.equal("code when nothing else was there", g.Code, "EMPTY")
		b.equal("tasks", g.Tasks, []took{{"second", "", "", -1}})
	})
}

func TestLeaseOrdered(t *testing.T) {
	onBoth(t, func(b *bench) {
		b.alive("v", "w")
		call := leaseCall{n: 10, d: 5, ordered: true}
		other := call
		other.id = "v"
		b.push("first", "second", "third")
		g := b.take(call, "first")
		b.equal("holder", b.do("get", b.keys.Holder), any(g.Tasks[0].ID))
		busy := b.take(other)
		b.equal("while one is out", words(busy.Code, busy.Wait), "BUSY -1")

		// A failing head is retried in place: nobody overtakes it while it waits.
		b.equal("abandoned", b.abandon("w", g.Tasks[0].ID, g.base, 60_000, "{}"), any(int64(1)))
		busy = b.take(other)
		if busy.Code != "BUSY" || busy.Wait <= 50_000 || busy.Wait > 60_000 {
			b.Errorf("%s, wait %d, want BUSY and about 60000", busy.Code, busy.Wait)
		}
		b.do("zadd", b.keys.Delayed, 1, g.Tasks[0].ID)
		b.enqueue("earlier", "earlier", 0, "", 0)
		b.do("zadd", b.keys.Delayed, 0, "earlier")
		g = b.take(other, "first")

		// So is a released one, and one that a sweep took.
		b.release("v", g.Tasks[0].ID, g.base, "")
		g = b.take(call, "first")
		b.kill("w")
		b.equal("sweep", b.sweep(look{batch: 10}), "SWEPT 1 0 0")
		g = b.take(other, "first")
		b.equal("crashes", g.Tasks[0].Crashes, int64(1))

		b.delivered(g.Tasks[0])
		b.equal("refused", b.complete("v", g.Tasks[0].ID, g.base), list())
		b.equal("holder after complete", b.do("exists", b.keys.Holder), any(int64(0)))
		g = b.take(other, "earlier")
		b.equal("buried", b.bury("v", g.Tasks[0].ID, g.base, "{}"), any(int64(1)))
		b.equal("holder after bury", b.do("exists", b.keys.Holder), any(int64(0)))

		// The crash limit goes on with the next as well.
		g = b.take(other, "second")
		b.kill("v")
		b.equal("sweep at the limit", b.sweep(look{id: "v", batch: 10, crashLimit: 1}), "SWEPT 0 1 0")
		b.equal("holder after the crash limit", b.do("exists", b.keys.Holder), any(int64(0)))
		b.alive("w")
		b.take(call, "third")
	})
}

func TestSettlingAnotherTaskKeepsTheHolder(t *testing.T) {
	onBoth(t, func(b *bench) {
		b.alive("w")
		b.push("a", "b", "c")
		g := b.take(leaseCall{}, "a", "b", "c") // from before the queue was ordered
		b.do("set", b.keys.Holder, g.Tasks[0].ID)
		b.bury("w", g.Tasks[1].ID, g.base, "{}")
		b.delivered(g.Tasks[2])
		b.complete("w", g.Tasks[2].ID, g.base)
		b.equal("holder", b.do("get", b.keys.Holder), any(g.Tasks[0].ID))
	})
}

func TestLeaseOrderedHolderWithoutBody(t *testing.T) {
	onBoth(t, func(b *bench) {
		b.alive("w")
		b.do("set", b.keys.Holder, "gone")
		b.push("a")
		b.take(leaseCall{ordered: true, n: 3, d: 1}, "a")
	})
}

func TestLeaseRate(t *testing.T) {
	onBoth(t, func(b *bench) {
		b.alive("w")
		b.push("a", "b", "c", "d", "e")
		call := leaseCall{n: 10, d: 5, limit: 10, per: 3600_000, cap: 3}
		b.take(call, "a", "b", "c") // the burst
		g := b.take(call)
		if g.Code != "LIMITED" || g.Wait <= 300_000 || g.Wait > 360_000 {
			b.Errorf("%s, wait %d ms, want LIMITED and about a tenth of an hour", g.Code, g.Wait)
		}
		// After half an hour five tokens have come in, but the bucket holds three.
		b.do("hset", b.keys.Rate, "at", b.now()-1800_000)
		b.take(call, "d", "e")
		// Only leased tasks cost a token.
		b.push("f", "g")
		b.take(call, "f")
		b.equal("code", b.take(call).Code, "LIMITED")
		// A clock that went back makes no debt of tokens.
		b.do("hset", b.keys.Rate, "tokens", "1", "at", b.now()+3600_000)
		b.take(call, "g")
		// Nor does it keep the bucket empty until the clock has caught up.
		b.do("hset", b.keys.Rate, "tokens", "0.5", "at", b.now()+3600_000)
		b.equal("code", b.take(call).Code, "LIMITED")
		at, err := b.rdb.HGet(b.ctx, b.keys.Rate, "at").Int64()
		if now := b.now(); err != nil || at > now {
			b.Errorf("the bucket refills from %d on, %v, which is %d ms ahead", at, err, at-now)
		}
	})
}

func TestAdopt(t *testing.T) {
	onBoth(t, func(b *bench) {
		b.equal("unknown", b.adopt("w", 10, 1<<20).Code, "FENCED")
		b.alive("v", "w")
		b.equal("nothing", b.adopt("w", 10, 1<<20).Code, "EMPTY")
		b.push("a", "b", "c", "d")
		b.take(leaseCall{id: "v", n: 1}, "a") // not the caller's
		known := b.take(leaseCall{n: 1}, "b")
		lost := b.take(leaseCall{n: 10}, "c", "d")

		g := b.adopt("w", 1, 1<<20, known.Tasks[0].ID)
		b.equal("first of the lost", words(g.Code, g.payloads()), "LEASED c")
		b.equal("id", g.Tasks[0].ID, lost.Tasks[0].ID)
		b.equal("few bytes", b.adopt("w", 10, 1, known.Tasks[0].ID).payloads(), "c")
		g = b.adopt("w", 10, 1<<20, known.Tasks[0].ID)
		b.equal("all of the lost", g.payloads(), "c d")
		b.equal("none", b.adopt("w", 10, 1<<20, known.Tasks[0].ID, lost.Tasks[0].ID, lost.Tasks[1].ID).Code, "EMPTY")

		// The lost token settles nothing now; the new one does, and the known task's own token still does.
		b.equal("old token", b.complete("w", lost.Tasks[0].ID, lost.base), list(lost.Tasks[0].ID))
		for _, task := range append(g.Tasks, known.Tasks...) {
			b.delivered(task)
		}
		b.equal("new tokens", b.complete("w", g.Tasks[0].ID, g.base, g.Tasks[1].ID, g.base, known.Tasks[0].ID, known.base), list())

		b.tick("w", -1)
		b.equal("condemned", b.adopt("w", 10, 1<<20).Code, "FENCED")
	})
}

func TestAdoptWithoutBody(t *testing.T) {
	onBoth(t, func(b *bench) {
		b.allowed = []audit.Kind{audit.NoBody, audit.Lost}
		b.alive("w")
		b.push("a")
		g := b.take(leaseCall{}, "a")
		b.do("hdel", b.keys.Body, g.Tasks[0].ID)
		a := b.adopt("w", 10, 1<<20)
		b.equal("code", a.Code, "EMPTY")
		b.equal("tasks", a.Tasks, []took{{g.Tasks[0].ID, "", "", -1}})
		b.equal("place", b.places().Of()[g.Tasks[0].ID], []string{"dead"})
	})
}
