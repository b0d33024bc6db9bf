package chaos

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/queuehook/queuehook/internal/faultproxy"
	"github.com/queuehook/queuehook/internal/fleet"
	"github.com/queuehook/queuehook/internal/redistest"
	"github.com/queuehook/queuehook/lifecycle"
)

// slots is how many dispatchers run at a time.
const slots = 3

// The dispatchers' settings. A heartbeat is short so that deaths are noticed within a trial, and long enough for a busy
// machine to keep up with.
const (
	beat    = 500 * time.Millisecond
	timeout = 2 * time.Second
	grace   = time.Second
)

// logLimit is how many requests the receiver remembers, more than a trial makes.
const logLimit = 1_000_000

// trial is one run of a plan. Its methods belong to the test's goroutine.
type trial struct {
	t       testing.TB
	start   time.Time
	site    Site
	server  *redistest.Server // Alone
	many    many              // else
	queue   *fleet.Queue
	slots   [slots]*slot
	lives   []*life // every dispatcher that ever ran
	runs    []*fleet.Process
	figures Figures
}

// slot is a dispatcher's place: its connection to Redis stays, its process comes and goes.
type slot struct {
	proxy *faultproxy.Proxy // Alone
	now   *life             // nil between two
	lived int
}

// life is one dispatcher's process.
type life struct {
	name   string // the last part of the URL that it delivers to
	server *fleet.Server
	frozen bool
	killed bool
}

// Run breaks a fleet for length by the seed's plan, heals it, and checks the law. The figures are those of the trial.
func Run(t testing.TB, seed uint64, length time.Duration, site Site) Figures {
	t.Helper()
	t.Logf("QUEUEHOOK_SEED=%d replays this trial of %s", seed, length)
	tr := &trial{t: t, site: site, figures: Figures{Faults: map[Kind]int{}, Repeats: map[string]int{}}}
	tr.build()
	for i := range tr.slots {
		tr.launch(i)
	}
	for _, s := range tr.slots {
		s.now.server.AwaitReady(t)
	}
	tr.start = time.Now()
	producing, stop := context.WithCancel(t.Context())
	var producers sync.WaitGroup
	producers.Go(func() { tr.produce(producing, seed) })
	tr.follow(Plan(seed, length, site))
	tr.at(length)
	stop()
	producers.Wait()
	tr.heal()
	tr.end()
	return tr.judge()
}

// follow begins and ends each fault at its time. Faults of different tracks overlap as they like.
func (tr *trial) follow(plan []Fault) {
	type step struct {
		at time.Duration
		do func()
	}
	var steps []step
	for _, f := range plan {
		steps = append(steps, step{f.At, func() { tr.begin(f) }}, step{f.End(), func() { tr.over(f) }})
	}
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	for _, s := range steps {
		tr.at(s.at)
		s.do()
	}
}

// at waits for a moment of the trial.
func (tr *trial) at(moment time.Duration) {
	if left := time.Until(tr.start.Add(moment)); left > 0 {
		fleet.Pass(left)
	}
}

// launch starts a dispatcher in a slot.
func (tr *trial) launch(i int) {
	s := tr.slots[i]
	s.lived++
	l := &life{name: fmt.Sprintf("d%d-%d", i+1, s.lived)}
	l.server = fleet.Launch(tr.t, "", tr.queue.Name+"="+tr.queue.Receiver.URL()+"/"+l.name,
		append(tr.redis(s), "HEARTBEAT_INTERVAL="+beat.String(), "TIMEOUT="+timeout.String(), "SHUTDOWN_GRACE="+grace.String(),
			"CONCURRENCY=16", "BACKOFF_CAP=500ms", "MAX_RETRY_AFTER=1s")...)
	s.now = l
	tr.lives = append(tr.lives, l)
}

// produce pushes and enqueues, some small payloads, some large ones, until ctx ends. No two are equal, since what
// becomes of one is not always known.
func (tr *trial) produce(ctx context.Context, seed uint64) {
	q := tr.queue
	rng := rand.New(rand.NewPCG(seed, 1<<32)) //nolint:gosec // reproducible on purpose
	tick := time.NewTicker(15 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		size := rng.IntN(2000)
		if rng.IntN(100) == 0 {
			size = 100_000
		}
		payload := append(fmt.Appendf(nil, `{"n":%d}`, n), fleet.Payload(n, size)...)
		// A failed offer is on the queue's record: refused, or in doubt.
		offering, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		if tr.site == Sentinels {
			_ = q.OfferSafely(offering, payload)
		} else if rng.IntN(4) > 0 {
			_ = q.Offer(offering, payload)
		} else {
			_ = q.OfferTask(offering, payload, lifecycle.EnqueueOptions{Delay: time.Duration(rng.IntN(500)) * time.Millisecond})
		}
		cancel()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
