package lifecycle

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/queuehook/queuehook/internal/audit"
	"github.com/queuehook/queuehook/internal/redistest"
	"github.com/queuehook/queuehook/keyspace"
)

// TestModel does everything in random order on real Redis: push, enqueue, lease, lose replies, adopt, settle with good
// and stale tokens, die, be swept, redrive, purge. After every step it checks the law, and compares what Redis holds
// with a model that only knows which task is where.
//
// -rapid.checks and -rapid.steps make it longer; QUEUEHOOK_MODEL_STEPS sets the steps of one run as well.
func TestModel(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t, redistest.Config{}).Client(t)
	steps := 60
	if n, err := strconv.Atoi(os.Getenv("QUEUEHOOK_MODEL_STEPS")); err == nil {
		steps = n
	}
	rapid.Check(t, func(r *rapid.T) {
		rdb.FlushDB(t.Context())
		m := &model{r: r}
		for i := range rapid.IntRange(1, 2).Draw(r, "queues") {
			k, err := keyspace.New([]string{"one", "{two}"}[i])
			if err != nil {
				r.Fatal(err)
			}
			b := &bench{T: t, ctx: t.Context(), rdb: rdb, keys: k, trial: audit.Trial{
				Pushed: make(map[string]int), Gone: make(map[string]string),
			}}
			m.queues = append(m.queues, newShadow(b))
		}
		for range rapid.IntRange(1, steps).Draw(r, "steps") {
			m.step()
			for _, s := range m.queues {
				s.check(r)
			}
		}
	})
}

// model is one run: some queues, and what should have become of their tasks.
type model struct {
	r      *rapid.T
	queues []*shadow
}

// shadow is what a queue should look like.
type shadow struct {
	b *bench

	raw    []string            // payloads in the lists, the right end first
	landed []string            // the same of the landing list
	tasks  map[string]*booked  // by id, of every task that has one and is not gone
	hands  map[string][]*lease // by dispatcher: every lease that it ever learnt of
	dead   map[string]bool     // dispatchers that a sweep has condemned or forgotten
	closed int                 // tasks that are gone
}

// booked is one task that has an id, as the model knows it.
type booked struct {
	payload  string
	place    string // "delayed", "dead" or "in flight at <id>"
	token    string // while in flight
	attempts int    // charged, as its metadata should say
	crashes  int
	known    bool // in flight and its dispatcher knows
}

// lease is one task that a dispatcher believes it holds.
type lease struct{ id, token string }

func newShadow(b *bench) *shadow {
	s := &shadow{b: b, tasks: make(map[string]*booked), hands: make(map[string][]*lease), dead: make(map[string]bool)}
	b.alive("d1", "d2", "d3")
	return s
}

// step does one thing to one queue.
func (m *model) step() {
	s := rapid.SampledFrom(m.queues).Draw(m.r, "queue")
	who := rapid.SampledFrom([]string{"d1", "d2", "d3"}).Draw(m.r, "dispatcher")
	switch rapid.SampledFrom([]string{
		"push", "push", "jump", "land", "enqueue", "lease", "lease", "lease", "lost lease", "adopt", "complete", "complete",
		"abandon", "bury", "release", "stale", "time", "sweep", "sweep", "look", "redrive", "purge", "flush",
	}).Draw(m.r, "step") {
	case "push":
		s.push(m.payload(), false)
	case "jump":
		s.push(m.payload(), true)
	case "land":
		s.land()
	case "enqueue":
		s.enqueue(m.r, m.payload())
	case "lease":
		s.lease(m.r, who, true)
	case "lost lease":
		s.lease(m.r, who, false)
	case "adopt":
		s.adopt(m.r, who)
	case "complete":
		s.complete(m.r, who)
	case "abandon", "bury", "release":
		s.settle(m.r, who)
	case "stale":
		s.stale(m.r, who)
	case "time":
		s.timePasses()
	case "sweep":
		s.sweep(m.r, who, true)
	case "look":
		s.sweep(m.r, who, false)
	case "redrive":
		s.redrive(m.r)
	case "purge":
		s.purge(m.r)
	case "flush":
		s.b.do("script", "flush")
	}
}

func (m *model) payload() string {
	return rapid.SampledFrom([]string{"", "a", "a", "b", "\x00", "\xff\xfe", "a longer payload"}).Draw(m.r, "payload")
}

