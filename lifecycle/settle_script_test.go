package lifecycle

import (
	"testing"
)

func TestCompleteForgetsATask(t *testing.T) {
	onBoth(t, func(b *bench) {
		b.alive("w")
		b.enqueue("x", "a", 0, "", 0)
		b.do("hset", b.keys.Crashes, "x", 2)
		g := b.take(leaseCall{}, "a")
		b.equal("crashes", g.Tasks[0].Crashes, int64(2))
		b.delivered(g.Tasks[0])
		b.equal("refused", b.complete("w", "x", g.base), list())
		p := b.places()
		b.equal("kept", []int{len(p.Body), len(p.Meta), len(p.Crashes), len(p.InFlight)}, []int{0, 0, 0, 0})
		b.equal("completed", b.do("hget", b.keys.Stats, "completed"), any("1"))
		b.equal("again", b.complete("w", "x", g.base), list("x"))
	})
}

func TestCompleteRefusesWhatIsNotOurs(t *testing.T) {
	onBoth(t, func(b *bench) {
		b.alive("v", "w")
		b.push("a", "b", "c", "d")
		theirs := b.take(leaseCall{id: "v", n: 1}, "a")
		ours := b.take(leaseCall{}, "b", "c", "d")
		foreign, first, second, third := theirs.Tasks[0], ours.Tasks[0], ours.Tasks[1], ours.Tasks[2]
		b.delivered(first)
		b.delivered(third)
		refused := b.complete("w",
			"nobody's", ours.base,
			first.ID, ours.base,
			foreign.ID, theirs.base, // right token, but held by another
			second.ID, "wrong token",
			third.ID, ours.base, third.ID, ours.base) // twice: once ours, once settled
		b.equal("refused", refused, list("nobody's", foreign.ID, second.ID, third.ID))
		b.equal("left in flight", b.places().Of(), map[string][]string{
			foreign.ID: {"in flight at v"}, second.ID: {"in flight at w"},
		})
		b.equal("completed", b.do("hget", b.keys.Stats, "completed"), any("2"))
	})
}

func TestCompleteAThousand(t *testing.T) {
	onBoth(t, func(b *bench) {
		b.alive("w")
		payloads := make([]string, 1000)
		b.push(payloads...)
		g := b.take(leaseCall{n: 1000, d: 500}, payloads...)
		args := make([]any, 0, 2000)
		for _, task := range g.Tasks {
			args = append(args, task.ID, g.base)
			b.delivered(task)
		}
		b.equal("refused", b.complete("w", args...), list())
		b.equal("waiting", b.places().Waiting(), 0)
	})
}

func TestAbandonParksATask(t *testing.T) {
	onBoth(t, func(b *bench) {
		b.alive("v", "w")
		b.push("a")
		g := b.take(leaseCall{}, "a")
		id := g.Tasks[0].ID
		b.do("hset", b.keys.Crashes, id, 2)

		b.equal("wrong token", b.abandon("w", id, "wrong", 0, "{}"), any(int64(0)))
		b.equal("wrong owner", b.abandon("v", id, g.base, 0, "{}"), any(int64(0)))
		b.equal("unknown", b.abandon("w", "nobody's", g.base, 0, "{}"), any(int64(0)))
		b.equal("place after refusals", b.places().Of()[id], []string{"in flight at w"})
		b.equal("crashes after refusals", b.places().Crashes[id], "2")

		before := b.now()
		b.equal("ours", b.abandon("w", id, g.base, 60_000, `{"attempt":1}`), any(int64(1)))
		p := b.places()
		b.equal("place", p.Of()[id], []string{"delayed"})
		b.equal("meta", p.Meta[id], `{"attempt":1}`)
		b.equal("crashes", len(p.Crashes), 0)
		if due := int64(p.Delayed[id]); due < before+60_000 || due > b.now()+60_000 {
			b.Errorf("due %d ms after the call, want 60000", due-before)
		}
		b.equal("again", b.abandon("w", id, g.base, 0, "{}"), any(int64(0)))
		b.equal("abandoned", b.do("hget", b.keys.Stats, "abandoned"), any("1"))
		b.take(leaseCall{}) // not due

		b.do("zadd", b.keys.Delayed, 1, id)
		g = b.take(leaseCall{}, "a")
		b.equal("task", g.Tasks[0], took{id, "a", `{"attempt":1}`, 0})
	})
}

func TestBuryMovesATaskToTheDeadLetters(t *testing.T) {
	onBoth(t, func(b *bench) {
		b.alive("v", "w")
		b.push("a")
		g := b.take(leaseCall{}, "a")
		id := g.Tasks[0].ID
		b.do("hset", b.keys.Crashes, id, 2)

		b.equal("wrong token", b.bury("w", id, "wrong", "{}"), any(int64(0)))
		b.equal("wrong owner", b.bury("v", id, g.base, "{}"), any(int64(0)))
		b.equal("place after refusals", b.places().Of()[id], []string{"in flight at w"})

		b.equal("ours", b.bury("w", id, g.base, `{"attempt":1}`), any(int64(1)))
		p := b.places()
		b.equal("place", p.Of()[id], []string{"dead"})
		b.equal("meta", p.Meta[id], `{"attempt":1}`)
		b.equal("crashes", len(p.Crashes), 0)
		b.equal("again", b.bury("w", id, g.base, "{}"), any(int64(0)))
		b.equal("buried", b.do("hget", b.keys.Stats, "buried"), any("1"))
		b.equal("lease", b.take(leaseCall{}).Code, "EMPTY")
	})
}

