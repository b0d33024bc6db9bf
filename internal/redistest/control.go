package redistest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/queuehook/queuehook/internal/child"
)

var (
	errPortTaken = errors.New("port is taken")
	errRunning   = errors.New("already running")
)

// Start starts a stopped or killed server again, on the same port and files, and returns once it answers.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	// An outgoing connection may hold the port for a moment.
	deadline := time.Now().Add(patience)
	err := s.start()
	for errors.Is(err, errPortTaken) && time.Now().Before(deadline) {
		err = s.start()
	}
	if err != nil {
		t.Fatalf("start redis-server: %v", err)
	}
}

// Stop ends the server politely (SIGTERM): it closes its connections and syncs its append-only file.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	s.end(t, (*child.Process).Terminate)
}

// Kill ends the server as a crash does (SIGKILL).
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	s.end(t, func(p *child.Process) error {
		p.Kill()
		return nil
	})
}

// Restart is Stop and Start. Data survives only with Config.AppendOnly.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.Stop(t)
	s.Start(t)
}

// Pause freezes the server (SIGSTOP): connections stay open, nothing is answered. It returns once that is so.
func (s *Server) Pause(t testing.TB) {
	t.Helper()
	if err := s.running(t).Suspend(); err != nil {
		t.Fatalf("pause redis-server: %v", err)
	}
}

// Continue ends a Pause: what was sent meanwhile is answered now.
func (s *Server) Continue(t testing.TB) {
	t.Helper()
	if err := s.running(t).Resume(); err != nil {
		t.Fatalf("continue redis-server: %v", err)
	}
}

func (s *Server) running(t testing.TB) *child.Process {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		t.Fatal("redis-server is not running")
	}
	return s.proc
}

func (s *Server) end(t testing.TB, how func(*child.Process) error) {
	t.Helper()
	p := s.running(t)
	if err := how(p); err != nil {
		t.Fatalf("end redis-server: %v\n%s", err, s.Log())
	}
	s.mu.Lock()
	s.proc = nil
	s.mu.Unlock()
}

// start runs the process and waits until it answers. errPortTaken says that another process has the port.
func (s *Server) start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc != nil && s.proc.Alive() {
		return errRunning
	}
	logged := len(s.Log())
	args := []string{s.confPath()}
	if s.cfg.kind == sentinel {
		args = append(args, "--sentinel")
	}
	p, err := s.spawn(args...)
	if err != nil {
		return err
	}
	if err := s.awaitAnswer(p); err != nil {
		p.Kill()
		log := s.Log()
		log = log[min(logged, len(log)):]
		if strings.Contains(log, "Address already in use") {
			return errPortTaken
		}
		return fmt.Errorf("await answer: %w\n%s", err, log)
	}
	s.proc = p
	return nil
}

// spawn starts the server's program, both output streams going to the end of its log.
func (s *Server) spawn(args ...string) (*child.Process, error) {
	log, err := os.OpenFile(s.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	defer func() { _ = log.Close() }()                                  // the child holds its own copy
	cmd := exec.CommandContext(context.Background(), s.binary, args...) //nolint:gosec // found by its name
	cmd.Stdout, cmd.Stderr = log, log
	return child.Start(cmd)
}

// awaitAnswer polls until the server p, and no other on that port, has loaded its data and answers.
func (s *Server) awaitAnswer(p *child.Process) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var last error
	answered := poll(ctx, func() bool {
		last = s.look(ctx, p.PID())
		return last == nil || !p.Alive()
	})
	switch {
	case !p.Alive():
		return fmt.Errorf("redis-server ended: %w", p.Exit())
	case !answered:
		return fmt.Errorf("no answer in %s: %w", patience, last)
	default:
		return nil
	}
}

// look asks once whether the process pid serves. The client is new each time: after a failed dial go-redis holds the
// next one back for a second.
func (s *Server) look(ctx context.Context, pid int) error {
	o := s.adminOptions()
	o.DialerRetries = 1

	// Knock first: go-redis logs each failed dial.
	var d net.Dialer
	knock, err := d.DialContext(ctx, o.Network, o.Addr)
	if err != nil {
		return err
	}
	_ = knock.Close()

	c := redis.NewClient(o)
	defer func() { _ = c.Close() }()

	info, err := c.Info(ctx, "server").Result()
	if err != nil {
		return err
	}
	if !strings.Contains(info, fmt.Sprintf("process_id:%d\r\n", pid)) {
		return errPortTaken
	}
	return c.Ping(ctx).Err() // INFO is answered while data loads, PING is not
}

// poll looks every pollEvery until done, or until ctx ends, and says whether it was done.
func poll(ctx context.Context, done func() bool) bool {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
	return true
}