func (s *shadow) push(payload string, jump bool) {
	verb := "lpush"
	if jump {
		verb = "rpush"
		s.raw = slices.Insert(s.raw, 0, payload)
	} else {
		s.raw = append(s.raw, payload)
	}
	s.b.do(verb, s.b.keys.Source, payload)
	s.b.trial.Pushed[audit.Sum([]byte(payload))]++
}

func (s *shadow) land() {
	s.b.do("lmove", s.b.keys.Source, s.b.keys.Landing, "right", "left")
	if len(s.raw) > 0 {
		s.landed, s.raw = append(s.landed, s.raw[0]), s.raw[1:]
	}
}

func (s *shadow) enqueue(r *rapid.T, payload string) {
	id := fmt.Sprintf("task-%d", rapid.IntRange(0, 20).Draw(r, "id"))
	delay := rapid.SampledFrom([]int{0, 0, 3600_000}).Draw(r, "delay")
	want := "ADDED"
	if s.tasks[id] != nil {
		want = "EXISTS"
	} else {
		s.tasks[id] = &booked{payload: payload, place: "delayed"}
	}
	if got := s.b.enqueue(id, payload, delay, "", 0); got[0] != want {
		r.Fatalf("enqueue %s answered %v, want %s", id, got, want)
	}
}

// lease takes tasks; when the reply is lost the dispatcher does not learn of them.
func (s *shadow) lease(r *rapid.T, who string, answered bool) {
	n := rapid.IntRange(1, 4).Draw(r, "n")
	g := s.b.lease(leaseCall{id: who, n: n, d: (n + 1) / 2, freshFirst: rapid.Bool().Draw(r, "fresh first")})
	if s.dead[who] != (g.Code == "FENCED") {
		r.Fatalf("lease by %s: %s", who, g.Code)
	}
	if len(g.Tasks) > n {
		r.Fatalf("%d tasks leased, %d asked for", len(g.Tasks), n)
	}
	for _, got := range g.Tasks {
		rec := s.tasks[got.ID]
		if rec == nil {
			from := &s.raw
			if len(s.landed) > 0 {
				from = &s.landed
			}
			if len(*from) == 0 || (*from)[0] != got.Payload {
				r.Fatalf("leased %q as %s, the lists hold %q and %q", got.Payload, got.ID, s.landed, s.raw)
			}
			*from = (*from)[1:]
			rec = &booked{payload: got.Payload}
			s.tasks[got.ID] = rec
		} else if rec.place != "delayed" {
			r.Fatalf("%s was leased while %s", got.ID, rec.place)
		}
		s.compare(r, got, rec)
		rec.place, rec.token, rec.known = "in flight at "+who, g.base, answered
		if answered {
			s.hands[who] = append(s.hands[who], &lease{got.ID, g.base})
		}
	}
	if !s.dead[who] && len(g.Tasks) < n && len(s.landed)+len(s.raw) > 0 {
		r.Fatalf("%d of %d tasks leased, while the lists hold %q and %q", len(g.Tasks), n, s.landed, s.raw)
	}
}

// compare compares a leased task with the model.
func (s *shadow) compare(r *rapid.T, got took, rec *booked) {
	if got.Payload != rec.payload || int(got.Crashes) != rec.crashes {
		r.Fatalf("%+v, want payload %q and %d crashes", got, rec.payload, rec.crashes)
	}
	attempts := 0
	if _, err := fmt.Sscanf(got.Meta, `{"attempt":%d}`, &attempts); err != nil && got.Meta != "" && got.Meta != "{}" {
		r.Fatalf("metadata %q", got.Meta)
	}
	if attempts != rec.attempts {
		r.Fatalf("task %s: %d attempts in its metadata, %d were charged", got.ID, attempts, rec.attempts)
	}
}

func (s *shadow) adopt(r *rapid.T, who string) {
	var known []string
	want := make(map[string]bool)
	for id, rec := range s.tasks {
		if rec.place == "in flight at "+who {
			if rec.known {
				known = append(known, id)
			} else {
				want[id] = true
			}
		}
	}
	g := s.b.adopt(who, 1000, 1<<20, known...)
	if s.dead[who] {
		if g.Code != "FENCED" {
			r.Fatalf("adoption by the fenced %s: %s", who, g.Code)
		}
		return
	}
	if len(g.Tasks) != len(want) {
		r.Fatalf("adopted %v, want %v", g.Tasks, slices.Sorted(maps.Keys(want)))
	}
	for _, got := range g.Tasks {
		rec := s.tasks[got.ID]
		if !want[got.ID] {
			r.Fatalf("adopted %s, which %s knows", got.ID, who)
		}
		s.compare(r, got, rec)
		rec.token, rec.known = g.base, true
		s.hands[who] = append(s.hands[who], &lease{got.ID, g.base})
	}
}

