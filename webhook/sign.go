package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	secretPrefix = "whsec_"
	// minSecret is the least length of a key in bytes, as Standard Webhooks asks.
	minSecret = 24
	redacted  = "(redacted)"
)

// Secret is a symmetric signing key of Standard Webhooks. It prints, logs and marshals as "(redacted)".
type Secret struct{ key []byte }

// Format hides the key, whatever the verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// MarshalText hides the key from JSON and from logs.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// ParseSecrets reads one or more secrets, parted by white space, as Standard Webhooks writes them: whsec_ and the key
// in base64, at least 24 bytes. Its errors tell which of them is wrong, never its text.
func ParseSecrets(text string) ([]Secret, error) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return nil, errors.New("there is no signing secret")
	}
	secrets := make([]Secret, len(words))
	for i, word := range words {
		encoded, ok := strings.CutPrefix(word, secretPrefix)
		key, err := base64.StdEncoding.DecodeString(encoded)
		var wrong string
		switch {
		case !ok:
			wrong = "does not begin with " + secretPrefix
		case err != nil:
			wrong = "is not base64 after " + secretPrefix
		case len(key) < minSecret:
			wrong = fmt.Sprintf("is shorter than %d bytes", minSecret)
		}
		if wrong != "" {
			return nil, fmt.Errorf("signing secret %d of %d %s", i+1, len(words), wrong)
		}
		secrets[i] = Secret{key}
	}
	return secrets, nil
}

// sign adds the three headers of Standard Webhooks, version 1: a receiver that knows any of the secrets can tell that
// the payload, this task's id and the time of this attempt come from one who knows it too.
func sign(h http.Header, secrets []Secret, id string, at time.Time, payload []byte) {
	timestamp := strconv.FormatInt(at.Unix(), 10)
	signatures := make([]string, len(secrets))
	for i, s := range secrets {
		mac := hmac.New(sha256.New, s.key)
		_, _ = io.WriteString(mac, id+"."+timestamp+".")
		_, _ = mac.Write(payload)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	h.Set("Webhook-Id", id)
	h.Set("Webhook-Timestamp", timestamp)
	h.Set("Webhook-Signature", strings.Join(signatures, " "))
}
