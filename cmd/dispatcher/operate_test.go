package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/queuehook/queuehook/heartbeat"
	"github.com/queuehook/queuehook/internal/redistest"
)

// leaveDead leaves a dead dispatcher behind, which holds this many tasks.
func leaveDead(t *testing.T, rdb *redis.Client, queue string, tasks int) string {
	t.Helper()
	for i := range tasks {
		if err := rdb.LPush(t.Context(), queue, i).Err(); err != nil {
			t.Fatal(err)
		}
	}
	life, _ := leased(t, rdb, queue, 10*time.Millisecond)
	detector, err := heartbeat.NewDetector(rdb, queue)
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; <-time.After(5 * time.Millisecond) {
		ids, err := detector.Detect(t.Context())
		if slices.Contains(ids, life.ID()) {
			return life.ID()
		}
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("dead dispatchers: %q, %v", ids, err)
		}
	}
}

func TestSweepRecoversInOneRun(t *testing.T) {
	s := redistest.Start(t, redistest.Config{})
	rdb := s.Client(t)
	environment(t, s.URL(), "CRASH_LIMIT=1")
	dead := leaveDead(t, rdb, "orders", 3)
	if err := rdb.SAdd(t.Context(), "queuehook:queues", "thumbs").Err(); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(`{"queues":[{"queue":"orders","dead_dispatchers":["%s"],"recovered":0,"buried":3,"left":0,"suspects":[]},`+
		`{"queue":"thumbs","dead_dispatchers":[],"recovered":0,"buried":0,"left":0,"suspects":[]}],"errors":[]}`+"\n", dead)
	if diff := cmp.Diff(want, ok(t, call(t, "sweep", "--grace", "50ms", "--json"))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	environment(t, s.URL(), "CRASH_LIMIT=5")
	leaveDead(t, rdb, "photos", 2)
	want = `QUEUE   DEAD DISPATCHERS  RECOVERED  BURIED  LEFT  SUSPECTS
orders  0                 0          0       0     0
photos  1                 2          0       0     0
`
	got := call(t, "sweep", "photos", "orders", "photos", "--grace", "50ms")
	if diff := cmp.Diff(want, ok(t, got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSweepDoesWhatItCan(t *testing.T) {
	s := redistest.Start(t, redistest.Config{})
	rdb := s.Client(t)
	environment(t, s.URL())
	leaveDead(t, rdb, "orders", 2)
	if err := rdb.Set(t.Context(), "{broken}:ticks", "not ours", 0).Err(); err != nil {
		t.Fatal(err)
	}
	got := call(t, "sweep", "broken", "orders", "--grace", "50ms", "--json")
	if got.code != exitFailure || strings.Count(got.err, "\n") != 1 || !strings.Contains(got.err, "sweep queue broken") ||
		!strings.Contains(got.out, `"recovered":2`) || !strings.Contains(got.out, `"errors":["sweep queue broken`) {
		t.Errorf("%+v", got)
	}
	fails(t, call(t, "sweep", "--grace", "0s"), exitUsage, "--grace 0s: at least 1ms")
	fails(t, call(t, "sweep", "orders:qh:in"), exitUsage, "bad queue name")
}

func TestHealth(t *testing.T) {
	environment(t, "redis://"+nobody(t))
	if out := ok(t, call(t, "health")); out != "" {
		t.Errorf("without an address: %q", out)
	}
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			t.Errorf("asked for %s", r.URL)
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte("stuck: heartbeat\nsecond line"))
	}))
	defer server.Close()
	environment(t, "redis://"+nobody(t), "ADMIN_ADDR="+server.Listener.Addr().String())
	ok(t, call(t, "health"))
	// What a dispatcher that runs does not stumble over must not have its container restarted: it would not start again.
	gone := filepath.Join(t.TempDir(), "gone")
	environment(t, "redis://"+nobody(t), "ADMIN_ADDR="+server.Listener.Addr().String(), "ROUTES_FILE="+gone, "SIGNING_SECRET_FILE="+gone)
	ok(t, call(t, "health"))
	status = http.StatusServiceUnavailable
	fails(t, call(t, "health"), exitFailure, "check health: 503: stuck: heartbeat")
	server.Close()
	fails(t, call(t, "health"), exitFailure, "connection refused")
	fails(t, call(t, "health", "now"), exitUsage, `unexpected argument "now"`)
	environment(t, "redis://"+nobody(t), "ADMIN_ADDR=8080")
	if got := call(t, "health"); got.code != exitUsage || !strings.HasPrefix(got.err, `DISPATCHER_ADMIN_ADDR: "8080" is not an address`) {
		t.Errorf("%+v", got)
	}
}
