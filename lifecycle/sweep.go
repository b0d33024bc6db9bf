package lifecycle

import (
	"context"
	"fmt"
	"time"
)

// maxSweep bounds the tasks of one sweep call: each costs more there than elsewhere.
const maxSweep = 100

// Sweep says how Queue.Sweep treats a dispatcher that may be dead.
type Sweep struct {
	// Grace is the least time for which it must have been suspected; its own counts when that is longer.
	Grace time.Duration
	// Batch is how many tasks to take, at most 100; 0 = look only.
	Batch int
	// CrashLimit is how many sweeps in a row, with no end of an attempt in between, bury a task; 0 = none do.
	CrashLimit int
	// HookToken names a sweeper that runs hooks; it keeps other such sweepers out for HookTTL. Empty = no hooks.
	HookToken string
	HookTTL   time.Duration
}

// Swept is what a sweep found and did.
type Swept struct {
	State Suspicion
	// Wait is how much longer the dispatcher must be suspected; with Marked and Waiting.
	Wait time.Duration
	// Back, Buried and Left count tasks: given back, past the crash limit, and still in flight there; with Taken.
	Back, Buried, Left int
}

// Suspicion is where a dispatcher stands between alive and forgotten.
type Suspicion string

// The states, each as the sweep script says it.
const (
	Gone    Suspicion = "GONE"    // there is no such dispatcher, or no longer
	Alive   Suspicion = "ALIVE"   // it beats
	Marked  Suspicion = "MARKED"  // suspected since this look
	Waiting Suspicion = "WAITING" // suspected, but not for long enough
	Held    Suspicion = "HELD"    // another sweeper's hooks run for it
	Ready   Suspicion = "READY"   // dead; nothing was taken, as asked
	Taken   Suspicion = "SWEPT"   // dead; its tasks were taken, or a batch of them
)

// Sweep looks at the dispatcher with this id and takes tasks back from it when it has been dead for the grace. It
// decides by the server's clock, and any number of sweepers may do so at once.
func (q *Queue) Sweep(ctx context.Context, id string, s Sweep) (Swept, error) {
	k := q.keys
	reply, err := q.run(ctx, sweepScript, []string{
		k.Ticks, k.Info, k.Suspects, k.Worker(id), k.Crashes, k.Delayed, k.Dead, k.Holder, k.Hook(id), k.Stats,
	}, id, s.Grace.Milliseconds(), min(s.Batch, maxSweep), s.CrashLimit, s.HookToken, max(1, s.HookTTL.Milliseconds()))
	if err != nil {
		return Swept{}, fmt.Errorf("sweep dispatcher: %w", err)
	}
	r := reader{items: reply}
	swept := Swept{State: Suspicion(r.text())}
	a, b, c := r.number(), r.number(), r.number()
	if swept.State == Taken {
		swept.Back, swept.Buried, swept.Left = int(a), int(b), int(c)
	} else {
		swept.Wait = time.Duration(a) * time.Millisecond
	}
	return swept, r.err
}
