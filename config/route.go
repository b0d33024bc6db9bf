package config

import (
	"maps"
	"slices"
	"time"

	"github.com/queuehook/queuehook/signing"
)

// Route says where the tasks of a queue are delivered, and how. A route of ROUTES and one of the routes file look the
// same: what neither the route nor the file's defaults say is the environment's. Routes are equal when
// reflect.DeepEqual says so, the contents of the files that they name included.
type Route struct {
	Queue       string
	Target      Target
	Concurrency int           // attempts in flight per dispatcher; 1 when Ordered
	Timeout     time.Duration // of a whole attempt, the answer's body included
	Ordered     bool          // one attempt in flight in the whole fleet, a failing task is tried again before the next
	Rate        Rate          // the zero Rate limits nothing
	Retry       Retry
	Breaker     Breaker
	HTTP        HTTP       // the zero HTTP when the target is a Lambda function
	Invocation  Invocation // the zero Invocation when the target is a URL
}

// Retry says how long a failing task is tried.
type Retry struct {
	MaxAttempts   int             // charged attempts; 0 = no limit
	MaxAge        time.Duration   // since the task was first due; 0 = no limit
	BackoffBase   time.Duration   // delay after the first failure
	BackoffCap    time.Duration   // longest delay of our own, never below BackoffBase
	MaxRetryAfter time.Duration   // longest Retry-After that is obeyed
	Schedule      []time.Duration // when given, the delay after the nth failure instead, the last one for all further
}

// Rate is how many attempts the whole fleet may begin: Limit in each Per, and Burst at once after a quiet time.
type Rate struct {
	Limit int // 0 = no limit
	Per   time.Duration
	Burst int
}

// Breaker says when a route whose target fails is held back. The zero Breaker never does.
type Breaker struct {
	Consecutive int           // faults of the target in a row
	Pause       time.Duration // until the target is tried again
}

// HTTP says how a request to a URL is made and how its answer is read.
type HTTP struct {
	Method         string            // POST, PUT or PATCH
	ContentType    string            // a task's own wins
	Headers        map[string]Secret // by canonical name, ${NAME} expanded; nil = none
	Authorization  Secret            // the header's whole value; empty = the URL's user information, else none
	SigningSecrets []signing.Secret  // each of which signs; nil = unsigned
	TLS            TLS
	Proxy          Secret // http, https or socks5 URL; empty = the environment's
	DenyPrivate    bool   // dial no private, loopback, link-local or metadata address
	ConnectTimeout time.Duration
	QuickRetries   int           // within one attempt, of a connection that could not be made
	Success        []StatusRange // nil = 200 to 299
	Reject         []int         // statuses that bury a task at once, none of them a success
	RequireAck     bool          // a success counts only with the header Dispatch-Ack: ok
	Compat         Compat
}

// StatusRange is the statuses from Low to High, both included.
type StatusRange struct{ Low, High int }

// Compat names whose headers are sent beside our own.
type Compat string

// The values of HTTP.Compat; empty = none.
const (
	CompatSQSD        Compat = "aws-sqsd"    // X-Aws-Sqsd-*, as an Elastic Beanstalk worker gets them
	CompatCloudEvents Compat = "cloudevents" // ce-*, binary mode
)

// Invocation says how a Lambda function is called. Its region is Target.Lambda's.
type Invocation struct {
	Async     bool          // done when Lambda accepted the task
	Payload   Payload       // what the function is given
	BatchSize int           // tasks in one call, more than 1 with PayloadSQSEvent only
	BatchWait time.Duration // longest wait for a batch to fill; 0 = none
}

// Payload names the form of a function's input.
type Payload string

// The values of Invocation.Payload.
const (
	PayloadRaw      Payload = "raw"       // the task's payload as it is
	PayloadEnvelope Payload = "envelope"  // an object with the payload and what is known about the task
	PayloadSQSEvent Payload = "sqs-event" // the event that SQS sends
)

// What a route has by default where no variable says it.
const (
	defaultMethod         = "POST"
	defaultContentType    = "application/json"
	defaultConnectTimeout = 5 * time.Second
	defaultQuickRetries   = 1
	defaultConsecutive    = 20
	defaultPause          = 30 * time.Second
)

// NewRoute returns a route that has the environment's values.
func (d Dispatcher) NewRoute(queue string, target Target) Route {
	r := d.routeDefaults()
	r.Queue, r.Target = queue, target
	return r.narrow()
}

// routeDefaults returns what every route begins with, be its target a URL or a function.
func (d Dispatcher) routeDefaults() Route {
	return Route{
		Concurrency: d.Concurrency,
		Timeout:     d.Timeout,
		Retry:       d.Retry,
		Breaker:     Breaker{Consecutive: defaultConsecutive, Pause: defaultPause},
		HTTP: HTTP{
			Method:         defaultMethod,
			ContentType:    defaultContentType,
			SigningSecrets: d.SigningSecrets,
			ConnectTimeout: defaultConnectTimeout,
			QuickRetries:   defaultQuickRetries,
		},
		Invocation: Invocation{Payload: PayloadRaw, BatchSize: 1},
	}
}

// narrow takes away what does not concern the route's kind of target.
func (r Route) narrow() Route {
	if r.Target.URL == nil {
		r.HTTP = HTTP{}
		return r
	}
	r.Invocation = Invocation{}
	return r
}

// clone returns a route that shares nothing that can be changed.
func (r Route) clone() Route {
	r.Retry.Schedule = slices.Clone(r.Retry.Schedule)
	r.HTTP.Headers = maps.Clone(r.HTTP.Headers)
	r.HTTP.SigningSecrets = slices.Clone(r.HTTP.SigningSecrets)
	r.HTTP.Success = slices.Clone(r.HTTP.Success)
	r.HTTP.Reject = slices.Clone(r.HTTP.Reject)
	return r
}
