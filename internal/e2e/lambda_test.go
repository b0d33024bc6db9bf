package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/queuehook/queuehook/internal/fakelambda"
	"github.com/queuehook/queuehook/internal/fleet"
	"github.com/queuehook/queuehook/internal/receiver"
	"github.com/queuehook/queuehook/internal/redistest"
)

// work is what a function does with a task: it passes it on to the queue's receiver, so that the law can be checked.
// The receiver's script says whether it succeeds.
func work(ctx context.Context, q *fleet.Queue, id, redelivered string, payload []byte) error {
	ctx, cancel := context.WithTimeout(ctx, fleet.Patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, q.Receiver.URL(), bytes.NewReader(payload))
	if err != nil {
		return err
	}
	req.Header.Set("Dispatch-Task-Id", id)
	req.Header.Set("Dispatch-Redelivered", redelivered)
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent {
		return errors.New("not done")
	}
	return nil
}

// function is a Lambda function that works on one task a call.
func function(q *fleet.Queue, failed fakelambda.Answer) fakelambda.Script {
	return func(c fakelambda.Call) fakelambda.Answer {
		if work(context.Background(), q, c.Custom["task_id"], c.Custom["redelivered"], c.Payload) != nil {
			return failed
		}
		return fakelambda.Answer{Body: `{"errorType":"Error","errorMessage":"looks like one"}`}
	}
}

// twice makes each task's first request fail.
func twice() receiver.Script {
	return receiver.EachTask(func() receiver.Script {
		return receiver.Sequence(receiver.Status(500), receiver.Status(204))
	})
}

func numbers(n int) [][]byte {
	var all [][]byte
	for i := range n {
		all = append(all, fmt.Appendf(nil, `{"n":%d}`, i))
	}
	return all
}

func TestFunctionErrors(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	for _, kind := range []string{"Handled", "Unhandled"} {
		q := fleet.NewQueue(t, server, receiver.Config{Script: twice()})
		endpoint := fakelambda.Start(t, function(q, fakelambda.Answer{FunctionError: kind, Log: "no thumb\n"}))
		d := fleet.StartDispatcher(t, server.URL(), q.Name+"=lambda:thumbs:live", endpoint.Environment()...)
		q.Push(t, numbers(20)...)
		q.AwaitDrained(t)
		d.Stop(t)
		if got := len(endpoint.Calls()); got != 40 {
			t.Errorf("%s: %d calls for 20 tasks that fail once", kind, got)
		}
		for _, line := range d.Logged("attempt finished") {
			if line["reason"] != "function_error" || strings.Contains(fmt.Sprint(line), "no thumb") {
				t.Errorf("%s: logged %v", kind, line)
			}
		}
		q.Law(t)
	}
}

// TestOneRequestPerAttempt has the endpoint fail in the ways that an SDK likes to repeat.
func TestOneRequestPerAttempt(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	for name, failed := range map[string]func(fakelambda.Call) fakelambda.Answer{
		"late":  func(c fakelambda.Call) fakelambda.Answer { <-c.Done; return fakelambda.Answer{} },
		"reset": func(fakelambda.Call) fakelambda.Answer { return fakelambda.Answer{Reset: true} },
		"502":   func(fakelambda.Call) fakelambda.Answer { return fakelambda.Answer{Status: 502} },
		"throttled": func(fakelambda.Call) fakelambda.Answer {
			return fakelambda.Answer{Status: 429, Code: "TooManyRequestsException"}
		},
	} {
		q := fleet.NewQueue(t, server, receiver.Config{})
		var seen sync.Map
		good := function(q, fakelambda.Answer{})
		endpoint := fakelambda.Start(t, func(c fakelambda.Call) fakelambda.Answer {
			if _, again := seen.LoadOrStore(c.Custom["task_id"], true); !again {
				return failed(c)
			}
			return good(c)
		})
		env := append(endpoint.Environment(), "TIMEOUT=3s", "LOG_LEVEL=debug")
		d := fleet.StartDispatcher(t, server.URL(), q.Name+"=lambda:thumbs", env...)
		q.Push(t, numbers(5)...)
		q.AwaitDrained(t)
		d.Stop(t)
		if calls, attempts := len(endpoint.Calls()), len(d.Logged("attempt finished")); calls != attempts || calls < 10 {
			t.Errorf("%s: %d requests for %d attempts", name, calls, attempts)
		}
		q.Law(t)
	}
}

func TestFunctionInputsThatCannotBe(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	endpoint := fakelambda.Start(t, func(fakelambda.Call) fakelambda.Answer { return fakelambda.Answer{} })
	sync, async := fleet.NewQueue(t, server, receiver.Config{}), fleet.NewQueue(t, server, receiver.Config{})
	file := write(t, "routes.yaml", fmt.Sprintf("routes:\n- {queue: '%s', lambda: f}\n- {queue: '%s', lambda: f, invoke: async}\n", sync.Name, async.Name))
	text := func(n int) []byte { return []byte(`"` + strings.Repeat("a", n-2) + `"`) }
	d := fleet.StartDispatcher(t, server.URL(), "", append(endpoint.Environment(), "ROUTES_FILE="+file)...)
	sync.Push(t, text(6<<20+1), []byte("{"))
	async.Push(t, text(1<<20+1))
	for q, n := range map[*fleet.Queue]int{sync: 2, async: 1} {
		q.AwaitDrained(t)
		dead := q.Dead(t)
		if len(dead) != n {
			t.Errorf("%d dead letters, want %d", len(dead), n)
		}
		for _, letter := range dead {
			if letter.Reason.String() != "unsendable" {
				t.Errorf("buried as %v", letter.Reason)
			}
		}
	}
	d.Stop(t)
	if n := len(endpoint.Calls()); n != 0 {
		t.Errorf("%d calls", n)
	}
	sync.Law(t)
	async.Law(t)
}

