package lifecycle

import (
	"context"
	"fmt"
	"time"
)

// maxSweep bounds the tasks of one sweep call: each costs more there than elsewhere.
const maxSweep = 100

// Sweep says how to look at a dispatcher that may be dead.
type Sweep struct {
	// Grace is the least time for which it must have been suspected; its own, from its info, counts when it is longer.
	Grace time.Duration
	// Batch is how many tasks to take, at most 100; 0 = look only.
	Batch int
	// CrashLimit is after how many sweeps in a row, without an attempt that ended, a task is buried; 0 = never.
	CrashLimit int
	// HookToken marks a sweeper that runs hooks: others who do are kept out for HookTTL; empty = no hooks.
	HookToken string
	HookTTL   time.Duration
}

// Swept is what a sweep found and did.
type Swept struct {
	State Suspicion
	// Wait is how long the dispatcher must go on being suspected: with Marked and Waiting.
	Wait time.Duration
	// Back, Buried and Left count tasks, with Taken: given back, past the crash limit, still in flight there.
	Back, Buried, Left int
}

// Suspicion is where a dispatcher stands between alive and forgotten.
type Suspicion string

// The states, each as the sweep script says it.
const (
	Gone    Suspicion = "GONE"    // no such dispatcher, any more
	Alive   Suspicion = "ALIVE"   // it beats
	Marked  Suspicion = "MARKED"  // suspected since this look
	Waiting Suspicion = "WAITING" // suspected, but not for long enough
	Held    Suspicion = "HELD"    // another sweeper's hooks run for it
	Ready   Suspicion = "READY"   // dead, and nothing taken, as asked
	Taken   Suspicion = "SWEPT"   // dead, and tasks taken
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
