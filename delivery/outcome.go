package delivery

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// maxDetail bounds Outcome.Detail in bytes, as it is kept with the task.
const maxDetail = 512

// ErrShutdown is the cause with which a stopping dispatcher cancels the attempts that it cuts off.
var ErrShutdown = errors.New("dispatcher is shutting down")

// Outcome is one attempt's end and what it means.
type Outcome struct {
	Reason     Reason
	Settlement Settlement
	Status     int  // HTTP status; 0 when there was no answer
	Charged    bool // counts against max attempts
	Unknown    bool // the receiver may have acted on the task
	// TargetFault says that the attempt speaks against the target rather than against the task: breakers count these.
	TargetFault bool
	// Shared says that another task's outcome already counts for the same failed call: breakers count a call once.
	Shared bool
	// RetryAfter is the least delay that the receiver asked for; 0 when it did not.
	RetryAfter time.Duration
	// Detail is one line for people, at most 512 bytes, without URLs, headers and payload.
	Detail string
	// Log is what a function logged last, at most 4 KiB, to be kept with the task. It may hold anything, so it is never
	// put into our own log.
	Log string
}

// Of is the outcome that a reason stands for when nothing more is known. A Reason that is not in the set counts as Failed.
func Of(r Reason) Outcome {
	w := rowOf(r)
	if w.label == "" {
		return Of(Failed)
	}
	return Outcome{Reason: r, Settlement: w.settlement, Charged: w.charged, Unknown: w.unknown, TargetFault: w.fault}
}

// Error is an outcome as the error that a target returns.
type Error struct{ Outcome }

// Error is the reason, the status if there was one, and the detail.
func (e *Error) Error() string {
	s := e.Reason.String()
	if e.Status != 0 {
		s = fmt.Sprintf("%s %d", s, e.Status)
	}
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	return s
}

// Errorf is the error for a reason with a detail of its own. The detail must hold no URL, header or payload.
func Errorf(r Reason, format string, args ...any) *Error {
	o := Of(r)
	o.Detail = clip(fmt.Sprintf(format, args...))
	return &Error{o}
}

// FromError is the outcome of an attempt whose target returned err: nil is OK, an *Error anywhere in the chain speaks
// for itself, ErrShutdown and a passed deadline are what they say, and any other error is Failed with its text as
// detail.
func FromError(err error) Outcome {
	if err == nil {
		return Of(OK)
	}
	if e, ok := errors.AsType[*Error](err); ok {
		if e == nil {
			return Of(Failed)
		}
		return e.Outcome
	}
	var o Outcome
	switch {
	case errors.Is(err, ErrShutdown):
		return Of(Shutdown)
	case errors.Is(err, context.DeadlineExceeded):
		o = Of(Timeout)
	default:
		o = Of(Failed)
	}
	o.Detail = clip(err.Error())
	return o
}

// clip cuts s to maxDetail bytes of valid UTF-8.
func clip(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= maxDetail {
		return s
	}
	return strings.ToValidUTF8(s[:maxDetail], "")
}
