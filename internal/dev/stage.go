package dev

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strconv"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"

	"github.com/queuehook/queuehook/config"
	"github.com/queuehook/queuehook/internal/receiver"
)

// Where Redis and the receiver listen, or at the next free port: the same after a restart, most often, and out of the
// way of a Redis that is meant to stay.
const (
	redisAddr    = "127.0.0.1:6399"
	receiverAddr = "127.0.0.1:8090"
	portsTried   = 50
	// requestsKept bounds the receiver's memory: nobody reads its log here.
	requestsKept = 16
)

// stage is the world around the dispatcher.
type stage struct {
	redis    *miniredis.Miniredis
	receiver *receiver.Server
}

func openStage() (*stage, error) {
	s := &stage{redis: miniredis.NewMiniRedis()}
	s.redis.ClockTTL(true) // else keys with a time to live would stay for ever
	if err := firstFree(redisAddr, s.redis.StartAddr); err != nil {
		return nil, fmt.Errorf("start Redis: %w", err)
	}
	s.redis.Server().SetPreHook(hello)
	if err := firstFree(receiverAddr, func(addr string) (err error) {
		s.receiver, err = receiver.Start(receiver.Config{Script: script(), LogLimit: requestsKept, Addr: addr})
		return err
	}); err != nil {
		s.redis.Close()
		return nil, fmt.Errorf("start receiver: %w", err)
	}
	return s, nil
}

// hello answers a HELLO without a version, by which a dispatcher asks what it is connected to. Miniredis takes it for a
// mistake.
func hello(c *server.Peer, cmd string, args ...string) (answered bool) {
	if cmd != "HELLO" || len(args) > 0 {
		return false
	}
	about := [...]string{"server", "miniredis", "mode", "standalone", "role", "master"}
	c.WriteLen(len(about))
	for _, text := range about {
		c.WriteBulk(text)
	}
	return true
}

func (s *stage) close() {
	s.receiver.Close()
	s.redis.Close()
}

// config is what an operator would write into the environment, with a hurried retry so that a reader sees whole lives
// of tasks within seconds.
func (s *stage) config(ctx context.Context, adminAddr string) (config.Dispatcher, error) {
	cfg := config.Dispatcher{
		Redis:       config.Redis{URL: config.Secret("redis://" + s.redis.Addr() + "/0")},
		Concurrency: 8,
		Timeout:     10 * time.Second,
		Retry: config.Retry{
			MaxAttempts: 3, MaxAge: time.Hour, BackoffBase: time.Second, BackoffCap: 10 * time.Second,
			MaxRetryAfter: time.Minute,
		},
		CrashLimit:        5,
		HeartbeatInterval: 5 * time.Second,
		Janitor:           true,
		ShutdownGrace:     5 * time.Second,
		Log:               config.Log{Level: slog.LevelDebug, Format: config.LogText},
	}
	for _, sample := range samples() {
		target := config.Target{URL: &url.URL{Scheme: "http", Host: s.receiver.Addr(), Path: sample.path()}}
		cfg.Routes = append(cfg.Routes, cfg.NewRoute(sample.queue, target))
	}
	// The dispatcher listens for itself, so this one lets go of the port that it found.
	err := firstFree(adminAddr, func(addr string) error {
		var lc net.ListenConfig
		l, err := lc.Listen(ctx, "tcp", addr)
		if err != nil {
			return err
		}
		cfg.AdminAddr = l.Addr().String()
		return l.Close()
	})
	if err != nil {
		return config.Dispatcher{}, fmt.Errorf("find an admin address: %w", err)
	}
	return cfg, nil
}

// firstFree calls listen with the address, then with the ports above it, until one is taken. Its error is the first.
func firstFree(addr string, listen func(addr string) error) error {
	host, service, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	port, err := strconv.ParseUint(service, 10, 16)
	if err != nil {
		return fmt.Errorf("address %s: %q is no port number", addr, service)
	}
	var first error
	for next := port; next < port+portsTried && next <= 65535; next++ {
		err := listen(net.JoinHostPort(host, strconv.FormatUint(next, 10)))
		if err == nil {
			return nil
		}
		if first == nil {
			first = err
		}
	}
	return first
}
