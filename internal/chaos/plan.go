package chaos

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

// Kind is what a fault does.
type Kind string

// The faults of one dispatcher's process, of its connection to Redis, of Redis, of the receiver, and a janitor's run.
const (
	Kill      Kind = "dispatcher killed"
	Freeze    Kind = "dispatcher frozen"
	Terminate Kind = "dispatcher restarted"

	Cut       Kind = "link cut"
	Sever     Kind = "link severed"
	HalfOpen  Kind = "link half open"
	Delay     Kind = "link slow to answer"
	Throttle  Kind = "link throttled"
	LoseReply Kind = "replies lost"
	LoseCall  Kind = "requests lost"

	Restart     Kind = "redis restarted"
	Crash       Kind = "redis killed"
	Pause       Kind = "redis frozen"
	Full        Kind = "redis full"
	ScriptFlush Kind = "redis SCRIPT FLUSH"
	ClientKill  Kind = "redis CLIENT KILL"

	Failover  Kind = "sentinels swap the roles"
	Takeover  Kind = "primary killed, replica takes over"
	SlotMoves Kind = "cluster moves the queue"

	Errors    Kind = "receiver fails"
	Hangs     Kind = "receiver hangs"
	Resets    Kind = "receiver resets"
	Throttles Kind = "receiver throttles"
	Slow      Kind = "receiver slow"

	Janitor Kind = "janitor run"
)

// Fault is one thing that goes wrong, from At on, for the duration For.
type Fault struct {
	Kind Kind
	At   time.Duration // since the trial's start
	For  time.Duration
	Slot int     // whose, of the dispatchers
	Draw float64 // 0 to 1: how bad, where that can differ
}

// End is when it is over.
func (f Fault) End() time.Duration { return f.At + f.For }

// track is one thing that has at most one fault at a time.
type track struct {
	slot             int
	kinds            []Kind
	gapMin, gapMax   time.Duration // between two faults
	lastMin, lastMax time.Duration // how long one lasts
}

func tracks(site Site) []track {
	const ms = time.Millisecond
	ofRedis := map[Site][]Kind{
		Alone:     {Restart, Crash, Pause, Full, ScriptFlush, ClientKill},
		Sentinels: {Failover, Takeover},
		Cluster:   {SlotMoves},
	}
	ts := []track{
		{
			kinds: ofRedis[site], gapMin: 1500 * ms, gapMax: 4000 * ms,
			lastMin: 50 * ms, lastMax: 2000 * ms,
		},
		{
			kinds: []Kind{Errors, Hangs, Resets, Throttles, Slow}, gapMin: 1000 * ms, gapMax: 3000 * ms,
			lastMin: 300 * ms, lastMax: 2500 * ms,
		},
		{kinds: []Kind{Janitor}, gapMin: 3000 * ms, gapMax: 8000 * ms, lastMin: ms, lastMax: 2 * ms},
	}
	for slot := range slots {
		ts = append(ts, track{
			slot: slot, kinds: []Kind{Kill, Freeze, Terminate}, gapMin: 2000 * ms, gapMax: 6000 * ms,
			lastMin: 100 * ms, lastMax: 4500 * ms,
		})
		if site == Alone { // the others name the addresses that clients go to: no proxy stands between
			ts = append(ts, track{
				slot: slot, kinds: []Kind{Cut, Sever, HalfOpen, Delay, Throttle, LoseReply, LoseCall},
				gapMin: 500 * ms, gapMax: 2500 * ms, lastMin: 50 * ms, lastMax: 2500 * ms,
			})
		}
	}
	return ts
}

// Plan returns the faults of a trial of this length, in order. The same seed gives the same plan.
func Plan(seed uint64, length time.Duration, site Site) []Fault {
	var plan []Fault
	for i, t := range tracks(site) {
		rng := rand.New(rand.NewPCG(seed, uint64(i))) //nolint:gosec // reproducible on purpose
		var deck []Kind                               // each kind comes once before one comes again
		for at := between(rng, 500*time.Millisecond, t.gapMax); at < length; {
			if len(deck) == 0 {
				deck = slices.Clone(t.kinds)
				rng.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
			}
			f := Fault{Kind: deck[0], At: at, For: between(rng, t.lastMin, t.lastMax), Slot: t.slot, Draw: rng.Float64()}
			deck = deck[1:]
			plan = append(plan, f)
			at = f.End() + between(rng, t.gapMin, t.gapMax)
		}
	}
	slices.SortStableFunc(plan, func(a, b Fault) int { return cmp.Compare(a.At, b.At) })
	return plan
}

func between(rng *rand.Rand, low, high time.Duration) time.Duration {
	return low + time.Duration(rng.Int64N(int64(high-low)))
}
