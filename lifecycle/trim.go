package lifecycle

import (
	"context"
	"fmt"
	"time"
)

// Trim deletes the dead letters that died longer than age ago, and the oldest of those beyond count; 0 sets no bound. It
// returns how many it deleted, also together with an error.
func (q *Queue) Trim(ctx context.Context, age time.Duration, count int) (int, error) {
	k, total := q.keys, 0
	for {
		reply, err := trimScript.Run(ctx, q.rdb, []string{k.Dead, k.Body, k.Meta, k.Crashes},
			age.Milliseconds(), count, maxBatch)
		if err != nil {
			return total, fmt.Errorf("trim dead letters: %w", err)
		}
		n, ok := reply.(int64)
		if !ok {
			return total, fmt.Errorf("trim dead letters: %w: %T", ErrUnexpected, reply)
		}
		total += int(n)
		if n < maxBatch {
			return total, nil
		}
	}
}
