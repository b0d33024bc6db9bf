package lifecycle

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/internal/script"
	"github.com/queuehook/queuehook/task"
)

// leased is what a lease or an adoption answered.
type leased struct {
	code  code
	tasks []*task.Task
	// wait is how long to wait before the next call is of use; below zero nothing is known.
	wait time.Duration
}

// code is what a lease script says of the queue; the zero code is that of a call that was not worth making.
type code string

const (
	codeLeased  code = "LEASED"
	codeEmpty   code = "EMPTY"
	codeFenced  code = "FENCED"
	codeLapsed  code = "LAPSED"
	codePaused  code = "PAUSED"
	codeBusy    code = "BUSY"
	codeLimited code = "LIMITED"
	codeReplay  code = "REPLAY"
)

// Lease takes up to n tasks, no more than there are free slots, and possibly none. When the reply of an earlier lease was
// lost, its tasks come first. ErrFenced when the dispatcher was given up. Do not call it while Listen runs.
func (l *DefaultLifecycle) Lease(ctx context.Context, n int) ([]*task.Task, error) {
	if l.unsure.Load() {
		got, err := l.adopt(ctx, n)
		if err != nil || len(got.tasks) > 0 {
			return got.tasks, err
		}
	}
	got, err := l.lease(ctx, n)
	return got.tasks, err
}

// lease asks for up to n tasks, parked and fresh ones in equal shares while both wait.
func (l *DefaultLifecycle) lease(ctx context.Context, n int) (leased, error) {
	n = min(n, l.out.free(), maxBatch)
	if n <= 0 {
		return leased{}, nil
	}
	// Every other call has the larger half for parked tasks and takes them first.
	parkedFirst := int(l.turn.Add(1) % 2)
	parked := (n + parkedFirst) / 2
	token, k := newToken(), l.keys
	reply, err := l.run(ctx, leaseScript, []string{
		k.Source, k.Landing, k.Body, k.Meta, k.Crashes, k.Worker(l.id), k.Delayed, k.Dead, k.Ticks, k.Holder, k.Paused,
		k.Rate,
	}, append(append([]any{l.id, n, parked, l.out.room(l.room.bytes()), token}, l.cfg.policy()...), 1-parkedFirst)...)
	if err != nil {
		l.unsure.Store(l.unsure.Load() || !script.Answered(err))
		l.room.failed(err)
		return leased{}, fmt.Errorf("lease tasks: %w", err)
	}
	return l.receive(ctx, reply, token)
}

// adopt asks for up to n tasks that are in flight here without our knowing: the reply that named them was lost. No
// lease may be under way.
func (l *DefaultLifecycle) adopt(ctx context.Context, n int) (leased, error) {
	known := l.out.ids()
	n = min(n, l.out.free(), maxBatch)
	if n <= 0 {
		return leased{}, nil
	}
	token, k := newToken(), l.keys
	args := make([]any, 0, 4+len(known))
	args = append(args, l.id, n, l.out.room(l.room.bytes()), token)
	for _, id := range known {
		args = append(args, id)
	}
	reply, err := l.run(ctx, adoptScript, []string{k.Ticks, k.Worker(l.id), k.Body, k.Meta, k.Crashes, k.Dead}, args...)
	if err != nil {
		l.room.failed(err)
		return leased{}, fmt.Errorf("adopt tasks: %w", err)
	}
	got, err := l.receive(ctx, reply, token)
	l.unsure.Store(len(got.tasks) > 0) // there may be more than fitted
	if len(got.tasks) > 0 {
		l.cfg.Logger.WarnContext(ctx, "adopted tasks of a lost lease", "queue", l.Name(), "tasks", len(got.tasks))
	}
	return got, err
}

// receive reads {code, now, wait, id, payload, meta, crashes, ...} and notes the tasks as out.
func (l *DefaultLifecycle) receive(ctx context.Context, reply []any, token string) (leased, error) {
	r := reader{items: reply}
	got := leased{code: code(r.text())}
	now := time.UnixMilli(r.number())
	got.wait = time.Duration(r.number()) * time.Millisecond
	for r.more() {
		id, payload, meta, crashes := r.text(), r.text(), r.text(), r.number()
		if r.err != nil {
			break
		}
		if crashes < 0 {
			l.cfg.Logger.ErrorContext(ctx, "task without a body went to the dead letters", "queue", l.Name(), "task", id)
			l.cfg.Buried(delivery.BodyMissing)
			continue
		}
		t := l.describe(ctx, id, payload, meta, crashes, now)
		l.out.add(t, token)
		got.tasks = append(got.tasks, t)
	}
	if r.err != nil {
		return got, r.err
	}
	if got.code == codeFenced {
		return got, ErrFenced
	}
	return got, nil
}

// describe makes the task of a reply. A raw task has no metadata before its first failure: its age is in its id.
func (l *DefaultLifecycle) describe(ctx context.Context, id, payload, meta string, crashes int64, now time.Time) *task.Task {
	m, err := task.DecodeMeta([]byte(meta))
	if err != nil {
		l.cfg.Logger.ErrorContext(ctx, "task metadata is unreadable and begins anew", "queue", l.Name(), "task", id, "error", err)
	}
	if m.EnqueuedAt == 0 {
		m.EnqueuedAt = now.UnixMilli()
		if u, err := ulid.ParseStrict(id); err == nil {
			m.EnqueuedAt = int64(u.Time()) //nolint:gosec // 48 bits
		}
	}
	if m.FirstDueAt == 0 {
		m.FirstDueAt = m.EnqueuedAt
	}
	return task.From(task.Spec{
		ID: id, Queue: l.Name(), Payload: []byte(payload), Meta: m, Redelivered: crashes > 0, Now: now,
		Context: l.tasks, Settler: l,
	})
}

// newToken is 65 random bits in the 13 characters that the lease script takes as part of new ids.
func newToken() string {
	const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	var b [13]byte
	_, _ = rand.Read(b[:]) // never fails, by its documentation
	for i := range b {
		b[i] = digits[b[i]%32]
	}
	return string(b[:])
}
