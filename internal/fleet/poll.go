package fleet

import (
	"fmt"
	"testing"
	"time"
)

const (
	// Patience is for what happens at once unless it is broken, on a machine that is busy with other things.
	Patience  = 60 * time.Second
	pollEvery = 10 * time.Millisecond
)

// Await looks until look answers nil, and fails the test with the last answer when that takes longer than limit.
func Await(t testing.TB, limit time.Duration, what string, look func() error) {
	t.Helper()
	if err := poll(limit, look); err != nil {
		t.Fatalf("%s: not within %s: %v", what, limit, err)
	}
}

// AwaitTrue is Await for what has no more to tell.
func AwaitTrue(t testing.TB, limit time.Duration, what string, look func() bool) {
	t.Helper()
	Await(t, limit, what, func() error {
		if !look() {
			return errNotYet
		}
		return nil
	})
}

var errNotYet = fmt.Errorf("it is not so")

func poll(limit time.Duration, look func() error) error {
	deadline := time.Now().Add(limit)
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		err := look()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		<-tick.C
	}
}

// Pass lets time pass, for what must not happen meanwhile.
func Pass(d time.Duration) { <-time.After(d) }
