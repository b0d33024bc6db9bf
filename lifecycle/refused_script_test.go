package lifecycle

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/queuehook/queuehook/internal/audit"
	"github.com/queuehook/queuehook/internal/redistest"
	"github.com/queuehook/queuehook/internal/script"
)

// dump is every key of the queue with its content, to see that a script changed nothing.
func (b *bench) dump() map[string]string {
	b.Helper()
	keys := []string{b.keys.Source}
	it := b.rdb.Scan(b.ctx, 0, b.keys.All(), 1000).Iterator()
	for it.Next(b.ctx) {
		keys = append(keys, it.Val())
	}
	all := make(map[string]string)
	for _, key := range keys {
		var content any
		switch b.do("type", key) {
		case "list":
			content = b.do("lrange", key, 0, -1)
		case "hash":
			content = b.rdb.HGetAll(b.ctx, key).Val()
		case "zset":
			content = b.do("zrange", key, 0, -1, "withscores")
		case "string":
			content = b.do("get", key)
		case "set":
			content = b.do("smembers", key)
		}
		all[key] = fmt.Sprint(content)
	}
	return all
}

func TestWrongTypesAreRefusedBeforeAnyWrite(t *testing.T) {
	// Each call would succeed if none of its keys were of the wrong type.
	calls := []struct {
		name   string
		script script.Script
		keys   func(b *bench) []string
		args   func(b *bench) []any
	}{
		{"lease", leaseScript, func(b *bench) []string { return b.leaseKeys("w") }, func(*bench) []any {
			return leaseCall{id: "w", n: 10, d: 5, maxBytes: 1000, base: newToken(), ordered: true, limit: 1, per: 1000, cap: 10}.args()
		}},
		{"complete", completeScript, func(b *bench) []string {
			return []string{b.keys.Worker("w"), b.keys.Body, b.keys.Meta, b.keys.Crashes, b.keys.Holder, b.keys.Stats}
		}, func(*bench) []any { return []any{"flying", "token"} }},
		{"abandon", abandonScript, func(b *bench) []string {
			return []string{b.keys.Worker("w"), b.keys.Meta, b.keys.Crashes, b.keys.Delayed, b.keys.Stats}
		}, func(*bench) []any { return []any{"flying", "token", 0, "{}"} }},
		{"bury", buryScript, func(b *bench) []string {
			return []string{b.keys.Worker("w"), b.keys.Meta, b.keys.Crashes, b.keys.Dead, b.keys.Holder, b.keys.Stats}
		}, func(*bench) []any { return []any{"flying", "token", "{}"} }},
		{"release", releaseScript, func(b *bench) []string {
			return []string{b.keys.Worker("w"), b.keys.Meta, b.keys.Delayed, b.keys.Stats}
		}, func(*bench) []any { return []any{"flying", "token", "{}"} }},
		{"adopt", adoptScript, func(b *bench) []string {
			return []string{b.keys.Ticks, b.keys.Worker("w"), b.keys.Body, b.keys.Meta, b.keys.Crashes, b.keys.Dead}
		}, func(*bench) []any { return []any{"w", 10, 1000, "token"} }},
		{"sweep", sweepScript, func(b *bench) []string {
			return []string{
				b.keys.Ticks, b.keys.Info, b.keys.Suspects, b.keys.Worker("w"), b.keys.Crashes, b.keys.Delayed, b.keys.Dead,
				b.keys.Holder, b.keys.Hook("w"), b.keys.Stats,
			}
		}, func(*bench) []any { return []any{"w", 1, 10, 1, "token", 1000} }},
		{"enqueue", enqueueScript, func(b *bench) []string {
			return []string{b.keys.Body, b.keys.Meta, b.keys.Delayed, b.keys.Dedup("d")}
		}, func(*bench) []any { return []any{"new", "payload", "{}", 0, 1000} }},
		{"redrive", redriveScript, func(b *bench) []string {
			return []string{b.keys.Dead, b.keys.Delayed, b.keys.Body, b.keys.Meta, b.keys.Crashes}
		}, func(*bench) []any { return []any{"died", "{}"} }},
		{"purge", purgeScript, func(b *bench) []string {
			return []string{b.keys.Dead, b.keys.Body, b.keys.Meta, b.keys.Crashes}
		}, func(*bench) []any { return []any{"died"} }},
	}
	for _, call := range calls {
		t.Run(call.name, func(t *testing.T) {
			onBoth(t, func(b *bench) {
				b.allowed = []audit.Kind{audit.NoBody, audit.Lost, audit.NoPlace, audit.Leftover}
				fill := func() {
					k := b.keys
					b.do("lpush", k.Source, "raw")
					b.do("hset", k.Body, "flying", "x", "died", "x", "parked", "x")
					b.do("hset", k.Worker("w"), "flying", "token")
					b.do("zadd", k.Dead, 1, "died")
					b.do("zadd", k.Delayed, 1, "parked")
					b.do("hset", k.Crashes, "flying", 3)
					b.alive("w")
				}
				wrong := call.keys(b)
				for i, key := range wrong {
					for other := range b.dump() {
						b.do("del", other)
					}
					fill()
					b.do("del", key)
					b.do("sadd", key, "of another type")
					before := b.dump()
					_, err := call.script.Run(b.ctx, b.rdb, wrong, call.args(b)...)
					if err == nil || !strings.Contains(err.Error(), "WRONGTYPE") || !strings.Contains(err.Error(), key) {
						b.Errorf("key %d, %s: %v, want WRONGTYPE and its name", i+1, key, err)
					}
					if !script.Answered(err) {
						b.Errorf("%v does not count as an answer", err)
					}
					if diff := cmp.Diff(before, b.dump()); diff != "" {
						b.Errorf("key %d, %s: changed (-before +after):\n%s", i+1, key, diff)
					}
				}
				for key := range b.dump() {
					b.do("del", key)
				}
				fill()
				if _, err := call.script.Run(b.ctx, b.rdb, wrong, call.args(b)...); err != nil {
					b.Errorf("with all types right: %v", err)
				}
				for key := range b.dump() {
					b.do("del", key)
				}
			})
		})
	}
}

