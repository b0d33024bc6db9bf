package awslambda_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/google/go-cmp/cmp"

	"github.com/queuehook/queuehook/awslambda"
	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/internal/fakelambda"
	"github.com/queuehook/queuehook/task"
)

// batch delivers tasks named t00, t01, ... all at once and returns their outcomes in this order.
func batch(t *testing.T, tg *awslambda.Target, payloads ...string) []delivery.Outcome {
	t.Helper()
	outcomes := make([]delivery.Outcome, len(payloads))
	var group sync.WaitGroup
	for i, payload := range payloads {
		tk := namedTask(fmt.Sprintf("t%02d", i), payload, task.Meta{Attempt: i, EnqueuedAt: 1_800_000_000_000})
		group.Go(func() { outcomes[i] = deliver(t, tg, tk) })
	}
	group.Wait()
	return outcomes
}

func reasons(outcomes []delivery.Outcome) string {
	var all []string
	for _, o := range outcomes {
		all = append(all, o.Reason.String())
	}
	return strings.Join(all, " ")
}

// ids are the ids of a call's messages.
func ids(t testing.TB, c fakelambda.Call) []string {
	t.Helper()
	var event events.SQSEvent
	if err := json.Unmarshal(c.Payload, &event); err != nil {
		t.Errorf("call %d: %v", c.Number, err)
	}
	var all []string
	for _, r := range event.Records {
		all = append(all, r.MessageId)
	}
	return all
}

var full = awslambda.Config{
	Payload: awslambda.PayloadSQSEvent, BatchSize: 4, BatchWait: time.Hour, Concurrency: 2, Timeout: time.Minute,
}

// TestAnUnchangedHandler runs a function that was written for SQS: it fails message by message, by its body.
func TestAnUnchangedHandler(t *testing.T) {
	var got events.SQSEvent
	handler := lambda.NewHandler(func(_ context.Context, event events.SQSEvent) (events.SQSEventResponse, error) {
		got = event
		var response events.SQSEventResponse
		for _, m := range event.Records {
			if m.Body == "bad" {
				response.BatchItemFailures = append(response.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: m.MessageId})
			}
			if m.Body == "panic" {
				return response, errors.New("all of it")
			}
		}
		return response, nil
	})
	s := fakelambda.Start(t, func(c fakelambda.Call) fakelambda.Answer {
		out, err := handler.Invoke(context.Background(), c.Payload)
		if err != nil {
			return fakelambda.Answer{FunctionError: "Unhandled", Body: `{"errorMessage":"all of it","errorType":"errorString"}`}
		}
		return fakelambda.Answer{Body: string(out)}
	})
	tg := newTarget(t, s, full)
	if got := reasons(batch(t, tg, "a", "bad", "<é>", "bad")); got != "ok function_error ok function_error" {
		t.Errorf("got %s", got)
	}
	want := events.SQSMessage{
		MessageId: "t02", ReceiptHandle: "t02", Body: "<é>", Md5OfBody: "ff9f20e8a4ae0a3c9b7ab03d4d0b3bd6",
		EventSource: "aws:sqs", EventSourceARN: "arn:aws:sqs:eu-west-1:000000000000:orders", AWSRegion: "eu-west-1",
		MessageAttributes: map[string]events.SQSMessageAttribute{},
		Attributes: map[string]string{
			"ApproximateReceiveCount": "3", "SentTimestamp": "1800000000000", "ApproximateFirstReceiveTimestamp": "0",
			"SenderId": "queuehook",
		},
	}
	if len(got.Records) == 4 {
		want.Md5OfBody = got.Records[2].Md5OfBody
		if diff := cmp.Diff(want, got.Records[2]); diff != "" {
			t.Errorf("message (-want +got):\n%s", diff)
		}
	}
	if got := reasons(batch(t, tg, "a", "panic", "c", "d")); got != "function_error function_error function_error function_error" {
		t.Errorf("got %s", got)
	}
	if n := len(s.Calls()); n != 2 {
		t.Errorf("%d calls, want 2", n)
	}
}

