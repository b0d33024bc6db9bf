package admin_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/queuehook/queuehook/admin"
)

func get(h http.Handler, method, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, http.NoBody))
	return w
}

func expect(t *testing.T, h http.Handler, path string, status int, body string) {
	t.Helper()
	w := get(h, "GET", path)
	if w.Code != status || w.Body.String() != body {
		t.Errorf("%s: %d %q, want %d %q", path, w.Code, w.Body, status, body)
	}
	if got := w.Header().Get("Cache-Control"); got != "no-store" {
		t.Errorf("%s: Cache-Control %q", path, got)
	}
}

func TestHealthNamesTheStuckLoops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var loops admin.Loops
		s := admin.New(admin.Config{Loops: &loops, Ready: func(context.Context) error { return errors.New("redis: away") }})
		expect(t, s, "/healthz", 200, "ok\n")

		slow := loops.Watch("sweep orders", time.Minute)
		quick, twin := loops.Watch("lease orders", 10*time.Second), loops.Watch("lease orders", 10*time.Second)
		time.Sleep(10 * time.Second)
		expect(t, s, "/healthz", 200, "ok\n")
		time.Sleep(time.Nanosecond)
		expect(t, s, "/healthz", 503, "stuck: lease orders\n")
		quick.Beat()
		expect(t, s, "/healthz", 503, "stuck: lease orders\n")
		twin.Done()
		expect(t, s, "/healthz", 200, "ok\n")
		time.Sleep(time.Minute)
		expect(t, s, "/healthz", 503, "stuck: lease orders, sweep orders\n")
		slow.Beat()
		quick.Done()
		quick.Beat() // after its end
		expect(t, s, "/healthz", 200, "ok\n")
	})
}

func TestReadySaysWhyNot(t *testing.T) {
	var why error
	s := admin.New(admin.Config{Ready: func(context.Context) error { return why }})
	expect(t, s, "/readyz", 200, "ok\n")
	why = errors.New("redis: dial tcp 127.0.0.1:6379: connection refused")
	expect(t, s, "/readyz", 503, "not ready: redis: dial tcp 127.0.0.1:6379: connection refused\n")
	expect(t, s, "/healthz", 200, "ok\n")

	why = errors.New("two\r\nlines\x1b[31m")
	expect(t, s, "/readyz", 503, "not ready: two  lines [31m\n")
	why = errors.New(strings.Repeat("ü", 500))
	w := get(s, "GET", "/readyz")
	if body := w.Body.String(); len(body) > 210 || !strings.HasSuffix(body, "ü...\n") {
		t.Errorf("a long reason is answered as %q", body)
	}
}

func TestMetricsPage(t *testing.T) {
	registry := prometheus.NewRegistry()
	count := prometheus.NewCounter(prometheus.CounterOpts{Name: "tries_total"})
	broken := prometheus.NewDesc("broken", "", nil, nil)
	registry.MustRegister(count, brokenCollector{broken})
	count.Inc()
	s := admin.New(admin.Config{Metrics: registry, Logger: slog.New(slog.DiscardHandler)})
	if w := get(s, "GET", "/metrics"); w.Code != 200 || !strings.Contains(w.Body.String(), "\ntries_total 1\n") {
		t.Errorf("%d %q, want what can be read in spite of the rest", w.Code, w.Body)
	}
}

type brokenCollector struct{ desc *prometheus.Desc }

func (c brokenCollector) Describe(to chan<- *prometheus.Desc) { to <- c.desc }

func (c brokenCollector) Collect(to chan<- prometheus.Metric) {
	to <- prometheus.NewInvalidMetric(c.desc, errors.New("broken"))
}

func TestNothingElseIsThere(t *testing.T) {
	s := admin.New(admin.Config{})
	for _, path := range []string{"/", "/ui/", "/api/v1/queues", "/healthz/", "/healthz/x", "/debug/pprof/"} {
		if w := get(s, "GET", path); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d, want 404", path, w.Code)
		}
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		if w := get(s, "POST", path); w.Code != http.StatusMethodNotAllowed {
			t.Errorf("POST %s: %d, want 405", path, w.Code)
		}
		if w := get(s, "HEAD", path); w.Code != http.StatusOK {
			t.Errorf("HEAD %s: %d, want 200", path, w.Code)
		}
	}
}

// start runs a server. It returns its address and a function that ends it and returns what Run returned.
func start(t *testing.T, cfg admin.Config) (addr string, stop func() error) {
	t.Helper()
	if cfg.Addr == "" {
		cfg.Addr = "127.0.0.1:0"
	}
	s := admin.New(cfg)
	if err := s.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	stop = func() error {
		cancel()
		err := <-ended
		ended <- err
		return err
	}
	t.Cleanup(func() { _ = stop() })
	return s.Addr().String(), stop
}

func TestAddressInUse(t *testing.T) {
	addr, _ := start(t, admin.Config{})
	s := admin.New(admin.Config{Addr: addr})
	if err := s.Listen(t.Context()); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("Listen: %v, want EADDRINUSE", err)
	}
	if err := s.Run(t.Context()); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("Run: %v, want EADDRINUSE", err)
	}
	if s.Addr() != nil {
		t.Errorf("Addr = %v", s.Addr())
	}
}

func TestRunGivesTheAddressBack(t *testing.T) {
	addr, stop := start(t, admin.Config{})
	if err := admin.Check(t.Context(), addr); err != nil {
		t.Fatal(err)
	}
	if err := stop(); err != nil {
		t.Errorf("Run: %v", err)
	}
	if _, stop := start(t, admin.Config{Addr: addr}); stop() != nil {
		t.Error("the address is not free again")
	}
}

func TestRunCutsOffWhoDoesNotEnd(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	addr, stop := start(t, admin.Config{Ready: func(context.Context) error {
		close(entered)
		<-release
		return nil
	}})
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-entered
	if err := stop(); err != nil { // hangs when nothing bounds it
		t.Errorf("Run: %v", err)
	}
	if rest, err := io.ReadAll(bufio.NewReader(conn)); err == nil && len(rest) > 0 {
		t.Errorf("the client was answered %q", rest)
	}
}

func TestRunTellsThatServingFailed(t *testing.T) {
	s := admin.New(admin.Config{Addr: "127.0.0.1:0"})
	if err := s.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.CloseListener()
	if err := s.Run(t.Context()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Run: %v, want net.ErrClosed", err)
	}
}
