package dev

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/queuehook/queuehook/delivery"
)

// attemptFinished is the dispatcher's one log line per attempt, which tells all that the account needs.
const attemptFinished = "attempt finished"

// logger is where the dispatcher logs to, so that its records become lines of the account.
func (a *account) logger() *slog.Logger { return slog.New(records{account: a}) }

// records is a slog.Handler. Groups are not kept apart: the dispatcher's keys are a flat list.
type records struct {
	account *account
	attrs   []slog.Attr
}

// Enabled lets all through: deliveries that went well are logged at debug.
func (records) Enabled(context.Context, slog.Level) bool { return true }

// WithAttrs is slog.Handler's.
func (h records) WithAttrs(attrs []slog.Attr) slog.Handler {
	return records{account: h.account, attrs: slices.Concat(h.attrs, attrs)}
}

// WithGroup is slog.Handler's.
func (h records) WithGroup(string) slog.Handler { return h }

// Handle writes a line for each attempt, and for whatever else is worth an operator's attention.
func (h records) Handle(_ context.Context, r slog.Record) error {
	attrs := slices.Clone(h.attrs)
	r.Attrs(func(a slog.Attr) bool {
		attrs = append(attrs, a)
		return true
	})
	switch {
	case r.Message == attemptFinished:
		l, count := readAttempt(attrs).line(r.Time)
		h.account.write(l, count)
	case r.Level >= slog.LevelInfo:
		h.account.write(other(r, attrs), func(*tally) {})
	}
	return nil
}

// other is the line of a record that is not of an attempt.
func other(r slog.Record, attrs []slog.Attr) line {
	l := line{at: r.Time, event: note}
	if r.Level >= slog.LevelWarn {
		l.event = warning
	}
	text := []string{r.Message}
	for _, a := range attrs {
		switch a.Key {
		case "queue":
			l.queue = a.Value.String()
		case "task":
			l.task = a.Value.String()
		case "target": // each queue has one, and the banner names it
		default:
			text = append(text, a.Key+"="+a.Value.String())
		}
	}
	l.text = strings.Join(text, " ")
	return l
}

// attempt is what a record tells of an attempt.
type attempt struct {
	queue, task, outcome, reason, detail, fault string

	number, limit, status int64 // limit 0 = none
	took, delay           time.Duration
}

func readAttempt(attrs []slog.Attr) attempt {
	var t attempt
	text := map[string]*string{
		"queue": &t.queue, "task": &t.task, "outcome": &t.outcome, "reason": &t.reason, "detail": &t.detail,
		"error": &t.fault,
	}
	numbers := map[string]*int64{"attempt": &t.number, "max_attempts": &t.limit, "status": &t.status}
	times := map[string]*time.Duration{"duration_ms": &t.took, "delay_ms": &t.delay}
	for _, a := range attrs {
		integer := a.Value.Kind() == slog.KindInt64
		if to, ok := text[a.Key]; ok {
			*to = a.Value.String()
		} else if to, ok := numbers[a.Key]; ok && integer {
			*to = a.Value.Int64()
		} else if to, ok := times[a.Key]; ok && integer {
			*to = time.Duration(a.Value.Int64()) * time.Millisecond
		}
	}
	return t
}

// line is the attempt in words, and how it counts.
func (t attempt) line(at time.Time) (line, func(*tally)) {
	l := line{at: at, queue: t.queue, task: t.task}
	count := func(*tally) {}
	switch {
	case t.fault != "":
		l.event, l.text = unsettled, fmt.Sprintf("%s, %s, but not written down: %s", t.outcome, t.answer(), t.fault)
	case t.outcome == delivery.Complete.String():
		l.event, l.text = delivered, "in "+span(t.took)
		if t.status != 0 {
			l.text = t.answer() + " " + l.text
		}
		if t.number > 1 {
			l.text += ", attempt " + strconv.FormatInt(t.number, 10)
		}
		count = func(n *tally) { n.delivered++ }
	case t.outcome == delivery.Bury.String():
		l.event, l.text = dead, t.verdict()
	case t.outcome == delivery.Release.String():
		l.event, l.text = released, "cut off after "+span(t.took)+", given back"
	case t.charged():
		l.event, l.text = failed, fmt.Sprintf("%s, retry %s in %s", t.answer(), t.next(), span(t.delay))
		count = func(n *tally) { n.retries++ }
	default:
		l.event, l.text = failed, t.answer()+", not counted, again in "+span(t.delay)
		if t.reason == delivery.Throttled.String() {
			l.event = throttled
		}
		count = func(n *tally) { n.retries++ }
	}
	return l, count
}

// answer is the receiver's, or why there is none.
func (t attempt) answer() string {
	switch {
	case t.status != 0:
		return strconv.FormatInt(t.status, 10)
	case t.detail != "":
		return t.reason + " (" + t.detail + ")"
	default:
		return t.reason
	}
}

// verdict says why the task is given up.
func (t attempt) verdict() string {
	if t.reason == delivery.Exhausted.String() {
		text := "after " + strconv.FormatInt(t.number, 10) + " attempts"
		if t.number == 1 {
			text = "after 1 attempt"
		}
		if t.status != 0 {
			text += ", the last answered " + strconv.FormatInt(t.status, 10)
		} else if t.detail != "" {
			text += ": " + t.detail
		}
		return text
	}
	if t.status != 0 {
		return t.reason + ", " + t.answer()
	}
	return t.answer()
}

// next is the number of the attempt to come, of how many.
func (t attempt) next() string {
	n := strconv.FormatInt(t.number+1, 10)
	if t.limit > 0 {
		n += "/" + strconv.FormatInt(t.limit, 10)
	}
	return n
}

// charged says whether the attempt counts against the limit.
func (t attempt) charged() bool {
	reason, err := delivery.ParseReason(t.reason)
	return err != nil || delivery.Of(reason).Charged
}

// span is a duration as people write it.
func span(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return "<1 ms"
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	case d < time.Minute:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	default:
		return d.Round(time.Second).String()
	}
}
