package heartbeat

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/redis/go-redis/v9"

	"github.com/queuehook/queuehook/internal/redistest"
	"github.com/queuehook/queuehook/internal/script"
	"github.com/queuehook/queuehook/keyspace"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

// bench is a fresh queue, with the means to run the heart's scripts one by one.
type bench struct {
	*testing.T

	ctx  context.Context
	rdb  redis.UniversalClient
	keys keyspace.Keys
}

// onBoth runs one case of the conformance suite on a real Redis and on miniredis.
func onBoth(t *testing.T, body func(b *bench)) {
	t.Helper()
	t.Parallel()
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		body(newBench(t, redistest.Shared(t).Client(t)))
	})
	t.Run("miniredis", func(t *testing.T) {
		t.Parallel()
		body(newBench(t, redistest.Mini(t)))
	})
}

func newBench(t *testing.T, rdb redis.UniversalClient) *bench {
	t.Helper()
	k, err := keyspace.New(redistest.Queue(t))
	if err != nil {
		t.Fatal(err)
	}
	return &bench{T: t, ctx: t.Context(), rdb: rdb, keys: k}
}

func (b *bench) do(words ...any) any {
	b.Helper()
	reply, err := b.rdb.Do(b.ctx, words...).Result()
	if err != nil && err != redis.Nil { //nolint:errorlint // of our own call
		b.Fatalf("%v: %v", words, err)
	}
	return reply
}

func (b *bench) now() int64 {
	b.Helper()
	at, err := b.rdb.Time(b.ctx).Result()
	if err != nil {
		b.Fatal(err)
	}
	return at.UnixMilli()
}

func (b *bench) tick(id string) float64 {
	b.Helper()
	return b.rdb.ZScore(b.ctx, b.keys.Ticks, id).Val()
}

func (b *bench) run(s script.Script, keys []string, args ...any) any {
	b.Helper()
	reply, err := s.Run(b.ctx, b.rdb, keys, args...)
	if err != nil {
		b.Fatal(err)
	}
	return reply
}

