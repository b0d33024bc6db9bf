package metrics_test

import (
	"bytes"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/metrics"
)

// scrape reads the page as Prometheus does.
func scrape(t *testing.T, m *metrics.Metrics) map[string]*dto.MetricFamily {
	t.Helper()
	page := httptest.NewRecorder()
	promhttp.HandlerFor(m.Gatherer(), promhttp.HandlerOpts{}).ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(page.Body.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// values are what a family's series hold, by the values of their labels, in the order of the labels' names. A histogram
// holds its count.
func values(f *dto.MetricFamily) map[string]float64 {
	all := map[string]float64{}
	for _, series := range f.GetMetric() {
		var labels []string
		for _, l := range series.GetLabel() {
			labels = append(labels, l.GetValue())
		}
		v := series.GetCounter().GetValue() + series.GetGauge().GetValue() + float64(series.GetHistogram().GetSampleCount())
		all[strings.Join(labels, " ")] = v
	}
	return all
}

// above drops the series at zero.
func above(all map[string]float64) map[string]float64 {
	maps.DeleteFunc(all, func(_ string, v float64) bool { return v == 0 })
	return all
}

func TestNames(t *testing.T) {
	m := metrics.New("v1.2.3")
	m.Route("orders", "https://a.example")
	poll(t, m, metrics.Depth{})
	got := map[string]string{}
	for name, f := range scrape(t, m) {
		if !strings.HasPrefix(name, "dispatcher_") {
			continue
		}
		if f.GetHelp() == "" {
			t.Errorf("%s has no help", name)
		}
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		got[name] = strings.Join(labels, " ")
	}
	want := map[string]string{
		"dispatcher_attempts_total":                           "outcome queue reason target",
		"dispatcher_attempt_duration_seconds":                 "queue target",
		"dispatcher_tasks_completed_total":                    "queue",
		"dispatcher_tasks_buried_total":                       "queue reason",
		"dispatcher_tasks_recovered_total":                    "queue",
		"dispatcher_leases_lost_total":                        "queue",
		"dispatcher_tasks_trimmed_total":                      "queue",
		"dispatcher_lag_seconds":                              "queue",
		"dispatcher_in_flight":                                "queue",
		"dispatcher_queue_ready":                              "queue",
		"dispatcher_queue_delayed":                            "queue",
		"dispatcher_queue_dead":                               "queue",
		"dispatcher_oldest_ready_seconds":                     "queue",
		"dispatcher_route_paused":                             "cause queue",
		"dispatcher_heartbeat_last_success_timestamp_seconds": "",
		"dispatcher_redis_errors_total":                       "op",
		"dispatcher_build_info":                               "version",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names and labels are public (-want +got):\n%s", diff)
	}

	problems, err := testutil.GatherAndLint(m.Gatherer(), slices.Collect(maps.Keys(want))...)
	if err != nil || len(problems) > 0 {
		t.Errorf("lint: %v, %v", problems, err)
	}
}

func TestEveryLabelIsThereFromTheStart(t *testing.T) {
	m := metrics.New("")
	r := m.Route("orders", "https://a.example")
	before := scrape(t, m)

	// Every row of the outcome table, each reason with which a task can be given up, and a Lambda call that came too
	// late.
	r.Attempt(delivery.Release, delivery.Timeout, time.Millisecond)
	for _, reason := range delivery.Reasons() {
		s := delivery.Of(reason).Settlement
		r.Attempt(s, reason, time.Millisecond)
		if s == delivery.Abandon || s == delivery.Bury {
			r.Attempt(delivery.Bury, reason, time.Millisecond)
			r.Buried(reason)
		}
	}
	for _, op := range []string{
		"beat", "lease", "wait", "settle", "sweep", "trim",
		"depth", "other",
	} {
		m.RedisError(op)
	}
	after := scrape(t, m)

	for _, name := range []string{"dispatcher_attempts_total", "dispatcher_tasks_buried_total", "dispatcher_redis_errors_total"} {
		old, now := values(before[name]), values(after[name])
		for labels, v := range now {
			if _, there := old[labels]; !there {
				t.Errorf("%s{%s} came up late", name, labels)
			}
			if v == 0 {
				t.Errorf("%s{%s} can never be counted", name, labels)
			}
		}
		if len(above(old)) > 0 {
			t.Errorf("%s does not begin at 0: %v", name, old)
		}
	}
}

func TestRoute(t *testing.T) {
	m := metrics.New("")
	r := m.Route("orders", "https://a.example")
	m.Route("thumbs", "lambda:thumbs")

	r.Attempt(delivery.Complete, delivery.OK, 20*time.Millisecond)
	r.Attempt(delivery.Abandon, delivery.Timeout, 20*time.Second)
	r.Attempt(delivery.Abandon, delivery.Timeout, 20*time.Second)
	r.Attempt(delivery.Release, delivery.DNS, time.Second) // not in the table
	r.Completed(3 * time.Second)
	r.Completed(-time.Second)
	r.Buried(delivery.Exhausted)
	r.Buried(delivery.Shutdown) // not in the table
	r.Recovered(7)
	r.Recovered(-1)
	r.LeaseLost()
	r.InFlight(3)
	r.InFlight(-1)
	m.RedisError("lease")
	m.RedisError("ECONNREFUSED 10.0.0.1")

	page := scrape(t, m)
	for name, want := range map[string]map[string]float64{
		"dispatcher_attempts_total": {
			"completed orders ok https://a.example":      1,
			"abandoned orders timeout https://a.example": 2,
			"released orders dns https://a.example":      1,
		},
		"dispatcher_attempt_duration_seconds": {"orders https://a.example": 4},
		"dispatcher_tasks_completed_total":    {"orders": 2},
		"dispatcher_lag_seconds":              {"orders": 2},
		"dispatcher_tasks_buried_total":       {"orders exhausted": 1, "orders shutdown": 1},
		"dispatcher_tasks_recovered_total":    {"orders": 7},
		"dispatcher_leases_lost_total":        {"orders": 1},
		"dispatcher_in_flight":                {"orders": 2},
		"dispatcher_redis_errors_total":       {"lease": 1, "other": 1},
	} {
		if diff := cmp.Diff(want, above(values(page[name]))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if sum := page["dispatcher_lag_seconds"].GetMetric()[0].GetHistogram().GetSampleSum(); sum != 3 {
		t.Errorf("sum of lags = %v, want 3: a lag below zero counts as zero", sum)
	}
}

func TestHistogramsAreNativeToo(t *testing.T) {
	m := metrics.New("")
	m.Route("orders", "https://a.example").Completed(time.Second)
	families, err := m.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "dispatcher_lag_seconds" {
			h := f.GetMetric()[0].GetHistogram()
			if len(h.GetPositiveSpan()) == 0 || len(h.GetBucket()) == 0 {
				t.Errorf("lag has %d native spans and %d classic buckets, want both", len(h.GetPositiveSpan()), len(h.GetBucket()))
			}
		}
	}
}

func TestHeartbeatIsTheOldest(t *testing.T) {
	const name = "dispatcher_heartbeat_last_success_timestamp_seconds"
	m := metrics.New("")
	if f, there := scrape(t, m)[name]; there {
		t.Errorf("without routes: %v, want nothing", f)
	}
	a, b := m.Route("a", "https://a.example"), m.Route("b", "https://b.example")
	a.Beat(time.Unix(1_800_000_500, 0))
	if got := values(scrape(t, m)[name])[""]; got != 0 {
		t.Errorf("one route never had a heartbeat: %v, want 0", got)
	}
	b.Beat(time.Unix(1_800_000_100, 5e8))
	if got := values(scrape(t, m)[name])[""]; got != 1_800_000_100.5 {
		t.Errorf("got %v, want the older of two", got)
	}
	b.Forget()
	if got := values(scrape(t, m)[name])[""]; got != 1_800_000_500 {
		t.Errorf("got %v, want that of the route that is left", got)
	}
}

func TestForget(t *testing.T) {
	m := metrics.New("")
	empty := scrape(t, m)
	old := m.Route("orders", "https://old.example")
	same := m.Route("orders", "https://new.example")
	next := m.Route("orders", "https://new.example")
	for _, r := range []*metrics.Route{old, same, next} {
		r.Attempt(delivery.Complete, delivery.OK, time.Second)
		r.Completed(time.Second)
	}

	old.Forget()
	old.Forget() // once is enough
	page := scrape(t, m)
	want := map[string]float64{"completed orders ok https://new.example": 2}
	if diff := cmp.Diff(want, above(values(page["dispatcher_attempts_total"]))); diff != "" {
		t.Errorf("after the old target went (-want +got):\n%s", diff)
	}
	if got := values(page["dispatcher_tasks_completed_total"])["orders"]; got != 3 {
		t.Errorf("completed = %v, want 3: the queue is still served", got)
	}
	same.Forget()
	if diff := cmp.Diff(want, above(values(scrape(t, m)["dispatcher_attempts_total"]))); diff != "" {
		t.Errorf("while the target is still served (-want +got):\n%s", diff)
	}

	next.Forget()
	next.Attempt(delivery.Complete, delivery.OK, time.Second) // a straggler
	next.Attempt(delivery.Release, delivery.OK, time.Second)
	next.Buried(delivery.OK)
	next.InFlight(-1)
	next.Beat(time.Now())
	left := scrape(t, m)
	for name := range left {
		if _, there := empty[name]; !there {
			t.Errorf("%s outlived its route", name)
		}
	}
}

// A route that is replaced while its breaker is open never says that it has closed.
func TestHeldRouteIsReplaced(t *testing.T) {
	m := metrics.New("")
	shown := func(want map[string]float64) {
		t.Helper()
		if diff := cmp.Diff(want, above(values(scrape(t, m)["dispatcher_route_paused"]))); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	old := m.Route("orders", "https://a.example")
	old.Paused("breaker", true)
	next := m.Route("orders", "https://a.example")
	shown(map[string]float64{"breaker orders": 1})
	next.Paused("throttled", true)
	next.Paused("breaker", false)
	shown(map[string]float64{"breaker orders": 1, "throttled orders": 1})
	old.Forget()
	shown(map[string]float64{"throttled orders": 1})
	old.Paused("breaker", true) // a straggler
	next.Paused("throttled", false)
	shown(map[string]float64{})
}

func TestTwoInOneProcess(t *testing.T) {
	a, b := metrics.New("a"), metrics.New("b")
	a.Route("orders", "https://a.example").LeaseLost()
	if _, there := scrape(t, b)["dispatcher_leases_lost_total"]; there {
		t.Error("one dispatcher's routes are on the other's page")
	}
}
