package lifecycle

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
)

// TestTwoLeasesOfOneTaskInABatch settles a stale lease, again after a lost reply, at the same time as the lease that
// counts.
func TestTwoLeasesOfOneTaskInABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease := map[string]string{"first": "a", "twice": "fresh"} // what Redis knows
		hold := make(chan struct{})
		b := batch{send: func(_ context.Context, items []*item) (map[string]bool, error) {
			<-hold
			refused := map[string]bool{}
			for _, it := range items {
				if lease[it.id] != it.token {
					refused[it.id] = true
					continue
				}
				delete(lease, it.id)
			}
			return refused, nil
		}}
		var all sync.WaitGroup
		ours := make([]bool, 3)
		for i, c := range []claim{{"first", "a"}, {"twice", "stale"}, {"twice", "fresh"}} {
			all.Go(func() { ours[i], _ = b.try(t.Context(), c.id, c.token) })
			synctest.Wait() // so that they wait in this order
		}
		close(hold)
		all.Wait()
		if !ours[0] || ours[1] || !ours[2] {
			t.Errorf("ours: %v, want the first and the fresh one", ours)
		}
	})
}
