package awslambda

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/task"
)

// maxContext bounds a ClientContext in bytes of base64.
const maxContext = 3583

// envelope is the input of PayloadEnvelope.
type envelope struct {
	TaskID       string            `json:"task_id"`
	Queue        string            `json:"queue"`
	Attempt      int               `json:"attempt"`
	MaxAttempts  int               `json:"max_attempts,omitempty"`
	EnqueuedAt   string            `json:"enqueued_at,omitempty"`
	Redelivered  bool              `json:"redelivered,omitempty"`
	Headers      map[string]string `json:"headers"`
	Body         string            `json:"body"`
	BodyEncoding string            `json:"body_encoding"`
}

// input is t as the input of a call of its own. Its error is a *delivery.Error that says why it can't be sent.
func (tg *Target) input(t *task.Task) ([]byte, error) {
	payload := t.Bytes()
	if tg.cfg.Payload == PayloadEnvelope {
		e := tg.about(t)
		e.Body, e.BodyEncoding = string(payload), "utf8"
		if !utf8.Valid(payload) {
			e.Body, e.BodyEncoding = base64.StdEncoding.EncodeToString(payload), "base64"
		}
		payload = encode(e)
	} else if !utf8.Valid(payload) || !json.Valid(payload) {
		return nil, delivery.Errorf(delivery.Unsendable, "the payload is not JSON, which Lambda demands")
	}
	if limit := tg.cfg.limit(); len(payload) > limit {
		return nil, tooLarge(len(payload), limit)
	}
	return payload, nil
}

func tooLarge(size, limit int) error {
	return delivery.Errorf(delivery.Unsendable, "the input has %d bytes, Lambda takes %d", size, limit)
}

// about is what is said about t beside its payload.
func (tg *Target) about(t *task.Task) envelope {
	meta := t.Meta()
	e := envelope{
		TaskID: t.ID(), Queue: t.Queue(), Attempt: t.Attempt(), Redelivered: t.Redelivered(), Headers: meta.AllHeaders(),
		MaxAttempts: cmp.Or(meta.MaxAttempts, tg.cfg.MaxAttempts),
	}
	if meta.EnqueuedAt > 0 {
		e.EnqueuedAt = time.UnixMilli(meta.EnqueuedAt).UTC().Format(task.TimeFormat)
	}
	return e
}

// clientContext tells the same as the envelope, beside the payload. All its values are text, since runtimes (Go's, for
// one) refuse any other. Headers that have no room are left out, and so is everything where even the rest has none.
func (tg *Target) clientContext(t *task.Task) string {
	about := tg.about(t)
	custom := map[string]string{"task_id": about.TaskID, "queue": about.Queue, "attempt": strconv.Itoa(about.Attempt)}
	if about.MaxAttempts > 0 {
		custom["max_attempts"] = strconv.Itoa(about.MaxAttempts)
	}
	if about.EnqueuedAt != "" {
		custom["enqueued_at"] = about.EnqueuedAt
	}
	if about.Redelivered {
		custom["redelivered"] = "true"
	}
	fits := func() string {
		text := base64.StdEncoding.EncodeToString(encode(map[string]any{"custom": custom}))
		if len(text) > maxContext {
			return ""
		}
		return text
	}
	bare := fits()
	custom["headers"] = string(encode(about.Headers))
	return cmp.Or(fits(), bare)
}

// encode writes v as JSON without the escapes that only HTML needs: they would cost six bytes for one.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err)) // text and numbers only: there is nothing that can fail
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
