package awslambda_test

import (
	"encoding/json"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/queuehook/queuehook/awslambda"
	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/internal/fakelambda"
)

// TestMessagesNameTheirPartition is for functions that parse the ARN of their queue.
func TestMessagesNameTheirPartition(t *testing.T) {
	var got events.SQSEvent
	s := fakelambda.Start(t, func(c fakelambda.Call) fakelambda.Answer {
		if err := json.Unmarshal(c.Payload, &got); err != nil {
			t.Error(err)
		}
		return fakelambda.Answer{}
	})
	for _, c := range []struct{ function, region, want string }{
		{"f", "", "arn:aws:sqs:eu-west-1:000000000000:orders"},
		{"f", "us-east-1", "arn:aws:sqs:us-east-1:000000000000:orders"},
		{"f", "cn-north-1", "arn:aws-cn:sqs:cn-north-1:000000000000:orders"},
		{"f", "us-gov-west-1", "arn:aws-us-gov:sqs:us-gov-west-1:000000000000:orders"},
		{"f", "eusc-de-east-1", "arn:aws-eusc:sqs:eusc-de-east-1:000000000000:orders"},
		{"f", "us-iso-east-1", "arn:aws-iso:sqs:us-iso-east-1:000000000000:orders"},
		{"f", "us-isob-east-1", "arn:aws-iso-b:sqs:us-isob-east-1:000000000000:orders"},
		{"f", "eu-isoe-west-1", "arn:aws-iso-e:sqs:eu-isoe-west-1:000000000000:orders"},
		{"f", "us-isof-south-1", "arn:aws-iso-f:sqs:us-isof-south-1:000000000000:orders"},
		{"arn:aws-new:lambda:xx-new-1:123456789012:function:f", "xx-new-1", "arn:aws-new:sqs:xx-new-1:000000000000:orders"},
	} {
		cfg := awslambda.Config{Payload: awslambda.PayloadSQSEvent, Function: c.function, Region: c.region, Async: true}
		if o := deliver(t, newTarget(t, s, cfg), newTask("{}")); o.Reason != delivery.OK {
			t.Errorf("%s in %s: got %+v", c.function, c.region, o)
		} else if r := got.Records[0]; r.EventSourceARN != c.want {
			t.Errorf("%s in %s: %s, want %s", c.function, c.region, r.EventSourceARN, c.want)
		}
	}
}
