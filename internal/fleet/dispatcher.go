package fleet

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Server is one running dispatcher.
type Server struct {
	*Process

	admin string // root of its admin server
}

// Settings is the environment that StartDispatcher starts from: short backoffs, a free port for the admin server.
func settings(redisURL, routes string) []string {
	return []string{
		"DISPATCHER_REDIS_URL=" + redisURL, "DISPATCHER_ROUTES=" + routes, "DISPATCHER_ADMIN_ADDR=127.0.0.1:0",
		"DISPATCHER_BACKOFF_BASE=10ms", "DISPATCHER_BACKOFF_CAP=100ms",
	}
}

// StartDispatcher starts a dispatcher for t and returns once it can lease. The entries of env ("TIMEOUT=2s") are set
// with its prefix, those for AWS's SDK as they are, and win over short backoffs.
func StartDispatcher(t testing.TB, redisURL, routes string, env ...string) *Server {
	t.Helper()
	s := Launch(t, redisURL, routes, env...)
	s.AwaitReady(t)
	return s
}

// Launch is StartDispatcher without waiting.
func Launch(t testing.TB, redisURL, routes string, env ...string) *Server {
	t.Helper()
	all := settings(redisURL, routes)
	for _, entry := range env {
		if !strings.HasPrefix(entry, "AWS_") {
			entry = "DISPATCHER_" + entry
		}
		all = append(all, entry) // the last one of a name wins
	}
	return &Server{Process: Start(t, Dispatcher, nil, all)}
}

// AwaitReady returns once the dispatcher can lease.
func (s *Server) AwaitReady(t testing.TB) {
	t.Helper()
	err := poll(Patience, func() error {
		if !s.Alive() {
			return nil
		}
		code, body, err := s.get(t, "/readyz")
		if err == nil && code != http.StatusOK {
			err = fmt.Errorf("%d %s", code, body)
		}
		return err
	})
	if err != nil || !s.Alive() {
		t.Fatalf("dispatcher is not ready: %v\n%s", err, s.Log())
	}
}

// Ready is the status of its readiness, 0 when it does not answer.
func (s *Server) Ready(t testing.TB) int {
	t.Helper()
	code, _, _ := s.get(t, "/readyz")
	return code
}

// Page is a page of its admin server.
func (s *Server) Page(t testing.TB, path string) string {
	t.Helper()
	code, page, err := s.get(t, path)
	if err != nil || code != http.StatusOK {
		t.Fatalf("%s: status %d, %v", path, code, err)
	}
	return page
}

// Metric is the value of a metric, named with its labels as its page shows them.
func (s *Server) Metric(t testing.TB, series string) float64 {
	t.Helper()
	page := s.Page(t, "/metrics")
	for line := range strings.Lines(page) {
		if value, ok := strings.CutPrefix(line, series+" "); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				t.Fatalf("metric %s: %v", series, err)
			}
			return v
		}
	}
	t.Fatalf("no metric %s in:\n%s", series, page)
	return 0
}

// Logged returns the lines of its log with this message.
func (s *Server) Logged(message string) []map[string]any {
	var found []map[string]any
	lines := bufio.NewScanner(strings.NewReader(s.Log()))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line map[string]any
		if json.Unmarshal(lines.Bytes(), &line) == nil && line["msg"] == message {
			found = append(found, line)
		}
	}
	return found
}

var errNoAdmin = errors.New("its admin server does not listen yet")

func (s *Server) get(t testing.TB, path string) (code int, body string, err error) {
	if s.admin == "" {
		lines := s.Logged("admin server listens")
		if len(lines) == 0 {
			return 0, "", errNoAdmin
		}
		s.admin = fmt.Sprintf("http://%v", lines[0]["addr"])
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.admin+path, http.NoBody)
	if err != nil {
		return 0, "", err
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}