// draw draws a lease that a dispatcher has learnt of at some time, and says whether it is current.
func (s *shadow) draw(r *rapid.T, who string) (l *lease, current bool) {
	if len(s.hands[who]) == 0 {
		return nil, false
	}
	l = rapid.SampledFrom(s.hands[who]).Draw(r, "lease")
	rec := s.tasks[l.id]
	return l, rec != nil && rec.place == "in flight at "+who && rec.token == l.token
}

func (s *shadow) complete(r *rapid.T, who string) {
	var args, want []any
	done := make(map[string]bool)
	for range rapid.IntRange(1, 3).Draw(r, "tasks") {
		l, current := s.draw(r, who)
		if l == nil {
			return
		}
		args = append(args, l.id, l.token)
		if !current || done[l.id] {
			want = append(want, l.id)
			continue
		}
		done[l.id] = true
	}
	refused := s.b.complete(who, args...)
	if fmt.Sprint(refused...) != fmt.Sprint(want...) {
		r.Fatalf("complete %v refused %v, want %v", args, refused, want)
	}
	for id := range done {
		s.forget(id)
	}
}

// forget takes a task out of the model. It counts as delivered under a name of its own, since ids may be used again.
func (s *shadow) forget(id string) {
	s.closed++
	name := fmt.Sprintf("%s, number %d", id, s.closed)
	s.b.trial.Gone[name] = audit.Sum([]byte(s.tasks[id].payload))
	delete(s.tasks, id)
}

func (s *shadow) settle(r *rapid.T, who string) {
	l, current := s.draw(r, who)
	if l == nil {
		return
	}
	rec := s.tasks[l.id]
	attempts := 0
	if rec != nil {
		attempts = rec.attempts
	}
	how := rapid.SampledFrom([]string{"abandon", "abandon later", "bury", "release"}).Draw(r, "how")
	meta := fmt.Sprintf(`{"attempt":%d}`, attempts+1)
	var ours bool
	switch how {
	case "abandon":
		ours = s.b.abandon(who, l.id, l.token, 0, meta) == int64(1)
	case "abandon later":
		ours = s.b.abandon(who, l.id, l.token, 3600_000, meta) == int64(1)
	case "bury":
		ours = s.b.bury(who, l.id, l.token, meta) == int64(1)
	case "release":
		ours = len(s.b.release(who, l.id, l.token, "")) == 0
	}
	if ours != current {
		r.Fatalf("%s %s by %s: ours %v, want %v", how, l.id, who, ours, current)
	}
	if !current {
		return
	}
	rec.place, rec.token = "delayed", ""
	if how == "bury" {
		rec.place = "dead"
	}
	if how != "release" {
		rec.attempts, rec.crashes = attempts+1, 0
	}
}

// stale settles with a token that the dispatcher never had.
func (s *shadow) stale(r *rapid.T, who string) {
	if len(s.tasks) == 0 {
		return
	}
	id := rapid.SampledFrom(slices.Sorted(maps.Keys(s.tasks))).Draw(r, "task")
	before := s.b.dump()
	if got := s.b.complete(who, id, "no token"); len(got) != 1 {
		r.Fatalf("complete with a wrong token: %v", got)
	}
	if s.b.abandon(who, id, "no token", 0, "{}") != int64(0) || s.b.bury(who, id, "no token", "{}") != int64(0) ||
		len(s.b.release(who, id, "no token", "{}")) != 1 {
		r.Fatalf("settled %s with a wrong token", id)
	}
	if after := s.b.dump(); !maps.Equal(before, after) {
		r.Fatalf("a refused settlement changed Redis: %v, before %v", after, before)
	}
}

// timePasses makes everything due that is parked.
func (s *shadow) timePasses() {
	for id, rec := range s.tasks {
		if rec.place == "delayed" {
			s.b.do("zadd", s.b.keys.Delayed, "xx", 1, id)
		}
	}
}

