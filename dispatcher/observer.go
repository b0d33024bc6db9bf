package dispatcher

import (
	"time"

	"github.com/queuehook/queuehook/delivery"
)

// Observer is told what happens on one route, by many goroutines at once. It must not block.
type Observer interface {
	Attempt(s delivery.Settlement, r delivery.Reason, took time.Duration)
	Completed(lag time.Duration)
	Buried(r delivery.Reason)
	Recovered(tasks int)
	LeaseLost()
	InFlight(delta int)
	Beat(at time.Time)
	// Trimmed counts dead letters that retention deleted.
	Trimmed(tasks int)
	// Paused says that the route is held back for a cause, or is no longer: throttled, breaker, rejections.
	Paused(cause string, on bool)
	// RedisError counts a failed call to Redis, by what it was for: beat, lease, settle, wait, sweep, trim.
	RedisError(op string)
}

// nobody is the Observer of a dispatcher without one.
type nobody struct{}

func (nobody) Attempt(delivery.Settlement, delivery.Reason, time.Duration) {}
func (nobody) Completed(time.Duration)                                     {}
func (nobody) Buried(delivery.Reason)                                      {}
func (nobody) Recovered(int)                                               {}
func (nobody) LeaseLost()                                                  {}
func (nobody) InFlight(int)                                                {}
func (nobody) Beat(time.Time)                                              {}
func (nobody) Trimmed(int)                                                 {}
func (nobody) Paused(string, bool)                                         {}
func (nobody) RedisError(string)                                           {}
