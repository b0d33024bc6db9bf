package lifecycle

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/queuehook/queuehook/internal/audit"
)

// describeAs stores a dispatcher's info as its heart does.
func (b *bench) describeAs(id string, ttl, grace int) {
	b.Helper()
	b.do("hset", b.keys.Info, id, fmt.Sprintf(`{"ttl_ms":%d,"grace_ms":%d}`, ttl, grace))
}

func TestSweepLooks(t *testing.T) {
	const minute = 60_000
	cases := []struct {
		name  string
		setUp func(b *bench)
		grace int
		want  string
		marks bool // the mark begins anew
	}{
		{"unknown", func(*bench) {}, minute, "GONE", false},
		{"alive", func(b *bench) { b.alive("w") }, minute, "ALIVE", false},
		{"alive again", func(b *bench) { b.alive("w"); b.suspect("w", -minute, 0) }, minute, "ALIVE", false},
		{"late, not marked", func(b *bench) { b.tick("w", b.now()-1) }, minute, "MARKED", true},
		{"marked a moment ago", func(b *bench) {
			b.tick("w", b.now()-10*minute)
			b.suspect("w", -1000, -1000)
		}, minute, "WAITING", false},
		{"marked for the grace", func(b *bench) {
			b.tick("w", b.now()-10*minute)
			b.suspect("w", -minute, -minute)
		}, minute, "SWEPT 0 0 0", false},
		{"its own grace is longer", func(b *bench) {
			b.tick("w", b.now()-10*minute)
			b.describeAs("w", 15_000, 2*minute)
			b.suspect("w", -minute, -minute)
		}, minute, "WAITING", false},
		{"its own grace is shorter", func(b *bench) {
			b.tick("w", b.now()-10*minute)
			b.describeAs("w", 15_000, 1)
			b.suspect("w", -1000, -1000)
		}, minute, "WAITING", false},
		{"its info is rubbish", func(b *bench) {
			b.tick("w", b.now()-10*minute)
			b.do("hset", b.keys.Info, "w", "}{")
			b.suspect("w", -minute, -minute)
		}, minute, "SWEPT 0 0 0", false},
		{"its info is no object", func(b *bench) {
			b.tick("w", b.now()-10*minute)
			b.do("hset", b.keys.Info, "w", `"text"`)
			b.suspect("w", -minute, -minute)
		}, minute, "SWEPT 0 0 0", false},
		{"a beat since the mark", func(b *bench) {
			b.tick("w", b.now()-minute)
			b.suspect("w", -5*minute, -1000)
		}, minute, "MARKED", true},
		{"a mark of the future", func(b *bench) {
			b.tick("w", b.now()-10*minute)
			b.suspect("w", minute, 0)
		}, minute, "MARKED", true},
		{"the last look is too long ago", func(b *bench) { // Redis was away, or nobody looked
			b.tick("w", b.now()-10*minute)
			b.suspect("w", -5*minute, -2*minute-1000)
		}, minute, "MARKED", true},
		{"the last look is just not too long ago", func(b *bench) {
			b.tick("w", b.now()-10*minute)
			b.suspect("w", -5*minute, -2*minute+20_000)
		}, minute, "SWEPT 0 0 0", false},
		{"a mark that is rubbish", func(b *bench) {
			b.tick("w", b.now()-10*minute)
			b.do("hset", b.keys.Suspects, "w", "since ever")
		}, minute, "MARKED", true},
		{"absurd tick", func(b *bench) { b.tick("w", b.now()+6*minute) }, minute, "MARKED", true},
		{"absurd tick, marked", func(b *bench) {
			b.tick("w", b.now()+6*minute)
			b.suspect("w", -minute, -minute)
		}, minute, "SWEPT 0 0 0", false},
		{"far tick of a slow heart", func(b *bench) {
			b.tick("w", b.now()+6*minute)
			b.describeAs("w", minute, minute)
		}, minute, "ALIVE", false},
		{"condemned", func(b *bench) { b.tick("w", -1) }, minute, "SWEPT 0 0 0", false},
	}
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			onBoth(t, func(b *bench) {
				tt.setUp(b)
				before := b.do("hget", b.keys.Suspects, "w")
				now := b.now()
				b.equal("code", b.sweep(look{grace: tt.grace, batch: 100}), tt.want)
				mark := b.do("hget", b.keys.Suspects, "w")
				var since, looked int64
				_, err := fmt.Sscanf(fmt.Sprint(mark), "%d:%d", &since, &looked)
				switch {
				case tt.marks && (err != nil || since < now || looked != since):
					b.Errorf("mark %v, want a new one", mark)
				case tt.want == "WAITING" && (err != nil || looked < now || fmt.Sprint(mark)[:13] != fmt.Sprint(before)[:13]):
					b.Errorf("mark %v after %v, want the same since and a new look", mark, before)
				case !tt.marks && tt.want != "WAITING" && mark != nil:
					b.Errorf("mark %v, want none", mark)
				}
			})
		})
	}
}

