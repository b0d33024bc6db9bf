package lifecycle

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// ErrScattered is returned by NewLegacy in a cluster that may keep redutil's keys of the queue on another server.
var ErrScattered = errors.New("in a cluster, a legacy sweep needs a queue whose name has a hash tag, as {orders}")

// Legacy gives the tasks of dead workers of the library redutil back to the queue. redutil compared the wall clocks of
// different hosts. Here a worker counts as dead when its tick has not moved between two looks, and the caller leaves
// much more time between the two than redutil's heartbeat takes. One goroutine at a time may use it.
type Legacy struct {
	q    *Queue
	seen map[string]string // worker id -> tick
}

// NewLegacy returns the legacy sweep of a queue, which has not looked yet; ErrScattered where there can be none.
func NewLegacy(q *Queue) (*Legacy, error) {
	if _, cluster := q.rdb.(*redis.ClusterClient); cluster && !q.keys.LegacyClusterable() {
		return nil, fmt.Errorf("legacy sweep: %w", ErrScattered)
	}
	return &Legacy{q: q}, nil
}

// Look takes the tasks of every worker whose tick is still what the last look saw. It returns how many tasks it moved,
// the ids of these workers, and how many other workers there are, about which only the next look can tell.
func (l *Legacy) Look(ctx context.Context) (moved int, dead []string, suspects int, err error) {
	ticks, err := l.q.rdb.HGetAll(ctx, l.q.keys.LegacyTicks()).Result()
	if err != nil {
		return 0, nil, 0, fmt.Errorf("legacy sweep: %w", err)
	}
	before := l.seen
	l.seen = ticks
	for id, tick := range ticks {
		if last, ok := before[id]; !ok || last != tick {
			suspects++
			continue
		}
		n, alive, err := l.take(ctx, id, tick)
		moved += n
		switch {
		case err != nil:
			return moved, dead, suspects, fmt.Errorf("legacy sweep of worker %s: %w", id, err)
		case alive:
			suspects++
		default:
			dead = append(dead, id)
		}
	}
	return moved, dead, suspects, nil
}

// take moves everything that one worker holds, for as long as its tick stays the same.
func (l *Legacy) take(ctx context.Context, id, tick string) (total int, alive bool, err error) {
	k := l.q.keys
	for {
		reply, err := l.q.run(ctx, legacyScript, []string{k.Source, k.LegacyWorker(id), k.LegacyTicks()},
			id, tick, maxSweep)
		if err != nil {
			return total, false, err
		}
		r := reader{items: reply}
		moved, left := r.number(), r.number()
		if r.err != nil || moved < 0 {
			return total, r.err == nil, r.err
		}
		total += int(moved)
		if left == 0 {
			return total, false, nil
		}
	}
}
