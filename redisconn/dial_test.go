package redisconn_test

import (
	"errors"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/queuehook/queuehook/config"
	"github.com/queuehook/queuehook/internal/redistest"
	"github.com/queuehook/queuehook/redisconn"
)

// However often a client has found the server away, once the server is there the next command is answered.
func TestFirstCommandAfterAnOutage(t *testing.T) {
	t.Parallel()
	for name, secure := range map[string]bool{"tcp": false, "tls": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t, redistest.Config{TLS: secure})
			files := s.ClientFiles()
			conn, err := redisconn.OpenAll(config.Redis{
				URL: config.Secret(s.URL()), CAFile: files.CAFile, CertFile: files.CertFile, KeyFile: files.KeyFile,
			}, 1)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			derived := redisconn.FromClient(s.Client(t))
			defer func() { _ = derived.Close() }()
			clients := map[string]redis.UniversalClient{
				"commands": conn.Commands, "waits": conn.Waits, "beats": conn.Beats,
				"derived waits": derived.Waits, "derived beats": derived.Beats,
			}

			s.Kill(t)
			for name, rdb := range clients {
				for range 1100 { // more than any pool has room for
					if err := rdb.Ping(t.Context()).Err(); !errors.Is(err, syscall.ECONNREFUSED) {
						t.Fatalf("%s without a server: %v, want connection refused", name, err)
					}
				}
			}
			s.Start(t)
			for name, rdb := range clients {
				if err := rdb.Ping(t.Context()).Err(); err != nil {
					t.Errorf("%s: the first command after the outage: %v", name, err)
				}
			}
		})
	}
}
