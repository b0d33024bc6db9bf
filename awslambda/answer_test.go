package awslambda_test

import (
	"strings"
	"testing"

	"github.com/queuehook/queuehook/awslambda"
	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/internal/fakelambda"
)

// TestAnswersOfAnyLength has answers that are longer than Lambda allows, or that break off. The body of a batch's
// answer decides which tasks are completed, so a part of it completes none; for other calls the status and headers
// decide.
func TestAnswersOfAnyLength(t *testing.T) {
	const most = 6<<20 + 64<<10
	padding := strings.Repeat(" ", most)
	for name, c := range map[string]struct {
		answer       fakelambda.Answer
		alone, batch delivery.Reason
		detail       string // of the batch
	}{
		"as long as can be": {
			fakelambda.Answer{Body: "{}" + padding[3:]}, delivery.OK, delivery.OK, "",
		},
		"too long, a good beginning": {
			fakelambda.Answer{Body: `{"batchItemFailures":[]}` + padding + "x"},
			delivery.OK, delivery.FunctionError,
			"the answer is longer than Lambda lets any be",
		},
		"too long a failure": {
			fakelambda.Answer{FunctionError: "Unhandled", Body: padding + `{"errorType":"NonRetryable"}`},
			delivery.FunctionError, delivery.FunctionError, "Unhandled",
		},
		"half a failure": {
			fakelambda.Answer{Cut: true, FunctionError: "Unhandled", Body: `{"errorType":"E"}`},
			delivery.FunctionError, delivery.FunctionError, "Unhandled E",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := fakelambda.Start(t, always(c.answer))
			if got := deliver(t, newTarget(t, s, awslambda.Config{}), newTask("{}")); got.Reason != c.alone {
				t.Errorf("alone: got %+v, want %v", got, c.alone)
			}
			for i, got := range batch(t, newTarget(t, s, full), "a", "b", "c", "d") {
				if got.Reason != c.batch || got.Detail != c.detail {
					t.Errorf("batch, task %d: got %+v, want %v, %q", i, got, c.batch, c.detail)
				}
			}
		})
	}
}
