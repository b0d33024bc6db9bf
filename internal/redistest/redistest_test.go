package redistest_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/queuehook/queuehook/internal/redistest"
)

func TestMain(m *testing.M) {
	if kind := os.Getenv(orphanEnv); kind != "" {
		orphan(kind)
	}
	os.Exit(redistest.Main(m))
}

func TestSharedIsOneServer(t *testing.T) {
	t.Parallel()
	a, b := redistest.Shared(t), redistest.Shared(t)
	if a.PID() == 0 || a.PID() != b.PID() {
		t.Errorf("pids %d and %d, want one running server", a.PID(), b.PID())
	}
	if !strings.HasPrefix(a.Addr(), "127.0.0.1:") {
		t.Errorf("address %s, want loopback", a.Addr())
	}
}

func TestQueueNamesDiffer(t *testing.T) {
	t.Parallel()
	t.Run("with {braces}:and colons", func(t *testing.T) {
		t.Parallel()
		a, b := redistest.Queue(t), redistest.Queue(t)
		if a == b {
			t.Errorf("the same name twice: %s", a)
		}
		if strings.ContainsAny(a, "{}: ") {
			t.Errorf("name %q holds characters that mean something in keys", a)
		}
	})
}

func TestURLReachesTheServer(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]redistest.Config{
		"plain":       {},
		"password":    {Password: "s%cr@t:1"},
		"acl user":    {User: "dispatcher", Password: "p@ss:word/1"},
		"unix socket": {UnixSocket: true},
		"unix socket, acl": {
			UnixSocket: true, User: "dispatcher", Password: "secret",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t, cfg)
			o, err := redis.ParseURL(s.URL())
			if err != nil {
				t.Fatalf("parse %s: %v", s.URL(), err)
			}
			o.DisableIdentity = true
			c := redis.NewClient(o)
			defer func() { _ = c.Close() }()
			if err := c.Set(t.Context(), "k", "v", 0).Err(); err != nil {
				t.Errorf("SET through %s: %v", s.URL(), err)
			}
			if got := s.Client(t).Get(t.Context(), "k").Val(); got != "v" {
				t.Errorf("GET through Client = %q, want v", got)
			}
		})
	}
}

func TestACLKeepsOthersOut(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Config{User: "dispatcher", Password: "secret", Rules: "~allowed* +@all -flushall"})

	o := s.Options()
	o.Username, o.Password = "", ""
	anonymous := redis.NewClient(o)
	defer func() { _ = anonymous.Close() }()
	if err := anonymous.Ping(t.Context()).Err(); err == nil || !strings.Contains(err.Error(), "NOAUTH") {
		t.Errorf("anonymous PING = %v, want NOAUTH", err)
	}
	if err := s.Client(t).Set(t.Context(), "other", "v", 0).Err(); err == nil || !strings.Contains(err.Error(), "NOPERM") {
		t.Errorf("SET of a key outside the rules = %v, want NOPERM", err)
	}
	if err := s.Admin(t).FlushAll(t.Context()).Err(); err != nil {
		t.Errorf("FLUSHALL as admin: %v", err)
	}
}

func TestMaxMemoryRefusesWrites(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Config{MaxMemory: 1 << 20})
	err := s.Client(t).Set(t.Context(), "k", strings.Repeat("x", 2<<20), 0).Err()
	if err == nil {
		err = s.Client(t).Set(t.Context(), "k2", "v", 0).Err()
	}
	if err == nil || !strings.Contains(err.Error(), "OOM") {
		t.Errorf("SET on a full server = %v, want OOM", err)
	}
}

func TestDataOverRestart(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		cfg  redistest.Config
		end  func(*redistest.Server, testing.TB)
		want string
	}{
		"append-only, stopped": {redistest.Config{AppendOnly: true}, (*redistest.Server).Stop, "v"},
		"append-only, killed":  {redistest.Config{AppendOnly: true}, (*redistest.Server).Kill, "v"},
		"memory, stopped":      {redistest.Config{}, (*redistest.Server).Stop, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t, tc.cfg)
			c := s.Client(t)
			addr, pid := s.Addr(), s.PID()
			if err := c.Set(t.Context(), "k", "v", 0).Err(); err != nil {
				t.Fatal(err)
			}

			tc.end(s, t)
			if s.PID() != 0 {
				t.Errorf("pid %d after the end, want 0", s.PID())
			}
			if err := c.Ping(t.Context()).Err(); err == nil {
				t.Error("PING answered after the end")
			}

			s.Start(t)
			if s.Addr() != addr || s.PID() == pid || s.PID() == 0 {
				t.Errorf("started again as %s pid %d, want %s and a new pid", s.Addr(), s.PID(), addr)
			}
			if got := c.Get(t.Context(), "k").Val(); got != tc.want {
				t.Errorf("GET after start = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestWrites(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Config{AppendOnly: true})
	c := s.Client(t)
	const script = `redis.call('HDEL', KEYS[1], 'nothing') redis.call('HSET', KEYS[1], 'a', ARGV[1]) redis.call('HDEL', KEYS[1], 'a') return 1`
	binary := "\x00\r\n*3\xff"
	if err := c.Eval(t.Context(), script, []string{"h"}, binary).Err(); err != nil {
		t.Fatal(err)
	}
	s.Kill(t)
	s.Start(t)
	if err := c.Set(t.Context(), "k", "", 0).Err(); err != nil {
		t.Fatal(err)
	}
	var got [][]string
	s.Writes(t, func(command []string) {
		command[0] = strings.ToLower(command[0])
		if command[0] != "select" {
			got = append(got, command)
		}
	})
	want := [][]string{{"multi"}, {"hset", "h", "a", binary}, {"hdel", "h", "a"}, {"exec"}, {"set", "k", ""}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRestart(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Config{})
	pid := s.PID()
	s.Restart(t)
	if s.PID() == pid {
		t.Error("the same process after Restart")
	}
	if err := s.Client(t).Ping(t.Context()).Err(); err != nil {
		t.Errorf("PING after Restart: %v", err)
	}
}

func TestPauseHoldsAnswersBack(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Config{})
	c := s.Client(t)
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	s.Pause(t)
	go func() { answered <- c.Ping(context.WithoutCancel(t.Context())).Err() }()
	select {
	case err := <-answered:
		t.Errorf("PING on a paused server answered: %v", err)
	case <-time.After(100 * time.Millisecond): // proves nothing when slow, fails when broken
	}
	s.Continue(t)
	if err := <-answered; err != nil {
		t.Errorf("PING after Continue: %v", err)
	}

	s.Pause(t)
	s.Stop(t) // must not wait for ever
}

func TestMini(t *testing.T) {
	t.Parallel()
	a, b := redistest.Mini(t), redistest.Mini(t)
	if err := a.LPush(t.Context(), "q", "x").Err(); err != nil {
		t.Fatal(err)
	}
	if n := b.LLen(t.Context(), "q").Val(); n != 0 {
		t.Errorf("a second Mini holds %d tasks of the first", n)
	}
}
