package fleet

import (
	"fmt"
	"math"
	"testing"
	"time"
)

const (
	// Patience is for what happens at once unless it is broken, on a machine that is busy with other things.
	Patience  = 60 * time.Second
	pollEvery = 10 * time.Millisecond
)

// Await calls look until it returns nil. It fails the test with look's last error when that takes longer than limit.
func Await(t testing.TB, limit time.Duration, what string, look func() error) {
	t.Helper()
	if err := poll(limit, look); err != nil {
		t.Fatalf("%s: not within %s: %v", what, limit, err)
	}
}

// AwaitTrue is Await for a condition that has no error to show.
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

// awaitLess is Await for what takes time to get done: it fails once the count has not fallen for Patience. look returns
// how much is left, and an error until that is little enough.
func awaitLess(t testing.TB, what string, look func() (left int, err error)) {
	t.Helper()
	if err := pollLess(Patience, look); err != nil {
		t.Fatalf("%s: nothing new for %s: %v", what, Patience, err)
	}
}

func poll(limit time.Duration, look func() error) error {
	return pollLess(limit, func() (int, error) { return 0, look() })
}

// pollLess calls look until it returns no error, or until its count has not fallen for the limit.
func pollLess(limit time.Duration, look func() (left int, err error)) error {
	deadline, least := time.Now().Add(limit), math.MaxInt
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		left, err := look()
		if err == nil {
			return nil
		}
		if left < least {
			deadline, least = time.Now().Add(limit), left
		}
		if time.Now().After(deadline) {
			return err
		}
		<-tick.C
	}
}

// Pass lets time pass, for what must not happen meanwhile.
func Pass(d time.Duration) { <-time.After(d) }
