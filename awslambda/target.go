// Package awslambda delivers tasks to AWS Lambda functions by Invoke, and hands the answer to package delivery for
// judgement.
//
// A task becomes an input (payload.go, sqs.go), alone or with others (batch.go), and is sent by the AWS SDK (call.go)
// over the target's own connections. The SDK repeats nothing: an attempt is one request. The package decides nothing about
// the task: it waits for no backoff and settles nothing.
package awslambda

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/smithy-go/logging"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/task"
)

const (
	// connectTimeout bounds the look-up and the connection, and again the TLS handshake.
	connectTimeout = 5 * time.Second
	// idleTimeout is how long an idle connection is kept. A gateway on the way may have forgotten an older one, and a call
	// on such a connection has an unknown outcome.
	idleTimeout = 4 * time.Second
	// maxAnswerHeader bounds an answer's header in bytes; the tail of the function's log, 4 KiB, is in it.
	maxAnswerHeader = 64 << 10
)

// Target is one function. Its methods may be called by many goroutines at once; Close it after the last delivery.
type Target struct {
	cfg       Config
	lambda    *lambda.Client
	transport *http.Transport
	http      *http.Client
	gatherer  *gatherer // of a route with batches
}

// New returns the target that cfg describes. Credentials, endpoint (AWS_ENDPOINT_URL_LAMBDA), proxy and, where cfg has
// none, the region come from the environment and the AWS configuration files, as in every AWS SDK. It opens no
// connection.
func New(ctx context.Context, cfg Config) (*Target, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("new lambda target: %w", err)
	}
	// The SDK's own logger writes to standard error, past ours; what matters is in its errors.
	environment, err := awsconfig.LoadDefaultConfig(ctx, awsconfig.WithLogger(logging.Nop{}))
	if err != nil {
		return nil, fmt.Errorf("new lambda target: %w", err)
	}
	region := cmp.Or(cfg.Region, environment.Region)
	if region == "" {
		return nil, errors.New("new lambda target: no region is known; the route's region or AWS_REGION is accepted")
	}
	cfg.Region = region
	transport := newTransport(environment, cfg.Concurrency)
	tg := &Target{
		cfg: cfg, transport: transport,
		lambda: lambda.NewFromConfig(environment, func(o *lambda.Options) {
			o.Region = region
			o.Retryer = aws.NopRetryer{}
		}),
		http: &http.Client{
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	if cfg.Payload == PayloadSQSEvent {
		tg.gatherer = &gatherer{
			size: cfg.BatchSize, wait: cfg.BatchWait, limit: cfg.limit(), free: cfg.Concurrency, invoke: tg.invokeBatch,
		}
	}
	return tg, nil
}

// newTransport is the target's own. It begins with the SDK's, which knows AWS_CA_BUNDLE. HTTP/1.1 gives each call a
// connection, so that one that breaks costs one attempt.
func newTransport(environment aws.Config, conns int) *http.Transport {
	base, ok := environment.HTTPClient.(*awshttp.BuildableClient)
	if !ok {
		base = awshttp.NewBuildableClient()
	}
	t := base.GetTransport()
	t.DialContext = (&net.Dialer{Timeout: connectTimeout}).DialContext
	t.TLSHandshakeTimeout = connectTimeout
	t.MaxConnsPerHost, t.MaxIdleConnsPerHost, t.MaxIdleConns = conns, conns, 0
	t.IdleConnTimeout = idleTimeout
	t.MaxResponseHeaderBytes = maxAnswerHeader
	t.DisableCompression = true
	t.ForceAttemptHTTP2 = false
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	return t
}

// String is the function as a route names it.
func (tg *Target) String() string {
	if tg.cfg.Qualifier == "" {
		return "lambda:" + tg.cfg.Function
	}
	return "lambda:" + tg.cfg.Function + ":" + tg.cfg.Qualifier
}

// Drain says that no more tasks will come, so that none waits any longer for others to share its call with.
func (tg *Target) Drain() {
	if tg.gatherer != nil {
		tg.gatherer.drain()
	}
}

// Close closes idle connections; busy ones end with their deliveries.
func (tg *Target) Close() { tg.transport.CloseIdleConnections() }

// Deliver makes one attempt to deliver t within ctx, in a call of its own or in one with other tasks that are being
// delivered at the same time. It returns nil when the function took the task, for an asynchronous call when Lambda did,
// else a *delivery.Error. A ctx that is cancelled, rather than past its deadline, means that the dispatcher stops.
func (tg *Target) Deliver(ctx context.Context, t *task.Task) error {
	if outcome := tg.deliver(ctx, t); outcome.Reason != delivery.OK {
		return &delivery.Error{Outcome: outcome}
	}
	return nil
}

func (tg *Target) deliver(ctx context.Context, t *task.Task) delivery.Outcome {
	if tg.gatherer != nil {
		record, err := encodeRecord(t, tg.cfg)
		if err != nil {
			return delivery.FromError(err)
		}
		return tg.gatherer.deliver(ctx, t, record)
	}
	payload, err := tg.input(t)
	if err != nil {
		return delivery.FromError(err)
	}
	r := request{payload: payload, lastReason: t.Meta().LastReason}
	if !tg.cfg.Async { // Lambda passes it on in synchronous calls only
		r.context = tg.clientContext(t)
	}
	outcome, _ := tg.invoke(ctx, r)
	return outcome
}

// DryRun asks Lambda whether the function is there and may be invoked, without invoking it.
func (tg *Target) DryRun(ctx context.Context) error {
	if outcome, _ := tg.invoke(ctx, request{kind: types.InvocationTypeDryRun}); outcome.Reason != delivery.OK {
		return &delivery.Error{Outcome: outcome}
	}
	return nil
}
