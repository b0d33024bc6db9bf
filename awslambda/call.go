package awslambda

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/smithy-go"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/internal/exchange"
)

const (
	// maxAnswer is more than any function may answer: 6 MB, and a little.
	maxAnswer = 6<<20 + 64<<10
	// maxDrain is how much is read of an answer that nobody looks at, so that its connection can be used again.
	maxDrain = 64 << 10
	// maxLog bounds what is kept of a function's log in bytes.
	maxLog = 4 << 10
)

// request is what one call says.
type request struct {
	kind       types.InvocationType // empty = the route's
	payload    []byte
	context    string // ClientContext; empty = none
	lastReason string // how the attempt before ended
	whole      bool   // the answer's body decides, too, unless the function failed
}

// invoke makes one call, with one request on the wire, and answers what it means and what the function answered.
func (tg *Target) invoke(ctx context.Context, r request) (delivery.Outcome, []byte) {
	in := &lambda.InvokeInput{
		FunctionName: &tg.cfg.Function, InvocationType: cmp.Or(r.kind, tg.cfg.kind()), Payload: r.payload,
	}
	if tg.cfg.Qualifier != "" {
		in.Qualifier = &tg.cfg.Qualifier
	}
	if in.InvocationType == types.InvocationTypeRequestResponse {
		in.LogType = types.LogTypeTail
		if r.context != "" {
			in.ClientContext = &r.context
		}
	}
	c := call{client: tg.http, whole: r.whole}
	out, err := tg.lambda.Invoke(ctx, in, func(o *lambda.Options) { o.HTTPClient = &c })
	answer := delivery.Invocation{Status: c.status, Header: c.header}
	switch {
	case err == nil:
		answer.FunctionError = aws.ToString(out.FunctionError)
		answer.Log = logTail(out.LogResult)
		if answer.FunctionError != "" {
			answer.ErrorType = errorType(out.Payload)
		}
	case c.status != 0:
		answer.Code, answer.Message = refusal(err, c.header)
	case c.tried || ctx.Err() != nil:
		return c.exchange.Failed(ctx, err, r.lastReason), nil
	default:
		// The error's text may hold the address of whoever should have given credentials.
		return delivery.Errorf(delivery.Target, "nothing could be sent: no AWS credentials, or no such region or endpoint").Outcome, nil
	}
	outcome := delivery.ClassifyInvocation(answer, delivery.Rules{Now: time.Now(), MaxRetryAfter: tg.cfg.MaxRetryAfter})
	if outcome.Reason != delivery.OK {
		return outcome, nil
	}
	if c.cut {
		return notDone(outcome, "the answer is longer than Lambda lets any be"), nil
	}
	return outcome, out.Payload
}

// call is the SDK's HTTP client for one call. What the SDK asks others, for credentials say, does not come by here, so
// that a failure is known to be Lambda's or somebody else's.
type call struct {
	client   *http.Client
	whole    bool
	exchange exchange.Exchange

	tried  bool
	status int // 0 = no answer, or less of it than decides
	header http.Header
	cut    bool // there is more of the body, which decides
}

// Do sends the request and reads the answer. Where its head decides, trouble after it changes nothing.
func (c *call) Do(req *http.Request) (*http.Response, error) {
	c.tried = true
	resp, err := c.client.Do(req.WithContext(c.exchange.Watch(req.Context()))) //nolint:gosec // where to is the operator's say
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	success := resp.StatusCode >= 200 && resp.StatusCode <= 299
	failed := resp.Header.Get("X-Amz-Function-Error") != ""
	decides := c.whole && success && !failed
	most := int64(maxDrain)
	if decides || success && failed {
		most = maxAnswer
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, most))
	if err != nil && decides {
		return nil, err
	}
	c.cut = decides && len(body) == maxAnswer
	c.status, c.header = resp.StatusCode, resp.Header
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// refusal is the code and the text of an error that Lambda answered. The SDK loses the code when the body is not the JSON
// that it expects, as when something on the way put its own page there; the header still has it, as
// https://smithy.io/2.0/aws/protocols/aws-restjson1-protocol.html#operation-error-serialization says.
func refusal(err error, header http.Header) (code, message string) {
	if throttle, ok := errors.AsType[*types.TooManyRequestsException](err); ok && throttle.Reason != "" {
		return throttle.ErrorCode(), string(throttle.Reason) // its text is the same for every limit
	}
	if e, ok := errors.AsType[smithy.APIError](err); ok {
		return e.ErrorCode(), e.ErrorMessage()
	}
	code, _, _ = strings.Cut(header.Get("X-Amzn-Errortype"), ":")
	if _, name, ok := strings.Cut(code, "#"); ok {
		code = name
	}
	return cmp.Or(code, "UnknownError"), ""
}

// errorType is what a failed function calls its error, as every runtime answers it.
func errorType(payload []byte) string {
	var e struct {
		ErrorType string `json:"errorType"`
	}
	if json.Unmarshal(payload, &e) != nil {
		return ""
	}
	return e.ErrorType
}

// logTail is the end of the function's log, of which Lambda sends 4 KB.
func logTail(encoded *string) string {
	log, err := base64.StdEncoding.DecodeString(aws.ToString(encoded))
	if err != nil {
		return ""
	}
	return strings.ToValidUTF8(string(log[max(0, len(log)-maxLog):]), "")
}
