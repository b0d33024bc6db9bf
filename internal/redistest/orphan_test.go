package redistest_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/queuehook/queuehook/internal/redistest"
)

// orphanEnv makes this test binary play one that dies while its server runs.
const orphanEnv = "REDISTEST_ORPHAN"

// orphan starts a server and prints its pid and directory. Then one kind waits for a line of input and panics, the
// other waits to be killed.
func orphan(kind string) {
	testing.Init()
	testing.Main(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{
		Name: "Orphan",
		F: func(t *testing.T) {
			s := redistest.Start(t, redistest.Config{})
			fmt.Printf("%d %s\n", s.PID(), s.Dir())
			_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
			if kind == "panic" {
				done := make(chan struct{})
				go func() { // no deferred call of the test's own goroutine helps here
					defer close(done)
					panic("as a broken test would")
				}()
				<-done
			}
			select {}
		},
	}}, nil, nil)
}

func TestServerEndsWithItsTestBinary(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"panic", "kill"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			exe, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), exe)
			cmd.Env = append(os.Environ(), orphanEnv+"="+kind)
			stdin, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var pid int
			var dir string
			if _, err := fmt.Fscan(stdout, &pid, &dir); err != nil {
				t.Fatalf("read pid: %v", err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(dir) }) // what the dead binary can't do
			if err := syscall.Kill(pid, 0); err != nil {
				t.Fatalf("server %s does not run: %v", strconv.Itoa(pid), err)
			}

			if kind == "panic" {
				_, err = stdin.Write([]byte("\n"))
			} else {
				err = cmd.Process.Kill()
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err == nil {
				t.Error("the binary ended well, want a crash")
			}

			deadline := time.Now().Add(10 * time.Second)
			for running(pid) {
				if time.Now().After(deadline) {
					t.Fatalf("redis-server %d outlived its test binary", pid)
				}
				<-time.After(10 * time.Millisecond)
			}
		})
	}
}

// running is false for a zombie too, since nobody may reap orphans here, or only late.
func running(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return !errors.Is(err, os.ErrNotExist)
	}
	return !zombie(stat)
}

func zombie(stat []byte) bool {
	i := bytes.LastIndexByte(stat, ')')
	return i >= 0 && i+2 < len(stat) && stat[i+2] == 'Z'
}
