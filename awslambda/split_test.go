package awslambda_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/internal/fakelambda"
	"github.com/queuehook/queuehook/task"
)

// TestABatchTooLargeIsSplit has an endpoint that takes less than Lambda's documented limit.
func TestABatchTooLargeIsSplit(t *testing.T) {
	s := fakelambda.Start(t, func(c fakelambda.Call) fakelambda.Answer {
		if len(ids(t, c)) > 1 {
			return fakelambda.Answer{Status: 413, Code: "RequestTooLargeException"}
		}
		return fakelambda.Answer{Body: "{}"}
	})
	if got := reasons(batch(t, newTarget(t, s, full), "a", "b", "c", "d")); got != "ok ok ok ok" {
		t.Errorf("got %s", got)
	}
	var alone []string
	for _, c := range s.Calls() {
		if all := ids(t, c); len(all) == 1 {
			alone = append(alone, all[0])
		}
	}
	if diff := cmp.Diff([]string{"t00", "t01", "t02", "t03"}, alone); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// unsentInTime is the outcome of a task for which nothing was sent before its deadline.
var unsentInTime = delivery.Outcome{
	Reason: delivery.Timeout, Settlement: delivery.Release, Detail: "before there was a call",
}

// TestTheRestOfASplitBatchIsGivenBack lets the deadline pass during the call with the first half: only that half has an
// unknown outcome and is charged.
func TestTheRestOfASplitBatchIsGivenBack(t *testing.T) {
	for name, c := range map[string]struct {
		end               error
		called, notCalled delivery.Outcome
	}{
		"deadline": {context.DeadlineExceeded, delivery.Of(delivery.Timeout), unsentInTime},
		"shutdown": {
			context.Canceled, delivery.Of(delivery.Shutdown),
			delivery.Outcome{Reason: delivery.Shutdown, Settlement: delivery.Release, Detail: "before there was a connection"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := newEnding(t, c.end)
			s := fakelambda.Start(t, func(call fakelambda.Call) fakelambda.Answer {
				if call.Number == 1 {
					return fakelambda.Answer{Status: 413, Code: "RequestTooLargeException"}
				}
				ctx.end()
				<-call.Done
				return fakelambda.Answer{}
			})
			var tasks []*task.Task
			for i := range 4 {
				tasks = append(tasks, namedTask(fmt.Sprint(i), "x", task.Meta{}))
			}
			got, err := newTarget(t, s, full).InvokeBatch(ctx, tasks...)
			if err != nil {
				t.Fatal(err)
			}
			c.called.Detail = "before the answer"
			shared := c.called
			shared.Shared = true
			want := []delivery.Outcome{c.called, shared, c.notCalled, c.notCalled}
			for i := range got[2:] {
				got[2+i].Shared = false // nobody looks at it where nothing was sent
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if n := len(s.Calls()); n != 2 {
				t.Errorf("%d calls, want 2", n)
			}
		})
	}
}
