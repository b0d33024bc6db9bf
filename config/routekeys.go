package config

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	"go.yaml.in/yaml/v4"
)

// The bounds of the routes file, beside those of the environment.
const (
	maxRate       = 1_000_000
	maxPer        = 24 * time.Hour
	maxSchedule   = 1_000
	maxFaults     = 1_000_000
	maxQuickRetry = 10
	maxBatchSize  = 10_000 // of SQS
	maxBatchWait  = 5 * time.Minute
)

// settings reads the keys that a route and the defaults share, and answers those that are for one kind of target.
func (s *section) settings(r *Route) (http, function []string) {
	s.integer("concurrency", 1, maxConcurrency, &r.Concurrency)
	s.duration("timeout", tick, forever, &r.Timeout)
	s.boolean("ordered", &r.Ordered)
	s.rate(&r.Rate)
	s.retry(&r.Retry)
	s.breaker(&r.Breaker)
	from := len(s.asked)
	s.http(&r.HTTP)
	until := len(s.asked)
	s.invocation(r)
	return slices.Clone(s.asked[from:until]), slices.Clone(s.asked[until:])
}

// rate reads the key of that name, whose values have defaults of their own.
func (s *section) rate(r *Rate) {
	in := s.section("rate")
	if in == nil {
		return
	}
	*r = Rate{Per: time.Second}
	in.integer("limit", 1, maxRate, &r.Limit)
	in.duration("per", tick, maxPer, &r.Per)
	r.Burst = r.Limit
	in.integer("burst", 1, maxRate, &r.Burst)
	if !in.has("limit") {
		in.problem("limit", "is missing", integerForm(1, maxRate))
	}
	in.done()
}

// retry reads the key of that name, over what r says so far.
func (s *section) retry(r *Retry) {
	in := s.section("retry")
	if in == nil {
		return
	}
	in.integer("max_attempts", 0, maxAttempts, &r.MaxAttempts)
	in.duration("max_age", 0, forever, &r.MaxAge)
	if in.has("base") || in.has("cap") {
		r.Schedule = nil
	}
	in.duration("base", tick, forever, &r.BackoffBase)
	in.duration("cap", tick, forever, &r.BackoffCap)
	in.schedule(r)
	_ = in.together("schedule", "base") || in.together("schedule", "cap")
	in.done()
}

func (s *section) schedule(r *Retry) {
	want := fmt.Sprintf("a list of 1 to %d delays, each %s", maxSchedule, durationForm(0, forever))
	items, found := s.list("schedule", want)
	if !found {
		return
	}
	if len(items) == 0 || len(items) > maxSchedule {
		s.problem("schedule", fmt.Sprintf("has %d delays", len(items)), want)
	}
	r.Schedule = make([]time.Duration, 0, len(items))
	for i, n := range items {
		raw, ok := s.item("schedule", i, n, want)
		if !ok {
			continue
		}
		d, wrong := parseDuration(raw, 0, forever)
		if wrong != "" {
			s.wrong(n.Line, fmt.Sprintf("schedule[%d]", i), quote(raw)+" "+wrong, durationForm(0, forever))
		}
		r.Schedule = append(r.Schedule, d)
	}
}

// item returns a value of a list.
func (s *section) item(key string, i int, n *yaml.Node, want string) (string, bool) {
	if n.Kind != yaml.ScalarNode || absent(n) {
		s.wrong(n.Line, fmt.Sprintf("%s[%d]", key, i), "is not a single value", want)
		return "", false
	}
	return n.Value, true
}

// backoff compares base and cap, of which one can be from before: whoever said both was told.
func (s *section) backoff(r, before Retry) {
	same := r.BackoffBase == before.BackoffBase && r.BackoffCap == before.BackoffCap
	if r.Schedule != nil || same || r.BackoffCap <= 0 || r.BackoffBase <= r.BackoffCap {
		return
	}
	s.problem("retry", fmt.Sprintf("has a base of %s above the cap of %s", r.BackoffBase, r.BackoffCap),
		"base to be at most cap")
}

// breaker reads the key of that name: off, or values over what b says so far.
func (s *section) breaker(b *Breaker) {
	if e, found := s.keys["breaker"]; found && e.value.Kind == yaml.ScalarNode {
		const want = "off, or a mapping of consecutive and pause"
		switch raw, found := s.scalar("breaker", want); {
		case !found:
		case raw != "off":
			s.problem("breaker", quote(raw)+" is not off", want)
		default:
			*b = Breaker{}
		}
		return
	}
	in := s.section("breaker")
	if in == nil {
		return
	}
	if *b == (Breaker{}) {
		*b = Breaker{Consecutive: defaultConsecutive, Pause: defaultPause}
	}
	in.integer("consecutive", 1, maxFaults, &b.Consecutive)
	in.duration("pause", tick, forever, &b.Pause)
	in.done()
}

// statuses reads a list of statuses and, where spans says so, of ranges of them.
func (s *section) statuses(key string, spans bool, least int) ([]StatusRange, bool) {
	want := "a list of statuses from 200 to 999"
	if spans {
		want += " and ranges such as 200-299"
	}
	items, found := s.list(key, want)
	if !found {
		return nil, false
	}
	if len(items) < least {
		s.problem(key, "is an empty list", want)
	}
	all := make([]StatusRange, 0, len(items))
	form := regexp.MustCompile(`^([2-9][0-9]{2})(?:-([2-9][0-9]{2}))?$`)
	for i, n := range items {
		raw, ok := s.item(key, i, n, want)
		if !ok {
			continue
		}
		m := form.FindStringSubmatch(raw)
		if m == nil || m[2] != "" && (!spans || m[2] < m[1]) {
			s.wrong(n.Line, fmt.Sprintf("%s[%d]", key, i), quote(raw)+" is not a status", want)
			continue
		}
		low, _ := strconv.Atoi(m[1]) // digits
		high := low
		if m[2] != "" {
			high, _ = strconv.Atoi(m[2]) // digits
		}
		all = append(all, StatusRange{Low: low, High: high})
	}
	return all, true
}