func TestSweepAnswersTheWait(t *testing.T) {
	onBoth(t, func(b *bench) {
		b.tick("w", b.now()-1)
		q, err := Open(b.rdb, b.keys.Source)
		if err != nil {
			b.Fatal(err)
		}
		got, err := q.Sweep(b.ctx, "w", Sweep{Grace: 60_000_000_000, Batch: 10})
		if err != nil || got.State != Marked || got.Wait.Milliseconds() != 60_000 {
			b.Errorf("%+v, %v, want MARKED and a minute", got, err)
		}
		b.suspect("w", -20_000, 0)
		b.tick("w", b.now()-30_000)
		got, err = q.Sweep(b.ctx, "w", Sweep{Grace: 60_000_000_000, Batch: 10})
		if err != nil || got.State != Waiting || got.Wait.Milliseconds() > 40_000 || got.Wait.Milliseconds() < 30_000 {
			b.Errorf("%+v, %v, want WAITING and 40 s", got, err)
		}
	})
}

func TestSweepInBatches(t *testing.T) {
	onBoth(t, func(b *bench) {
		b.alive("v", "w")
		b.describeAs("w", 15_000, 10_000)
		b.push("1", "2", "3", "4", "5")
		b.push("other")
		b.take(leaseCall{n: 5}, "1", "2", "3", "4", "5")
		b.take(leaseCall{id: "v"}, "other")
		b.kill("w")
		b.equal("look only", b.sweep(look{batch: 0}), "READY")
		b.equal("nothing is condemned by a look", b.places().Ticks["w"] > 0, true)
		b.equal("first", b.sweep(look{batch: 2}), "SWEPT 2 0 3")
		b.equal("tick", b.places().Ticks["w"], float64(-1))
		b.equal("second", b.sweep(look{batch: 2}), "SWEPT 2 0 1")
		b.equal("last", b.sweep(look{batch: 2}), "SWEPT 1 0 0")
		b.equal("then", b.sweep(look{batch: 2}), "GONE")
		b.equal("recovered", b.do("hget", b.keys.Stats, "recovered"), any("5"))
		for _, key := range []string{b.keys.Info, b.keys.Suspects} {
			b.equal(key, b.do("hexists", key, "w"), any(int64(0)))
		}
		// The oldest first, before what was parked and before the list.
		b.push("new")
		b.enqueue("0", "enqueued", 0, "", 0)
		g := b.take(leaseCall{id: "v", n: 20, d: 10}, "1", "2", "3", "4", "5", "enqueued", "new")
		b.equal("crashes", []int64{g.Tasks[0].Crashes, g.Tasks[5].Crashes}, []int64{1, 0})
	})
}

func TestSweepFencesTheCondemned(t *testing.T) {
	onBoth(t, func(b *bench) {
		b.alive("w")
		b.push("a", "b", "c")
		b.take(leaseCall{n: 2}, "a", "b")
		b.kill("w")
		b.equal("sweep", b.sweep(look{batch: 1}), "SWEPT 1 0 1")
		b.equal("lease", b.take(leaseCall{}).Code, "FENCED")
		b.equal("adopt", b.adopt("w", 10, 1<<20).Code, "FENCED")
	})
}

func TestSweepCrashLimit(t *testing.T) {
	onBoth(t, func(b *bench) {
		b.push("poison")
		id := ""
		for crash := 1; crash <= 5; crash++ {
			b.alive("w")
			if id != "" {
				b.do("zadd", b.keys.Delayed, 0, id)
			}
			g := b.take(leaseCall{}, "poison")
			id = g.Tasks[0].ID
			b.equal("crashes before", g.Tasks[0].Crashes, int64(crash-1))
			b.kill("w")
			before := b.now()
			if crash == 5 {
				b.equal("at the limit", b.sweep(look{batch: 10, crashLimit: 5}), "SWEPT 0 1 0")
				break
			}
			b.equal("below the limit", b.sweep(look{batch: 10, crashLimit: 5}), "SWEPT 1 0 0")
			due := int64(b.places().Delayed[id])
			switch wait := due - before; {
			case crash == 1 && due != 0:
				b.Errorf("after the first crash due %d, want 0", due)
			case crash > 1 && (wait < 500<<crash || wait > 1500<<crash+1000):
				b.Errorf("after crash %d due in %d ms, want 2^%d s x 0.5-1.5", crash, wait, crash)
			}
		}
		b.equal("place", b.places().Of()[id], []string{"dead"})
		b.equal("crashes stay, they tell why it died", b.places().Crashes[id], "5")
		b.equal("buried", b.do("hget", b.keys.Stats, "buried"), any("1"))
	})
}

