package lifecycle

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/redis/go-redis/v9"

	"github.com/queuehook/queuehook/internal/audit"
	"github.com/queuehook/queuehook/internal/redistest"
	"github.com/queuehook/queuehook/internal/script"
	"github.com/queuehook/queuehook/keyspace"
)

// patience is for what happens at once unless it is broken, on a machine that is busy with other things.
const patience = 20 * time.Second

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

// bench is a fresh queue, with the means to run its scripts one by one. The law is checked when the test ends.
type bench struct {
	*testing.T

	ctx   context.Context
	rdb   redis.UniversalClient
	keys  keyspace.Keys
	trial audit.Trial
	// allowed are violations that the case makes on purpose.
	allowed []audit.Kind
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

// onReal runs a case that needs what only a real Redis has.
func onReal(t *testing.T, body func(b *bench)) {
	t.Helper()
	t.Parallel()
	body(newBench(t, redistest.Shared(t).Client(t)))
}

func newBench(t *testing.T, rdb redis.UniversalClient) *bench {
	t.Helper()
	k, err := keyspace.New(redistest.Queue(t))
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{T: t, ctx: context.WithoutCancel(t.Context()), rdb: rdb, keys: k}
	b.trial.Pushed = make(map[string]int)
	b.trial.Gone = make(map[string]string)
	b.trial.Delivered = make(map[string]audit.Answered)
	t.Cleanup(b.law)
	return b
}

// law fails the test for each violation of the law that it did not make on purpose.
func (b *bench) law() {
	b.Helper()
	for _, v := range audit.Check(b.places(), b.trial) {
		if !slices.Contains(b.allowed, v.Kind) {
			b.Errorf("the law is broken: %s", v)
		}
	}
}

func (b *bench) places() audit.Places {
	b.Helper()
	p, err := audit.Read(b.ctx, b.rdb, b.keys.Source)
	if err != nil {
		b.Fatal(err)
	}
	return p
}

// do sends one plain command.
func (b *bench) do(words ...any) any {
	b.Helper()
	reply, err := b.rdb.Do(b.ctx, words...).Result()
	if err != nil && err != redis.Nil { //nolint:errorlint // of our own call
		b.Fatalf("%v: %v", words, err)
	}
	return reply
}

// now is the server's time in ms.
func (b *bench) now() int64 {
	b.Helper()
	at, err := b.rdb.Time(b.ctx).Result()
	if err != nil {
		b.Fatal(err)
	}
	return at.UnixMilli()
}

// push adds raw payloads at the tail, as producers do.
func (b *bench) push(payloads ...string) {
	b.Helper()
	for _, p := range payloads {
		b.do("lpush", b.keys.Source, p)
		b.trial.Pushed[audit.Sum([]byte(p))]++
	}
}

// alive makes dispatchers count as alive for four minutes: longer than a test takes, and not so long that a sweep calls
// it absurd.
func (b *bench) alive(ids ...string) {
	b.Helper()
	for _, id := range ids {
		b.tick(id, b.now()+240_000)
	}
}

func (b *bench) tick(id string, until int64) {
	b.Helper()
	b.do("zadd", b.keys.Ticks, until, id)
}

// run is one call of a script; reply elements are texts and numbers.
func (b *bench) run(s script.Script, keys []string, args ...any) any {
	b.Helper()
	reply, err := s.Run(b.ctx, b.rdb, keys, args...)
	if err != nil {
		b.Fatal(err)
	}
	return reply
}

// leaseCall is the arguments of a lease, with defaults for what is zero.
type leaseCall struct {
	id              string // "w"
	n, d            int    // 10, 5
	maxBytes        int    // 1 MiB
	base            string // fresh
	ordered         bool
	limit, per, cap int // no limit
	freshFirst      bool
}

// took is one task of a lease's reply.
type took struct {
	ID, Payload, Meta string
	Crashes           int64
}

// got is a lease's reply.
type got struct {
	Code  string
	Now   int64
	Wait  int64
	Tasks []took
	base  string
}

func (g got) payloads() string {
	texts := make([]string, 0, len(g.Tasks))
	for _, t := range g.Tasks {
		texts = append(texts, t.Payload)
	}
	return strings.Join(texts, " ")
}

func (b *bench) leaseKeys(id string) []string {
	k := b.keys
	return []string{
		k.Source, k.Landing, k.Body, k.Meta, k.Crashes, k.Worker(id), k.Delayed, k.Dead, k.Ticks, k.Holder, k.Paused, k.Rate,
	}
}

func (c leaseCall) args() []any {
	ordered, fresh := "0", "0"
	if c.ordered {
		ordered = "1"
	}
	if c.freshFirst {
		fresh = "1"
	}
	policy := []any{"", "", ""}
	if c.limit > 0 {
		policy = []any{c.limit, c.per, c.cap}
	}
	return append([]any{c.id, c.n, c.d, c.maxBytes, c.base, ordered}, append(policy, fresh)...)
}

func (b *bench) lease(c leaseCall) got {
	b.Helper()
	if c.id == "" {
		c.id = "w"
	}
	if c.n == 0 {
		c.n, c.d = 10, 5
	}
	if c.maxBytes == 0 {
		c.maxBytes = 1 << 20
	}
	if c.base == "" {
		c.base = newToken()
	}
	return b.decode(b.run(leaseScript, b.leaseKeys(c.id), c.args()...), c.base)
}

func (b *bench) adopt(id string, n, maxBytes int, known ...string) got {
	b.Helper()
	k, token := b.keys, newToken()
	args := []any{id, n, maxBytes, token}
	for _, id := range known {
		args = append(args, id)
	}
	return b.decode(b.run(adoptScript, []string{k.Ticks, k.Worker(id), k.Body, k.Meta, k.Crashes, k.Dead}, args...), token)
}

func (b *bench) decode(reply any, base string) got {
	b.Helper()
	items, ok := reply.([]any)
	if !ok {
		b.Fatalf("reply %v: no array", reply)
	}
	r := reader{items: items}
	g := got{Code: r.text(), Now: r.number(), Wait: r.number(), base: base}
	for r.more() {
		g.Tasks = append(g.Tasks, took{r.text(), r.text(), r.text(), r.number()})
	}
	if r.err != nil {
		b.Fatal(r.err)
	}
	return g
}

// take leases once and wants exactly these payloads.
func (b *bench) take(c leaseCall, want ...string) got {
	b.Helper()
	g := b.lease(c)
	var payloads []string
	for _, t := range g.Tasks {
		payloads = append(payloads, t.Payload)
	}
	if diff := cmp.Diff(want, payloads, cmpopts.EquateEmpty()); diff != "" {
		b.Fatalf("%s: payloads (-want +got):\n%s", g.Code, diff)
	}
	return g
}

func (b *bench) complete(id string, args ...any) []any {
	b.Helper()
	k := b.keys
	refused, _ := b.run(completeScript, []string{k.Worker(id), k.Body, k.Meta, k.Crashes, k.Holder, k.Stats}, args...).([]any)
	return refused
}

// delivered notes that a receiver answered 2xx for this task.
func (b *bench) delivered(t took) {
	a := b.trial.Delivered[t.ID]
	b.trial.Delivered[t.ID] = audit.Answered{Sum: audit.Sum([]byte(t.Payload)), Times: a.Times + 1}
}

func (b *bench) abandon(id, task, token string, delay int, meta string) any {
	b.Helper()
	k := b.keys
	return b.run(abandonScript, []string{k.Worker(id), k.Meta, k.Crashes, k.Delayed, k.Stats}, task, token, delay, meta)
}

func (b *bench) bury(id, task, token, meta string) any {
	b.Helper()
	k := b.keys
	return b.run(buryScript, []string{k.Worker(id), k.Meta, k.Crashes, k.Dead, k.Holder, k.Stats}, task, token, meta)
}

func (b *bench) release(id string, args ...any) []any {
	b.Helper()
	k := b.keys
	refused, _ := b.run(releaseScript, []string{k.Worker(id), k.Meta, k.Delayed, k.Stats}, args...).([]any)
	return refused
}

// look is the arguments of one sweep call.
type look struct {
	id         string // "w"
	grace      int    // ms; a minute
	batch      int
	crashLimit int
	token      string
	hookTTL    int // ms; 60000
}

func (b *bench) sweep(l look) string {
	b.Helper()
	if l.id == "" {
		l.id = "w"
	}
	if l.grace == 0 {
		l.grace = 60_000
	}
	if l.hookTTL == 0 {
		l.hookTTL = 60_000
	}
	k := b.keys
	reply := b.run(sweepScript, []string{
		k.Ticks, k.Info, k.Suspects, k.Worker(l.id), k.Crashes, k.Delayed, k.Dead, k.Holder, k.Hook(l.id), k.Stats,
	}, l.id, l.grace, l.batch, l.crashLimit, l.token, l.hookTTL)
	items, _ := reply.([]any)
	if len(items) != 4 {
		b.Fatalf("sweep answered %v", reply)
	}
	if items[0] == "SWEPT" {
		return words(items...)
	}
	return fmt.Sprint(items[0])
}

// suspect marks a dispatcher by hand: since and last look, ms from now.
func (b *bench) suspect(id string, since, looked int64) {
	b.Helper()
	now := b.now()
	b.do("hset", b.keys.Suspects, id, fmt.Sprintf("%d:%d", now+since, now+looked))
}

// kill makes a dispatcher dead, and suspected for longer than a grace of a minute.
func (b *bench) kill(id string) {
	b.Helper()
	b.tick(id, b.now()-600_000)
	b.suspect(id, -300_000, 0)
}

func (b *bench) enqueue(id, payload string, delay int, dedup string, ttl int) []any {
	b.Helper()
	k := b.keys
	reply, _ := b.run(enqueueScript, []string{k.Body, k.Meta, k.Delayed, k.Dedup(dedup)},
		id, payload, "{}", delay, ttl).([]any)
	if len(reply) > 0 && reply[0] == "ADDED" {
		b.trial.Pushed[audit.Sum([]byte(payload))]++
	}
	return reply
}

// equal fails the test when got is not want.
func (b *bench) equal(what string, got, want any) {
	b.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		b.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// eventually polls until ok holds.
func (b *bench) eventually(what string, ok func() bool) {
	b.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			b.Fatalf("%s: not within %s", what, patience)
		case <-tick.C:
		}
	}
}

// list is an array reply, as of refused ids.
func list(ids ...any) []any { return ids }

// words is a reply as one line of text.
func words(items ...any) string { return strings.TrimSuffix(fmt.Sprintln(items...), "\n") }
