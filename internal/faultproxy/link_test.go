package faultproxy

import (
	"testing"
	"time"
)

func TestLostBytesStayLost(t *testing.T) {
	t.Parallel()
	p := Start(t, "127.0.0.1:1")
	hit, spared := &link{proxy: p}, &link{proxy: p}
	p.Swallow(Replies)
	if !hit.swallowed(Replies) || hit.swallowed(Requests) {
		t.Error("Swallow(Replies) must swallow replies alone")
	}
	p.Restore()
	if !hit.swallowed(Replies) {
		t.Error("a connection that lost bytes delivers again: its stream has a hole")
	}
	if spared.swallowed(Replies) {
		t.Error("a connection that lost nothing is dead after Restore")
	}
}

func TestOneDirectionIsSlow(t *testing.T) {
	t.Parallel()
	p := Start(t, "127.0.0.1:1")
	p.Delay(Replies, time.Hour)
	p.Throttle(Requests, 7)
	p.Throttle(Both, 9)
	delay := func(d Direction) time.Duration {
		v, _ := now(p, func(f *faults) time.Duration { return f.delay[d] })
		return v
	}
	rate := func(d Direction) int {
		v, _ := now(p, func(f *faults) int { return f.rate[d] })
		return v
	}
	if delay(Requests) != 0 || delay(Replies) != time.Hour {
		t.Errorf("delays %s and %s, want 0 and 1h", delay(Requests), delay(Replies))
	}
	if rate(Requests) != 9 || rate(Replies) != 9 {
		t.Errorf("rates %d and %d, want 9 twice", rate(Requests), rate(Replies))
	}
	p.Restore()
	if delay(Replies) != 0 || rate(Requests) != 0 {
		t.Error("Restore leaves faults")
	}
}
