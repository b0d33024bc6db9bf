package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/queuehook/queuehook/internal/sweepanswer"
)

// answer is what a run reports: on standard output, to whoever invoked the function, and in its log.
type answer struct {
	Queues []swept  `json:"queues"`
	Errors []string `json:"errors"`
}

// swept is one queue after its sweep. The depths are as of after the sweep, 0 when they could not be read; then
// there is an error that says so.
type swept struct {
	sweepanswer.Queue

	Ready       int64   `json:"ready"`
	Delayed     int64   `json:"delayed"`
	InFlight    int64   `json:"in_flight"`
	DeadLetters int64   `json:"dead"`
	OldestReady float64 `json:"oldest_ready_seconds"`
	Live        int64   `json:"live_dispatchers"`
	*sweepanswer.Legacy

	measured bool // the depths are known
	errs     []string
}

// collect makes the answer of queues in any order.
func collect(queues []swept) answer {
	slices.SortFunc(queues, func(a, b swept) int { return strings.Compare(a.Name, b.Name) })
	a := answer{Queues: queues, Errors: []string{}}
	for _, q := range queues {
		a.Errors = append(a.Errors, q.errs...)
	}
	return a
}

// failed is the answer of a run that did not get to any queue.
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