func (b *bench) equal(what string, got, want any) {
	b.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		b.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestRegisterScript(t *testing.T) {
	onBoth(t, func(b *bench) {
		keys := []string{b.keys.Ticks, b.keys.Info}
		before := b.now()
		b.equal("new", b.run(registerScript, keys, "w", 60_000, `{"host":"a"}`), any(int64(1)))
		if tick := int64(b.tick("w")); tick < before+60_000 || tick > b.now()+60_000 {
			b.Errorf("alive for %d ms, want 60000", tick-before)
		}
		b.equal("again", b.run(registerScript, keys, "w", 1, `{"host":"b"}`), any(int64(0)))
		b.equal("info", b.do("hget", b.keys.Info, "w"), any(`{"host":"a"}`))
		b.do("zadd", b.keys.Ticks, -1, "condemned")
		b.equal("condemned", b.run(registerScript, keys, "condemned", 60_000, `{}`), any(int64(0)))
		b.equal("stays so", b.tick("condemned"), float64(-1))
	})
}

func TestBeatScript(t *testing.T) {
	onBoth(t, func(b *bench) {
		keys := []string{b.keys.Ticks}
		b.equal("unknown", b.run(beatScript, keys, "w", 60_000), any(int64(0)))
		b.equal("is not made known", b.do("exists", b.keys.Ticks), any(int64(0)))
		b.do("zadd", b.keys.Ticks, -1, "condemned", 5, "late", b.now()+3600_000, "absurd")
		b.equal("condemned", b.run(beatScript, keys, "condemned", 60_000), any(int64(0)))
		b.equal("stays so", b.tick("condemned"), float64(-1))
		for _, id := range []string{"late", "absurd"} { // not swept yet: it lives
			before := b.now()
			b.equal(id, b.run(beatScript, keys, id, 60_000), any(int64(1)))
			if tick := int64(b.tick(id)); tick < before+60_000 || tick > b.now()+60_000 {
				b.Errorf("%s is alive for %d ms, want 60000", id, tick-before)
			}
		}
	})
}

func TestDeregisterScript(t *testing.T) {
	onBoth(t, func(b *bench) {
		k := b.keys
		keys := []string{k.Ticks, k.Info, k.Suspects, k.Worker("w")}
		b.do("zadd", k.Ticks, b.now()+60_000, "w", 1, "other")
		b.do("hset", k.Info, "w", "{}", "other", "{}")
		b.do("hset", k.Suspects, "w", "1:1", "other", "1:1")
		b.do("hset", k.Worker("w"), "t1", "x", "t2", "x")
		held, _ := b.run(deregisterScript, keys, "w").([]any)
		b.equal("held", cmp.Diff([]any{"t1", "t2"}, held, cmpopts.SortSlices(func(a, b any) bool {
			return fmt.Sprint(a) < fmt.Sprint(b)
		})), "")
		b.equal("nothing was changed", []any{
			b.do("zcard", k.Ticks), b.do("hlen", k.Info), b.do("hlen", k.Suspects), b.do("hlen", k.Worker("w")),
		}, []any{int64(2), int64(2), int64(2), int64(2)})

		b.do("del", k.Worker("w"))
		b.equal("free", b.run(deregisterScript, keys, "w"), any(int64(1)))
		b.equal("forgotten", []any{
			b.do("zrange", k.Ticks, 0, -1), b.do("hkeys", k.Info), b.do("hkeys", k.Suspects),
		}, []any{[]any{"other"}, []any{"other"}, []any{"other"}})
		b.equal("again", b.run(deregisterScript, keys, "w"), any(int64(0)))

		b.do("zadd", k.Ticks, -1, "w")
		b.do("hset", k.Info, "w", "{}")
		b.equal("condemned", b.run(deregisterScript, keys, "w"), any(int64(0)))
		b.equal("forgotten too", []any{b.do("zrange", k.Ticks, 0, -1), b.do("hkeys", k.Info)},
			[]any{[]any{"other"}, []any{"other"}})
	})
}

func TestDetectScript(t *testing.T) {
	onBoth(t, func(b *bench) {
		b.equal("nobody", b.run(detectScript, []string{b.keys.Ticks}), any([]any{}))
		now := b.now()
		b.do("zadd", b.keys.Ticks, now-1, "late", -1, "condemned", now+60_000, "alive", now+301_000+60_000, "absurd")
		found, _ := b.run(detectScript, []string{b.keys.Ticks}).([]any)
		b.equal("found", found, []any{"condemned", "late", "absurd"})
	})
}

func TestHeartScriptsRefuseWrongTypes(t *testing.T) {
	onBoth(t, func(b *bench) {
		k := b.keys
		for _, call := range []struct {
			name string
			s    script.Script
			keys []string
			args []any
		}{
			{"register", registerScript, []string{k.Ticks, k.Info}, []any{"new", 1000, "{}"}},
			{"beat", beatScript, []string{k.Ticks}, []any{"w", 1000}},
			{"deregister", deregisterScript, []string{k.Ticks, k.Info, k.Suspects, k.Worker("w")}, []any{"w"}},
			{"detect", detectScript, []string{k.Ticks}, nil},
		} {
			for _, wrong := range call.keys {
				all := []string{k.Ticks, k.Info, k.Suspects, k.Worker("w")}
				for _, key := range all {
					b.do("del", key)
				}
				b.do("zadd", k.Ticks, 1, "w")
				b.do("hset", k.Info, "w", "{}")
				b.do("hset", k.Suspects, "w", "1:1")
				b.do("del", wrong)
				b.do("sadd", wrong, "of another type")
				_, err := call.s.Run(b.ctx, b.rdb, call.keys, call.args...)
				if err == nil || !strings.Contains(err.Error(), "WRONGTYPE") || !strings.Contains(err.Error(), wrong) {
					b.Errorf("%s, %s: %v, want WRONGTYPE and its name", call.name, wrong, err)
				}
				for _, key := range slices.DeleteFunc(all, func(key string) bool { return key == wrong }) {
					want := int64(1)
					if key == k.Worker("w") {
						want = 0
					}
					b.equal(call.name+" left "+key, b.do("exists", key), any(want))
				}
				if wrong != k.Ticks {
					b.equal("tick", b.tick("w"), float64(1))
				}
			}
		}
	})
}

func TestAFullRedisStillBeats(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Config{})
	b := newBench(t, s.Client(t))
	heart, err := New(b.rdb, b.keys.Source, Config{})
	if err != nil {
		b.Fatal(err)
	}
	if err := heart.Register(b.ctx); err != nil {
		b.Fatal(err)
	}
	b.do("config", "set", "maxmemory", "1")
	if err := b.rdb.Set(b.ctx, "x", "y", 0).Err(); !redis.HasErrorPrefix(err, "OOM") {
		b.Fatalf("SET = %v, want OOM", err)
	}
	if err := heart.Beat(b.ctx); err != nil {
		b.Error(err)
	}
	if err := heart.Deregister(b.ctx); err != nil {
		b.Error(err)
	}
	if err := heart.Register(b.ctx); err != nil {
		b.Error(err)
	}
}
