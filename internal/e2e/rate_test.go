package e2e_test

import (
	"slices"
	"testing"
	"time"

	"github.com/queuehook/queuehook/internal/fleet"
	"github.com/queuehook/queuehook/internal/receiver"
	"github.com/queuehook/queuehook/internal/redistest"
)

// TestRateOfTheFleet has three dispatchers share one limit. A busy machine may keep them below it, but nothing may put
// them above it.
func TestRateOfTheFleet(t *testing.T) {
	t.Parallel()
	const limit, burst, tolerance = 200, 20, 0.02
	window := 6 * time.Second
	if long() {
		window = 40 * time.Second
	}
	server := redistest.Shared(t)
	q := fleet.NewQueue(t, server, receiver.Config{})
	all := serveAll(t, 3, server.URL(), routes(route(q, "rate: {limit: 200, per: 1s, burst: 20}")))
	begin := time.Now() // no token was taken before
	q.PushN(t, 2*limit*int(window/time.Second))
	q.AwaitRequests(t, int64(burst+limit*window.Seconds()))
	for _, d := range all {
		d.Stop(t)
	}

	arrivals := arrivals(q)
	for i, at := range arrivals {
		if most := burst + (1+tolerance)*limit*at.Sub(begin).Seconds() + 1; float64(i+1) > most {
			t.Fatalf("%d requests within %s, at most %.0f are allowed", i+1, at.Sub(begin), most)
		}
	}
	sustained := arrivals[2*burst:] // the bucket is empty by then
	rate := float64(len(sustained)-1) / sustained[len(sustained)-1].Sub(sustained[0]).Seconds()
	t.Logf("%d requests at %.2f/s, %+.2f %% of the limit, by three dispatchers", len(sustained), rate, 100*(rate/limit-1))
	if rate < 0.7*limit {
		t.Errorf("%.1f requests a second, want %d", rate, limit)
	}
	byDispatcher := map[int64]bool{}
	for _, r := range q.Receiver.Log() {
		byDispatcher[r.Conn] = true
	}
	if len(byDispatcher) < len(all) {
		t.Errorf("%d connections: not every dispatcher had its part", len(byDispatcher))
	}
	q.Law(t)
}

// arrivals is when the queue's requests came, in order.
func arrivals(q *fleet.Queue) []time.Time {
	var at []time.Time
	for _, r := range q.Receiver.Log() {
		at = append(at, r.Arrived)
	}
	slices.SortFunc(at, time.Time.Compare)
	return at
}
