package dev

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/queuehook/queuehook/lifecycle"
)

// account writes one line per event, in columns, and counts events. Its methods may be called by many goroutines. What
// cannot be written is lost.
type account struct {
	color  bool
	queues []string
	width  int // of the widest queue name

	mu    sync.Mutex
	out   io.Writer
	tally map[string]tally
}

// tally counts what happened on a queue.
type tally struct{ pushed, delivered, retries int }

func newAccount(out io.Writer, color bool) *account {
	a := &account{out: out, color: color, tally: map[string]tally{}}
	for _, s := range samples() {
		a.queues = append(a.queues, s.queue)
		a.width = max(a.width, len(s.queue))
	}
	return a
}

// event is what a line tells. It decides the colour.
type event string

const (
	pushed    event = "pushed"
	delivered event = "delivered"
	failed    event = "failed"
	throttled event = "throttled"
	dead      event = "dead"
	released  event = "released" // given back when the dispatcher stops
	unsettled event = "unsettled"
	total     event = "total"
	note      event = "note"
	warning   event = "warning"
)

// paint is the ANSI colour (SGR) of an event.
func (e event) paint() string {
	switch e {
	case delivered:
		return "32" // green
	case failed, throttled, warning:
		return "33" // yellow
	case dead, unsettled:
		return "31" // red
	case total:
		return "1" // bold
	default:
		return "2" // faint
	}
}

// line is one line of the account.
type line struct {
	at    time.Time
	queue string
	event event
	task  string
	text  string
}

// A long task id is shown by its end, since the ids of one moment begin alike.
const (
	idWidth = 12
	idEnd   = 8
)

// render puts the columns in line. A line of the process as a whole has no queue, and begins with its text.
func (l line) render(width int, color bool) string {
	what := fmt.Sprintf("%-9s", l.event)
	if color {
		what = "\x1b[" + l.event.paint() + "m" + what + "\x1b[0m"
	}
	at := l.at.Format("15:04:05.000")
	switch {
	case l.queue == "" && l.event == note:
		return at + "  " + printable(l.text) + "\n"
	case l.queue == "":
		return at + "  " + what + "  " + printable(l.text) + "\n"
	}
	id := printable(l.task)
	if runes := []rune(id); len(runes) > idWidth {
		id = ".." + string(runes[len(runes)-idEnd:])
	}
	return fmt.Sprintf("%s  %-*s  %s  %-*s  %s\n", at, width, printable(l.queue), what, idWidth, id, printable(l.text))
}

// printable keeps what others wrote from moving the cursor or forging lines.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// write adds a line, and counts it on its queue.
func (a *account) write(l line, count func(*tally)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.tally[l.queue]
	count(&t)
	a.tally[l.queue] = t
	fmt.Fprint(a.out, l.render(a.width, a.color))
}

func (a *account) pushed(queue, id, text string) {
	a.write(line{at: time.Now(), queue: queue, event: pushed, task: id, text: text}, func(t *tally) { t.pushed++ })
}

func (a *account) note(text string) {
	a.write(line{at: time.Now(), event: note, text: text}, func(*tally) {})
}

// totals writes what has happened so far on each queue, and how much waits there.
func (a *account) totals(depths []lifecycle.Depth) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var block strings.Builder
	for i, d := range depths {
		t := a.tally[a.queues[i]]
		text := fmt.Sprintf("delivered %-4d retries %-4d dead %-4d waiting %-4d in flight %d",
			t.delivered, t.retries, d.Dead, d.Ready+d.Delayed, d.InFlight)
		block.WriteString(line{at: time.Now(), queue: a.queues[i], event: total, text: text}.render(a.width, a.color))
	}
	fmt.Fprint(a.out, block.String())
}

// farewell writes the summary at the end.
func (a *account) farewell(depths []lifecycle.Depth) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var sum tally
	var left int64
	fmt.Fprintf(a.out, "\n  %-*s  %9s %9s %9s %9s %9s\n", a.width, "queue", "pushed", "delivered", "retries", "dead", "left")
	for i, d := range depths {
		t, waits := a.tally[a.queues[i]], d.Ready+d.Delayed+d.InFlight
		fmt.Fprintf(a.out, "  %-*s  %9d %9d %9d %9d %9d\n", a.width, a.queues[i], t.pushed, t.delivered, t.retries, d.Dead, waits)
		sum.delivered += t.delivered
		left += waits
	}
	fmt.Fprintf(a.out, "\nStopped. Tasks delivered: %d; the %d left and the dead letters are gone with this Redis.\n", sum.delivered, left)
}
