package audit

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Kind is which part of the law a violation breaks.
type Kind string

// The kinds of violations.
const (
	Lost      Kind = "lost"       // pushed, never answered 2xx, and nowhere in Redis
	Invented  Kind = "invented"   // Redis and the receiver know of more tasks than were pushed
	TwoPlaces Kind = "two places" // in more than one index
	NoPlace   Kind = "no place"   // a body in no index
	NoBody    Kind = "no body"    // an index entry without a body
	Leftover  Kind = "leftover"   // metadata or a crash count of a task that is gone
	Repeated  Kind = "repeated"   // answered 2xx more than once, or still held after it, without a cause
	Changed   Kind = "changed"    // one id with two payloads
	Strange   Kind = "strange"    // a key that is no key of queuehook
)

// Violation is one way in which the law is broken.
type Violation struct {
	Kind Kind
	Task string // id; empty when it concerns a payload or a key
	Text string
}

// String is the violation in one line.
func (v Violation) String() string {
	if v.Task == "" {
		return fmt.Sprintf("%s: %s", v.Kind, v.Text)
	}
	return fmt.Sprintf("%s: task %s: %s", v.Kind, v.Task, v.Text)
}

// Answered is what the receiver's log says of one task.
type Answered struct {
	Sum   string // of the payload that it received
	Times int    // 2xx answers that it sent
}

// Trial is what a test knows besides what Redis holds. With the zero Trial, Check looks at Redis alone.
type Trial struct {
	// Pushed is how many tasks were handed over with each payload, by Sum; nil = not recorded.
	Pushed map[string]int
	// Delivered is the receiver's log by task id. A 2xx counts, even one that the dispatcher did not live to see.
	Delivered map[string]Answered
	// Gone are tasks that were taken out on purpose, by purge or cancel: id -> Sum.
	Gone map[string]string
	// Causes is, by task id, why the task may be answered more than once or be held after an answer: a kill, a lost
	// lease, a timeout, a cut connection, a redrive.
	Causes map[string]string
	// CauseOfAll is a cause that holds for every task, as when a whole fleet was killed; empty = none.
	CauseOfAll string
	// Renamed allows a task to have had two ids: a failover undid writes. Then a payload may count too often.
	Renamed bool
}

// Check returns every violation of the law, in a fixed order.
func Check(p Places, t Trial) []Violation {
	vs := p.check()
	vs = append(vs, t.repeated(p)...)
	if t.Pushed != nil {
		vs = append(vs, t.conserved(p)...)
	}
	return vs
}

// Err joins violations to one error, nil when there are none.
func Err(vs []Violation) error {
	if len(vs) == 0 {
		return nil
	}
	lines := make([]string, 0, len(vs))
	for _, v := range vs {
		lines = append(lines, v.String())
	}
	return errors.New("the law is broken:\n\t" + strings.Join(lines, "\n\t"))
}

// check is the part of the law that Redis alone can break.
func (p Places) check() []Violation {
	var vs []Violation
	places := p.Of()
	for _, id := range slices.Sorted(maps.Keys(places)) {
		if held := places[id]; len(held) > 1 {
			vs = append(vs, Violation{TwoPlaces, id, strings.Join(held, ", ")})
		}
		if _, ok := p.Body[id]; !ok {
			vs = append(vs, Violation{NoBody, id, strings.Join(places[id], ", ")})
		}
	}
	for _, id := range slices.Sorted(maps.Keys(p.Body)) {
		if len(places[id]) == 0 {
			vs = append(vs, Violation{NoPlace, id, fmt.Sprintf("a body of %d bytes", len(p.Body[id]))})
		}
	}
	for _, kept := range []struct {
		name string
		of   map[string]string
	}{{"metadata", p.Meta}, {"a crash count", p.Crashes}} {
		for _, id := range slices.Sorted(maps.Keys(kept.of)) {
			if _, ok := p.Body[id]; !ok && len(places[id]) == 0 {
				vs = append(vs, Violation{Leftover, id, kept.name})
			}
		}
	}
	for _, key := range p.Strange {
		vs = append(vs, Violation{Strange, "", key})
	}
	return vs
}

// repeated finds tasks that the receiver accepted more often than a cause explains.
func (t Trial) repeated(p Places) []Violation {
	var vs []Violation
	places := p.Of()
	for _, id := range slices.Sorted(maps.Keys(t.Delivered)) {
		got := t.Delivered[id]
		body, held := p.Body[id]
		if held && got.Sum != Sum([]byte(body)) {
			vs = append(vs, Violation{Changed, id, "the receiver saw other bytes than Redis holds"})
		}
		if t.CauseOfAll != "" || t.Causes[id] != "" || got.Times == 0 {
			continue
		}
		if got.Times > 1 {
			vs = append(vs, Violation{Repeated, id, fmt.Sprintf("answered 2xx %d times", got.Times)})
		}
		if len(places[id]) > 0 {
			vs = append(vs, Violation{Repeated, id, "answered 2xx and still " + strings.Join(places[id], ", ")})
		}
	}
	return vs
}

// conserved compares, payload by payload, the tasks that were pushed with those that are accounted for: held, answered,
// or taken out on purpose. Equal payloads are told apart by their ids.
func (t Trial) conserved(p Places) []Violation {
	accounted := make(map[string]int)
	for _, raw := range slices.Concat(p.Source, p.Landing) {
		accounted[Sum([]byte(raw))]++
	}
	seen := make(map[string]bool)
	account := func(id, sum string) {
		if !seen[id] {
			seen[id] = true
			accounted[sum]++
		}
	}
	for id := range p.Of() {
		if body, ok := p.Body[id]; ok {
			account(id, Sum([]byte(body)))
		}
	}
	for id, got := range t.Delivered {
		if got.Times > 0 {
			account(id, got.Sum)
		}
	}
	for id, sum := range t.Gone {
		account(id, sum)
	}

	var vs []Violation
	sums := maps.Clone(accounted)
	maps.Copy(sums, t.Pushed)
	for _, sum := range slices.Sorted(maps.Keys(sums)) {
		have, want := accounted[sum], t.Pushed[sum]
		text := fmt.Sprintf("payload %s: %d pushed, %d accounted for", short(sum), want, have)
		switch {
		case have < want:
			vs = append(vs, Violation{Lost, "", text})
		case have > want && !t.Renamed:
			vs = append(vs, Violation{Invented, "", text})
		}
	}
	return vs
}

func short(sum string) string { return sum[:min(len(sum), 12)] }
