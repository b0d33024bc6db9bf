//go:build !linux

package heartbeat

import "time"

// sinceBoot is a time that moves on while the machine is suspended. A wall clock that is set wrong makes a dispatcher
// careful or late, never the owner of a task: that is for Redis to decide.
func sinceBoot() time.Duration { return time.Duration(time.Now().UnixNano()) }
