package e2e_test

import (
	"strconv"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/queuehook/queuehook/internal/fleet"
	"github.com/queuehook/queuehook/internal/receiver"
	"github.com/queuehook/queuehook/internal/redistest"
)

const (
	oldSecret   = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	newSecret   = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
	otherSecret = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
)

// TestSignatures has the receiver fail twice. Each attempt is signed anew with both of two secrets, and the Standard
// Webhooks project's own library verifies it.
func TestSignatures(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	q := fleet.NewQueue(t, server, receiver.Config{
		KeepBody: 1 << 10,
		Script:   receiver.ByAttempt(receiver.Status(500), receiver.Status(503), receiver.Status(204)),
	})
	secrets := write(t, "secrets", oldSecret+"\n"+newSecret+"\n")
	d := serve(t, server.URL(), routes(route(q, "signing_secrets_file: "+secrets, "retry: {schedule: [1100ms, 2100ms]}")))
	q.Push(t, []byte(`{"n":1}`), []byte("\x00\xff\r\n"), nil)
	q.AwaitDrained(t)
	d.Stop(t)

	signed := map[string]int64{} // by task, when it was signed last
	for _, r := range q.Receiver.Log() {
		at, err := strconv.ParseInt(r.Header.Get("Webhook-Timestamp"), 10, 64)
		if age := r.Arrived.Sub(time.Unix(at, 0)); err != nil || age < 0 || age > 10*time.Second {
			t.Errorf("signed at %q, came at %d", r.Header.Get("Webhook-Timestamp"), r.Arrived.Unix())
		}
		if at <= signed[r.TaskID] {
			t.Errorf("attempt %s was signed at %d, the one before at %d", r.Header.Get(receiver.AttemptHeader), at, signed[r.TaskID])
		}
		signed[r.TaskID] = at
		if id := r.Header.Get("Webhook-Id"); id != r.TaskID {
			t.Errorf("webhook-id %q, want the task's %q at every attempt", id, r.TaskID)
		}
		for secret, good := range map[string]bool{oldSecret: true, newSecret: true, otherSecret: false} {
			verifier, err := standardwebhooks.NewWebhook(secret)
			if err != nil {
				t.Fatal(err)
			}
			if err := verifier.Verify(r.Body, r.Header); (err == nil) != good {
				t.Errorf("attempt %s, verified with %s: %v", r.Header.Get(receiver.AttemptHeader), secret, err)
			}
			if err := verifier.Verify(append(r.Body, 'x'), r.Header); err == nil {
				t.Error("another payload has the same signature")
			}
		}
	}
	if got := q.Receiver.Count(); got != 3*3 || len(signed) != 3 {
		t.Errorf("%d requests of %d tasks, want 9 of 3", got, len(signed))
	}
	q.Law(t)
}
