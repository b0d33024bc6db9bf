package lifecycle

import (
	"fmt"
	"testing"

	"github.com/queuehook/queuehook/internal/audit"
)

func TestEnqueueScript(t *testing.T) {
	onBoth(t, func(b *bench) {
		b.equal("new", b.enqueue("x", "a", 0, "", 0), list("ADDED", "x"))
		b.equal("known", b.enqueue("x", "b", 0, "", 0), list("EXISTS", "x"))
		b.equal("body stays", b.places().Body["x"], "a")

		b.equal("with a dedup key", b.enqueue("y", "a", 0, "key", 60_000), list("ADDED", "y"))
		b.equal("same dedup key", b.enqueue("z", "b", 0, "key", 60_000), list("DEDUPED", "y"))
		b.equal("same dedup key and id", b.enqueue("y", "b", 0, "key", 60_000), list("DEDUPED", "y"))
		b.equal("other dedup key", b.enqueue("z", "b", 60_000, "other", 60_000), list("ADDED", "z"))
		b.equal("known with a new dedup key", b.enqueue("z", "b", 0, "third", 60_000), list("EXISTS", "z"))
		b.equal("which was not taken", b.do("exists", b.keys.Dedup("third")), any(int64(0)))
		b.do("del", b.keys.Dedup("key")) // it ran out
		b.equal("after the dedup key", b.enqueue("u", "c", 0, "key", 60_000), list("ADDED", "u"))

		b.alive("w")
		g := b.lease(leaseCall{n: 10, d: 10})
		b.equal("leased", len(g.Tasks), 3)
		b.equal("known while in flight", b.enqueue("x", "b", 0, "", 0), list("EXISTS", "x"))
		b.bury("w", "x", g.base, "{}")
		b.equal("known while dead", b.enqueue("x", "b", 0, "", 0), list("EXISTS", "x"))
		b.delivered(took{ID: "y", Payload: "a"})
		b.complete("w", "y", g.base)
		b.equal("dedup outlives the task", b.enqueue("v", "c", 0, "other", 60_000), list("DEDUPED", "z"))
	})
}

func TestEnqueueIsDueAfterItsDelay(t *testing.T) {
	onBoth(t, func(b *bench) {
		before := b.now()
		b.enqueue("x", "a", 60_000, "", 0)
		if due := int64(b.places().Delayed["x"]); due < before+60_000 || due > b.now()+60_000 {
			b.Errorf("due in %d ms, want 60000", due-before)
		}
	})
}

func TestRedriveScript(t *testing.T) {
	onBoth(t, func(b *bench) {
		b.alive("w")
		b.allowed = []audit.Kind{audit.NoBody, audit.Lost}
		for _, id := range []string{"dead", "hollow", "flying", "parked"} {
			b.enqueue(id, id, 0, "", 0)
		}
		g := b.lease(leaseCall{n: 10, d: 10})
		b.bury("w", "dead", g.base, "old")
		b.bury("w", "hollow", g.base, "old")
		b.abandon("w", "parked", g.base, 60_000, "{}")
		b.do("hdel", b.keys.Body, "hollow")
		b.do("hset", b.keys.Crashes, "dead", 5)
		k := b.keys
		reply := b.run(redriveScript, []string{k.Dead, k.Delayed, k.Body, k.Meta, k.Crashes},
			"parked", "new", "hollow", "new", "dead", "new", "flying", "new", "unknown", "new", "dead", "newer")
		b.equal("refused", reply, any(list("parked", "hollow", "flying", "unknown", "dead")))
		p := b.places()
		b.equal("places", p.Of(), map[string][]string{
			"dead": {"delayed"}, "hollow": {"dead"}, "flying": {"in flight at w"}, "parked": {"delayed"},
		})
		b.equal("meta", p.Meta, map[string]string{"dead": "new", "hollow": "old", "flying": "{}", "parked": "{}"})
		b.equal("crashes", len(p.Crashes), 0)
		b.take(leaseCall{n: 10, d: 10}, "dead")
	})
}

func TestPurgeScript(t *testing.T) {
	onBoth(t, func(b *bench) {
		b.alive("w")
		for _, id := range []string{"dead", "flying", "parked"} {
			b.enqueue(id, id, 0, "", 0)
		}
		g := b.lease(leaseCall{n: 10, d: 10})
		b.bury("w", "dead", g.base, "{}")
		b.abandon("w", "parked", g.base, 60_000, "{}")
		b.do("hset", b.keys.Crashes, "dead", 5)
		k := b.keys
		reply := b.run(purgeScript, []string{k.Dead, k.Body, k.Meta, k.Crashes}, "parked", "dead", "flying", "unknown", "dead")
		b.trial.Gone["dead"] = audit.Sum([]byte("dead"))
		b.equal("refused", reply, any(list("parked", "flying", "unknown", "dead")))
		b.equal("places", b.places().Of(), map[string][]string{"flying": {"in flight at w"}, "parked": {"delayed"}})
	})
}

func TestRedriveAndPurgeInBatches(t *testing.T) {
	onBoth(t, func(b *bench) {
		b.alive("w")
		q, err := Open(b.rdb, b.keys.Source)
		if err != nil {
			b.Fatal(err)
		}
		var ids []string
		for i := range 1500 {
			id := fmt.Sprintf("%04d", i)
			b.do("hset", b.keys.Body, id, id)
			b.do("zadd", b.keys.Dead, 1, id)
			b.trial.Pushed[audit.Sum([]byte(id))]++
			ids = append(ids, id)
		}
		n, err := q.Redrive(b.ctx, append(ids[:1200:1200], "unknown")...)
		if err != nil || n != 1200 {
			b.Errorf("Redrive = %d, %v, want 1200", n, err)
		}
		n, err = q.Purge(b.ctx, ids...)
		if err != nil || n != 300 {
			b.Errorf("Purge = %d, %v, want 300", n, err)
		}
		for _, id := range ids[1200:] {
			b.trial.Gone[id] = audit.Sum([]byte(id))
		}
	})
}
