package dev

import (
	"errors"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/queuehook/queuehook/internal/receiver"
	"github.com/queuehook/queuehook/lifecycle"
	"github.com/queuehook/queuehook/redisconn"
)

func TestFirstFreeGoesOnToTheNextPort(t *testing.T) {
	t.Parallel()
	var tried []string
	inUse := errors.New("in use")
	err := firstFree("127.0.0.1:9000", func(addr string) error {
		tried = append(tried, addr)
		if len(tried) < 3 {
			return inUse
		}
		return nil
	})
	want := []string{"127.0.0.1:9000", "127.0.0.1:9001", "127.0.0.1:9002"}
	if diff := cmp.Diff(want, tried); diff != "" || err != nil {
		t.Error(err, diff)
	}
	tried = nil
	err = firstFree("127.0.0.1:65534", func(addr string) error {
		tried = append(tried, addr)
		return inUse
	})
	if !errors.Is(err, inUse) || len(tried) != 2 {
		t.Errorf("error %v after %v, want %v after the last port", err, tried, inUse)
	}
	for _, bad := range []string{"8080", "127.0.0.1:http", "127.0.0.1:70000"} {
		if err := firstFree(bad, func(string) error { return nil }); err == nil {
			t.Errorf("address %q accepted", bad)
		}
	}
}

func TestStageFindsAnAdminPort(t *testing.T) {
	t.Parallel()
	s, err := openStage()
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	taken := s.receiver.Addr() // surely in use
	cfg, err := s.config(t.Context(), taken)
	if err != nil {
		t.Fatal(err)
	}
	host, _, err := net.SplitHostPort(cfg.AdminAddr)
	if err != nil || host != "127.0.0.1" || cfg.AdminAddr == taken {
		t.Errorf("admin address %q (%v), want another port than %s", cfg.AdminAddr, err, taken)
	}
}

// openRedis is a client of a stage's Redis, made as the dispatcher makes its own.
func openRedis(t *testing.T) redis.UniversalClient {
	t.Helper()
	s, err := openStage()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	cfg, err := s.config(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	rdb, err := redisconn.Open(cfg.Redis, redisconn.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rdb.Close() })
	return rdb
}

func TestRedisPassesTheDispatchersCheck(t *testing.T) {
	t.Parallel()
	rdb := openRedis(t)
	if err := redisconn.Check(t.Context(), rdb, "orders"); err != nil {
		t.Error(err)
	}
	if warnings := redisconn.Warnings(t.Context(), rdb); len(warnings) > 0 {
		t.Errorf("warnings: %q", warnings)
	}
}

// TestRedisForgetsInTime: an in-process Redis whose keys never expired would refuse each dedup key for ever.
func TestRedisForgetsInTime(t *testing.T) {
	t.Parallel()
	rdb := openRedis(t)
	queue, err := lifecycle.Open(rdb, orders)
	if err != nil {
		t.Fatal(err)
	}
	once := lifecycle.EnqueueOptions{DedupKey: "once", DedupTTL: 50 * time.Millisecond}
	first, err := queue.Enqueue(t.Context(), nil, once)
	if err != nil {
		t.Fatal(err)
	}
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	late := time.After(30 * time.Second)
	for {
		id, err := queue.Enqueue(t.Context(), nil, once)
		if err != nil {
			t.Fatal(err)
		}
		if id != first {
			return
		}
		select {
		case <-again.C:
		case <-late:
			t.Fatal("the key did not expire")
		}
	}
}

func TestCycleBeginsAnew(t *testing.T) {
	t.Parallel()
	script := cycle(receiver.Status(http.StatusOK), receiver.Status(http.StatusTooManyRequests))
	var got []int
	for range 4 {
		got = append(got, script(receiver.Request{}).Status)
	}
	if diff := cmp.Diff([]int{200, 429, 200, 429}, got); diff != "" {
		t.Error(diff)
	}
}
