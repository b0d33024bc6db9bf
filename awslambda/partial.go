package awslambda

import (
	"context"
	"net/http"
	"slices"

	"github.com/queuehook/queuehook/delivery"
)

// invokeBatch makes the call of a batch and answers each task's outcome. A batch that Lambda finds too large, by whatever
// measure, is halved, its order kept.
func (tg *Target) invokeBatch(ctx context.Context, batch []*entry) []delivery.Outcome {
	outcome, answer := tg.invokeOnce(ctx, batch)
	if outcome.Reason == delivery.Timeout && !outcome.Unknown && ctx.Err() != nil {
		// It was the tasks' time that ran out, of which waiting, or calls that were too large, took the most.
		return slices.Repeat([]delivery.Outcome{unsent(ctx)}, len(batch))
	}
	if half := len(batch) / 2; half > 0 && outcome.Status == http.StatusRequestEntityTooLarge {
		return append(tg.invokeBatch(ctx, batch[:half]), tg.invokeBatch(ctx, batch[half:])...)
	}
	if outcome.Reason == delivery.OK && !tg.cfg.Async {
		return tg.partial(batch, outcome, answer)
	}
	if len(batch) > 1 && outcome.Settlement == delivery.Bury {
		outcome.Settlement = delivery.Abandon // it may speak against one of them only
	}
	outcomes := slices.Repeat([]delivery.Outcome{outcome}, len(batch))
	for i := range outcomes {
		outcomes[i].Shared = i > 0 && outcome.Reason != delivery.OK
	}
	return outcomes
}

func (tg *Target) invokeOnce(ctx context.Context, batch []*entry) (delivery.Outcome, []byte) {
	ctx, cancel := context.WithTimeout(ctx, tg.cfg.Timeout)
	defer cancel()
	r := request{whole: !tg.cfg.Async}
	records := make([][]byte, len(batch))
	for i, e := range batch {
		records[i] = e.record
	}
	r.payload = event(records)
	first := batch[0].task
	r.lastReason = first.Meta().LastReason
	if len(batch) == 1 && !tg.cfg.Async {
		r.context = tg.clientContext(first)
	}
	return tg.invoke(ctx, r)
}

// partial is each task's outcome by what the function answered. Where the answer makes no sense none is done.
func (tg *Target) partial(batch []*entry, ok delivery.Outcome, answer []byte) []delivery.Outcome {
	known := make(map[string]bool, len(batch))
	for _, e := range batch {
		known[e.task.ID()] = true
	}
	failed, err := failures(answer, known)
	outcomes := make([]delivery.Outcome, len(batch))
	for i, e := range batch {
		switch {
		case err != nil:
			outcomes[i] = notDone(ok, "the batch's answer: "+err.Error())
		case failed[e.task.ID()]:
			outcomes[i] = notDone(ok, "among batchItemFailures")
		default:
			outcomes[i] = ok
		}
	}
	return outcomes
}

func notDone(ok delivery.Outcome, detail string) delivery.Outcome {
	o := delivery.Errorf(delivery.FunctionError, "%s", detail).Outcome
	o.Status, o.Log = ok.Status, ok.Log
	return o
}
