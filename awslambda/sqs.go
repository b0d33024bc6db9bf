package awslambda

import (
	"bytes"
	"crypto/md5" //nolint:gosec // a field of SQS's, no protection
	"encoding/hex"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/task"
)

// record is one message of the event that SQS sends,
// https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html#example-standard-queue-message-event.
type record struct {
	MessageID         string               `json:"messageId"`
	ReceiptHandle     string               `json:"receiptHandle"`
	Body              string               `json:"body"`
	Attributes        map[string]string    `json:"attributes"`
	MessageAttributes map[string]attribute `json:"messageAttributes"`
	MD5OfBody         string               `json:"md5OfBody"`
	EventSource       string               `json:"eventSource"`
	EventSourceARN    string               `json:"eventSourceARN"`
	AWSRegion         string               `json:"awsRegion"`
}

// attribute is one header of a task. The lists are there, empty, because SQS sends them so.
type attribute struct {
	StringValue      string   `json:"stringValue"`
	StringListValues []string `json:"stringListValues"`
	BinaryListValues []string `json:"binaryListValues"`
	DataType         string   `json:"dataType"`
}

// What stands around and between the records of an event.
const (
	eventHead, eventTail, eventComma = `{"Records":[`, `]}`, `,`
	eventFrame                       = len(eventHead) + len(eventTail)
)

// encodeRecord is t as a message. Its error is a *delivery.Error: SQS's bodies are text, so that other bytes cannot be
// sent as what they are.
func encodeRecord(t *task.Task, cfg Config) ([]byte, error) {
	if !utf8.Valid(t.Bytes()) {
		return nil, delivery.Errorf(delivery.Unsendable, "the payload is not UTF-8, which the body of an SQS message must be")
	}
	meta := t.Meta()
	sum := md5.Sum(t.Bytes()) //nolint:gosec // as above
	r := record{
		MessageID: t.ID(), ReceiptHandle: t.ID(), Body: string(t.Bytes()), MD5OfBody: hex.EncodeToString(sum[:]),
		Attributes: map[string]string{
			"ApproximateReceiveCount":          strconv.Itoa(t.Attempt()),
			"SentTimestamp":                    strconv.FormatInt(meta.EnqueuedAt, 10),
			"ApproximateFirstReceiveTimestamp": strconv.FormatInt(meta.FirstDueAt, 10),
			"SenderId":                         "queuehook",
		},
		MessageAttributes: map[string]attribute{},
		EventSource:       "aws:sqs",
		EventSourceARN:    fmt.Sprintf("arn:%s:sqs:%s:000000000000:%s", cfg.partition(), cfg.Region, t.Queue()),
		AWSRegion:         cfg.Region,
	}
	for name, value := range meta.AllHeaders() {
		r.MessageAttributes[name] = text(value)
	}
	if t.Redelivered() {
		r.MessageAttributes["Dispatch-Redelivered"] = text("true")
	}
	return encode(r), nil
}

func text(value string) attribute {
	return attribute{StringValue: value, StringListValues: []string{}, BinaryListValues: []string{}, DataType: "String"}
}

// event is the input of a call with these records.
func event(records [][]byte) []byte {
	size := eventFrame
	for _, r := range records {
		size += len(r) + len(eventComma)
	}
	b := bytes.NewBuffer(make([]byte, 0, size))
	b.WriteString(eventHead)
	b.Write(bytes.Join(records, []byte(eventComma)))
	b.WriteString(eventTail)
	return b.Bytes()
}
