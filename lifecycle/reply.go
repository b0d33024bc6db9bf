package lifecycle

import (
	"context"
	"fmt"

	"github.com/queuehook/queuehook/internal/script"
)

// run carries a script out and returns its array reply.
func (q *Queue) run(ctx context.Context, s script.Script, keys []string, args ...any) ([]any, error) {
	reply, err := s.Run(ctx, q.rdb, keys, args...)
	if err != nil {
		return nil, err
	}
	items, ok := reply.([]any)
	if !ok {
		return nil, fmt.Errorf("%w: %T", ErrUnexpected, reply)
	}
	return items, nil
}

// reader takes the items of an array reply one by one and keeps the first mismatch.
type reader struct {
	items []any
	err   error
}

func (r *reader) more() bool { return r.err == nil && len(r.items) > 0 }

func (r *reader) next() any {
	if len(r.items) == 0 {
		r.err = fmt.Errorf("%w: it ends early", ErrUnexpected)
		return nil
	}
	item := r.items[0]
	r.items = r.items[1:]
	return item
}

func (r *reader) text() string {
	s, ok := r.next().(string)
	if !ok && r.err == nil {
		r.err = fmt.Errorf("%w: no text where one belongs", ErrUnexpected)
	}
	return s
}

func (r *reader) number() int64 {
	n, ok := r.next().(int64)
	if !ok && r.err == nil {
		r.err = fmt.Errorf("%w: no number where one belongs", ErrUnexpected)
	}
	return n
}
