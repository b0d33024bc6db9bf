// Package signing owns the secrets of Standard Webhooks (https://www.standardwebhooks.com): how they are written, and
// what they sign. Which header the signatures go into is package webhook's business.
package signing

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Form is how Parse wants secrets to be written.
const Form = "whsec_ and 24 to 64 bytes in padded base64, several separated by spaces or newlines"

const (
	prefix = "whsec_"
	minKey = 24
	maxKey = 64

	redacted = "(redacted)"
)

// Secret is a symmetric key. It prints, logs and marshals as "(redacted)". The zero Secret is none.
type Secret struct{ key string }

// Parse reads one or more secrets, separated by white space, in the Form that Standard Webhooks asks for. Its error says
// which secret is wrong without showing any of it. It completes a sentence that begins with where the secrets are from.
func Parse(text string) ([]Secret, error) {
	var all []Secret
	for i, word := range strings.Fields(text) {
		encoded, found := strings.CutPrefix(word, prefix)
		if !found {
			return nil, fmt.Errorf("has no %s before secret %d", prefix, i+1)
		}
		key, err := base64.StdEncoding.Strict().DecodeString(encoded)
		switch {
		case err != nil:
			return nil, fmt.Errorf("has a secret %d that is not base64", i+1)
		case len(key) < minKey || len(key) > maxKey:
			return nil, fmt.Errorf("has a secret %d of %d bytes", i+1, len(key))
		}
		all = append(all, Secret{string(key)})
	}
	if len(all) == 0 {
		return nil, errors.New("has no secret")
	}
	return all, nil
}

// Sign returns the signature, version 1, of a message with this id, at this time in seconds since 1970. Whoever knows the
// secret can verify that payload, id and time come from somebody who knows it too.
func (s Secret) Sign(id, timestamp string, payload []byte) string {
	mac := hmac.New(sha256.New, []byte(s.key))
	_, _ = io.WriteString(mac, id+"."+timestamp+".") // a hash takes everything
	_, _ = mac.Write(payload)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// String hides the key.
func (Secret) String() string { return redacted }

// Format hides the key, whatever the verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// MarshalText hides the key from JSON and from logs.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }
