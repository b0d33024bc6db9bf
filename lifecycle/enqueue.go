package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/redis/go-redis/v9"

	"github.com/queuehook/queuehook/internal/script"
	"github.com/queuehook/queuehook/task"
)

var (
	// ErrExists is returned by Enqueue when there is a task with this id.
	ErrExists = errors.New("task id exists")
	// ErrFull is returned by Enqueue when Redis is over its memory limit. Nothing was written.
	ErrFull = errors.New("redis is full")
	// ErrOption is returned by Enqueue for options that it cannot use.
	ErrOption = errors.New("bad enqueue option")
)

// taskID is what an id given by a producer may look like: it becomes a header value.
var taskID = regexp.MustCompile(`^[!-~]{1,128}$`)

// EnqueueOptions says what a new task has besides its payload. The zero value is fine.
type EnqueueOptions struct {
	// ID names the task: 1 to 128 visible ASCII characters; empty = a new one is made. A route that signs its requests
	// buries a task with a full stop in its id, as Standard Webhooks does not allow it there.
	ID string
	// Delay is how long the task waits before it is due, in whole milliseconds.
	Delay time.Duration
	// Headers are sent with every delivery. Content-Type, traceparent and tracestate among them fill the fields below,
	// unless those are set.
	Headers map[string]string
	// ContentType replaces the route's.
	ContentType string
	// MaxAttempts replaces the route's when above 0.
	MaxAttempts int
	// DedupKey, with DedupTTL, makes Enqueue add nothing when a task with the same key was added less than DedupTTL ago;
	// it then returns the id of that task. DedupTTL is at least 1 ms.
	DedupKey string
	DedupTTL time.Duration
	// TraceParent and TraceState are sent with every delivery (W3C Trace Context).
	TraceParent, TraceState string
}

// Check returns ErrOption, with what is wrong, when the options cannot be used.
func (o EnqueueOptions) Check() error {
	switch {
	case o.ID != "" && !taskID.MatchString(o.ID):
		return fmt.Errorf("%w: task id %q: 1 to 128 visible ASCII characters are accepted", ErrOption, o.ID)
	case o.Delay < 0:
		return fmt.Errorf("%w: delay %s: must not be negative", ErrOption, o.Delay)
	case o.MaxAttempts < 0:
		return fmt.Errorf("%w: max attempts %d: must not be negative", ErrOption, o.MaxAttempts)
	case (o.DedupKey == "") != (o.DedupTTL == 0) || o.DedupTTL < 0 || (o.DedupTTL > 0 && o.DedupTTL < time.Millisecond):
		return fmt.Errorf("%w: a dedup key and a dedup ttl of at least 1ms go together", ErrOption)
	}
	return nil
}

// Enqueued is what became of a task that was handed in.
type Enqueued struct {
	// ID is the task's or, for a duplicate, that of the task added first.
	ID string
	// Due is when the task may first be leased, by the server's clock; the zero time for a duplicate of a task that no
	// longer waits.
	Due time.Time
	// Duplicate says that nothing was added: the dedup key names another task.
	Duplicate bool
}

// Enqueue adds a task and returns its id. ErrExists, together with the id, when there is such a task; ErrFull when Redis
// is full; ErrOption when an option cannot be used. A call with an ID may be repeated after a lost reply: nothing is added
// twice.
func (q *Queue) Enqueue(ctx context.Context, payload []byte, o EnqueueOptions) (id string, err error) {
	added, err := q.add(ctx, payload, o)
	return added.ID, err
}

// Add is Enqueue for callers who want to know more than the id.
func (q *Queue) Add(ctx context.Context, payload []byte, o EnqueueOptions) (Enqueued, error) {
	added, err := q.add(ctx, payload, o)
	if err != nil || !added.Duplicate {
		return added, err
	}
	at, err := q.rdb.ZScore(ctx, q.keys.Delayed, added.ID).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return added, nil
	case err != nil:
		return added, fmt.Errorf("read when task is due: %w", err)
	}
	added.Due = time.UnixMilli(int64(at))
	return added, nil
}

func (q *Queue) add(ctx context.Context, payload []byte, o EnqueueOptions) (Enqueued, error) {
	if err := o.Check(); err != nil {
		return Enqueued{}, err
	}
	added, err := q.park(ctx, payload, o)
	if err != nil {
		return added, fmt.Errorf("enqueue task: %w", err)
	}
	return added, nil
}

func (q *Queue) park(ctx context.Context, payload []byte, o EnqueueOptions) (Enqueued, error) {
	now, err := q.rdb.Time(ctx).Result()
	if err != nil {
		return Enqueued{}, err
	}
	n, err := q.newcomer(now, payload, o)
	if err != nil {
		return Enqueued{}, err
	}
	reply, err := enqueueScript.Run(ctx, q.rdb, n.call.Keys, n.call.Args...)
	if err != nil {
		return Enqueued{}, err
	}
	return n.read(reply)
}

// newcomer is a task on its way in.
type newcomer struct {
	Enqueued // once it is in

	call script.Call
}

// newcomer prepares a task, with a new id where it has none.
func (q *Queue) newcomer(now time.Time, payload []byte, o EnqueueOptions) (newcomer, error) {
	id := o.ID
	if id == "" {
		minted, err := ulid.New(ulid.Timestamp(now), ulid.DefaultEntropy())
		if err != nil {
			return newcomer{}, err
		}
		id = minted.String()
	}
	due := now.Add(o.Delay)
	meta := task.Meta{
		EnqueuedAt: now.UnixMilli(), FirstDueAt: due.UnixMilli(), MaxAttempts: o.MaxAttempts,
		ContentType: o.ContentType, TraceParent: o.TraceParent, TraceState: o.TraceState,
	}
	for name, value := range o.Headers {
		meta.AddHeader(name, value)
	}
	stored, err := meta.Encode()
	if err != nil {
		return newcomer{}, err
	}
	k := q.keys
	return newcomer{Enqueued{ID: id, Due: due}, script.Call{
		Keys: []string{k.Body, k.Meta, k.Delayed, k.Dedup(o.DedupKey)},
		Args: []any{id, payload, stored, o.Delay.Milliseconds(), o.DedupTTL.Milliseconds()},
	}}, nil
}

// read says what the script's reply means.
func (n newcomer) read(reply any) (Enqueued, error) {
	items, ok := reply.([]any)
	if !ok {
		return Enqueued{}, fmt.Errorf("%w: %T", ErrUnexpected, reply)
	}
	r := reader{items: items}
	code, id := r.text(), r.text()
	switch {
	case r.err != nil:
		return Enqueued{}, r.err
	case code == "EXISTS":
		return Enqueued{ID: id}, fmt.Errorf("%w: %s", ErrExists, id)
	case code == "FULL":
		return Enqueued{}, ErrFull
	case code == "DEDUPED":
		return Enqueued{ID: id, Duplicate: true}, nil
	}
	return n.Enqueued, nil
}
