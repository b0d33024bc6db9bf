package lifecycle

import (
	"context"
	"fmt"
)

// Pause keeps the queue's tasks from being leased, by any dispatcher, until Resume. Attempts under way go on, producers may
// add tasks, and dead dispatchers are swept. It returns whether this changed anything, and may be repeated. It works on a
// Redis over its memory limit too.
func (q *Queue) Pause(ctx context.Context) (changed bool, err error) {
	reply, err := pauseScript.Run(ctx, q.rdb, []string{q.keys.Paused})
	if err != nil {
		return false, fmt.Errorf("pause queue: %w", err)
	}
	return reply == int64(1), nil
}

// Resume undoes Pause, within a second everywhere. It returns whether this changed anything, and may be repeated.
func (q *Queue) Resume(ctx context.Context) (changed bool, err error) {
	n, err := q.rdb.Del(ctx, q.keys.Paused).Result()
	if err != nil {
		return false, fmt.Errorf("resume queue: %w", err)
	}
	return n == 1, nil
}
