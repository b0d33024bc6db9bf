package task

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// TimeFormat is how times are shown to receivers and to people: RFC 3339, in UTC, with the milliseconds that Redis keeps.
const TimeFormat = "2006-01-02T15:04:05.000Z07:00"

// Bounds of what is kept with a task, so that one which fails for ever does not grow for ever.
const (
	maxHistory      = 10
	maxError        = 512 // bytes of LastError
	maxHistoryError = 128 // bytes of each error in History
	maxLog          = 4 << 10
)

// Meta is what is kept with a task between attempts, as JSON that Lua never looks into. Times are the Redis server's,
// in ms since 1970.
type Meta struct {
	Attempt       int               `json:"attempt,omitempty"`   // charged attempts so far
	Throttles     int               `json:"throttles,omitempty"` // uncharged ones, since the receiver asked to wait
	EnqueuedAt    int64             `json:"enqueued_at,omitempty"`
	FirstDueAt    int64             `json:"first_due_at,omitempty"`
	LastAttemptAt int64             `json:"last_attempt_at,omitempty"`
	LastStatus    int               `json:"last_status,omitempty"`
	LastReason    string            `json:"last_reason,omitempty"`
	LastError     string            `json:"last_error,omitempty"`
	LastLog       string            `json:"last_log,omitempty"`
	Redelivered   bool              `json:"redelivered,omitempty"`
	Headers       map[string]string `json:"headers,omitempty"`
	ContentType   string            `json:"content_type,omitempty"`
	MaxAttempts   int               `json:"max_attempts,omitempty"` // 0: the route's
	TraceParent   string            `json:"traceparent,omitempty"`
	TraceState    string            `json:"tracestate,omitempty"`
	History       []Attempt         `json:"history,omitempty"` // the last ones, oldest first
}

// Attempt is one line of a task's history.
type Attempt struct {
	At      int64  `json:"at"`
	Attempt int    `json:"attempt"`
	Status  int    `json:"status,omitempty"`
	Reason  string `json:"reason"`
	Error   string `json:"error,omitempty"`
}

// Result is how one attempt ended.
type Result struct {
	At        time.Time // server time of its end
	Status    int       // HTTP status; 0 when there was none
	Reason    string    // a delivery.Reason's label
	Error     string    // one line, without URLs, headers and payload
	Log       string    // the end of what a function logged, at most 4 KiB are kept
	Charged   bool      // counts against max attempts
	Throttled bool      // the receiver asked to wait
	Unknown   bool      // the receiver may have acted on the task
}

// Encode returns the metadata as it is stored.
func (m Meta) Encode() ([]byte, error) { return json.Marshal(m) }

// DecodeMeta reads what Encode wrote. No bytes are the metadata of a task that never failed. Together with an error it
// returns the zero Meta, never a part of it.
func DecodeMeta(b []byte) (Meta, error) {
	if len(b) == 0 {
		return Meta{}, nil
	}
	var m Meta
	if err := json.Unmarshal(b, &m); err != nil {
		return Meta{}, err
	}
	return m, nil
}

// Redriven is the metadata of a dead task that starts anew at now: attempts and age begin again, its history stays. With
// unknown the outcome of its last attempt is not known.
func (m Meta) Redriven(now time.Time, unknown bool) Meta {
	m.Attempt, m.Throttles = 0, 0
	m.FirstDueAt = now.UnixMilli()
	m.Redelivered = m.Redelivered || unknown
	return m
}

// after is the metadata when attempt number n has ended with r.
func (m Meta) after(n int, redelivered bool, r Result) Meta {
	if r.Charged {
		m.Attempt++
	}
	if r.Throttled {
		m.Throttles++
	}
	m.LastAttemptAt = r.At.UnixMilli()
	m.LastStatus = r.Status
	m.LastReason = r.Reason
	m.LastError = clip(r.Error, maxError)
	m.LastLog = clip(r.Log, maxLog)
	m.Redelivered = redelivered || r.Unknown
	m.History = append(slices.Clone(m.History), Attempt{
		At: m.LastAttemptAt, Attempt: n, Status: r.Status, Reason: r.Reason, Error: clip(r.Error, maxHistoryError),
	})
	m.History = m.History[max(0, len(m.History)-maxHistory):]
	return m
}

// clip cuts s to at most n bytes of valid UTF-8.
func clip(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}