// TestBatchAnswers checks that an answer which makes no sense completes nothing.
func TestBatchAnswers(t *testing.T) {
	const all, none = "ok ok ok ok", "function_error function_error function_error function_error"
	var answer string
	s := fakelambda.Start(t, func(fakelambda.Call) fakelambda.Answer { return fakelambda.Answer{Body: answer} })
	tg := newTarget(t, s, full)
	for a, want := range map[string]string{
		`{}`: all, `null`: all, ` {} `: all, `{"batchItemFailures":[]}`: all, `{"batchItemFailures":null}`: all,
		`{"batchItemFailures":[],"more":1}`:                                               all,
		`{"batchItemFailures":[{"itemIdentifier":"t01"},{"itemIdentifier":"t03","x":1}]}`: "ok function_error ok function_error",
		`{"batchItemFailures":[{"itemIdentifier":"t01"},{"itemIdentifier":"t01"}]}`:       "ok function_error ok ok",
		`{"batchItemFailures":[{"itemIdentifier":"t01"},{"itemIdentifier":"t77"}]}`:       none,
		`{"batchItemFailures":[{"itemIdentifier":""}]}`:                                   none,
		`{"batchItemFailures":[{"itemIdentifier":null}]}`:                                 none,
		`{"batchItemFailures":[{"itemIdentifier":1}]}`:                                    none,
		`{"batchItemFailures":[{"itemId":"t01"}]}`:                                        none,
		`{"batchItemFailures":[{"ItemIdentifier":"t01"}]}`:                                none,
		`{"batchItemFailures":[{}]}`:                                                      none,
		`{"batchItemFailures":[null]}`:                                                    none,
		`{"batchItemFailures":["t01"]}`:                                                   none,
		`{"batchItemFailures":{"itemIdentifier":"t01"}}`:                                  none,
		`{"batchItemFailures":"t01"}`:                                                     none,
		`{"batchItemFailure":[{"itemIdentifier":"t01"}]}`:                                 none,
		`{"BatchItemFailures":[]}`:                                                        none,
		`{"batchItemFailures":[{"itemIdentifier":"t01"}],"batchItemFailures":[]}`:         none,
		`{"batchItemFailures":[]`:                                                         none, `{} {}`: none, ``: none, `[]`: none, `"ok"`: none, `true`: none,
	} {
		answer = a
		if got := reasons(batch(t, tg, "a", "b", "c", "d")); got != want {
			t.Errorf("%s: got %s, want %s", a, got, want)
		}
	}
}

// TestBatchesThatFail says what a call's end means for each of its tasks.
func TestBatchesThatFail(t *testing.T) {
	for name, c := range map[string]struct {
		answer fakelambda.Answer
		want   delivery.Reason
		settle delivery.Settlement
	}{
		"throttled": {fakelambda.Answer{Status: 429, Code: "TooManyRequestsException"}, delivery.Throttled, delivery.Abandon},
		"cut":       {fakelambda.Answer{Cut: true, Body: "{}"}, delivery.Reset, delivery.Abandon},
		"reset":     {fakelambda.Answer{Reset: true}, delivery.Reset, delivery.Abandon},
		"one of them": {
			fakelambda.Answer{FunctionError: "Unhandled", Body: `{"errorType":"NonRetryable"}`}, delivery.Rejected, delivery.Abandon,
		},
	} {
		s := fakelambda.Start(t, always(c.answer))
		for i, got := range batch(t, newTarget(t, s, full), "a", "b", "c", "d") {
			if got.Reason != c.want || got.Settlement != c.settle || got.Shared != (i > 0) {
				t.Errorf("%s, task %d: got %+v", name, i, got)
			}
		}
		if n := len(s.Calls()); n != 1 {
			t.Errorf("%s: %d calls", name, n)
		}
	}
}

// TestABatchKeepsTheLimit fills batches by bytes: three tasks of 2 MB are over 6 MB with the JSON around them.
func TestABatchKeepsTheLimit(t *testing.T) {
	s := fakelambda.Start(t, always(fakelambda.Answer{Body: "{}"}))
	cfg := full
	cfg.BatchSize, cfg.BatchWait = 100, 100*time.Millisecond
	large := strings.Repeat("a", 2<<20)
	if got := reasons(batch(t, newTarget(t, s, cfg), large, large, large, large, large, large)); got != "ok ok ok ok ok ok" {
		t.Errorf("got %s", got)
	}
	for _, c := range s.Calls() {
		if n := len(ids(t, c)); n > 2 || len(c.Payload) > 6<<20 {
			t.Errorf("call %d: %d messages, %d bytes", c.Number, n, len(c.Payload))
		}
	}
}

