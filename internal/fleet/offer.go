package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/queuehook/queuehook/internal/audit"
	"github.com/queuehook/queuehook/lifecycle"
)

// Offer is what a producer does while Redis may be away: LPUSH once, whatever comes of it. The payload must be one that
// is offered only once: after a lost reply nobody knows whether Redis took it.
func (q *Queue) Offer(ctx context.Context, payload []byte) error {
	err := q.Redis.LPush(ctx, q.Name, payload).Err()
	q.Offered(payload, err)
	return err
}

// OfferSafely is Offer to a primary with a replica: the payload counts as pushed once the replica has it too.
func (q *Queue) OfferSafely(ctx context.Context, payload []byte) error {
	rdb, ok := q.Redis.(*redis.Client)
	if !ok {
		return errNoConn
	}
	conn := rdb.Conn()
	defer func() { _ = conn.Close() }()
	err := conn.LPush(ctx, q.Name, payload).Err()
	if err == nil {
		var n int64
		if n, err = conn.Wait(ctx, 1, time.Second).Result(); err == nil && n == 0 {
			err = context.DeadlineExceeded
		}
		if err != nil {
			err = fmt.Errorf("in doubt: %v", err) //nolint:errorlint // whatever it was, the payload may be there
		}
	}
	q.Offered(payload, err)
	return err
}

var errNoConn = errors.New("a cluster has no one connection to wait on")

// OfferTask is Offer for Enqueue.
func (q *Queue) OfferTask(ctx context.Context, payload []byte, o lifecycle.EnqueueOptions) error {
	queue, err := lifecycle.Open(q.Redis, q.Name)
	if err == nil {
		_, err = queue.Enqueue(ctx, payload, o)
	}
	q.Offered(payload, err)
	return err
}

// Offered notes what became of a payload that the test pushed itself: taken, refused by Redis, or nobody knows.
func (q *Queue) Offered(payload []byte, err error) {
	var answer redis.Error
	switch {
	case err == nil:
		q.count(payload)
	case errors.As(err, &answer), errors.Is(err, lifecycle.ErrFull):
	default:
		q.mu.Lock()
		defer q.mu.Unlock()
		q.maybe[audit.Sum(payload)] = true
	}
}
