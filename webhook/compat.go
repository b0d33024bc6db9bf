package webhook

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/queuehook/queuehook/task"
)

// Compat names the convention of another system whose headers are sent beside our own, so that receivers written for
// it run unchanged.
type Compat string

// The conventions.
const (
	// CompatSqsd is the daemon of AWS Elastic Beanstalk's worker environments
	// (https://docs.aws.amazon.com/elasticbeanstalk/latest/dg/using-features-managing-env-tiers.html): X-Aws-Sqsd-Msgid,
	// -Queue, -Receive-Count, -First-Received-At. What has no true value here is left out: -Sender-Id, an AWS account,
	// and -Taskname and -Scheduled-At, of periodic tasks.
	CompatSqsd Compat = "aws-sqsd"
	// CompatCloudEvents is the binary mode of CloudEvents 1.0 over HTTP: ce-id, ce-source, ce-type, ce-specversion,
	// ce-time. A task or a route that has some of these headers itself knows better, and its own are sent.
	CompatCloudEvents Compat = "cloudevents"
)

// eventType is the CloudEvents type of a task that does not say its own.
const eventType = "queuehook.task"

// addSqsd is called before a task's own headers, which may not replace these.
func addSqsd(h http.Header, t *task.Task) {
	meta := t.Meta()
	h.Set("X-Aws-Sqsd-Msgid", t.ID())
	h.Set("X-Aws-Sqsd-Queue", t.Queue())
	// SQS counts every time that a message was handed out, those of throttled attempts too.
	h.Set("X-Aws-Sqsd-Receive-Count", strconv.Itoa(t.Attempt()+meta.Throttles))
	if meta.FirstDueAt > 0 {
		h.Set("X-Aws-Sqsd-First-Received-At", time.UnixMilli(meta.FirstDueAt).UTC().Format(time.RFC3339))
	}
}

// addCloudEvents is called after all other headers and leaves those alone that are there.
func addCloudEvents(h http.Header, t *task.Task) {
	set := func(key, value string) {
		if _, taken := h[key]; !taken {
			h.Set(key, eventValue(value))
		}
	}
	set("Ce-Specversion", "1.0")
	set("Ce-Id", t.ID())
	set("Ce-Source", "urn:queuehook:"+url.PathEscape(t.Queue()))
	set("Ce-Type", eventType)
	if at := t.Meta().EnqueuedAt; at > 0 {
		set("Ce-Time", time.UnixMilli(at).UTC().Format(task.TimeFormat))
	}
}

// eventValue writes a CloudEvents attribute as a header value, per section 3.1.3.2 of its HTTP binding.
func eventValue(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if c <= ' ' || c >= 0x7f || c == '"' || c == '%' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