// TestTasksGatherWhileCallsAreTaken gets full batches without a wait, in the order of the tasks.
func TestTasksGatherWhileCallsAreTaken(t *testing.T) {
	first, goOn := make(chan struct{}), make(chan struct{})
	s := fakelambda.Start(t, func(c fakelambda.Call) fakelambda.Answer {
		if c.Number == 1 {
			close(first)
			<-goOn
		}
		return fakelambda.Answer{Body: "{}"}
	})
	cfg := full
	cfg.BatchWait, cfg.Concurrency, cfg.BatchSize = 0, 1, 3
	tg := newTarget(t, s, cfg)
	var group sync.WaitGroup
	group.Go(func() { deliver(t, tg, namedTask("early", "x", task.Meta{})) })
	<-first
	given, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for i := range 6 {
		tk := namedTask(fmt.Sprintf("t%d", 5-i), "x", task.Meta{})
		group.Go(func() { outcome(t, tg.Deliver(given, tk)) })
	}
	await(t, "six tasks to gather", func() bool { return tg.Waiting() == 6 })
	close(goOn)
	group.Wait()
	var got [][]string
	for _, c := range s.Calls() {
		got = append(got, ids(t, c))
	}
	if diff := cmp.Diff([][]string{{"early"}, {"t0", "t1", "t2"}, {"t3", "t4", "t5"}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestATaskLeavesABatchThatIsNotCalled has a shutdown, and a deadline, while tasks wait for others.
func TestATaskLeavesABatchThatIsNotCalled(t *testing.T) {
	s := fakelambda.Start(t, always(fakelambda.Answer{Body: "{}"}))
	tg := newTarget(t, s, full)
	stopped, stop := context.WithCancelCause(t.Context())
	stop(delivery.ErrShutdown)
	if got := outcome(t, tg.Deliver(stopped, newTask("x"))); got.Settlement != delivery.Release || got.Unknown {
		t.Errorf("got %+v", got)
	}
	late, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	got := outcome(t, tg.Deliver(late, newTask("x")))
	if diff := cmp.Diff(unsentInTime, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := reasons(batch(t, tg, "a", "b", "c", "d")); got != "ok ok ok ok" || len(ids(t, s.Calls()[0])) != 4 {
		t.Errorf("the batch after them: %s", got)
	}
}

// TestAPartialBatchGoesWhenNoMoreTasksCome stops while tasks wait for others, one of them leased just before.
func TestAPartialBatchGoesWhenNoMoreTasksCome(t *testing.T) {
	s := fakelambda.Start(t, always(fakelambda.Answer{Body: "{}"}))
	tg := newTarget(t, s, full)
	var group sync.WaitGroup
	for i := range 3 {
		group.Go(func() {
			if got := deliver(t, tg, namedTask(fmt.Sprint(i), "x", task.Meta{})); got.Reason != delivery.OK {
				t.Errorf("got %+v", got)
			}
		})
	}
	await(t, "three tasks to gather", func() bool { return tg.Waiting() == 3 })
	tg.Drain()
	group.Wait()
	if got := deliver(t, tg, newTask("x")); got.Reason != delivery.OK {
		t.Errorf("the last one: got %+v", got)
	}
	if calls := s.Calls(); len(calls) != 2 || len(ids(t, calls[0])) != 3 {
		t.Errorf("%d calls, want one of three tasks and one of one", len(calls))
	}
	newTarget(t, s, awslambda.Config{}).Drain() // has nothing to wait for
}

// TestACallEndsWithAllItsTasks ends the call when each of its tasks was cancelled, and not before.
func TestACallEndsWithAllItsTasks(t *testing.T) {
	begun := make(chan struct{})
	s := fakelambda.Start(t, func(c fakelambda.Call) fakelambda.Answer {
		close(begun)
		<-c.Done
		return fakelambda.Answer{}
	})
	tg := newTarget(t, s, full)
	stopped, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	outcomes := make(chan delivery.Outcome, 4)
	for i := range 4 {
		tk := namedTask(fmt.Sprint(i), "x", task.Meta{})
		go func() { outcomes <- outcome(t, tg.Deliver(stopped, tk)) }()
	}
	<-begun
	stop(delivery.ErrShutdown)
	for range 4 {
		if got := <-outcomes; got.Reason != delivery.Shutdown || !got.Unknown {
			t.Errorf("got %+v", got)
		}
	}
}
