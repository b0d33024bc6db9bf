package awslambda

import (
	"context"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/task"
)

// Waiting is how many tasks wait for a batch.
func (tg *Target) Waiting() int {
	tg.gatherer.mu.Lock()
	defer tg.gatherer.mu.Unlock()
	return len(tg.gatherer.waiting)
}

// Failures is the reader of a batch's answer.
func Failures(answer []byte, known map[string]bool) (map[string]bool, error) {
	return failures(answer, known)
}

// InvokeBatch makes the call of a batch, or the calls of its parts, until ctx ends.
func (tg *Target) InvokeBatch(ctx context.Context, tasks ...*task.Task) ([]delivery.Outcome, error) {
	batch := make([]*entry, len(tasks))
	for i, t := range tasks {
		record, err := encodeRecord(t, tg.cfg)
		if err != nil {
			return nil, err
		}
		batch[i] = &entry{task: t, record: record}
	}
	return tg.invokeBatch(ctx, batch), nil
}
