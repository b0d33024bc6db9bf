//go:build unix && !linux

package child

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
)

// bindToParent starts cmd and beside it a shell that waits for the end of its standard input, whose only writer is
// this process: however that ends, the shell reads end of file and kills cmd. release ends the shell first.
func bindToParent(cmd *exec.Cmd) (release func(), err error) {
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	watch := exec.CommandContext(context.Background(),
		"/bin/sh", "-c", `cat >/dev/null; kill -9 "$0"`, strconv.Itoa(cmd.Process.Pid)) //nolint:gosec // a pid
	lifeline, err := watch.StdinPipe()
	if err == nil {
		err = watch.Start()
	}
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return nil, fmt.Errorf("start the watching shell: %w", err)
	}
	return func() {
		_ = watch.Process.Kill()
		_ = lifeline.Close()
		_ = watch.Wait()
	}, nil
}

// stopped can't be asked portably; the signal takes effect within a scheduling slice.
func stopped(int) bool { return true }
