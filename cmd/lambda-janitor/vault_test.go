package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/queuehook/queuehook/internal/redistest"
)

const secretARN = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:redis-AbCdEf"

// secretsManager is AWS's side of
// https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_GetSecretValue.html.
type secretsManager struct {
	url string

	mu     sync.Mutex
	status int
	answer map[string]any
	asked  []string // the requests' bodies
}

func newSecretsManager(t *testing.T) *secretsManager {
	t.Helper()
	m := &secretsManager{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body json.RawMessage
		err := json.NewDecoder(r.Body).Decode(&body)
		signed := r.Header.Get("Authorization")
		if err != nil || r.Header.Get("X-Amz-Target") != "secretsmanager.GetSecretValue" ||
			!strings.Contains(signed, "AKIDEXAMPLE/") || !strings.Contains(signed, "/eu-west-1/secretsmanager/") {
			t.Errorf("request %q, signed %q: %v", r.Header, signed, err)
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.asked = append(m.asked, string(body))
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		w.WriteHeader(m.status)
		_ = json.NewEncoder(w).Encode(m.answer)
	}))
	t.Cleanup(server.Close)
	m.url = server.URL
	m.holds("")
	return m
}

// holds makes this text the secret from now on.
func (m *secretsManager) holds(text string) {
	m.answers(http.StatusOK, map[string]any{"ARN": secretARN, "Name": "redis", "SecretString": text})
}

func (m *secretsManager) answers(status int, answer map[string]any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.status, m.answer, m.asked = status, answer, nil
}

func (m *secretsManager) requests() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asked
}

// settings are the environment that Lambda and the function's configuration give.
func (m *secretsManager) settings(arn string) []string {
	return []string{
		"JANITOR_REDIS_PASSWORD_SECRET_ARN=" + arn, "AWS_ENDPOINT_URL_SECRETS_MANAGER=" + m.url,
		"AWS_ACCESS_KEY_ID=AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY=secret", "AWS_EC2_METADATA_DISABLED=true",
		"AWS_REGION=us-east-1", // the secret's is another
	}
}

func (m *secretsManager) setenv(t *testing.T, arn string) {
	t.Helper()
	for _, setting := range m.settings(arn) {
		name, value, _ := strings.Cut(setting, "=")
		t.Setenv(name, value)
	}
}

// withoutPassword is the URL, without password, of a server that wants one.
func withoutPassword(s *redistest.Server) string { return "redis://" + s.Addr() }

func TestPasswordSecret(t *testing.T) {
	s := redistest.Start(t, redistest.Config{Password: "hunter2"})
	leaveDead(t, s.Client(t), "orders", 3)
	m := newSecretsManager(t)
	for suffix, c := range map[string]struct{ secret, asked string }{
		"":                             {"hunter2", `{"SecretId":"` + secretARN + `"}`},
		":password::":                  {`{"username":"x","password":"hunter2"}`, `{"SecretId":"` + secretARN + `"}`},
		"::AWSPREVIOUS:":               {"hunter2", `{"SecretId":"` + secretARN + `","VersionStage":"AWSPREVIOUS"}`},
		":password::01234567890123456": {`{"password":"hunter2"}`, `{"SecretId":"` + secretARN + `","VersionId":"01234567890123456"}`},
	} {
		environment(t, withoutPassword(s))
		m.setenv(t, secretARN+suffix)
		m.holds(c.secret)
		code, a, stderr := call(t)
		if code != exitOK || len(a.Queues) != 1 || a.Queues[0].Ready != 3 {
			t.Errorf("%q: exit %d, answer %+v: %s", suffix, code, a, stderr)
		}
		if asked := m.requests(); len(asked) != 1 || asked[0] != c.asked {
			t.Errorf("%q: asked %q, want %s", suffix, asked, c.asked)
		}
	}
}

