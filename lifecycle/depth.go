package lifecycle

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// Depth is how many of a queue's tasks are where, and how many dispatchers serve it.
type Depth struct {
	Ready       int64 // could be leased now: the producers' list, the landing list, parked tasks that are due
	Delayed     int64 // parked and not yet due
	InFlight    int64 // leased, by living dispatchers and dead ones
	Dead        int64
	Dispatchers int64 // those that count as alive
	Paused      bool
	// OldestDue is for how long the oldest due task among the parked ones has been due; 0 when none is.
	OldestDue time.Duration
	// HeadSeen is for how long a Watch has seen the same payload at the head of the lists; 0 when Queue.Depth was asked.
	HeadSeen time.Duration
}

// OldestReady is for how long the oldest task that could be leased now has waited, as far as is known.
func (d Depth) OldestReady() time.Duration { return max(d.OldestDue, d.HeadSeen) }

// Depth reads the queue's depths, one shortly after the other, so that a task which moves meanwhile may count twice or not
// at all. It is no transaction, since a Redis over its memory limit refuses those, and that is when depths are asked for.
func (q *Queue) Depth(ctx context.Context) (Depth, error) {
	now, err := q.rdb.Time(ctx).Result()
	if err != nil {
		return Depth{}, fmt.Errorf("read depths: %w", err)
	}
	ticks, err := q.rdb.ZRangeWithScores(ctx, q.keys.Ticks, 0, -1).Result()
	if err != nil {
		return Depth{}, fmt.Errorf("read depths: %w", err)
	}
	var source, landing, due, parked, dead, paused *redis.IntCmd
	var oldest *redis.ZSliceCmd
	hands := make([]*redis.IntCmd, len(ticks))
	at := "(" + strconv.FormatInt(now.UnixMilli()+1, 10) // as leasing has it: all of this ms
	if _, err := q.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		source, landing = p.LLen(ctx, q.keys.Source), p.LLen(ctx, q.keys.Landing)
		due, parked = p.ZCount(ctx, q.keys.Delayed, "-inf", at), p.ZCard(ctx, q.keys.Delayed)
		dead, paused = p.ZCard(ctx, q.keys.Dead), p.Exists(ctx, q.keys.Paused)
		oldest = p.ZRangeByScoreWithScores(ctx, q.keys.Delayed, &redis.ZRangeBy{Min: "(0", Max: at, Count: 1})
		for i, tick := range ticks {
			hands[i] = p.HLen(ctx, q.keys.Worker(member(tick)))
		}
		return nil
	}); err != nil {
		return Depth{}, fmt.Errorf("read depths: %w", err)
	}
	d := Depth{
		Ready: source.Val() + landing.Val() + due.Val(), Delayed: parked.Val() - due.Val(), Dead: dead.Val(),
		Paused: paused.Val() == 1,
	}
	for i, tick := range ticks {
		d.InFlight += hands[i].Val()
		if int64(tick.Score) >= now.UnixMilli() {
			d.Dispatchers++
		}
	}
	if z := oldest.Val(); len(z) > 0 {
		d.OldestDue = now.Sub(time.UnixMilli(int64(z[0].Score)))
	}
	return d, nil
}
