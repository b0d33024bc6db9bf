package dispatcher

import (
	"math"
	"testing"
	"time"

	"github.com/queuehook/queuehook/delivery"
)

func retryOf(t *testing.T, r Retry) Retry {
	t.Helper()
	if err := r.validate(); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestDelayLiesBetweenHalfTheBaseAndTheCap(t *testing.T) {
	r := retryOf(t, Retry{Base: time.Second, Cap: time.Hour})
	for _, n := range []int{math.MinInt, 0, 1, 2, 33, 64, 1000, 1 << 40} {
		for _, draw := range []float64{0, 0.5, 0.999999} {
			if d := r.delay(n, draw); d < r.Base/2 || d > r.Cap {
				t.Errorf("delay(%d, %g) = %s", n, draw, d)
			}
		}
	}
	for n, want := range map[int]time.Duration{
		1: time.Second, 2: 2 * time.Second, 5: 16 * time.Second, 12: 2048 * time.Second, 13: time.Hour,
	} {
		if low, high := r.delay(n, 0), r.delay(n, 1); low != want/2 || high != want {
			t.Errorf("delay(%d) is drawn from [%s, %s], want [%s, %s]", n, low, high, want/2, want)
		}
	}
	if d := retryOf(t, Retry{Base: 1 << 62, Cap: 1<<63 - 1}).delay(9, 0.9); d <= 0 {
		t.Errorf("delay of huge bounds = %s", d)
	}
}

func TestScheduleReplacesTheBackoff(t *testing.T) {
	r := retryOf(t, Retry{Schedule: []time.Duration{5 * time.Second, time.Minute}})
	for n, want := range map[int]time.Duration{-1: 5 * time.Second, 1: 5 * time.Second, 2: time.Minute, 3: time.Minute, 100: time.Minute} {
		if d := r.delay(n, 0.5); d != want {
			t.Errorf("delay(%d) = %s, want %s", n, d, want)
		}
	}
}

func TestValidateRefusesBoundsThatCannotWork(t *testing.T) {
	for _, r := range []Retry{
		{Base: time.Minute, Cap: time.Second}, {Base: -1}, {Schedule: []time.Duration{-time.Second}},
	} {
		if r.validate() == nil {
			t.Errorf("%+v was accepted", r)
		}
	}
}

func TestDecide(t *testing.T) {
	retry := retryOf(t, Retry{MaxAttempts: 3, MaxAge: time.Hour, Base: time.Second, Cap: time.Minute})
	failed := func(r delivery.Reason, after time.Duration) delivery.Outcome {
		o := delivery.Of(r)
		o.RetryAfter = after
		return o
	}
	tests := []struct {
		name    string
		outcome delivery.Outcome
		facts   facts
		want    decision
	}{
		{"done", delivery.Of(delivery.OK), facts{charged: 9, age: 48 * time.Hour}, decision{delivery.Complete, delivery.OK, 0}},
		{"first failure", failed(delivery.Status, 0), facts{}, decision{delivery.Abandon, delivery.Status, time.Second / 2}},
		{"second failure", failed(delivery.Status, 0), facts{charged: 1}, decision{delivery.Abandon, delivery.Status, time.Second}},
		{"last failure", failed(delivery.Status, 0), facts{charged: 2}, decision{delivery.Bury, delivery.Exhausted, 0}},
		{"beyond the last", failed(delivery.Timeout, 0), facts{charged: 7}, decision{delivery.Bury, delivery.Exhausted, 0}},
		{"spoilt count", failed(delivery.Status, 0), facts{charged: math.MaxInt}, decision{delivery.Bury, delivery.Exhausted, 0}},
		{"its own limit is lower", failed(delivery.Status, 0), facts{maxAttempts: 1}, decision{delivery.Bury, delivery.Exhausted, 0}},
		{"its own limit is higher", failed(delivery.Status, 0), facts{charged: 2, maxAttempts: 9}, decision{delivery.Abandon, delivery.Status, 2 * time.Second}},
		{"as old as allowed", failed(delivery.Status, 0), facts{age: time.Hour}, decision{delivery.Abandon, delivery.Status, time.Second / 2}},
		{"too old", failed(delivery.Status, 0), facts{age: time.Hour + 1}, decision{delivery.Bury, delivery.Expired, 0}},
		{"receiver asks for longer", failed(delivery.Status, time.Minute), facts{}, decision{delivery.Abandon, delivery.Status, time.Minute}},
		{"receiver asks for less", failed(delivery.Status, time.Millisecond), facts{}, decision{delivery.Abandon, delivery.Status, time.Second / 2}},
		{"throttled is not charged", failed(delivery.Throttled, 0), facts{charged: 2, throttles: 2}, decision{delivery.Abandon, delivery.Throttled, 2 * time.Second}},
		{"throttled too long", failed(delivery.Throttled, 0), facts{age: 2 * time.Hour}, decision{delivery.Bury, delivery.Expired, 0}},
		{"stale connection goes at once", failed(delivery.StaleConnection, 0), facts{charged: 2}, decision{delivery.Abandon, delivery.StaleConnection, 0}},
		{"rejected", failed(delivery.Rejected, 0), facts{}, decision{delivery.Bury, delivery.Rejected, 0}},
		{"shutdown", failed(delivery.Shutdown, 0), facts{charged: 2}, decision{delivery.Release, delivery.Shutdown, 0}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := retry.decide(tt.outcome, tt.facts); got != tt.want {
				t.Errorf("decide = %+v, want %+v", got, tt.want)
			}
		})
	}
	endless := retryOf(t, Retry{MaxAttempts: Unlimited, MaxAge: Unlimited})
	got := endless.decide(delivery.Of(delivery.Status), facts{charged: 1 << 40, age: 1 << 60})
	if got.settlement != delivery.Abandon {
		t.Errorf("without limits: %+v", got)
	}
}