func TestPasswordSecretThatCannotBeRead(t *testing.T) {
	s := redistest.Start(t, redistest.Config{Password: "hunter2"})
	m := newSecretsManager(t)
	text := func(secret string) map[string]any { return map[string]any{"SecretString": secret} }
	fault := func(code, message string) map[string]any { return map[string]any{"__type": code, "Message": message} }
	for name, c := range map[string]struct {
		suffix string
		status int
		answer map[string]any
		want   string
	}{
		"denied":      {status: http.StatusBadRequest, answer: fault("AccessDeniedException", "User: arn:aws:sts::1:x is not authorized"), want: "access denied"},
		"not there":   {status: http.StatusBadRequest, answer: fault("ResourceNotFoundException", "can't find it"), want: "ResourceNotFoundException: can't find it"},
		"binary":      {status: http.StatusOK, answer: map[string]any{"SecretBinary": "aHVudGVyMg=="}, want: "no text"},
		"an object":   {status: http.StatusOK, answer: text(`{"password":"hunter2"}`), want: ":password::"},
		"no object":   {suffix: ":password::", status: http.StatusOK, answer: text("hunter2"), want: "no JSON object"},
		"another key": {suffix: ":password::", status: http.StatusOK, answer: text(`{"secret":"hunter2"}`), want: "under the key"},
		"no text":     {suffix: ":password::", status: http.StatusOK, answer: text(`{"password":2}`), want: "under the key"},
		"wrong":       {status: http.StatusOK, answer: text("hunter3"), want: "Redis refuses"},
	} {
		t.Run(name, func(t *testing.T) {
			environment(t, withoutPassword(s))
			m.setenv(t, secretARN+c.suffix)
			m.answers(c.status, c.answer)
			code, a, stderr := call(t)
			if code != exitFailure || len(a.Errors) != 1 || !strings.Contains(a.Errors[0], c.want) {
				t.Errorf("exit %d, errors %q; want %s", code, a.Errors, c.want)
			}
			if name != "wrong" && !strings.Contains(a.Errors[0], "read secret "+secretARN+": ") {
				t.Errorf("%q does not name the secret", a.Errors)
			}
			if strings.Contains(stderr+a.Errors[0], "hunter") {
				t.Errorf("the secret was told: %s", stderr)
			}
			if n := len(m.requests()); n != 1 {
				t.Errorf("%d requests, want 1", n)
			}
		})
	}
	t.Run("unreachable", func(t *testing.T) {
		environment(t, withoutPassword(s))
		m.setenv(t, secretARN)
		t.Setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", "http://"+freeAddr(t))
		t.Setenv("AWS_MAX_ATTEMPTS", "1")
		if code, a, _ := call(t); code != exitFailure || len(a.Errors) != 1 || !strings.Contains(a.Errors[0], "its service can't be reached") {
			t.Errorf("exit %d, errors %q", code, a.Errors)
		}
	})
}

// A function reads the secret at its cold start, keeps it, and reads it again when the password was rotated.
func TestEmulatedPasswordIsRotated(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Config{Password: "hunter2"})
	leaveDead(t, s.Client(t), "orders", 3)
	m := newSecretsManager(t)
	m.holds("hunter2")
	e := emulate(t, time.Minute, append(m.settings(secretARN), "JANITOR_REDIS_URL="+withoutPassword(s))...)
	for i := range 2 {
		if a := decode(t, []byte(e.invoke(t, scheduled))); len(a.Errors) > 0 || a.Queues[0].Ready != 3 {
			t.Errorf("call %d: %+v", i, a)
		}
		if n := len(m.requests()); n != 1 {
			t.Errorf("call %d: %d requests, want one in all", i, n)
		}
	}

	if err := s.Admin(t).ConfigSet(t.Context(), "requirepass", "hunter3").Err(); err != nil {
		t.Fatal(err)
	}
	if body := e.invoke(t, scheduled); !strings.Contains(body, "Redis refuses") { // the secret is not there yet
		t.Errorf("answer %s, want the password refused", body)
	}
	m.holds("hunter3")
	for i := range 2 {
		if a := decode(t, []byte(e.invoke(t, scheduled))); len(a.Errors) > 0 || a.Queues[0].Ready != 3 {
			t.Errorf("rotated, call %d: %+v", i, a)
		}
		if n := len(m.requests()); n != 1 {
			t.Errorf("rotated, call %d: %d requests, want one in all", i, n)
		}
	}
	if strings.Contains(e.log.String(), "hunter") {
		t.Error("the password was told")
	}
}
