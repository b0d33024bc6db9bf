package awslambda_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/queuehook/queuehook/awslambda"
	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/internal/fakelambda"
	"github.com/queuehook/queuehook/task"
)

// patience bounds what a test waits for that should come at once.
const patience = 30 * time.Second

// newTarget returns a target that reaches s.
func newTarget(t testing.TB, s *fakelambda.Server, cfg awslambda.Config) *awslambda.Target {
	t.Helper()
	for _, entry := range s.Environment() {
		name, value, _ := strings.Cut(entry, "=")
		t.Setenv(name, value)
	}
	if cfg.Function == "" {
		cfg.Function = "thumbs"
	}
	tg, err := awslambda.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tg.Close)
	return tg
}

func newTask(payload string) *task.Task { return namedTask("01J0TASK", payload, task.Meta{}) }

func namedTask(id, payload string, meta task.Meta) *task.Task {
	return task.From(task.Spec{ID: id, Queue: "orders", Payload: []byte(payload), Meta: meta, Context: context.Background()})
}

// deliver makes one attempt with plenty of time and returns its outcome.
func deliver(t testing.TB, tg *awslambda.Target, tk *task.Task) delivery.Outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return outcome(t, tg.Deliver(ctx, tk))
}

// outcome returns an error's outcome, and fails the test when the error is neither nil nor a *delivery.Error.
func outcome(t testing.TB, err error) delivery.Outcome {
	t.Helper()
	if _, ok := errors.AsType[*delivery.Error](err); err != nil && !ok {
		t.Errorf("Deliver returned a %T: %v", err, err)
	}
	return delivery.FromError(err)
}

// ending is a context that ends with err when end is called, as by a deadline or a cancellation: the test decides what
// that comes after.
type ending struct {
	context.Context

	err  error
	over chan struct{}
}

func newEnding(t testing.TB, err error) ending {
	t.Helper()
	return ending{t.Context(), err, make(chan struct{})}
}

func (e ending) end() { close(e.over) }

func (e ending) Done() <-chan struct{} { return e.over }

func (e ending) Err() error {
	select {
	case <-e.over:
		return e.err
	default:
		return nil
	}
}

func always(a fakelambda.Answer) fakelambda.Script {
	return func(fakelambda.Call) fakelambda.Answer { return a }
}

// await waits until ok holds.
func await(t testing.TB, what string, so func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for !so() {
		select {
		case <-look.C:
		case <-ctx.Done():
			t.Fatalf("waited for %s in vain", what)
		}
	}
}
