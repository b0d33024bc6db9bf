// Package child runs programs that must not outlive the test that started them: redis-server, the built dispatcher. A
// test binary that panics or is killed takes its children with it: on Linux the kernel kills them, elsewhere a watching
// shell does.
package child

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

const (
	patience  = 20 * time.Second      // for a polite end and for a stop to take effect
	pollEvery = 10 * time.Millisecond // between two looks at a stopping process
)

// ErrLate is returned when a child does not end, or is not stopped, in time.
var ErrLate = errors.New("too late")

var errExited = errors.New("exit status 0")

// Process is one started child. Its methods may be called from several goroutines.
type Process struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed after the child was waited for
	err    error         // what Wait said; read after exited
}

// Start starts cmd, which must not be started yet, and sees to its end.
func Start(cmd *exec.Cmd) (*Process, error) {
	p := &Process{cmd: cmd, exited: make(chan struct{})}
	started := make(chan error, 1)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return p, nil
}

// run owns the child from its start to its end. The kernel's parent-death signal follows the *thread* that forked, so
// that thread must do nothing else and must outlive the child.
func (p *Process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(p.exited)

	release, err := bindToParent(p.cmd)
	started <- err
	if err != nil {
		return
	}
	p.err = p.cmd.Wait()
	release()
}

// PID is the child's process id, also after its end.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Alive says that the child has not ended.
func (p *Process) Alive() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// Exited is closed once the child has ended and all its output is read.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Signal sends sig. os.Process serialises it with Wait, so a recycled pid is never hit.
func (p *Process) Signal(sig syscall.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil {
		return fmt.Errorf("signal %s: %w", sig, err)
	}
	return nil
}

// Suspend freezes the child (SIGSTOP) and returns once that is so.
func (p *Process) Suspend() error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for !stopped(p.PID()) {
		select {
		case <-tick.C:
		case <-p.exited:
			return p.Exit()
		case <-late.C:
			return fmt.Errorf("%w: not stopped %s after SIGSTOP", ErrLate, patience)
		}
	}
	return nil
}

// Resume ends a Suspend.
func (p *Process) Resume() error { return p.Signal(syscall.SIGCONT) }

// Kill ends the child, stopped or running, and waits for it.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // fails only when it has ended
	<-p.exited
}

// Terminate asks the child to end, also when it is stopped, and waits for that.
func (p *Process) Terminate() error {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	// A running child may have ended by now.
	if err := p.Signal(syscall.SIGCONT); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-p.exited:
		return nil
	case <-late.C:
		return fmt.Errorf("%w: still running %s after SIGTERM", ErrLate, patience)
	}
}

// Exit waits for the end of the child and returns how it ended, never nil.
func (p *Process) Exit() error {
	<-p.exited
	if p.err == nil {
		return errExited
	}
	return p.err
}

// ExitCode waits for the end of the child; -1 when a signal ended it.
func (p *Process) ExitCode() int {
	<-p.exited
	return p.cmd.ProcessState.ExitCode()
}
