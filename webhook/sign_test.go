package webhook_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/signing"
	"github.com/queuehook/queuehook/task"
	"github.com/queuehook/queuehook/webhook"
)

const (
	secretA = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	secretB = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
)

func parseSecrets(t testing.TB, text string) []signing.Secret {
	t.Helper()
	secrets, err := signing.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return secrets
}

func verifier(t testing.TB, secret string) *standardwebhooks.Webhook {
	t.Helper()
	v, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// seen is a request as the receiver got it.
type seen struct {
	header http.Header
	body   []byte
}

// record answers every request with status and passes the request on.
func record(t testing.TB, status func() int) (url string, requests chan seen) {
	t.Helper()
	requests = make(chan seen, 1)
	srv, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		requests <- seen{r.Header, body}
		w.WriteHeader(status())
	})
	return srv.URL, requests
}

func always(status int) func() int { return func() int { return status } }

// TestSignatureIsTheStandards compares a signature with the example in the Standard Webhooks libraries.
func TestSignatureIsTheStandards(t *testing.T) {
	url, requests := record(t, always(204))
	tg := newTarget(t, webhook.Config{
		URL: url, Secrets: parseSecrets(t, secretA), Now: func() time.Time { return time.Unix(1614265330, 999e6) },
	})
	tk := task.From(task.Spec{ID: "msg_p5jXN8AQM9LWM0D4loKWxJek", Payload: []byte(`{"test": 2432232314}`), Context: t.Context()})
	wantReason(t, deliver(t, tg, tk), delivery.OK)
	h := (<-requests).header
	got := []string{h.Get("webhook-id"), h.Get("webhook-timestamp"), h.Get("webhook-signature")}
	want := []string{"msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestSignatureAfterALongBackoff has the receiver fail twice, and verifies the last attempt with the standard's own
// library. Its tolerance is five minutes, so the timestamps of the first attempts would long be too old.
func TestSignatureAfterALongBackoff(t *testing.T) {
	statuses := []int{500, 503, 200}
	var attempt int
	url, requests := record(t, func() int { return statuses[attempt] })
	tg := newTarget(t, webhook.Config{
		URL: url, Secrets: parseSecrets(t, secretA+" "+secretB),
		Now: func() time.Time { return time.Now().Add(-time.Duration(2-attempt) * time.Hour) },
	})
	ids := map[string]bool{}
	for ; attempt < len(statuses); attempt++ {
		own := map[string]string{"Webhook-Id": "forged", "webhook-signature": "v1,forged"}
		_ = deliver(t, tg, newTask("\x00\xffpayload", task.Meta{Attempt: attempt, Headers: own}))
		s := <-requests
		ids[s.header.Get("webhook-id")] = true
		if n := len(s.header.Values("webhook-signature")); n != 1 {
			t.Errorf("%d signature headers", n)
		}
		for _, secret := range []string{secretA, secretB} {
			err := verifier(t, secret).Verify(s.body, s.header)
			if last := attempt == len(statuses)-1; last != (err == nil) || (!last && !errors.Is(err, standardwebhooks.ErrMessageTooOld)) {
				t.Errorf("attempt %d: %v", attempt+1, err)
			}
			if err := verifier(t, secret).VerifyIgnoringTimestamp(s.body, s.header); err != nil {
				t.Errorf("attempt %d: %v", attempt+1, err)
			}
			if err := verifier(t, secret).VerifyIgnoringTimestamp(append(s.body, 'x'), s.header); err == nil {
				t.Error("another payload has the same signature")
			}
		}
	}
	if diff := cmp.Diff(map[string]bool{"01J0TASK": true}, ids); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestIDsWithAFullStopAreNotSigned has an id that says in part when, and what, the signature would be good for as well.
func TestIDsWithAFullStopAreNotSigned(t *testing.T) {
	url, requests := record(t, always(204))
	tk := task.From(task.Spec{ID: `a.1614265330.{"pay":1}`, Payload: []byte(`{"pay":2}`), Context: t.Context()})
	got := deliver(t, newTarget(t, webhook.Config{URL: url, Secrets: parseSecrets(t, secretA)}), tk)
	wantReason(t, got, delivery.Unsendable)
	if len(requests) > 0 {
		t.Errorf("sent with %q", (<-requests).header.Get("webhook-signature"))
	}
	wantReason(t, deliver(t, newTarget(t, webhook.Config{URL: url}), tk), delivery.OK)
	if id := (<-requests).header.Get("dispatch-task-id"); id != tk.ID() {
		t.Errorf("unsigned, its id is %q", id)
	}
}

func TestUnsignedWithoutASecret(t *testing.T) {
	url, requests := record(t, always(204))
	wantReason(t, deliver(t, newTarget(t, webhook.Config{URL: url}), newTask("", task.Meta{})), delivery.OK)
	for name := range (<-requests).header {
		if strings.HasPrefix(name, "Webhook-") {
			t.Errorf("%s is sent", name)
		}
	}
}
