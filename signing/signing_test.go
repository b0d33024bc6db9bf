package signing_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/queuehook/queuehook/signing"
)

const (
	secretA = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	secretB = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
)

func parse(t *testing.T, text string) []signing.Secret {
	t.Helper()
	all, err := signing.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func of(n int) string { return "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, n)) }

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"":                                     "has no secret",
		" \n":                                  "has no secret",
		"MARKERxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx": "has no whsec_ before secret 1",
		"WHSEC_" + secretA[6:]:                 "has no whsec_ before secret 1",
		of(24) + " whsec_MARKER!":              "has a secret 2 that is not base64",
		secretA + "," + secretB:                "has a secret 1 that is not base64",
		strings.TrimRight(of(25), "="):         "has a secret 1 that is not base64",
		of(25)[:39] + "B==":                    "has a secret 1 that is not base64", // bits that mean nothing are set
		"whsec_":                               "has a secret 1 of 0 bytes",
		of(24) + "\n" + of(23):                 "has a secret 2 of 23 bytes",
		of(65):                                 "has a secret 1 of 65 bytes",
	} {
		if _, err := signing.Parse(text); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
	got := parse(t, "\t"+secretA+"\n"+of(24)+"  "+of(64)+"\n"+secretA)
	if len(got) != 4 || got[0] == got[1] || got[0] != got[3] || got[1] == (signing.Secret{}) {
		t.Errorf("%d secrets, or not those given", len(got))
	}
}

// TestSign compares with the example that the Standard Webhooks libraries share.
func TestSign(t *testing.T) {
	got := parse(t, secretA)[0].Sign("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", []byte(`{"test": 2432232314}`))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestSecretIsHidden(t *testing.T) {
	secrets := parse(t, secretA)
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).InfoContext(t.Context(), "x", "secret", secrets[0], "all", secrets)
	slog.New(slog.NewJSONHandler(&log, nil)).InfoContext(t.Context(), "x", "secret", secrets[0], "all", secrets)
	encoded, err := json.Marshal(secrets)
	if err != nil {
		t.Fatal(err)
	}
	out := log.String() + string(encoded) + secrets[0].String() +
		fmt.Sprintf("%v %+v %#v %s %q %x %d", secrets, secrets, secrets, secrets, secrets, secrets, secrets)
	key, _ := base64.StdEncoding.DecodeString(secretA[6:])
	for _, form := range []string{secretA[6:], string(key), fmt.Sprintf("%x", key), fmt.Sprint(key[0], key[1]), fmt.Sprintf("%#x", key[0])} {
		if strings.Contains(out, form) {
			t.Errorf("%q shows in %s", form, out)
		}
	}
}