// sweep looks at a dead dispatcher, and may take some of its tasks, or at a living one, which must lose nothing.
func (s *shadow) sweep(r *rapid.T, who string, dies bool) {
	if !dies && !s.dead[who] {
		if got := s.b.sweep(look{id: who, batch: 100}); got != "ALIVE" {
			r.Fatalf("sweep of the living %s: %s", who, got)
		}
		return
	}
	known := s.b.places().Ticks[who] != 0
	if !s.dead[who] {
		s.b.kill(who)
		known = true
	}
	batch, limit := rapid.IntRange(1, 3).Draw(r, "batch"), 3
	got := s.b.sweep(look{id: who, batch: batch, crashLimit: limit})
	if !known {
		if got != "GONE" {
			r.Fatalf("sweep of the forgotten %s: %s", who, got)
		}
		s.alive(who)
		return
	}
	s.dead[who] = true
	var back, buried, left int
	if _, err := fmt.Sscanf(got, "SWEPT %d %d %d", &back, &buried, &left); err != nil {
		r.Fatalf("sweep of the dead %s: %s", who, got)
	}
	places := s.b.places().Of()
	var took, dead, kept int
	for id, rec := range s.tasks {
		if rec.place != "in flight at "+who {
			continue
		}
		if now := places[id]; len(now) == 1 && now[0] == rec.place {
			kept++
			continue
		}
		rec.crashes++
		rec.token = ""
		rec.place = "delayed"
		took++
		if rec.crashes >= limit {
			rec.place = "dead"
			took--
			dead++
		}
	}
	if back != took || buried != dead || left != kept || took+dead != min(batch, took+dead+kept) {
		r.Fatalf("%s with a batch of %d; it moved %d and %d and left %d", got, batch, took, dead, kept)
	}
}

// alive brings a forgotten dispatcher back, as a new one with the same id.
func (s *shadow) alive(who string) {
	s.b.alive(who)
	delete(s.dead, who)
}

func (s *shadow) redrive(r *rapid.T) {
	id, ok := s.pick(r)
	if !ok {
		return
	}
	k, rec := s.b.keys, s.tasks[id]
	refused, _ := s.b.run(redriveScript, []string{k.Dead, k.Delayed, k.Body, k.Meta, k.Crashes}, id, "{}").([]any)
	if (len(refused) == 0) != (rec.place == "dead") {
		r.Fatalf("redrive of %s, %s: refused %v", id, rec.place, refused)
	}
	if rec.place == "dead" {
		rec.place, rec.attempts, rec.crashes = "delayed", 0, 0
	}
}

func (s *shadow) purge(r *rapid.T) {
	id, ok := s.pick(r)
	if !ok {
		return
	}
	k := s.b.keys
	refused, _ := s.b.run(purgeScript, []string{k.Dead, k.Body, k.Meta, k.Crashes}, id).([]any)
	if (len(refused) == 0) != (s.tasks[id].place == "dead") {
		r.Fatalf("purge of %s, %s: refused %v", id, s.tasks[id].place, refused)
	}
	if len(refused) == 0 {
		s.forget(id)
	}
}

// pick is a task, most often a dead one.
func (s *shadow) pick(r *rapid.T) (id string, ok bool) {
	if len(s.tasks) == 0 {
		return "", false
	}
	var dead, other []string
	for _, id := range slices.Sorted(maps.Keys(s.tasks)) {
		if s.tasks[id].place == "dead" {
			dead = append(dead, id)
		} else {
			other = append(other, id)
		}
	}
	if len(other) == 0 || (len(dead) > 0 && rapid.IntRange(0, 3).Draw(r, "a dead one") > 0) {
		other = dead
	}
	return rapid.SampledFrom(other).Draw(r, "task"), true
}

// check compares Redis with the law and with the model.
func (s *shadow) check(r *rapid.T) {
	p := s.b.places()
	if err := audit.Err(audit.Check(p, s.b.trial)); err != nil {
		r.Fatal(err)
	}
	got, want := make(map[string]string), make(map[string]string)
	for id, places := range p.Of() {
		got[id] = places[0]
	}
	for id, rec := range s.tasks {
		want[id] = rec.place
	}
	if !maps.Equal(got, want) {
		r.Fatalf("places %v, want %v", got, want)
	}
	left := slices.Clone(p.Source)
	slices.Reverse(left)
	landed := slices.Clone(p.Landing)
	slices.Reverse(landed)
	if !slices.Equal(left, s.raw) || !slices.Equal(landed, s.landed) {
		r.Fatalf("lists %q and %q, want %q and %q", left, landed, s.raw, s.landed)
	}
}
