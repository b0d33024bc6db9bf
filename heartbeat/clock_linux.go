package heartbeat

import (
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot is the time since the machine started, suspended time included, which Go's own monotonic clock leaves out
// on Linux: a dispatcher that wakes from suspension must know that its lease has run out.
func sinceBoot() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return time.Duration(time.Now().UnixNano())
	}
	return time.Duration(t.Nano())
}