func TestSweepSpreadsLaterCrashesOut(t *testing.T) {
	onBoth(t, func(b *bench) {
		b.alive("w")
		for i := range 40 {
			id := fmt.Sprintf("t%02d", i)
			b.enqueue(id, "x", 0, "", 0)
			b.do("hset", b.keys.Crashes, id, 3+i*100) // a count that grew absurd is no trouble
		}
		g := b.lease(leaseCall{n: 100, d: 100})
		b.equal("leased", len(g.Tasks), 40)
		b.kill("w")
		now := b.now()
		b.equal("sweep", b.sweep(look{batch: 100}), "SWEPT 40 0 0")
		seen := make(map[int64]bool)
		for id, due := range b.places().Delayed {
			wait := int64(due) - now
			if wait < 8_000 || wait > 92_000 {
				b.Errorf("%s due in %d ms", id, wait)
			}
			seen[wait/1000] = true
		}
		if len(seen) < 10 {
			b.Errorf("40 tasks fall into %d seconds, want them spread out", len(seen))
		}
	})
}

func TestSweepWithHooks(t *testing.T) {
	onBoth(t, func(b *bench) {
		b.alive("w")
		b.push("a", "b", "c")
		b.take(leaseCall{}, "a", "b", "c")
		b.kill("w")
		b.equal("first comes", b.sweep(look{token: "one"}), "READY")
		b.equal("second is kept out", b.sweep(look{token: "two"}), "HELD")
		b.equal("and may not take", b.sweep(look{token: "two", batch: 10}), "HELD")
		b.equal("nothing taken", len(b.places().InFlight["w"]), 3)
		b.equal("first takes", b.sweep(look{token: "one", batch: 2}), "SWEPT 2 0 1")
		b.equal("and takes", b.sweep(look{token: "one", batch: 2}), "SWEPT 1 0 0")
		// After a crash before the last hook the id is still known, so another sweeper calls the hook once the hold has
		// run out.
		b.equal("held", b.sweep(look{token: "two"}), "HELD")
		b.do("del", b.keys.Hook("w"))
		b.equal("second goes on", b.sweep(look{token: "two"}), "READY")
		b.equal("second ends it", b.sweep(look{token: "two", batch: 2}), "SWEPT 0 0 0")
		b.equal("gone", b.sweep(look{token: "two", batch: 2}), "GONE")
	})
}

func TestSweepHookHoldRunsOut(t *testing.T) {
	onReal(t, func(b *bench) {
		b.kill("w")
		b.equal("first", b.sweep(look{token: "one", hookTTL: 20}), "READY")
		b.eventually("the hold's end", func() bool { return b.sweep(look{token: "two"}) == "READY" })
	})
}

func TestSweepersAtOnceShareTheWork(t *testing.T) {
	onBoth(t, func(b *bench) {
		b.alive("w")
		want := make([]string, 200)
		for i := range want {
			want[i] = fmt.Sprint(i)
		}
		b.push(want...)
		b.take(leaseCall{n: 200}, want...)
		b.kill("w")
		q, err := Open(b.rdb, b.keys.Source)
		if err != nil {
			b.Fatal(err)
		}
		var mu sync.Mutex
		back := 0
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				for {
					got, err := q.Sweep(b.ctx, "w", Sweep{Grace: 60_000_000_000, Batch: 7})
					if err != nil {
						b.Error(err)
						return
					}
					mu.Lock()
					back += got.Back
					mu.Unlock()
					if got.State != Taken || got.Left == 0 {
						return
					}
				}
			})
		}
		all.Wait()
		b.equal("given back", back, 200)
		p := b.places()
		b.equal("delayed", len(p.Delayed), 200)
		for id, n := range p.Crashes {
			if n != "1" {
				b.Errorf("%s crashed %s times", id, n)
			}
		}
	})
}

func TestSweepWaitsTheGraceOut(t *testing.T) {
	onBoth(t, func(b *bench) {
		b.alive("w")
		b.push("a")
		b.take(leaseCall{}, "a")
		b.tick("w", b.now()-1)
		b.describeAs("w", 60, 500)
		var seen []string
		marked := b.now()
		b.eventually("a sweep", func() bool {
			got := b.sweep(look{grace: 1, batch: 10})
			if !slices.Contains(seen, got) {
				seen = append(seen, got)
			}
			return got == "SWEPT 1 0 0"
		})
		if took := b.now() - marked; took < 500 {
			b.Errorf("swept after %d ms, before the grace of 500", took)
		}
		b.equal("states", seen, []string{"MARKED", "WAITING", "SWEPT 1 0 0"})
	})
}

func TestSweepKeepsWhatItFinds(t *testing.T) {
	onBoth(t, func(b *bench) {
		b.allowed = []audit.Kind{audit.NoBody, audit.Lost}
		b.alive("w")
		b.push("a")
		g := b.take(leaseCall{}, "a")
		b.do("hdel", b.keys.Body, g.Tasks[0].ID)
		b.kill("w")
		b.equal("sweep", b.sweep(look{batch: 10}), "SWEPT 1 0 0")
		b.alive("w")
		b.equal("lease", b.lease(leaseCall{}).Tasks, []took{{g.Tasks[0].ID, "", "", -1}})
	})
}
