package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// answer is what a run tells: on standard output, to whoever invoked the function, and in its log.
type answer struct {
	Queues []swept  `json:"queues"`
	Errors []string `json:"errors"`
}

// swept is one queue after its sweep. The depths are as of after the sweep, 0 when they could not be read; then
// there is an error that says so.
type swept struct {
	Queue       string   `json:"queue"`
	Dead        []string `json:"dead_dispatchers"`
	Recovered   int      `json:"recovered"`
	Buried      int      `json:"buried"`
	Left        int      `json:"left"` // in flight at dead dispatchers: time was up
	Ready       int64    `json:"ready"`
	Delayed     int64    `json:"delayed"`
	InFlight    int64    `json:"in_flight"`
	DeadLetters int64    `json:"dead"`
	OldestReady float64  `json:"oldest_ready_seconds"`
	Live        int64    `json:"live_dispatchers"`
	*legacySwept

	measured bool // the depths are known
	errs     []string
}

// legacySwept is what was taken over from redutil, with JANITOR_LEGACY.
type legacySwept struct {
	Workers []string `json:"legacy_workers"` // dead
	Moved   int      `json:"legacy_recovered"`
}

// collect makes the answer of queues in any order.
func collect(queues []swept) answer {
	slices.SortFunc(queues, func(a, b swept) int { return strings.Compare(a.Queue, b.Queue) })
	a := answer{Queues: queues, Errors: []string{}}
	for i, q := range queues {
		a.Errors = append(a.Errors, q.errs...)
		if q.Dead == nil {
			queues[i].Dead = []string{}
		}
	}
	return a
}

// failed is the answer of a run that got to no queue.
func failed(err error) answer {
	return answer{Queues: []swept{}, Errors: []string{err.Error()}}
}

// err is nil when nothing failed.
func (a answer) err() error {
	if len(a.Errors) == 0 {
		return nil
	}
	return fmt.Errorf("sweep: %s", strings.Join(a.Errors, "; "))
}

// print writes the answer as one line of JSON.
func (a answer) print(w io.Writer) error {
	if err := encode(w, a); err != nil {
		return fmt.Errorf("print answer: %w", err)
	}
	return nil
}

// seconds rounds to what milliseconds can tell.
func seconds(s float64) float64 { return math.Round(s*1000) / 1000 }

// encode writes v as one line of JSON, in which a queue's name reads as it is.
func encode(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
