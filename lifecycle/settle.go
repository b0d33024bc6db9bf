package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/internal/script"
	"github.com/queuehook/queuehook/task"
)

// Complete forgets a task that was delivered. While Redis is away it keeps trying until ctx ends, so that a known
// outcome is not delivered again. task.ErrNotFound when the lease is lost.
func (l *DefaultLifecycle) Complete(ctx context.Context, t *task.Task) error {
	return l.settle(ctx, "complete", t, func(ctx context.Context, id, token string) (bool, error) {
		lease := claim{id, token}
		l.out.delivered(lease) // before the try: a stop must not give back what is being completed
		ours, err := l.batch.try(ctx, id, token)
		return ours || err == nil && l.out.completed(lease), err
	})
}

// completeAll has Redis forget these tasks, whose own Complete has no answer yet. It tries until ctx ends.
func (l *DefaultLifecycle) completeAll(ctx context.Context, leases []claim) error {
	for part := range slices.Chunk(leases, maxBatch) {
		items := make([]*item, len(part))
		for i, c := range part {
			items[i] = &item{id: c.id, token: c.token}
		}
		err := l.persist(ctx, func() error {
			_, err := l.complete(ctx, items)
			return err
		})
		if err != nil {
			return fmt.Errorf("complete tasks: %w", err)
		}
		l.out.remove(part...)
	}
	return nil
}

// Abandon parks a task whose attempt failed; it is due again after delay. Without a Record of the attempt it counts as
// charged. Errors and patience are Complete's.
func (l *DefaultLifecycle) Abandon(ctx context.Context, t *task.Task, delay time.Duration) error {
	record(t, delivery.Failed)
	meta, err := t.Meta().Encode()
	if err != nil {
		return fmt.Errorf("abandon task: %w", err)
	}
	return l.settle(ctx, "abandon", t, func(ctx context.Context, id, token string) (bool, error) {
		k := l.keys
		return l.one(ctx, abandonScript, []string{k.Worker(l.id), k.Meta, k.Crashes, k.Delayed, k.Stats},
			id, token, max(0, delay.Milliseconds()), meta)
	})
}

// Bury moves a task to the dead letters for this reason. Errors and patience are Complete's.
func (l *DefaultLifecycle) Bury(ctx context.Context, t *task.Task, reason delivery.Reason) error {
	record(t, reason)
	last := t.Meta()
	last.LastReason = reason.String()
	meta, err := last.Encode()
	if err != nil {
		return fmt.Errorf("bury task: %w", err)
	}
	return l.settle(ctx, "bury", t, func(ctx context.Context, id, token string) (bool, error) {
		k := l.keys
		return l.one(ctx, buryScript, []string{k.Worker(l.id), k.Meta, k.Crashes, k.Dead, k.Holder, k.Stats},
			id, token, meta)
	})
}

// Release gives tasks back uncharged; they are due at once. Those whose lease is lost are passed over. It tries until
// ctx ends.
func (l *DefaultLifecycle) Release(ctx context.Context, tasks ...*task.Task) error {
	for part := range slices.Chunk(tasks, maxBatch) {
		if err := l.release(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

func (l *DefaultLifecycle) release(ctx context.Context, tasks []*task.Task) error {
	args := make([]any, 0, 3*len(tasks))
	leases := make([]claim, 0, len(tasks))
	for _, t := range tasks {
		token, ok := l.out.token(t.ID())
		if !ok {
			continue
		}
		var meta []byte
		if t.Recorded() {
			var err error
			if meta, err = t.Meta().Encode(); err != nil {
				return fmt.Errorf("release task: %w", err)
			}
		}
		args = append(args, t.ID(), token, meta)
		leases = append(leases, claim{t.ID(), token})
	}
	if len(leases) == 0 {
		return nil
	}
	err := l.persist(ctx, func() error {
		k := l.keys
		_, err := l.run(ctx, releaseScript, []string{k.Worker(l.id), k.Meta, k.Delayed, k.Stats}, args...)
		return err
	})
	if err != nil {
		return fmt.Errorf("release tasks: %w", err)
	}
	l.out.remove(leases...)
	return nil
}

// settle tries one task's settlement until Redis answers it or ctx ends; only an answer takes the task out of the
// registry. When an earlier try lost its reply, "not ours" may be that try's own doing and is no error.
func (l *DefaultLifecycle) settle(
	ctx context.Context, verb string, t *task.Task,
	try func(ctx context.Context, id, token string) (ours bool, err error),
) error {
	token, ok := l.out.token(t.ID())
	if !ok {
		return fmt.Errorf("%s %s: %w", verb, t.ID(), task.ErrNotFound)
	}
	var ours, repeated bool
	err := l.persist(ctx, func() error {
		var err error
		ours, err = try(ctx, t.ID(), token)
		repeated = repeated || err != nil && !script.Answered(err)
		return err
	})
	if err != nil {
		return fmt.Errorf("%s %s: %w", verb, t.ID(), err)
	}
	l.out.remove(claim{t.ID(), token})
	if !ours && !repeated {
		return fmt.Errorf("%s %s: %w", verb, t.ID(), task.ErrNotFound)
	}
	return nil
}

// persist tries until Redis answers or ctx ends; then it returns the last try's error. Of all settlements that wait for
// Redis the first is logged, and that none is left.
func (l *DefaultLifecycle) persist(ctx context.Context, try func() error) error {
	err := try()
	if err == nil {
		return nil
	}
	if l.stuck.Add(1) == 1 {
		l.cfg.Logger.WarnContext(ctx, "settling failed, going on trying", "queue", l.Name(), "error", err)
	}
	defer func() {
		if l.stuck.Add(-1) == 0 {
			l.cfg.Logger.InfoContext(ctx, "no settlement waits for Redis any more", "queue", l.Name())
		}
	}()
	for again := (backoff{}); err != nil; err = try() {
		l.cfg.Fault("settle")
		if again.wait(ctx) != nil {
			return err
		}
	}
	return nil
}

// complete is the batch's one try.
func (l *DefaultLifecycle) complete(ctx context.Context, items []*item) (map[string]bool, error) {
	args := make([]any, 0, 2*len(items))
	for _, it := range items {
		args = append(args, it.id, it.token)
	}
	k := l.keys
	reply, err := l.run(ctx, completeScript,
		[]string{k.Worker(l.id), k.Body, k.Meta, k.Crashes, k.Holder, k.Stats}, args...)
	if err != nil {
		return nil, err
	}
	refused := make(map[string]bool, len(reply))
	for _, id := range reply {
		if s, ok := id.(string); ok {
			refused[s] = true
		}
	}
	return refused, nil
}

// one runs a script that answers 1 for "done" and 0 for "not ours".
func (l *DefaultLifecycle) one(ctx context.Context, s script.Script, keys []string, args ...any) (bool, error) {
	reply, err := s.Run(ctx, l.rdb, keys, args...)
	if err != nil {
		return false, err
	}
	return reply == int64(1), nil
}

// record makes up for a caller who did not say how the attempt ended.
func record(t *task.Task, reason delivery.Reason) {
	if !t.Recorded() {
		t.Record(task.Result{At: t.Now(), Reason: reason.String(), Charged: true})
	}
}