func TestReleaseGivesTasksBackUncharged(t *testing.T) {
	onBoth(t, func(b *bench) {
		b.alive("v", "w")
		b.push("a", "b", "c")
		theirs := b.take(leaseCall{id: "v", n: 1}, "a")
		ours := b.take(leaseCall{}, "b", "c")
		first, second := ours.Tasks[0].ID, ours.Tasks[1].ID
		b.do("hset", b.keys.Crashes, first, 2)
		b.do("hset", b.keys.Meta, first, "kept")

		refused := b.release("w",
			second, ours.base, "written", theirs.Tasks[0].ID, theirs.base, "", "nobody's", ours.base, "",
			first, "wrong token", "x", first, ours.base, "")
		b.equal("refused", refused, list(theirs.Tasks[0].ID, "nobody's", first))
		p := b.places()
		b.equal("places", p.Of(), map[string][]string{
			first: {"delayed"}, second: {"delayed"}, theirs.Tasks[0].ID: {"in flight at v"},
		})
		b.equal("meta", p.Meta, map[string]string{first: "kept", second: "written"})
		b.equal("crashes stay", p.Crashes[first], "2")
		b.equal("released", b.do("hget", b.keys.Stats, "released"), any("2"))

		// They are due at once, before everything parked, the oldest first.
		b.enqueue("0", "enqueued", 0, "", 0)
		b.do("zadd", b.keys.Delayed, 1, "0")
		b.push("d")
		b.take(leaseCall{n: 10, d: 10}, "b", "c", "enqueued", "d")
		b.equal("nothing released", b.release("w", "nobody's", "x", ""), list("nobody's"))
	})
}

func TestACondemnedDispatcherSettlesWhatIsLeft(t *testing.T) {
	onBoth(t, func(b *bench) {
		b.alive("w")
		b.push("a", "b", "c", "d")
		g := b.take(leaseCall{}, "a", "b", "c", "d")
		b.kill("w")
		b.equal("sweep", b.sweep(look{batch: 1}), "SWEPT 1 0 3")
		var left []took
		taken := 0
		for _, task := range g.Tasks {
			if b.places().Of()[task.ID][0] == "delayed" {
				taken++
				b.equal("settling what was taken", b.complete("w", task.ID, g.base), list(task.ID))
				b.equal("abandoning what was taken", b.abandon("w", task.ID, g.base, 0, "{}"), any(int64(0)))
				b.equal("burying what was taken", b.bury("w", task.ID, g.base, "{}"), any(int64(0)))
				b.equal("releasing what was taken", b.release("w", task.ID, g.base, ""), list(task.ID))
				continue
			}
			left = append(left, task)
		}
		b.equal("taken", taken, 1)
		b.delivered(left[0])
		b.equal("complete", b.complete("w", left[0].ID, g.base), list())
		b.equal("abandon", b.abandon("w", left[1].ID, g.base, 60_000, "{}"), any(int64(1)))
		b.equal("bury", b.bury("w", left[2].ID, g.base, "{}"), any(int64(1)))
		b.equal("next sweep", b.sweep(look{batch: 100}), "SWEPT 0 0 0")
		b.equal("gone", b.sweep(look{batch: 100}), "GONE")
	})
}

func TestAStaleOwnerChangesNothing(t *testing.T) {
	onBoth(t, func(b *bench) {
		b.alive("v", "w")
		b.push("a")
		stale := b.take(leaseCall{}, "a")
		id := stale.Tasks[0].ID
		b.kill("w")
		b.equal("sweep", b.sweep(look{batch: 10}), "SWEPT 1 0 0")
		fresh := b.take(leaseCall{id: "v"}, "a")
		before := b.places()
		for _, owner := range []string{"w", "v"} {
			b.equal("complete", b.complete(owner, id, stale.base), list(id))
			b.equal("abandon", b.abandon(owner, id, stale.base, 0, "{}"), any(int64(0)))
			b.equal("bury", b.bury(owner, id, stale.base, "{}"), any(int64(0)))
			b.equal("release", b.release(owner, id, stale.base, ""), list(id))
		}
		b.equal("places", b.places(), before)
		b.delivered(fresh.Tasks[0])
		b.equal("the owner's", b.complete("v", id, fresh.base), list())
	})
}

func TestCrashesAreForgottenOnceAnAttemptEnds(t *testing.T) {
	onBoth(t, func(b *bench) {
		b.alive("v")
		b.push("a")
		id := ""
		for range 2 { // one crash, then an attempt that ends: the count never adds up to the limit
			b.alive("w")
			g := b.take(leaseCall{}, "a")
			id = g.Tasks[0].ID
			b.kill("w")
			b.equal("sweep", b.sweep(look{batch: 10, crashLimit: 2}), "SWEPT 1 0 0")
			g = b.take(leaseCall{id: "v"}, "a")
			b.equal("crashes", g.Tasks[0].Crashes, int64(1))
			b.equal("abandoned", b.abandon("v", id, g.base, 0, "{}"), any(int64(1)))
		}
		// A release ends no attempt.
		b.alive("w")
		b.take(leaseCall{}, "a")
		b.kill("w")
		b.sweep(look{batch: 10, crashLimit: 2})
		g := b.take(leaseCall{id: "v"}, "a")
		b.release("v", id, g.base, "")
		b.alive("w")
		b.take(leaseCall{}, "a")
		b.kill("w")
		b.equal("sweep", b.sweep(look{batch: 10, crashLimit: 2}), "SWEPT 0 1 0")
	})
}
