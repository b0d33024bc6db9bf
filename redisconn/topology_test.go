package redisconn_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/queuehook/queuehook/config"
	"github.com/queuehook/queuehook/internal/redistest"
	"github.com/queuehook/queuehook/redisconn"
)

func TestCluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	cfg := config.Redis{URL: config.Secret(cluster.URL()), Cluster: true}
	if err := check(t, cfg); err != nil {
		t.Errorf("Check: %v", err)
	}
	for _, node := range cluster.Nodes {
		if n := node.Admin(t).DBSize(t.Context()).Val(); n != 0 {
			t.Errorf("Check left %d keys", n)
		}
	}
	serves(t, cfg)
	if err := check(t, at("redis://"+cluster.Addrs()[0])); !errors.Is(err, redisconn.ErrKind) {
		t.Errorf("without cluster mode: %v, want ErrKind", err)
	}
	conn := redisconn.FromClient(cluster.Client(t))
	answers(t, conn)
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}

func TestSentinel(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t)
	cfg := at(s.URL())
	if err := check(t, cfg); err != nil {
		t.Errorf("Check: %v", err)
	}
	if err := check(t, at("redis://"+s.Addrs()[0])); !errors.Is(err, redisconn.ErrKind) {
		t.Errorf("a Sentinel without master_name: %v, want ErrKind", err)
	}
	other := at(strings.Replace(s.URL(), "master_name="+redistest.MasterName, "master_name=nobody", 1))
	if err := check(t, other); !errors.Is(err, redisconn.ErrUnreachable) {
		t.Errorf("a primary that no Sentinel knows: %v, want ErrUnreachable", err)
	}

	conn, err := redisconn.OpenAll(cfg, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	derived := redisconn.FromClient(s.Client(t))
	defer func() { _ = derived.Close() }()
	answers(t, conn)
	answers(t, derived)
	s.KillPrimary(t)
	for name, rdb := range map[string]redis.UniversalClient{
		"commands": conn.Commands, "waits": conn.Waits, "beats": conn.Beats,
		"derived waits": derived.Waits, "derived beats": derived.Beats,
	} {
		for deadline := time.Now().Add(20 * time.Second); ; <-time.After(20 * time.Millisecond) {
			err := rdb.Set(t.Context(), "k", name, 0).Err()
			if err == nil {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s after the failover: %v", name, err)
			}
		}
	}
}

// serves opens all clients and has each answer.
func serves(t *testing.T, cfg config.Redis) {
	t.Helper()
	conn, err := redisconn.OpenAll(cfg, 1)
	if err != nil {
		t.Fatal(err)
	}
	answers(t, conn)
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	if err := conn.Commands.Ping(t.Context()).Err(); !errors.Is(err, redis.ErrClosed) {
		t.Errorf("Ping after Close = %v", err)
	}
}

func answers(t *testing.T, conn redisconn.Conn) {
	t.Helper()
	for name, rdb := range map[string]redis.UniversalClient{
		"commands": conn.Commands, "waits": conn.Waits, "beats": conn.Beats,
	} {
		if err := rdb.Get(t.Context(), "none").Err(); !errors.Is(err, redis.Nil) {
			t.Errorf("%s: %v, want an answer", name, err)
		}
	}
}