// TestFunctionsOfSQS runs a handler written for SQS in batches, which first answers every kind of rubbish.
func TestFunctionsOfSQS(t *testing.T) {
	t.Parallel()
	const tasks = 200
	server := redistest.Shared(t)
	q := fleet.NewQueue(t, server, receiver.Config{Script: twice()})
	handler := lambda.NewHandler(func(ctx context.Context, event events.SQSEvent) (response events.SQSEventResponse, _ error) {
		for _, m := range event.Records {
			again := ""
			if a := m.MessageAttributes["Dispatch-Redelivered"].StringValue; a != nil {
				again = *a
			}
			if work(ctx, q, m.MessageId, again, []byte(m.Body)) != nil {
				response.BatchItemFailures = append(response.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: m.MessageId})
			}
		}
		return response, nil
	})
	rubbish := []string{
		`{"batchItemFailures":[{"itemIdentifier":"x"}]}`, `{"batchItemFailures":[{"itemIdentifier":""}]}`,
		`{"batchItemFailures":[{"id":"x"}]}`, `{"batchItemFailures":{}}`, `{"batchItemFailures":[`,
	}
	endpoint := fakelambda.Start(t, func(c fakelambda.Call) fakelambda.Answer {
		if c.Number <= len(rubbish) {
			return fakelambda.Answer{Body: rubbish[c.Number-1]}
		}
		out, err := handler.Invoke(context.Background(), c.Payload)
		if err != nil {
			return fakelambda.Answer{FunctionError: "Unhandled"}
		}
		return fakelambda.Answer{Body: string(out)}
	})
	file := write(t, "routes.yaml", fmt.Sprintf(
		"routes:\n- {queue: '%s', lambda: thumbs, payload: sqs-event, batch: {size: 10, wait: 500ms}, concurrency: 2}\n", q.Name))
	q.PushN(t, tasks)
	d := fleet.StartDispatcher(t, server.URL(), "", append(endpoint.Environment(), "ROUTES_FILE="+file)...)
	q.AwaitDrained(t)
	d.Stop(t)
	if dead := q.Dead(t); len(dead) > 0 {
		t.Errorf("%d dead letters", len(dead))
	}
	full := 0
	for _, c := range endpoint.Calls() {
		var event events.SQSEvent
		if err := json.Unmarshal(c.Payload, &event); err != nil || len(event.Records) > 10 {
			t.Errorf("call %d: %d messages, %v", c.Number, len(event.Records), err)
		}
		if len(event.Records) == 10 {
			full++
		}
	}
	if full < tasks/20 {
		t.Errorf("%d full batches in %d calls for %d tasks", full, len(endpoint.Calls()), tasks)
	}
	q.Law(t)
}

func TestSIGTERMWhileAFunctionRuns(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	q := fleet.NewQueue(t, server, receiver.Config{Script: receiver.Always(receiver.Status(204).After(3 * time.Second))})
	endpoint := fakelambda.Start(t, function(q, fakelambda.Answer{}))
	d := fleet.StartDispatcher(t, server.URL(), q.Name+"=lambda:thumbs", endpoint.Environment()...)
	q.Push(t, numbers(4)...)
	q.AwaitInFlight(t, 4)
	d.Stop(t)
	q.AwaitDrained(t)
	if got := len(endpoint.Calls()); got != 4 {
		t.Errorf("%d calls, want 4", got)
	}
	q.Law(t)
}

func TestFunctionsLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	const slots = 16
	server := redistest.Shared(t)
	q := fleet.NewQueue(t, server, receiver.Config{Script: twice()})
	endpoint := fakelambda.Start(t, function(q, fakelambda.Answer{FunctionError: "Unhandled", Log: strings.Repeat("l", 4000)}))
	env := append(endpoint.Environment(), "CONCURRENCY=16")
	d := fleet.StartDispatcher(t, server.URL(), q.Name+"=lambda:thumbs", env...)
	q.Push(t, numbers(200)...)
	q.AwaitDrained(t)
	before := usageOf(t, d)
	var more [][]byte
	for i := range scale(1500) {
		more = append(more, fmt.Appendf(nil, `{"more":%d}`, i))
	}
	q.Push(t, more...)
	q.AwaitDrained(t)
	before.flat(t, usageOf(t, d), slots)
	d.Stop(t)
	if got := endpoint.Accepted(); got > 2*slots+spare(len(endpoint.Calls())) {
		t.Errorf("%d connections for %d calls at concurrency %d", got, len(endpoint.Calls()), slots)
	}
	q.Law(t)
}
