package redistest

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/queuehook/queuehook/internal/child"
)

const (
	patience  = 20 * time.Second      // for a server to answer, and for a polite stop
	pollEvery = 10 * time.Millisecond // between two looks at a server
	adminUser = "redistest-admin"     // exists on every server, with a random password
)

// Server is one redis-server. Its methods may be called from several goroutines, except that those taking a
// testing.TB end the test by FailNow and so belong to the test's own goroutine.
type Server struct {
	cfg           Config
	binary        string
	dir           string
	port          int
	busPort       int // of a cluster node
	adminPassword string
	files         tlsFiles

	mu   sync.Mutex
	proc *child.Process // nil when stopped
}

// Start runs a server of its own for t and returns once it answers. It ends with t, its files too.
func Start(t testing.TB, cfg Config) *Server {
	t.Helper()
	s, err := launch(cfg)
	if err != nil {
		t.Fatalf("start redis-server: %v", err)
	}
	t.Cleanup(s.discard)
	return s
}

// launch runs a server that the caller must discard.
func launch(cfg Config) (*Server, error) {
	binary, err := lookPath("redis-server")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "redistest-")
	if err != nil {
		return nil, fmt.Errorf("make directory: %w", err)
	}
	s := &Server{cfg: cfg, binary: binary, dir: dir, adminPassword: rand.Text()}
	if cfg.TLS {
		err = s.secure()
	}
	for try := 0; err == nil && try < 10; try++ {
		if err = s.configure(); err != nil {
			break
		}
		if err = s.start(); err == nil {
			return s, nil
		}
		if errors.Is(err, errPortTaken) && try < 9 {
			err = nil // another process was faster
		}
	}
	s.discard()
	return nil, err
}

// configure picks ports and writes redis.conf. That happens once: Redis itself rewrites the file of a replica or a
// sentinel, and a restart must find what it wrote.
func (s *Server) configure() (err error) {
	if s.port, err = freePort(); err != nil {
		return err
	}
	if s.cfg.kind == clusterNode {
		if s.busPort, err = freePort(); err != nil {
			return err
		}
	}
	if err := os.WriteFile(s.confPath(), []byte(s.cfg.conf(s)), 0o600); err != nil {
		return fmt.Errorf("write redis.conf: %w", err)
	}
	return nil
}

// lookPath finds one of Redis's programs or says how to get it.
func lookPath(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%w: these tests run on a real Redis, 6.2 or later; install it with "+
			"`apt-get install -y redis-server` (Debian, Ubuntu) or `brew install redis` (macOS)", err)
	}
	return path, nil
}

// discard kills the server and removes its files.
func (s *Server) discard() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc != nil {
		s.proc.Kill()
		s.proc = nil
	}
	_ = os.RemoveAll(s.dir)
}

// Addr is the server's TCP address, 127.0.0.1:port; it never changes.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// Socket is the path of the unix socket, empty without Config.UnixSocket.
func (s *Server) Socket() string {
	if !s.cfg.UnixSocket {
		return ""
	}
	return socketPath(s.dir)
}

// Dir is the server's working directory.
func (s *Server) Dir() string { return s.dir }

// URL names the server, user and password included, as go-redis and DISPATCHER_REDIS_URL take it.
func (s *Server) URL() string {
	u := url.URL{Scheme: "redis", Host: s.Addr(), Path: "/0"}
	if s.cfg.TLS {
		u.Scheme = "rediss"
	}
	if s.cfg.UnixSocket {
		u = url.URL{Scheme: "unix", Path: s.Socket(), RawQuery: "db=0"}
	}
	if s.cfg.User != "" || s.cfg.Password != "" {
		u.User = url.UserPassword(s.cfg.User, s.cfg.Password)
	}
	return u.String()
}

// PID is the server's process id, 0 when it is stopped.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil || !s.proc.Alive() {
		return 0
	}
	return s.proc.PID()
}

// Log is all that the server wrote so far, over all its starts.
func (s *Server) Log() string {
	text, err := os.ReadFile(s.logPath())
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func (s *Server) confPath() string { return filepath.Join(s.dir, "redis.conf") }

func (s *Server) logPath() string { return filepath.Join(s.dir, "redis.log") }

// Options are a fresh copy of what a client of this server needs. No command is sent twice (MaxRetries -1), so a test
// sees each failure.
func (s *Server) Options() *redis.Options {
	o := baseOptions()
	o.Network, o.Addr = "tcp", s.Addr()
	if s.cfg.UnixSocket {
		o.Network, o.Addr = "unix", s.Socket()
	}
	if s.cfg.TLS && !s.cfg.UnixSocket {
		o.TLSConfig = s.ClientTLS()
	}
	o.Username, o.Password = s.cfg.User, s.cfg.Password
	return o
}

// baseOptions suit every server: 7.0 knows neither CLIENT SETINFO nor CLIENT MAINT_NOTIFICATIONS.
func baseOptions() *redis.Options {
	return &redis.Options{
		MaxRetries:               -1,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

// Client connects as Config.User and is closed when t ends.
func (s *Server) Client(t testing.TB) *redis.Client {
	t.Helper()
	return closing(t, redis.NewClient(s.Options()))
}

// Admin connects as a user who may do everything, whatever Config.Rules say, and is closed when t ends.
func (s *Server) Admin(t testing.TB) *redis.Client {
	t.Helper()
	return closing(t, redis.NewClient(s.adminOptions()))
}

func (s *Server) adminOptions() *redis.Options {
	o := s.Options()
	if s.cfg.kind != sentinel {
		o.Username, o.Password = adminUser, s.adminPassword
	}
	return o
}

func closing(t testing.TB, c *redis.Client) *redis.Client {
	t.Helper()
	t.Cleanup(func() { _ = c.Close() })
	return c
}
