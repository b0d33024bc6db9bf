package awslambda

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
)

// The bounds of Lambda's inputs, https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html, in bytes.
const (
	maxSync  = 6 << 20
	maxAsync = 1 << 20
)

const (
	defaultConcurrency = 32
	defaultTimeout     = 20 * time.Second
	// maxBatch is how many records SQS puts into one event at most.
	maxBatch = 10_000
	// maxSlots bounds the tasks that wait in a dispatcher for their batch: two full ones of the largest.
	maxSlots = 2 * maxBatch
)

// Payload names the form of a function's input.
type Payload string

// The values of Config.Payload.
const (
	PayloadRaw      Payload = "raw"       // the task's payload as it is, which must be JSON
	PayloadEnvelope Payload = "envelope"  // an object with the payload and what is known about the task
	PayloadSQSEvent Payload = "sqs-event" // the event that SQS sends
)

// Config is what a route says about its function. Function is required; a zero value elsewhere means the default.
type Config struct {
	// Function is a name, or an ARN without qualifier; Qualifier a version or an alias, none by default.
	Function, Qualifier string
	// Region is the environment's by default.
	Region string
	// Async makes asynchronous calls: a task is done when Lambda has accepted it.
	Async bool
	// Payload is PayloadRaw by default.
	Payload Payload
	// BatchSize is how many tasks one call has at most, 1 by default; more than 1 only with PayloadSQSEvent. BatchWait is
	// how long a task waits for others at most.
	BatchSize int
	BatchWait time.Duration
	// Concurrency bounds the calls under way, and the connections, busy and idle; 32 by default.
	Concurrency int
	// Timeout bounds a call for PayloadSQSEvent, whose tasks may have waited for it; 20 s by default.
	Timeout time.Duration
	// MaxAttempts is what the function is told, unless the task has a limit of its own; 0 = no limit.
	MaxAttempts int
	// MaxRetryAfter bounds what Lambda may ask for; 0 = one hour.
	MaxRetryAfter time.Duration
}

func (c Config) withDefaults() (Config, error) {
	if c.Payload == "" {
		c.Payload = PayloadRaw
	}
	if c.BatchSize == 0 {
		c.BatchSize = 1
	}
	if c.Concurrency == 0 {
		c.Concurrency = defaultConcurrency
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	var errs []error
	if c.Function == "" {
		errs = append(errs, errors.New("no function"))
	}
	if c.Payload != PayloadRaw && c.Payload != PayloadEnvelope && c.Payload != PayloadSQSEvent {
		errs = append(errs, fmt.Errorf("payload is not %s, %s or %s", PayloadRaw, PayloadEnvelope, PayloadSQSEvent))
	}
	if c.BatchSize < 1 || c.BatchSize > maxBatch || c.BatchSize > 1 && c.Payload != PayloadSQSEvent {
		errs = append(errs, fmt.Errorf("batch size %d: 1 is accepted, and with payload %s up to %d",
			c.BatchSize, PayloadSQSEvent, maxBatch))
	}
	if c.BatchWait < 0 || c.Concurrency < 0 || c.Timeout < 0 || c.MaxAttempts < 0 || c.MaxRetryAfter < 0 {
		errs = append(errs, errors.New("batch wait, concurrency, timeout, max attempts and max retry after must not be negative"))
	}
	return c, errors.Join(errs...)
}

// Slots is how many tasks should be delivered at once, so that all calls can have full batches. There are fewer slots for
// batches of thousands, since all their tasks are in memory. Where payloads are large, Bytes is the narrower bound.
func (c Config) Slots() int { return max(c.Concurrency, min(c.Concurrency*c.BatchSize, maxSlots)) }

// Bytes is how many bytes of payloads should be delivered at once: as many as all calls can carry. More would only wait.
func (c Config) Bytes() int { return c.Concurrency * c.limit() }

// Patience is how long a Deliver may take: one call, and with batches also the wait for other tasks and for an earlier
// call to end.
func (c Config) Patience() time.Duration {
	if c.BatchSize <= 1 {
		return c.Timeout
	}
	return 2*c.Timeout + c.BatchWait
}

// partition is the part of AWS that the function is in: its ARN says so, else the region's name. The beginnings are those
// of the partitions of the SDK's endpoints, which does not export them.
func (c Config) partition() string {
	if parts := strings.Split(c.Function, ":"); parts[0] == "arn" && len(parts) > 1 {
		return parts[1]
	}
	for _, p := range []struct{ region, partition string }{
		{"cn-", "aws-cn"},
		{"us-gov-", "aws-us-gov"},
		{"eusc-", "aws-eusc"},
		{"us-iso-", "aws-iso"},
		{"us-isob-", "aws-iso-b"},
		{"eu-isoe-", "aws-iso-e"},
		{"us-isof-", "aws-iso-f"},
	} {
		if strings.HasPrefix(c.Region, p.region) {
			return p.partition
		}
	}
	return "aws"
}

func (c Config) kind() types.InvocationType {
	if c.Async {
		return types.InvocationTypeEvent
	}
	return types.InvocationTypeRequestResponse
}

func (c Config) limit() int {
	if c.Async {
		return maxAsync
	}
	return maxSync
}
