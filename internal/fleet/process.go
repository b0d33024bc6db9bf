package fleet

import (
	"bytes"
	"context"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/queuehook/queuehook/internal/child"
)

// Process is one started program. Its methods that take a testing.TB belong to the test's own goroutine.
type Process struct {
	child       *child.Process
	out, err    output
	mayHaveDied bool // killed, or its exit code was looked at
}

// Start starts a program for t with these arguments and with no environment but env. It is killed when t ends.
func Start(t testing.TB, program string, args, env []string) *Process {
	t.Helper()
	p := new(Process)
	cmd := exec.CommandContext(context.Background(), binary(t, program), args...) //nolint:gosec // our own program
	cmd.Env = append([]string{"GORACE=halt_on_error=1 atexit_sleep_ms=0"}, env...)
	cmd.Stdout, cmd.Stderr = &p.out, &p.err
	var err error
	if p.child, err = child.Start(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		died := !p.child.Alive() && !p.mayHaveDied
		p.child.Kill()
		log := p.Log()
		switch {
		case strings.Contains(log, "DATA RACE"), strings.Contains(log, "panic: "), strings.Contains(log, "fatal error: "):
			t.Errorf("%s is broken:\n%s", program, log)
		case died:
			t.Errorf("%s ended by itself: %v\n%s", program, p.child.Exit(), log)
		case t.Failed():
			t.Logf("log of %s %d:\n%s", program, p.PID(), tail(log))
		}
	})
	return p
}

// Run starts a program, waits for its end and returns its exit code and what it wrote.
func Run(t testing.TB, program string, args, env []string) (code int, stdout, stderr string) {
	t.Helper()
	p := Start(t, program, args, env)
	code = p.Wait(t)
	return code, p.Output(), p.Log()
}

// PID is the process id.
func (p *Process) PID() int { return p.child.PID() }

// Output is what it wrote to its standard output so far.
func (p *Process) Output() string { return p.out.String() }

// Log is what it wrote to its standard error so far.
func (p *Process) Log() string { return p.err.String() }

// Alive says that it has not ended.
func (p *Process) Alive() bool { return p.child.Alive() }

// Terminate sends SIGTERM and does not wait.
func (p *Process) Terminate(t testing.TB) {
	t.Helper()
	p.mayHaveDied = true
	p.try(t, p.child.Signal(syscall.SIGTERM))
}

// Stop sends SIGTERM and awaits a clean end.
func (p *Process) Stop(t testing.TB) {
	t.Helper()
	p.Terminate(t)
	if code := p.Wait(t); code != 0 {
		t.Errorf("exit code %d after SIGTERM, want 0", code)
	}
}

// Suspend freezes it (SIGSTOP).
func (p *Process) Suspend(t testing.TB) {
	t.Helper()
	p.try(t, p.child.Suspend())
}

// Resume ends a Suspend.
func (p *Process) Resume(t testing.TB) {
	t.Helper()
	p.try(t, p.child.Resume())
}

// Kill ends it as a crash does (SIGKILL). Any goroutine may call it.
func (p *Process) Kill() {
	p.mayHaveDied = true
	p.child.Kill()
}

// Wait waits for its end and returns its exit code, -1 when a signal ended it.
func (p *Process) Wait(t testing.TB) int {
	t.Helper()
	p.mayHaveDied = true
	late := time.NewTimer(Patience)
	defer late.Stop()
	select {
	case <-p.child.Exited():
	case <-late.C:
		_ = p.child.Signal(syscall.SIGABRT) // for the stacks of its goroutines
		<-p.child.Exited()
		t.Fatalf("still running after %s:\n%s", Patience, p.Log())
	}
	return p.child.ExitCode()
}

func (p *Process) try(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("process %d: %v\n%s", p.PID(), err, tail(p.Log()))
	}
}

// output is what a process writes; it may be read while the process runs.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// tail is the end of a long log.
func tail(log string) string {
	const most = 2500
	if len(log) > most {
		return "..." + log[len(log)-most:]
	}
	return log
}
