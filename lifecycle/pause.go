package lifecycle

import (
	"context"
	"fmt"
)

// Pause keeps the queue's tasks from being leased, by every dispatcher, until Resume. Attempts under way end as they
// do; tasks go on coming in, and dead dispatchers' tasks back. It answers whether this changed anything, and may be
// repeated. A Redis over its memory limit allows it too.
func (q *Queue) Pause(ctx context.Context) (changed bool, err error) {
	reply, err := pauseScript.Run(ctx, q.rdb, []string{q.keys.Paused})
	if err != nil {
		return false, fmt.Errorf("pause queue: %w", err)
	}
	return reply == int64(1), nil
}

// Resume undoes Pause, within a second everywhere. It answers whether this changed anything, and may be repeated.
func (q *Queue) Resume(ctx context.Context) (changed bool, err error) {
	n, err := q.rdb.Del(ctx, q.keys.Paused).Result()
	if err != nil {
		return false, fmt.Errorf("resume queue: %w", err)
	}
	return n == 1, nil
}
