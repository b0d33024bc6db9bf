package webhook_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/task"
	"github.com/queuehook/queuehook/webhook"
)

// with is the part of a request's header whose names begin with one of prefixes.
func with(h http.Header, prefixes ...string) map[string]string {
	found := map[string]string{}
	for name, values := range h {
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
			found[name] = strings.Join(values, "|")
		}
	}
	return found
}

func TestCompat(t *testing.T) {
	enqueued := task.Meta{EnqueuedAt: 1_800_000_000_123, FirstDueAt: 1_800_000_060_999, Attempt: 2, Throttles: 3}
	own := map[string]string{
		"x-aws-sqsd-msgid": "forged", "X-Aws-Sqsd-Attr-Shop": "7", "CE-Type": "com.example.order", "ce-subject": "7",
	}
	for name, c := range map[string]struct {
		compat webhook.Compat
		queue  string
		meta   task.Meta
		own    map[string]string
		route  map[string]string
		want   map[string]string
	}{
		"none": {queue: "orders", meta: enqueued, want: map[string]string{}},
		"aws-sqsd": {compat: webhook.CompatSqsd, queue: "orders", meta: enqueued, own: own, want: map[string]string{
			"X-Aws-Sqsd-Msgid": "01J0TASK", "X-Aws-Sqsd-Queue": "orders", "X-Aws-Sqsd-Receive-Count": "6",
			"X-Aws-Sqsd-First-Received-At": "2027-01-15T08:01:00Z", "X-Aws-Sqsd-Attr-Shop": "7",
			"Ce-Type": "com.example.order", "Ce-Subject": "7",
		}},
		"aws-sqsd, no times": {compat: webhook.CompatSqsd, queue: "orders", want: map[string]string{
			"X-Aws-Sqsd-Msgid": "01J0TASK", "X-Aws-Sqsd-Queue": "orders", "X-Aws-Sqsd-Receive-Count": "1",
		}},
		"cloudevents": {compat: webhook.CompatCloudEvents, queue: "orders", meta: enqueued, want: map[string]string{
			"Ce-Id": "01J0TASK", "Ce-Source": "urn:queuehook:orders", "Ce-Type": "queuehook.task", "Ce-Specversion": "1.0",
			"Ce-Time": "2027-01-15T08:00:00.123Z",
		}},
		"cloudevents, an odd queue": {compat: webhook.CompatCloudEvents, queue: `{a} "é"`, want: map[string]string{
			"Ce-Id": "01J0TASK", "Ce-Source": "urn:queuehook:%257Ba%257D%2520%2522%25C3%25A9%2522", "Ce-Type": "queuehook.task",
			"Ce-Specversion": "1.0",
		}},
		"cloudevents, the producer's": {
			compat: webhook.CompatCloudEvents, queue: "orders", own: own, route: map[string]string{"ce-source": "https://shop.example"},
			want: map[string]string{
				"Ce-Id": "01J0TASK", "Ce-Source": "https://shop.example", "Ce-Type": "com.example.order", "Ce-Specversion": "1.0",
				"Ce-Subject": "7", "X-Aws-Sqsd-Msgid": "forged", "X-Aws-Sqsd-Attr-Shop": "7",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			url, requests := record(t, always(204))
			tg := newTarget(t, webhook.Config{URL: url, Compat: c.compat, Headers: c.route})
			c.meta.Headers = maps.Clone(c.own)
			tk := task.From(task.Spec{ID: "01J0TASK", Queue: c.queue, Meta: c.meta, Context: t.Context()})
			wantReason(t, deliver(t, tg, tk), delivery.OK)
			if diff := cmp.Diff(c.want, with((<-requests).header, "X-Aws-", "Ce-")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if _, err := webhook.New(webhook.Config{URL: "https://a.example", Compat: "sqs"}); err == nil {
		t.Error("compat sqs is accepted")
	}
}

// TestRulesOfTheRoute: what a route says about answers reaches delivery.Classify.
func TestRulesOfTheRoute(t *testing.T) {
	for name, c := range map[string]struct {
		rules  delivery.Rules
		status int
		ack    string
		reason delivery.Reason
	}{
		"acknowledged":          {delivery.Rules{RequireAck: true}, 200, "ok", delivery.OK},
		"not acknowledged":      {delivery.Rules{RequireAck: true}, 200, "", delivery.Target},
		"reject list":           {delivery.Rules{Reject: []int{410}}, 410, "", delivery.Rejected},
		"outside of success":    {delivery.Rules{Success: []delivery.Range{{Low: 200, High: 204}}}, 205, "", delivery.Status},
		"a redirect as success": {delivery.Rules{Success: []delivery.Range{{Low: 200, High: 299}, {Low: 303, High: 303}}}, 303, "", delivery.OK},
	} {
		srv, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			if c.ack != "" {
				w.Header().Set("Dispatch-Ack", c.ack)
			}
			w.WriteHeader(c.status)
		})
		t.Run(name, func(t *testing.T) {
			tg := newTarget(t, webhook.Config{URL: srv.URL, Rules: c.rules})
			wantReason(t, deliver(t, tg, newTask("{}", task.Meta{})), c.reason)
		})
	}
	for want, rules := range map[string]delivery.Rules{
		"success: 299-200":      {Success: []delivery.Range{{Low: 200, High: 204}, {Low: 299, High: 200}}},
		"success: 0-299":        {Success: []delivery.Range{{High: 299}}},
		"success: 200-2000":     {Success: []delivery.Range{{Low: 200, High: 2000}}},
		"reject: 40":            {Reject: []int{410, 40}},
		"reject: 1000":          {Reject: []int{1000}},
		"max retry after must ": {MaxRetryAfter: -1},
	} {
		if _, err := webhook.New(webhook.Config{URL: "https://a.example", Rules: rules}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}
