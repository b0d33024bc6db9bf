package child

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// bindToParent starts cmd so that the kernel kills it when the calling thread ends. The caller has locked its thread.
func bindToParent(cmd *exec.Cmd) (release func(), err error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() {}, nil
}

// stopped reports whether SIGSTOP has taken effect: kill(2) returns before the target notices.
func stopped(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	// pid (name) state ...; the name may hold anything, so look behind its last parenthesis.
	i := bytes.LastIndexByte(stat, ')')
	return i >= 0 && i+2 < len(stat) && stat[i+2] == 'T'
}
