package webhook

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/signing"
)

// sign adds the three headers of Standard Webhooks, version 1: a receiver that knows any of the secrets can tell that
// the payload, this task's id and the time of this attempt come from one who knows it too. Full stops part the three in
// what is signed, so that the standard allows none in an id: its signature would hold for another time and payload, too.
func sign(h http.Header, secrets []signing.Secret, id string, at time.Time, payload []byte) error {
	if strings.Contains(id, ".") {
		return delivery.Errorf(delivery.Unsendable, "an id with a full stop cannot be signed")
	}
	timestamp := strconv.FormatInt(at.Unix(), 10)
	signatures := make([]string, len(secrets))
	for i, s := range secrets {
		signatures[i] = s.Sign(id, timestamp, payload)
	}
	h.Set("Webhook-Id", id)
	h.Set("Webhook-Timestamp", timestamp)
	h.Set("Webhook-Signature", strings.Join(signatures, " "))
	return nil
}