// TestAFullRedisStillDrains runs every script on a redis-server over maxmemory: all but enqueue must go through.
func TestAFullRedisStillDrains(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Config{})
	b := newBench(t, s.Client(t))
	b.alive("v", "w")
	b.push("1", "2", "3", "4", "5", "6", "7")
	b.enqueue("known", "known", 60_000, "dedup", 600_000)
	b.enqueue("lettered", "lettered", 0, "", 0)
	early := b.take(leaseCall{id: "v", n: 2, d: 1}, "lettered", "1")
	b.bury("v", "lettered", early.base, "{}")

	b.do("config", "set", "maxmemory", "1")
	t.Cleanup(func() { b.do("config", "set", "maxmemory", "0") }) // before the law reads in a transaction
	ballast := make([]byte, 1<<10)
	_, _ = rand.Read(ballast)
	if err := b.rdb.Set(b.ctx, "ballast", ballast, 0).Err(); err == nil || !redis.HasErrorPrefix(err, "OOM") {
		b.Fatalf("SET = %v, want OOM", err)
	}

	before := b.dump()
	b.equal("enqueue", b.enqueue("new", "x", 0, "other", 60_000), list("FULL", "new"))
	b.equal("enqueue a known one", b.enqueue("known", "x", 0, "", 0), list("EXISTS", "known"))
	b.equal("enqueue a deduped one", b.enqueue("new", "x", 0, "dedup", 60_000), list("DEDUPED", "known"))
	b.equal("what enqueue left", b.dump(), before)
	q, err := Open(b.rdb, b.keys.Source)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := q.Enqueue(b.ctx, []byte("x"), EnqueueOptions{}); !errors.Is(err, ErrFull) {
		b.Errorf("Enqueue = %v, want ErrFull", err)
	}

	g := b.take(leaseCall{n: 5, limit: 100, per: 1000, cap: 100}, "2", "3", "4", "5", "6")
	b.delivered(g.Tasks[0])
	b.equal("complete", b.complete("w", g.Tasks[0].ID, g.base), list())
	b.equal("abandon", b.abandon("w", g.Tasks[1].ID, g.base, 60_000, "{}"), any(int64(1)))
	b.equal("bury", b.bury("w", g.Tasks[2].ID, g.base, "{}"), any(int64(1)))
	b.equal("release", b.release("w", g.Tasks[3].ID, g.base, "{}"), list())
	b.equal("adopt", b.adopt("w", 10, 1<<20).payloads(), "6")
	b.take(leaseCall{n: 1, d: 1, ordered: true}, "5")

	roomy := func(edit func()) {
		b.do("config", "set", "maxmemory", "0")
		edit()
		b.do("config", "set", "maxmemory", "1")
	}
	roomy(func() { b.tick("v", b.now()-1) })
	b.equal("mark", b.sweep(look{id: "v", batch: 10}), "MARKED")
	b.equal("wait", b.sweep(look{id: "v", batch: 10}), "WAITING")
	roomy(func() { b.kill("v") })
	b.equal("hold", b.sweep(look{id: "v", token: "hooks"}), "READY")
	b.equal("sweep", b.sweep(look{id: "v", batch: 10}), "SWEPT 1 0 0")
	n, err := q.Redrive(b.ctx, "lettered")
	if err != nil || n != 1 {
		b.Errorf("Redrive = %d, %v", n, err)
	}
	n, err = q.Purge(b.ctx, g.Tasks[2].ID)
	if err != nil || n != 1 {
		b.Errorf("Purge = %d, %v", n, err)
	}
	b.trial.Gone[g.Tasks[2].ID] = audit.Sum([]byte(g.Tasks[2].Payload))
	if d, err := q.Depth(b.ctx); err != nil || d.InFlight != 2 {
		b.Errorf("Depth = %+v, %v, want two in flight", d, err)
	}
}

func TestScriptsSurviveAFlush(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Config{})
	b := newBench(t, s.Client(t))
	b.alive("w")
	b.push("a", "b")
	b.take(leaseCall{n: 1}, "a")
	if err := b.rdb.ScriptFlush(context.Background()).Err(); err != nil {
		b.Fatal(err)
	}
	b.take(leaseCall{n: 1}, "b")
}
