package awslambda_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queuehook/queuehook/awslambda"
	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/internal/fakelambda"
	"github.com/queuehook/queuehook/task"
)

func TestRawCall(t *testing.T) {
	s := fakelambda.Start(t, always(fakelambda.Answer{Body: `"ok"`}))
	tg := newTarget(t, s, awslambda.Config{Qualifier: "live", MaxAttempts: 40})
	payload := ` {"html": "<&>", "n": 1.0} `
	tk := task.From(task.Spec{
		ID: "01J0TASK", Queue: "orders", Payload: []byte(payload), Redelivered: true, Context: context.Background(),
		Meta: task.Meta{Attempt: 2, EnqueuedAt: 1_800_000_000_123, Headers: map[string]string{"X-A": "b"}},
	})
	if got := deliver(t, tg, tk); got.Reason != delivery.OK {
		t.Fatalf("got %+v", got)
	}
	calls := s.Calls()
	if len(calls) != 1 || string(calls[0].Payload) != payload || calls[0].Function != "thumbs" || calls[0].Qualifier != "live" ||
		calls[0].Kind != "RequestResponse" || calls[0].LogType != "Tail" {
		t.Errorf("calls %+v", calls)
	}
	want := map[string]string{
		"task_id": "01J0TASK", "queue": "orders", "attempt": "3", "max_attempts": "40", "redelivered": "true",
		"enqueued_at": "2027-01-15T08:00:00.123Z", "headers": `{"X-A":"b"}`,
	}
	if diff := cmp.Diff(want, calls[0].Custom); diff != "" {
		t.Errorf("ClientContext.custom (-want +got):\n%s", diff)
	}
}

