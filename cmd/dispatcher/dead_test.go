package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/queuehook/queuehook/delivery"
)

// letter is a dead letter that a test wants to be there.
type letter struct {
	id, payload string
	died        int64 // ms
	meta        string
}

// bury writes dead letters as lifecycle's scripts leave them.
func bury(t *testing.T, rdb *redis.Client, queue string, letters ...letter) {
	t.Helper()
	if _, err := rdb.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for _, l := range letters {
			p.HSet(t.Context(), "{"+queue+"}:body", l.id, l.payload)
			p.HSet(t.Context(), "{"+queue+"}:meta", l.id, l.meta)
			p.ZAdd(t.Context(), "{"+queue+"}:dead", redis.Z{Score: float64(l.died), Member: l.id})
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

const (
	exhausted = `{"attempt":40,"last_status":500,"last_reason":"exhausted"}`
	rejected  = `{"attempt":1,"last_status":400,"last_reason":"rejected"}`
)

// many are n letters, three in each ms, of which every tenth was rejected.
func many(n int) []letter {
	all := make([]letter, n)
	for i := range all {
		all[i] = letter{id: fmt.Sprintf("id-%04d", i), payload: "x", died: int64(1000 + i/3), meta: exhausted}
		if i%10 == 7 {
			all[i].meta = rejected
		}
	}
	return all
}

func dead(t *testing.T, rdb *redis.Client, queue string) []string {
	t.Helper()
	ids, err := rdb.ZRange(t.Context(), "{"+queue+"}:dead", 0, -1).Result()
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

func TestDeadList(t *testing.T) {
	rdb, queue := shared(t)
	if out := ok(t, call(t, "dead", "list", queue, "--json")); out != `{"tasks":[],"next":""}`+"\n" {
		t.Errorf("none: %s", out)
	}
	bury(t, rdb, queue, letter{"a", "abc", 0, exhausted}, letter{"b\x1b[2J", "", 1_500, rejected}, letter{"c", "x", 2_000, "{}"})
	want := `{"tasks":[{"id":"a","died_at":"1970-01-01T00:00:00.000Z","reason":"exhausted","status":500,"attempts":40,"size":3},` +
		`{"id":"b\u001b[2J","died_at":"1970-01-01T00:00:01.500Z","reason":"rejected","status":400,"attempts":1,"size":0}],` +
		`"next":"1500-b\u001b[2J"}` + "\n"
	if diff := cmp.Diff(want, ok(t, call(t, "dead", "list", queue, "--limit", "2", "--json"))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want = `ID          DIED AT                   REASON     STATUS  ATTEMPTS  SIZE
a           1970-01-01T00:00:00.000Z  exhausted  500     40        3
"b\x1b[2J"  1970-01-01T00:00:01.500Z  rejected   400     1         0
`
	got := call(t, "dead", "list", queue, "--limit", "2")
	if diff := cmp.Diff(want, got.out); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got.code != exitOK || !strings.HasPrefix(got.err, "more follow: --cursor '1500-b") {
		t.Errorf("exit %d, standard error %q", got.code, got.err)
	}
	fails(t, call(t, "dead", "list", queue, "--cursor", "x"), exitUsage, "--cursor: bad cursor")
	fails(t, call(t, "dead", "list", queue, "--limit", "0"), exitUsage, "--limit 0: 1 to 1000")
	fails(t, call(t, "dead", "list", queue, "--reason", "ok"), exitUsage, `"ok": accepted are redirect, rejected, target`)
	fails(t, call(t, "dead", "lst"), exitUsage, `unknown command "lst"; did you mean list?`)
	fails(t, call(t, "dead"), exitUsage, "needs one of list, purge, redrive, show")
}

// TestDeadListGoesOn follows the cursor through more letters than a page holds: all letters, and those of one reason.
func TestDeadListGoesOn(t *testing.T) {
	rdb, queue := shared(t)
	bury(t, rdb, queue, many(2300)...)
	for _, c := range []struct {
		args  []string
		want  int
		calls int
	}{
		{[]string{"--limit", "1000"}, 2300, 3},
		{[]string{"--limit", "7", "--reason", "rejected"}, 230, 33},
		{[]string{"--reason", "rejected", "--limit", "230"}, 230, 2},
		{[]string{"--reason", "crashed"}, 0, 1},
	} {
		seen := map[string]bool{}
		cursor, calls := "", 0
		for calls == 0 || cursor != "" {
			var page struct {
				Tasks []struct{ ID, Reason string }
				Next  string
			}
			out := ok(t, call(t, append([]string{"dead", "list", queue, "--json", "--cursor", cursor}, c.args...)...))
			if err := json.Unmarshal([]byte(out), &page); err != nil {
				t.Fatal(err)
			}
			for _, l := range page.Tasks {
				if seen[l.ID] {
					t.Errorf("%v: %s twice", c.args, l.ID)
				}
				seen[l.ID] = true
			}
			cursor = page.Next
			calls++
		}
		if len(seen) != c.want || calls != c.calls {
			t.Errorf("%v: %d letters in %d calls, want %d in %d", c.args, len(seen), calls, c.want, c.calls)
		}
	}
}

func TestDeadShow(t *testing.T) {
	rdb, queue := shared(t)
	const meta = `{"attempt":2,"last_status":500,"last_reason":"exhausted","last_error":"no\u001b[2J","enqueued_at":1000,` +
		`"headers":{"X-Team":"payments"},"history":[{"at":1500,"attempt":1,"status":503,"reason":"status","error":"busy"},` +
		`{"at":2500,"attempt":2,"reason":"timeout"}]}`
	bury(t, rdb, queue, letter{"text", "<é>\n", 2_500, meta}, letter{"bytes", "\x00\xff", 2_500, exhausted}, letter{"hollow", "", 1, exhausted})
	if err := rdb.HDel(t.Context(), "{"+queue+"}:body", "hollow").Err(); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{
		"text": `{"id":"text","died_at":"1970-01-01T00:00:02.500Z","reason":"exhausted","status":500,"attempts":2,"size":5,` +
			`"history":[{"at":"1970-01-01T00:00:01.500Z","attempt":1,"status":503,"reason":"status","error":"busy"},` +
			`{"at":"1970-01-01T00:00:02.500Z","attempt":2,"status":0,"reason":"timeout","error":""}],` +
			`"headers":{"X-Team":"payments"},"payload":"<é>\n"}`,
		"bytes": `{"id":"bytes","died_at":"1970-01-01T00:00:02.500Z","reason":"exhausted","status":500,"attempts":40,"size":2,` +
			`"history":[],"headers":{},"payload_base64":"AP8="}`,
		"hollow": `{"id":"hollow","died_at":"1970-01-01T00:00:00.001Z","reason":"body_missing","status":500,"attempts":40,"size":0,` +
			`"history":[],"headers":{}}`,
	} {
		if diff := cmp.Diff(want+"\n", ok(t, call(t, "dead", "show", queue, id, "--json"))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", id, diff)
		}
	}
	want := `ID        text
Queue     ` + queue + `
Died      1970-01-01T00:00:02.500Z
Reason    exhausted
Status    500
Error     "no\x1b[2J"
Attempts  2
Enqueued  1970-01-01T00:00:01.000Z
Header    X-Team: payments

The last attempts:
AT                        ATTEMPT  STATUS  REASON   ERROR
1970-01-01T00:00:01.500Z  1        503     status   busy
1970-01-01T00:00:02.500Z  2        -       timeout  -

Payload, 5 bytes:
<é>
`
	if diff := cmp.Diff(want, ok(t, call(t, "dead", "show", queue, "text"))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if out := ok(t, call(t, "dead", "show", queue, "bytes")); !strings.HasSuffix(out, "\n00000000  00 ff                                             |..|\n") {
		t.Errorf("bytes: %q", out)
	}
	if out := ok(t, call(t, "dead", "show", queue, "hollow")); !strings.HasSuffix(out, "\nThe payload is gone.\n") {
		t.Errorf("hollow: %q", out)
	}
	fails(t, call(t, "dead", "show", queue, "nobody"), exitFailure, "queue "+queue+" has no dead letter nobody")
	fails(t, call(t, "dead", "show", queue), exitUsage, "takes a queue and a task id")
}

// verbs are redrive and purge, each with its past participle.
var verbs = map[string]string{"redrive": "redriven", "purge": "purged"}

func TestMoveByID(t *testing.T) {
	for verb, done := range verbs {
		t.Run(verb, func(t *testing.T) {
			rdb, queue := shared(t)
			bury(t, rdb, queue, many(6)...)
			if out := ok(t, call(t, "dead", verb, queue, "id-0000", "id-0001", "id-0001", "--yes")); out != done+" 2 tasks\n" {
				t.Errorf("two: %q", out)
			}
			if out := ok(t, call(t, "dead", verb, queue, "id-0002", "--yes", "--json")); out != `{"`+done+`":1}`+"\n" {
				t.Errorf("one: %q", out)
			}
			fails(t, call(t, "dead", verb, queue, "nobody", "--yes"), exitFailure, "no dead letter nobody")
			got := call(t, "dead", verb, queue, "id-0003", "nobody", "id-0001", "--yes")
			if got.code != exitFailure || got.out != done+" 1 task\n" || !strings.Contains(got.err, "no dead letters nobody, id-0001") {
				t.Errorf("some unknown: %+v", got)
			}
			if diff := cmp.Diff([]string{"id-0004", "id-0005"}, dead(t, rdb, queue)); diff != "" {
				t.Errorf("dead (-want +got):\n%s", diff)
			}
		})
	}
}

// TestMoveMatching has more letters than a page, and some that die while it runs, which are left alone.
func TestMoveMatching(t *testing.T) {
	for verb, done := range verbs {
		t.Run(verb, func(t *testing.T) {
			rdb, queue := shared(t)
			bury(t, rdb, queue, many(2300)...)
			now := time.Now().UnixMilli()
			bury(t, rdb, queue, letter{"young", "x", now - 60_000, rejected}, letter{"unborn", "x", now + 3_600_000, rejected})
			for _, c := range []struct {
				args string
				want string
				left int
			}{
				{"--reason crashed", "0 tasks", 2302},
				{"--reason rejected --older-than 1h", "230 tasks", 2072},
				{"--reason rejected", "1 task", 2071},
				{"--older-than 1h", "2070 tasks", 1},
				{"--all", "0 tasks", 1},
			} {
				out := ok(t, call(t, append([]string{"dead", verb, queue, "--yes"}, strings.Fields(c.args)...)...))
				if left := len(dead(t, rdb, queue)); out != done+" "+c.want+"\n" || left != c.left {
					t.Errorf("%s: %q, %d left, want %s, %d left", c.args, out, left, c.want, c.left)
				}
			}
			delayed := rdb.ZCard(t.Context(), "{"+queue+"}:delayed").Val()
			bodies := rdb.HLen(t.Context(), "{"+queue+"}:body").Val()
			if want := map[string]int64{"redrive": 2301}[verb]; delayed != want || bodies != want+1 {
				t.Errorf("%d delayed, %d bodies", delayed, bodies)
			}
		})
	}
}

func TestWhatLostItsPayloadIsOnlyPurged(t *testing.T) {
	rdb, queue := shared(t)
	bury(t, rdb, queue, letter{"good", "x", 1, exhausted}, letter{"hollow", "x", 1, exhausted})
	if err := rdb.HDel(t.Context(), "{"+queue+"}:body", "hollow").Err(); err != nil {
		t.Fatal(err)
	}
	got := call(t, "dead", "redrive", queue, "--all", "--yes")
	if got.code != exitOK || got.out != "redriven 1 task\n" || !strings.Contains(got.err, "1 have lost their payload") {
		t.Errorf("redrive: %+v", got)
	}
	fails(t, call(t, "dead", "redrive", queue, "hollow", "--yes"), exitFailure, "can only be purged: hollow")
	if out := ok(t, call(t, "dead", "purge", queue, "--all", "--yes")); out != "purged 1 task\n" {
		t.Errorf("purge: %q", out)
	}
}

func TestMoveAsks(t *testing.T) {
	for verb, done := range verbs {
		t.Run(verb, func(t *testing.T) {
			rdb, queue := shared(t)
			bury(t, rdb, queue, many(3)...)
			fails(t, call(t, "dead", verb, queue, "--all"), exitUsage, "no terminal to ask on: say --yes")
			for _, typed := range []string{"n\n", "\n", "", "yep\n"} {
				got := answer(t, typed, "dead", verb, queue, "--all")
				if got.code != exitFailure || !strings.HasSuffix(got.err, "nothing "+done+"\n") || got.out != "" {
					t.Errorf("%q: %+v", typed, got)
				}
			}
			if n := len(dead(t, rdb, queue)); n != 3 {
				t.Fatalf("%d left after a no", n)
			}
			for _, c := range []struct{ args, typed, want string }{
				{"id-0000", "y\n", verb + " dead letter id-0000 of queue " + queue + ", which has 3? [y/N] "},
				{"--reason exhausted --older-than 1h", "YES\n", verb + " the dead letters of reason exhausted older than 1h0m0s of queue " + queue + ", which has 2? [y/N] "},
			} {
				got := answer(t, c.typed, append([]string{"dead", verb, queue}, strings.Fields(c.args)...)...)
				if got.code != exitOK || got.err != c.want {
					t.Errorf("%s: %+v, want %q", c.args, got, c.want)
				}
			}
			if n := len(dead(t, rdb, queue)); n != 0 {
				t.Errorf("%d left", n)
			}
		})
	}
}

func TestASignalEndsAQuestion(t *testing.T) {
	rdb, queue := shared(t)
	bury(t, rdb, queue, many(3)...)
	silent, typist := io.Pipe()
	defer typist.Close()
	log := &lines{wrote: make(chan struct{}, 1)}
	closing, closeNow := context.WithCancel(t.Context())
	code := make(chan int, 1)
	go func() {
		code <- run(closing, t.Context(), []string{"dead", "purge", queue, "--all"}, stdio{in: silent, out: log, err: log, asks: true})
	}()
	log.await(t, "[y/N]")
	closeNow()
	if got := <-code; got != exitFailure {
		t.Errorf("exit %d", got)
	}
	log.await(t, "dispatcher: interrupted\n")
	if n := len(dead(t, rdb, queue)); n != 3 {
		t.Errorf("%d left", n)
	}
}

func TestMoveRefusesBadArguments(t *testing.T) {
	environment(t, "redis://"+nobody(t)) // arguments are looked at before Redis is
	for verb := range verbs {
		for args, want := range map[string]string{
			"":                              "takes a queue",
			"q --yes":                       "no dead letters are chosen; ids,",
			"q id --all --yes":              "ids do not go with",
			"q id --older-than 1h --yes":    "ids do not go with",
			"q --all --reason target --yes": "--all does not go with",
			"q --older-than 0s --yes":       "--older-than 0s: more than 0",
			"q --older-than 3d --yes":       "invalid argument",
			"q --reason bored --yes":        `--reason "bored": accepted are redirect, rejected`,
			"q:qh:dead --all --yes":         "bad queue name",
		} {
			fails(t, call(t, append([]string{"dead", verb}, strings.Fields(args)...)...), exitUsage, want)
		}
	}
	for _, r := range delivery.Reasons() {
		if _, err := parseReason(r.String()); (err == nil) == (r == delivery.OK || r == delivery.Shutdown) {
			t.Errorf("reason %s: %v", r, err)
		}
	}
}

func TestProgressIsShownToWhoWaits(t *testing.T) {
	var out strings.Builder
	show := func(std stdio, began time.Time) string {
		out.Reset()
		p := newProgress(std, 10, "purge")
		p.began = began
		p.add(5)
		shown := out.String()
		p.add(20) // more have died meanwhile
		p.end()
		return shown
	}
	long := time.Now().Add(-time.Hour)
	if got := show(stdio{err: &out, shows: true}, long); !strings.Contains(got, "purge") || !strings.Contains(got, "(5/10") {
		t.Errorf("long work on a terminal: %q", got)
	}
	if got := show(stdio{err: &out, shows: true}, time.Now().Add(time.Hour)); got != "" {
		t.Errorf("short work on a terminal: %q", got)
	}
	if got := show(stdio{err: &out}, long); got != "" {
		t.Errorf("without a terminal: %q", got)
	}
}
