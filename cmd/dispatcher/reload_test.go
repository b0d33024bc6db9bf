package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/queuehook/queuehook/internal/audit"
	"github.com/queuehook/queuehook/internal/receiver"
	"github.com/queuehook/queuehook/internal/redistest"
)

// Routes are changed, added, refused and removed under load; nothing stops and nothing is lost.
func TestRoutesFileIsReloadedUnderLoad(t *testing.T) {
	server := redistest.Start(t, redistest.Config{})
	rdb := server.Client(t)
	before, after := endpointOf(t), endpointOf(t)
	first, second := redistest.Queue(t), redistest.Queue(t)
	path := filepath.Join(t.TempDir(), "routes.yaml")
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(path+".new", []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	hup := func() {
		t.Helper()
		if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	var pushed []string
	push := func(queue string) {
		t.Helper()
		pushed = append(pushed, fmt.Sprintf("task %d", len(pushed)))
		if err := rdb.LPush(t.Context(), queue, pushed[len(pushed)-1]).Err(); err != nil {
			t.Fatal(err)
		}
	}
	reached := func(r *receiver.Server, count int64) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if err := r.WaitCount(ctx, count); err != nil {
			t.Fatalf("%d requests at %s, want %d", r.Count(), r.URL(), count)
		}
	}

	write(fmt.Sprintf("routes: [{queue: %s, url: %s}]", first, before.URL()))
	environment(t, server.URL(), "ROUTES_FILE="+path, "ADMIN_ADDR=127.0.0.1:0", "LOG_FORMAT=text")
	log, stop := serving(t)
	log.await(t, "dispatcher started")
	for range 20 {
		push(first)
	}
	reached(before, 20)

	write(fmt.Sprintf("routes: [{queue: %s, url: %s, timeout: 1h}, {queue: %s, url: %s}]", first, after.URL(), second, before.URL()))
	hup()
	log.await(t, "a timeout of 1h0m0s is above DISPATCHER_SHUTDOWN_GRACE")
	log.await(t, fmt.Sprintf(`"routes file applied" queues="[%s %s]"`, first, second))
	// The old route may still lease until it has closed.
	for after.Count() == 0 && len(pushed) < 10_000 {
		push(first)
	}
	reached(after, 1)
	seen := before.Count()
	push(second)
	reached(before, seen+1)

	write("routes: [{queue: a, url: ftp://nowhere}]")
	hup()
	log.await(t, "routes file refused")
	if page := get(t, adminURL(t, log)+"/readyz"); !strings.HasPrefix(page, "ok; routes file refused") {
		t.Errorf("readiness says %q", page)
	}
	push(second)
	reached(before, seen+2)

	write(fmt.Sprintf("routes: [{queue: %s, url: %s, timeout: 1h}]", first, after.URL()))
	hup()
	log.await(t, `"routes file applied" queues=[`+first+"]")
	if page := get(t, adminURL(t, log)+"/readyz"); page != "ok\n" {
		t.Errorf("readiness says %q", page)
	}
	if code := stop(); code != exitOK {
		t.Errorf("exit %d", code)
	}

	answered := map[string]int{}
	for _, r := range []*receiver.Server{before, after} {
		for _, request := range r.Log() {
			answered[string(request.Body)]++
		}
	}
	left, err := audit.Read(t.Context(), rdb, first)
	if err != nil {
		t.Fatal(err)
	}
	// Tasks that were leased and not begun when it stopped have a body and are no longer in the list.
	for _, payload := range slices.Concat(left.Source, left.Landing, slices.Collect(maps.Values(left.Body))) {
		answered[payload]++
	}
	for _, payload := range pushed {
		if answered[payload] != 1 {
			t.Errorf("%s: %d times answered or waiting", payload, answered[payload])
		}
	}
}

// adminURL is where the log says that the admin server listens.
func adminURL(t *testing.T, log *lines) string {
	t.Helper()
	log.mu.Lock()
	defer log.mu.Unlock()
	found := regexp.MustCompile(`addr=(\S+)`).FindStringSubmatch(log.text)
	if found == nil {
		t.Fatal("no admin address in the log")
	}
	return "http://" + found[1]
}

func endpointOf(t *testing.T) *receiver.Server {
	t.Helper()
	r, err := receiver.Start(receiver.Config{Script: receiver.Always(receiver.Status(http.StatusNoContent)), KeepBody: 100})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func get(t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