func TestEnvelope(t *testing.T) {
	s := fakelambda.Start(t, always(fakelambda.Answer{}))
	tg := newTarget(t, s, awslambda.Config{Payload: awslambda.PayloadEnvelope, Async: true, MaxAttempts: 3})
	meta := task.Meta{ContentType: "text/plain", TraceParent: "00-1", Headers: map[string]string{"X-A": "b"}}
	for _, payload := range []string{"", "plain <text>", "\x00\xff"} {
		if got := deliver(t, tg, namedTask("1", payload, meta)); got.Reason != delivery.OK {
			t.Errorf("%q: got %+v", payload, got)
		}
	}
	var got []map[string]any
	for _, call := range s.Calls() {
		var e map[string]any
		if err := json.Unmarshal(call.Payload, &e); err != nil || call.Kind != "Event" || call.Custom != nil || call.LogType != "" {
			t.Errorf("call %+v: %v", call, err)
		}
		got = append(got, e)
	}
	envelope := func(body, encoding string) map[string]any {
		return map[string]any{
			"task_id": "1", "queue": "orders", "attempt": 1.0, "max_attempts": 3.0, "body": body, "body_encoding": encoding,
			"headers": map[string]any{"X-A": "b", "Content-Type": "text/plain", "traceparent": "00-1"},
		}
	}
	want := []map[string]any{envelope("", "utf8"), envelope("plain <text>", "utf8"), envelope("AP8=", "base64")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestClientContextHasItsBound has headers that do not fit, which are left out.
func TestClientContextHasItsBound(t *testing.T) {
	s := fakelambda.Start(t, always(fakelambda.Answer{}))
	tg := newTarget(t, s, awslambda.Config{})
	deliver(t, tg, namedTask("1", "{}", task.Meta{Headers: map[string]string{"X-A": strings.Repeat("a", 3000)}}))
	deliver(t, tg, namedTask(strings.Repeat("1", 3000), "{}", task.Meta{}))
	calls := s.Calls()
	if _, there := calls[0].Custom["headers"]; there || calls[0].Custom["task_id"] != "1" {
		t.Errorf("custom %v", calls[0].Custom)
	}
	if calls[1].Custom != nil {
		t.Errorf("custom of %d entries, want none", len(calls[1].Custom))
	}
}

func TestAnswers(t *testing.T) {
	refusal := func(status int, code string) fakelambda.Answer {
		return fakelambda.Answer{Status: status, Code: code, Body: `{"Message":"why"}`}
	}
	for name, c := range map[string]struct {
		answer fakelambda.Answer
		want   delivery.Outcome
	}{
		"ok":               {fakelambda.Answer{Body: `{"errorMessage":"x","errorType":"Error"}`}, delivery.Outcome{Reason: delivery.OK}},
		"cut after 200":    {fakelambda.Answer{Cut: true, Body: "{}"}, delivery.Outcome{Reason: delivery.OK}},
		"unhandled":        {fakelambda.Answer{FunctionError: "Unhandled", Body: `{"errorMessage":"x","errorType":"E"}`}, delivery.Outcome{Reason: delivery.FunctionError, Status: 200, Detail: "Unhandled E"}},
		"handled":          {fakelambda.Answer{FunctionError: "Handled", Body: `no JSON`}, delivery.Outcome{Reason: delivery.FunctionError, Status: 200, Detail: "Handled"}},
		"never again":      {fakelambda.Answer{FunctionError: "Unhandled", Body: `{"errorType":"NonRetryableError"}`}, delivery.Outcome{Reason: delivery.Rejected, Status: 200, Detail: "NonRetryableError"}},
		"throttled":        {fakelambda.Answer{Status: 429, Code: "TooManyRequestsException", RetryAfter: "7"}, delivery.Outcome{Reason: delivery.Throttled, Status: 429, Detail: "TooManyRequestsException", RetryAfter: 7 * time.Second}},
		"which limit":      {fakelambda.Answer{Status: 429, Code: "TooManyRequestsException", Body: `{"message":"Rate Exceeded.","Reason":"ReservedFunctionConcurrentInvocationLimitExceeded"}`}, delivery.Outcome{Reason: delivery.Throttled, Status: 429, Detail: "TooManyRequestsException: ReservedFunctionConcurrentInvocationLimitExceeded"}},
		"EC2 throttled":    {refusal(502, "EC2ThrottledException"), delivery.Outcome{Reason: delivery.Throttled, Status: 502, Detail: "EC2ThrottledException: why"}},
		"asked to wait":    {fakelambda.Answer{Status: 503, RetryAfter: "7"}, delivery.Outcome{Reason: delivery.Throttled, Status: 503, RetryAfter: 7 * time.Second}},
		"429 without code": {fakelambda.Answer{Status: 429}, delivery.Outcome{Reason: delivery.Throttled, Status: 429, Detail: "UnknownError"}},
		"too large":        {refusal(413, "RequestTooLargeException"), delivery.Outcome{Reason: delivery.Rejected, Status: 413, Detail: "RequestTooLargeException"}},
		"content":          {refusal(400, "InvalidRequestContentException"), delivery.Outcome{Reason: delivery.Rejected, Status: 400, Detail: "InvalidRequestContentException"}},
		"media type":       {refusal(415, "UnsupportedMediaTypeException"), delivery.Outcome{Reason: delivery.Rejected, Status: 415, Detail: "UnsupportedMediaTypeException"}},
		"no JSON":          {fakelambda.Answer{Status: 400, Code: "InvalidRequestContentException", Body: "<html>"}, delivery.Outcome{Reason: delivery.Rejected, Status: 400, Detail: "InvalidRequestContentException"}},
		"no object":        {fakelambda.Answer{Status: 400, Code: "com.amazon#KMSDisabledException:http://internal/", Body: `["x"]`}, delivery.Outcome{Reason: delivery.Target, Status: 400, Detail: "KMSDisabledException"}},
		"no text":          {fakelambda.Answer{Status: 400, Code: "EC2ThrottledException", Body: `{"Message":{}}`}, delivery.Outcome{Reason: delivery.Throttled, Status: 400, Detail: "EC2ThrottledException"}},
		"code in the body": {fakelambda.Answer{Status: 400, Body: `{"__type":"UnsupportedMediaTypeException"}`}, delivery.Outcome{Reason: delivery.Rejected, Status: 400, Detail: "UnsupportedMediaTypeException"}},
		"not found":        {refusal(404, "ResourceNotFoundException"), delivery.Outcome{Reason: delivery.Target, Status: 404, Detail: "ResourceNotFoundException: why"}},
		"access":           {refusal(403, "AccessDeniedException"), delivery.Outcome{Reason: delivery.Target, Status: 403, Detail: "AccessDeniedException: why"}},
		"key":              {refusal(502, "KMSDisabledException"), delivery.Outcome{Reason: delivery.Target, Status: 502, Detail: "KMSDisabledException: why"}},
		"zip":              {refusal(502, "InvalidZipFileException"), delivery.Outcome{Reason: delivery.Target, Status: 502, Detail: "InvalidZipFileException: why"}},
		"network":          {refusal(502, "InvalidSubnetIDException"), delivery.Outcome{Reason: delivery.Target, Status: 502, Detail: "InvalidSubnetIDException: why"}},
		"service":          {refusal(500, "ServiceException"), delivery.Outcome{Reason: delivery.Status, Status: 500, Detail: "ServiceException"}},
		"parameter":        {refusal(400, "InvalidParameterValueException"), delivery.Outcome{Reason: delivery.Status, Status: 400, Detail: "InvalidParameterValueException"}},
		"502 of a proxy":   {fakelambda.Answer{Status: 502, Body: "<html>"}, delivery.Outcome{Reason: delivery.Status, Status: 502, TargetFault: true}},
		"redirect":         {fakelambda.Answer{Status: 307}, delivery.Outcome{Reason: delivery.Redirect, Status: 307}},
		"reset":            {fakelambda.Answer{Reset: true}, delivery.Outcome{Reason: delivery.Reset}},
	} {
		t.Run(name, func(t *testing.T) {
			s := fakelambda.Start(t, always(c.answer))
			got := deliver(t, newTarget(t, s, awslambda.Config{}), newTask("{}"))
			if got.Reason != c.want.Reason || got.Status != c.want.Status || got.RetryAfter != c.want.RetryAfter {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			if c.want.Detail != "" && got.Detail != c.want.Detail {
				t.Errorf("detail %q, want %q", got.Detail, c.want.Detail)
			}
			want := delivery.Of(c.want.Reason)
			if got.Settlement != want.Settlement || got.Charged != want.Charged || got.TargetFault != (want.TargetFault || c.want.TargetFault) {
				t.Errorf("got %+v, the table has %+v", got, want)
			}
			if n := len(s.Calls()); n != 1 {
				t.Errorf("%d requests for one attempt", n)
			}
		})
	}
}

func TestTheLogIsKept(t *testing.T) {
	s := fakelambda.Start(t, always(fakelambda.Answer{FunctionError: "Unhandled", Log: "START\nno such thumb\n"}))
	if got := deliver(t, newTarget(t, s, awslambda.Config{}), newTask("{}")); got.Log != "START\nno such thumb\n" {
		t.Errorf("log %q", got.Log)
	}
}

// TestUnsendable makes no call at all.
func TestUnsendable(t *testing.T) {
	text := func(n int) string { return `"` + strings.Repeat("a", n-2) + `"` }
	s := fakelambda.Start(t, always(fakelambda.Answer{}))
	sync, async := newTarget(t, s, awslambda.Config{}), newTarget(t, s, awslambda.Config{Async: true})
	for name, c := range map[string]struct {
		target  *awslambda.Target
		payload string
	}{
		"sync":          {sync, text(6<<20 + 1)},
		"async":         {async, text(1<<20 + 1)},
		"no JSON":       {sync, "{"},
		"empty":         {sync, ""},
		"two values":    {sync, "{}{}"},
		"invalid UTF-8": {async, "\"\xff\""},
		"enveloped":     {newTarget(t, s, awslambda.Config{Async: true, Payload: awslambda.PayloadEnvelope}), text(1 << 20)},
		"a message":     {newTarget(t, s, awslambda.Config{Async: true, Payload: awslambda.PayloadSQSEvent}), text(1 << 20)},
		"no text":       {newTarget(t, s, awslambda.Config{Payload: awslambda.PayloadSQSEvent}), "\xff"},
	} {
		if got := deliver(t, c.target, newTask(c.payload)); got.Reason != delivery.Unsendable || got.Charged {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	if n := len(s.Calls()); n != 0 {
		t.Errorf("%d calls", n)
	}
	for name, got := range map[string]delivery.Outcome{
		"sync": deliver(t, sync, newTask(text(6<<20))), "async": deliver(t, async, newTask(text(1<<20))),
	} {
		if got.Reason != delivery.OK {
			t.Errorf("%s, exactly at the bound: %+v", name, got)
		}
	}
}

func TestDeadlineAndShutdown(t *testing.T) {
	begun := make(chan struct{}, 2)
	s := fakelambda.Start(t, func(c fakelambda.Call) fakelambda.Answer {
		begun <- struct{}{}
		<-c.Done
		return fakelambda.Answer{}
	})
	tg := newTarget(t, s, awslambda.Config{})
	late := newEnding(t, context.DeadlineExceeded)
	go func() { <-begun; late.end() }()
	if got := outcome(t, tg.Deliver(late, newTask("{}"))); got.Reason != delivery.Timeout {
		t.Errorf("got %+v", got)
	}
	stopped, stop := context.WithCancelCause(t.Context())
	go func() {
		<-begun
		stop(delivery.ErrShutdown)
	}()
	if got := outcome(t, tg.Deliver(stopped, newTask("{}"))); got.Reason != delivery.Shutdown || !got.Unknown {
		t.Errorf("got %+v", got)
	}
	if n := len(s.Calls()); n != 2 {
		t.Errorf("%d requests for two attempts", n)
	}
}

func TestNoCredentials(t *testing.T) {
	s := fakelambda.Start(t, always(fakelambda.Answer{}))
	tg := func() *awslambda.Target {
		newTarget(t, s, awslambda.Config{}) // for its environment
		t.Setenv("AWS_ACCESS_KEY_ID", "")
		t.Setenv("AWS_SECRET_ACCESS_KEY", "")
		tg, err := awslambda.New(t.Context(), awslambda.Config{Function: "f"})
		if err != nil {
			t.Fatal(err)
		}
		return tg
	}()
	if got := deliver(t, tg, newTask("{}")); got.Reason != delivery.Target || got.Unknown || len(s.Calls()) != 0 {
		t.Errorf("got %+v, %d calls", got, len(s.Calls()))
	}
}

// TestNoEndpoint has a region that no endpoint can be made of: the detail names the region, not credentials.
func TestNoEndpoint(t *testing.T) {
	s := fakelambda.Start(t, always(fakelambda.Answer{}))
	newTarget(t, s, awslambda.Config{}) // for its environment
	t.Setenv("AWS_REGION", "eu west 1")
	tg, err := awslambda.New(t.Context(), awslambda.Config{Function: "f"})
	if err != nil {
		t.Fatal(err)
	}
	if got := deliver(t, tg, newTask("{}")); got.Reason != delivery.Target || got.Unknown || !strings.Contains(got.Detail, "region") {
		t.Errorf("got %+v", got)
	}
}

// Our log on standard error is JSON. The SDK must not write text of its own there, as it would when the host's metadata
// service refuses to give credentials.
func TestTheSDKLogsNothing(t *testing.T) {
	s := fakelambda.Start(t, always(fakelambda.Answer{}))
	newTarget(t, s, awslambda.Config{}) // for its environment
	metadata := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	defer metadata.Close()
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "",
		"AWS_EC2_METADATA_DISABLED": "false", "AWS_EC2_METADATA_SERVICE_ENDPOINT": metadata.URL,
	} {
		t.Setenv(name, value)
	}
	out, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	stderr := os.Stderr
	os.Stderr = out
	defer func() { os.Stderr = stderr }()
	tg, err := awslambda.New(t.Context(), awslambda.Config{Function: "f"})
	if err != nil {
		t.Fatal(err)
	}
	if got := deliver(t, tg, newTask("{}")); got.Reason != delivery.Target {
		t.Errorf("got %+v", got)
	}
	if said, err := os.ReadFile(out.Name()); err != nil || len(said) > 0 {
		t.Errorf("on standard error: %q, %v", said, err)
	}
}

func TestRefusedAndUnknownHost(t *testing.T) {
	s := fakelambda.Start(t, always(fakelambda.Answer{}))
	newTarget(t, s, awslambda.Config{})
	for url, want := range map[string]delivery.Reason{"http://127.0.0.1:1": delivery.Connect, "http://no..such.host": delivery.DNS} {
		t.Setenv("AWS_ENDPOINT_URL_LAMBDA", url)
		tg, err := awslambda.New(t.Context(), awslambda.Config{Function: "f"})
		if err != nil {
			t.Fatal(err)
		}
		if got := deliver(t, tg, newTask("{}")); got.Reason != want || got.Unknown {
			t.Errorf("%s: got %+v, want %v", url, got, want)
		}
	}
}

func TestDryRun(t *testing.T) {
	var answer fakelambda.Answer
	s := fakelambda.Start(t, func(fakelambda.Call) fakelambda.Answer { return answer })
	tg := newTarget(t, s, awslambda.Config{})
	if err := tg.DryRun(t.Context()); err != nil {
		t.Error(err)
	}
	answer = fakelambda.Answer{Status: 403, Code: "AccessDeniedException", Body: `{"Message":"no"}`}
	if err := tg.DryRun(t.Context()); err == nil || err.Error() != "target 403: AccessDeniedException: no" {
		t.Errorf("got %v", err)
	}
	if calls := s.Calls(); calls[0].Kind != "DryRun" {
		t.Errorf("calls %+v", calls)
	}
}

func TestNewRefuses(t *testing.T) {
	s := fakelambda.Start(t, always(fakelambda.Answer{}))
	newTarget(t, s, awslambda.Config{}) // for its environment
	for name, cfg := range map[string]awslambda.Config{
		"no function":   {},
		"payload":       {Function: "f", Payload: "xml"},
		"a raw batch":   {Function: "f", BatchSize: 2},
		"a large batch": {Function: "f", BatchSize: 10_001, Payload: awslambda.PayloadSQSEvent},
		"negative":      {Function: "f", Concurrency: -1},
	} {
		if _, err := awslambda.New(t.Context(), cfg); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	t.Setenv("AWS_REGION", "")
	if _, err := awslambda.New(t.Context(), awslambda.Config{Function: "f"}); err == nil || !strings.Contains(err.Error(), "AWS_REGION") {
		t.Errorf("without a region: %v", err)
	}
	if _, err := awslambda.New(t.Context(), awslambda.Config{Function: "f", Region: "eu-west-3"}); err != nil {
		t.Error(err)
	}
}

// TestNothingGrows makes many calls that end in every way.
func TestNothingGrows(t *testing.T) {
	const slots = 8
	s := fakelambda.Start(t, func(c fakelambda.Call) fakelambda.Answer {
		return []fakelambda.Answer{
			{Body: strings.Repeat(" ", 200_000)},
			{FunctionError: "Unhandled"},
			{Status: 429},
			{Status: 500, Body: strings.Repeat("x", 70_000)},
			{Reset: true},
			{Cut: true},
			{Body: "{}"},
			{Body: "{}"},
		}[c.Number%8]
	})
	tg := newTarget(t, s, awslambda.Config{Concurrency: slots})
	round := func(n int) {
		done := make(chan struct{})
		for range slots {
			go func() {
				defer func() { done <- struct{}{} }()
				for range n / slots {
					deliver(t, tg, newTask("{}"))
				}
			}()
		}
		for range slots {
			<-done
		}
	}
	round(200)
	goroutines := runtime.NumGoroutine()
	round(800)
	if now := runtime.NumGoroutine(); now > goroutines+4*slots {
		t.Errorf("%d goroutines, %d before", now, goroutines)
	}
	if open := s.Open(); open > slots {
		t.Errorf("%d connections for %d slots", open, slots)
	}
}

func TestConnectionsAreUsedAgainAndThenClosed(t *testing.T) {
	const slots = 4
	s := fakelambda.Start(t, always(fakelambda.Answer{Body: "{}"}))
	tg := newTarget(t, s, awslambda.Config{Concurrency: slots})
	done := make(chan struct{})
	for range slots {
		go func() {
			defer func() { done <- struct{}{} }()
			for range 50 {
				deliver(t, tg, newTask("{}"))
			}
		}()
	}
	for range slots {
		<-done
	}
	// Some of net/http's connections are not kept when the processors are busy.
	if got := s.Accepted(); got > slots+len(s.Calls())/10 {
		t.Errorf("%d connections for %d calls at concurrency %d", got, len(s.Calls()), slots)
	}
	// Idle ones are closed from here, before a gateway on the way forgets them.
	await(t, "idle connections to close", func() bool { return s.Open() == 0 })
}
