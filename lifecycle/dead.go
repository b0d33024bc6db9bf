package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/task"
)

// ErrCursor is returned for a cursor that Dead did not give out.
var ErrCursor = errors.New("bad cursor")

// DeadLetter is one task that will not be delivered again unless it is redriven.
type DeadLetter struct {
	ID     string
	DiedAt time.Time
	Reason delivery.Reason
	// Size is the payload's, in bytes.
	Size int
	Meta task.Meta
}

// Cursor is what Dead is given to go on after this letter.
func (d DeadLetter) Cursor() string { return strconv.FormatInt(d.DiedAt.UnixMilli(), 10) + "-" + d.ID }

// Dead returns up to limit dead letters, 1 to 1000, the oldest first, and the cursor with which to go on; it is empty at
// the end. An empty cursor begins at the start. Letters that come or go meanwhile do not hide any others. ErrCursor when
// the cursor is none.
func (q *Queue) Dead(ctx context.Context, cursor string, limit int) (letters []DeadLetter, next string, err error) {
	from, after, err := parseCursor(cursor)
	if err != nil {
		return nil, "", err
	}
	limit = min(max(limit, 1), maxBatch)
	// Among those that died in the cursor's own ms, skip what was shown: ids of one ms are in order.
	var found []redis.Z
	for offset := int64(0); len(found) <= limit; {
		page, err := q.rdb.ZRangeByScoreWithScores(ctx, q.keys.Dead, &redis.ZRangeBy{
			Min: from, Max: "+inf", Offset: offset, Count: int64(limit) + 1,
		}).Result()
		if err != nil {
			return nil, "", fmt.Errorf("list dead letters: %w", err)
		}
		for _, z := range page {
			if member(z) > after || score(z) != from {
				found = append(found, z)
			}
		}
		offset += int64(len(page))
		if len(page) <= limit {
			break
		}
	}
	if len(found) > limit {
		found = found[:limit]
		last := found[limit-1]
		next = score(last) + "-" + member(last)
	}
	letters, err = q.letters(ctx, found)
	return letters, next, err
}

// DeadLetter returns one dead letter and its payload, which is nil when it is gone. task.ErrNotFound when there is none
// with this id.
func (q *Queue) DeadLetter(ctx context.Context, id string) (DeadLetter, []byte, error) {
	at, err := q.rdb.ZScore(ctx, q.keys.Dead, id).Result()
	if errors.Is(err, redis.Nil) {
		return DeadLetter{}, nil, fmt.Errorf("dead letter %s: %w", id, task.ErrNotFound)
	}
	if err != nil {
		return DeadLetter{}, nil, fmt.Errorf("show dead letter: %w", err)
	}
	letters, err := q.letters(ctx, []redis.Z{{Score: at, Member: id}})
	if err != nil {
		return DeadLetter{}, nil, err
	}
	payload, err := q.rdb.HGet(ctx, q.keys.Body, id).Bytes()
	if err != nil && !errors.Is(err, redis.Nil) {
		return DeadLetter{}, nil, fmt.Errorf("show dead letter: %w", err)
	}
	return letters[0], payload, nil
}

// Redrive makes dead letters due now; their attempts and age begin anew. It returns how many it moved: ids that are no
// dead letters, or have lost their payload, are passed over.
func (q *Queue) Redrive(ctx context.Context, ids ...string) (int, error) {
	return inBatches(ids, func(ids []string) (int, error) {
		now, err := q.rdb.Time(ctx).Result()
		if err != nil {
			return 0, fmt.Errorf("redrive: %w", err)
		}
		found := make([]redis.Z, 0, len(ids))
		for _, id := range ids {
			found = append(found, redis.Z{Member: id})
		}
		letters, err := q.letters(ctx, found)
		if err != nil {
			return 0, err
		}
		args := make([]any, 0, 2*len(ids))
		for _, d := range letters {
			meta, err := d.Meta.Redriven(now, d.Reason == delivery.Crashed).Encode()
			if err != nil {
				return 0, fmt.Errorf("redrive: %w", err)
			}
			args = append(args, d.ID, meta)
		}
		k := q.keys
		refused, err := q.run(ctx, redriveScript, []string{k.Dead, k.Delayed, k.Body, k.Meta, k.Crashes}, args...)
		if err != nil {
			return 0, fmt.Errorf("redrive: %w", err)
		}
		return len(ids) - len(refused), nil
	})
}

// Purge deletes dead letters for good and returns how many of the ids it found.
func (q *Queue) Purge(ctx context.Context, ids ...string) (int, error) {
	return inBatches(ids, func(ids []string) (int, error) {
		args := make([]any, 0, len(ids))
		for _, id := range ids {
			args = append(args, id)
		}
		k := q.keys
		refused, err := q.run(ctx, purgeScript, []string{k.Dead, k.Body, k.Meta, k.Crashes}, args...)
		if err != nil {
			return 0, fmt.Errorf("purge: %w", err)
		}
		return len(ids) - len(refused), nil
	})
}

// letters reads what is kept of dead tasks. Two reasons cannot be in the metadata, since Lua does not write it: a crash
// count means that a sweep buried the task, a missing body that a lease found none.
func (q *Queue) letters(ctx context.Context, found []redis.Z) ([]DeadLetter, error) {
	if len(found) == 0 {
		return nil, nil
	}
	type kept struct {
		meta, crashes *redis.StringCmd
		exists        *redis.BoolCmd
		size          *redis.Cmd
	}
	reads := make([]kept, len(found))
	_, err := q.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, z := range found {
			id := member(z)
			reads[i] = kept{
				meta: p.HGet(ctx, q.keys.Meta, id), crashes: p.HGet(ctx, q.keys.Crashes, id),
				exists: p.HExists(ctx, q.keys.Body, id), size: p.Do(ctx, "hstrlen", q.keys.Body, id),
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, fmt.Errorf("read dead letters: %w", err)
	}
	letters := make([]DeadLetter, len(found))
	for i, z := range found {
		meta, err := task.DecodeMeta([]byte(reads[i].meta.Val()))
		if err != nil {
			meta = task.Meta{LastError: "unreadable metadata"}
		}
		size, _ := reads[i].size.Int()
		d := DeadLetter{ID: member(z), DiedAt: time.UnixMilli(int64(z.Score)), Size: size, Meta: meta}
		switch reason, err := delivery.ParseReason(meta.LastReason); {
		case !reads[i].exists.Val():
			d.Reason = delivery.BodyMissing
		case reads[i].crashes.Val() != "":
			d.Reason = delivery.Crashed
		case err == nil:
			d.Reason = reason
		default:
			d.Reason = delivery.Failed
		}
		letters[i] = d
	}
	return letters, nil
}

func inBatches(ids []string, do func(ids []string) (int, error)) (int, error) {
	total := 0
	for len(ids) > 0 {
		n := min(len(ids), maxBatch)
		done, err := do(ids[:n])
		total += done
		if err != nil {
			return total, err
		}
		ids = ids[n:]
	}
	return total, nil
}

func parseCursor(cursor string) (from, after string, err error) {
	if cursor == "" {
		return "-inf", "", nil
	}
	from, after, ok := strings.Cut(cursor, "-")
	if _, err := strconv.ParseInt(from, 10, 64); err != nil || !ok {
		return "", "", fmt.Errorf("%w %q", ErrCursor, cursor)
	}
	return from, after, nil
}

func member(z redis.Z) string {
	id, _ := z.Member.(string)
	return id
}

func score(z redis.Z) string { return strconv.FormatInt(int64(z.Score), 10) }
