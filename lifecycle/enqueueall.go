package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/queuehook/queuehook/internal/script"
)

const (
	// maxAddBytes bounds the payloads of one round trip, save for a single larger one: a slow link must carry them
	// within the client's timeout.
	maxAddBytes = 1 << 20
	// addTries is how many times AddAll tries while errors may pass: for about ten seconds.
	addTries = 10
	// clockStep is more than the ms that tasks' due times count in.
	clockStep = 2 * time.Millisecond
)

// AddAll adds a task for each payload, many in a round trip, all with the same options, which must have no ID and no
// DedupKey. They are leased in the order given, after those of earlier calls with the same Delay. The result has an entry
// for each payload, at its place. One with an empty ID was not added, or it is not known whether it was; the error says
// why: ErrFull, an error reply of Redis, or a reply that did not come.
//
// After a lost reply the same ids are sent again, and those that are known count as added. So each task is added once,
// unless it was delivered before the repetition came: that adds it again under the same id.
func (q *Queue) AddAll(ctx context.Context, payloads [][]byte, o EnqueueOptions) ([]Enqueued, error) {
	if err := o.Check(); err != nil {
		return make([]Enqueued, len(payloads)), err
	}
	if o.ID != "" || o.DedupKey != "" {
		return make([]Enqueued, len(payloads)), fmt.Errorf("%w: many tasks cannot share an id or a dedup key", ErrOption)
	}
	added := make([]Enqueued, len(payloads))
	for rest := added; len(payloads) > 0; {
		n := 0
		for size := 0; n < len(payloads) && n < maxBatch && (n == 0 || size+len(payloads[n]) <= maxAddBytes); n++ {
			size += len(payloads[n])
		}
		if err := q.addBatch(ctx, payloads[:n], rest[:n], o); err != nil {
			return added, fmt.Errorf("enqueue tasks: %w", err)
		}
		payloads, rest = payloads[n:], rest[n:]
	}
	return added, nil
}

// addBatch adds what fits into one call, and repeats what got no answer.
func (q *Queue) addBatch(ctx context.Context, payloads [][]byte, added []Enqueued, o EnqueueOptions) error {
	var tasks []newcomer
	var again backoff
	for tries := 1; ; tries++ {
		err := q.tryBatch(ctx, payloads, &tasks, added, o)
		switch {
		case err == nil:
			// Index counts within a ms: what comes after must have a later one.
			return sleep(ctx, clockStep)
		case !passing(err) || tries == addTries:
			return err
		}
		if again.wait(ctx) != nil {
			return err
		}
	}
}

// tryBatch sends the tasks that have no place in added yet, and makes them first. Its error is the first one that does
// not pass, else the first.
func (q *Queue) tryBatch(
	ctx context.Context, payloads [][]byte, tasks *[]newcomer, added []Enqueued, o EnqueueOptions,
) error {
	if *tasks == nil {
		now, err := q.rdb.Time(ctx).Result()
		if err != nil {
			return err
		}
		all := make([]newcomer, len(payloads))
		for i, payload := range payloads {
			if all[i], err = q.newcomer(now, payload, o); err != nil {
				return err
			}
		}
		*tasks = all
	}
	var calls []script.Call
	var places []int
	for i, n := range *tasks {
		if added[i].ID == "" {
			calls, places = append(calls, n.call), append(places, i)
		}
	}
	var first error
	for i, result := range enqueueScript.RunMany(ctx, q.rdb, calls) {
		n, err := (*tasks)[places[i]], result.Err
		if err == nil {
			if _, err = n.read(result.Reply); err == nil || errors.Is(err, ErrExists) {
				added[places[i]] = n.Enqueued // a known one is there by an earlier try
				continue
			}
		}
		if first == nil || passing(first) && !passing(err) {
			first = err
		}
	}
	return first
}

// passing tells errors that may be gone at the next try.
func passing(err error) bool {
	if errors.Is(err, ErrFull) || errors.Is(err, ErrUnexpected) {
		return false
	}
	return !script.Answered(err) || redis.HasErrorPrefix(err, "NOSCRIPT") || redis.IsLoadingError(err) ||
		redis.IsReadOnlyError(err) || redis.IsClusterDownError(err) || redis.IsTryAgainError(err) ||
		redis.IsMasterDownError(err) || redis.IsMaxClientsError(err)
}
