// Package delivery says what the end of an attempt means for its task: why it ended so, how it is settled, whether it
// counts. It is the only place that knows status codes. It does no I/O and everything in it is a pure function, so that an
// HTTP endpoint, a Lambda function and a Go func are judged by one table.
package delivery

import "fmt"

// Reason is why an attempt, or a task, ended as it did. It is one of a closed set, and its String is the metric label, the
// name in logs and dead letters, and what a receiver reads in Dispatch-Previous-Reason. The zero Reason is none of them.
type Reason int

// The reasons. Each has its row in the table that Of reads.
const (
	OK              Reason = iota + 1
	Redirect               // a 3xx, never followed
	Rejected               // the receiver or the operator said "never again"
	Target                 // the endpoint is not what the route takes it to be: 401, 404, ...
	Throttled              // the receiver asked to wait
	Status                 // any other answer that is no success
	Connect                // refused, unreachable, or connecting took too long
	DNS                    // the name did not resolve
	TLS                    // no handshake, or a certificate that does not hold
	Reset                  // the connection broke after sending began
	StaleConnection        // the same on a kept connection, before any answer: most likely it was closed for being idle
	Timeout                // the attempt's deadline passed
	Shutdown               // this dispatcher stopped
	Unsendable             // the task cannot be put on this wire; nothing was sent
	Exhausted              // its attempts are used up
	Expired                // it is older than its route allows
	Crashed                // dispatchers died with it too often
	BodyMissing            // its payload is gone from Redis
	FunctionError          // a Lambda function ran and failed
	Failed                 // a Go func returned an error, or the task's Fail was called

	endOfReasons
)

// Settlement is how an attempt ends for the task. The zero Settlement is none of them.
type Settlement int

// The settlements. String gives the metric label.
const (
	Complete Settlement = iota + 1 // done, forgotten
	Abandon                        // failed, to be tried again later
	Bury                           // failed for good, into the dead letters
	Release                        // given back; others may lease it at once
)

// String is the metric label, in the past tense.
func (s Settlement) String() string {
	switch s {
	case Complete:
		return "completed"
	case Abandon:
		return "abandoned"
	case Bury:
		return "buried"
	case Release:
		return "released"
	default:
		return fmt.Sprintf("settlement(%d)", int(s))
	}
}

// row is what a reason stands for when nothing more is known of the attempt.
type row struct {
	label      string
	settlement Settlement
	charged    bool // counts against max attempts
	unknown    bool // the receiver may have acted on the task
	fault      bool // speaks against the target rather than against the task
}

// rowOf is the table. Exhausted, Expired, Crashed and BodyMissing are verdicts over a task, not ends of an attempt:
// whether the last attempt was charged is said by that attempt's own outcome.
func rowOf(r Reason) row {
	if r <= 0 || r >= endOfReasons {
		return row{}
	}
	return [endOfReasons]row{
		OK:              {label: "ok", settlement: Complete},
		Redirect:        {label: "redirect", settlement: Abandon, charged: true, fault: true},
		Rejected:        {label: "rejected", settlement: Bury, charged: true},
		Target:          {label: "target", settlement: Abandon, charged: true, fault: true},
		Throttled:       {label: "throttled", settlement: Abandon},
		Status:          {label: "status", settlement: Abandon, charged: true},
		Connect:         {label: "connect", settlement: Abandon, charged: true, fault: true},
		DNS:             {label: "dns", settlement: Abandon, charged: true, fault: true},
		TLS:             {label: "tls", settlement: Abandon, charged: true, fault: true},
		Reset:           {label: "reset", settlement: Abandon, charged: true, unknown: true},
		StaleConnection: {label: "stale_connection", settlement: Abandon, unknown: true},
		Timeout:         {label: "timeout", settlement: Abandon, charged: true, unknown: true, fault: true},
		Shutdown:        {label: "shutdown", settlement: Release, unknown: true},
		Unsendable:      {label: "unsendable", settlement: Bury},
		Exhausted:       {label: "exhausted", settlement: Bury},
		Expired:         {label: "expired", settlement: Bury},
		Crashed:         {label: "crashed", settlement: Bury},
		BodyMissing:     {label: "body_missing", settlement: Bury},
		FunctionError:   {label: "function_error", settlement: Abandon, charged: true},
		Failed:          {label: "failed", settlement: Abandon, charged: true},
	}[r]
}

// String is the metric label.
func (r Reason) String() string {
	if label := rowOf(r).label; label != "" {
		return label
	}
	return fmt.Sprintf("reason(%d)", int(r))
}

// Reasons lists every reason, so that each metric label can be there from the start.
func Reasons() []Reason {
	all := make([]Reason, 0, endOfReasons-1)
	for r := OK; r < endOfReasons; r++ {
		all = append(all, r)
	}
	return all
}

// ParseReason reads what Reason.String wrote.
func ParseReason(label string) (Reason, error) {
	for _, r := range Reasons() {
		if r.String() == label {
			return r, nil
		}
	}
	return 0, fmt.Errorf("parse reason: %q is none", label)
}
