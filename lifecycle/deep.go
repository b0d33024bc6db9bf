package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"
)

// scanCount is how many keys or parked ids one step of a scan looks at, namesCount how many bodies. Bodies are copied
// inside Redis, so a step that copied more than namesBytes is followed by one that looks at fewer, down to one. Up to
// smallHash tasks are named in one step, without copying.
const (
	scanCount  = 1000
	namesCount = 100
	namesBytes = 100_000
	smallHash  = 5000
)

// mendLookups bounds in how many in-flight hashes one call of the script may look, all its tasks together: about 2 ms.
const mendLookups = 4000

// errUnsettled says that dispatchers come and go faster than they can be listed.
var errUnsettled = errors.New("the dispatchers changed during the look")

// Deep looks for what no transition could have left behind: in-flight hashes of dispatchers that nobody knows, bodies
// that no index names, parked ids without a body. Manual changes leave such things, or a Redis that lost writes. It acts
// only on what two looks found, between which the caller leaves a grace. One goroutine at a time may use it.
type Deep struct {
	q       *Queue
	small   int             // smallHash, but for tests
	suspect map[string]bool // task ids that an earlier look found
}

// Deepened is what one deep look found.
type Deepened struct {
	Orphans  []string // dispatchers that held tasks without being known; now a sweep can suspect them
	Strays   []string // tasks whose body was in no index: given back, due at once
	Bodiless []string // parked tasks without a body: moved to the dead letters
	Suspects int      // tasks of these two kinds that were found for the first time
}

// Any says whether the look found anything.
func (d Deepened) Any() bool {
	return len(d.Orphans)+len(d.Strays)+len(d.Bodiless)+d.Suspects > 0
}

// NewDeep returns a deep sweep of the queue, which has not looked yet.
func NewDeep(q *Queue) *Deep { return &Deep{q: q, small: smallHash, suspect: make(map[string]bool)} }

// Look goes through the queue once, in steps of which none holds Redis up for longer than other calls do.
func (d *Deep) Look(ctx context.Context) (Deepened, error) {
	var found Deepened
	var err error
	if found.Orphans, err = d.orphans(ctx); err != nil {
		return found, fmt.Errorf("deep sweep: %w", err)
	}
	before := d.suspect
	d.suspect = make(map[string]bool)
	look := func(ids []string) error {
		return d.look(ctx, ids, before, &found)
	}
	if err := d.bodies(ctx, look); err != nil {
		return found, fmt.Errorf("deep sweep: %w", err)
	}
	if err := d.parked(ctx, look); err != nil {
		return found, fmt.Errorf("deep sweep: %w", err)
	}
	found.Suspects = len(d.suspect)
	return found, nil
}

// orphans makes every in-flight hash without a tick known again.
func (d *Deep) orphans(ctx context.Context) ([]string, error) {
	var orphans []string
	rdb, err := node(ctx, d.q.rdb, d.q.keys.Ticks)
	if err != nil {
		return nil, err
	}
	keys := rdb.Scan(ctx, 0, d.q.keys.Workers(), scanCount).Iterator()
	for keys.Next(ctx) {
		id, ok := d.q.keys.WorkerID(keys.Val())
		if !ok {
			continue
		}
		reply, err := orphanScript.Run(ctx, d.q.rdb, []string{d.q.keys.Ticks, keys.Val()}, id)
		if err != nil {
			return orphans, err
		}
		if reply == int64(1) {
			orphans = append(orphans, id)
		}
	}
	return orphans, keys.Err()
}

// look judges some tasks; those that an earlier look found too are repaired.
func (d *Deep) look(ctx context.Context, ids []string, before map[string]bool, found *Deepened) error {
	if err := d.mend(ctx, false, ids, func(id, _ string) { d.suspect[id] = true }); err != nil {
		return err
	}
	var again []string
	for _, id := range ids {
		if d.suspect[id] && before[id] {
			again = append(again, id)
		}
	}
	return d.mend(ctx, true, again, func(id, kind string) {
		delete(d.suspect, id)
		if kind == "STRAY" {
			found.Strays = append(found.Strays, id)
		} else {
			found.Bodiless = append(found.Bodiless, id)
		}
	})
}

// mend runs the script over the tasks, batch by batch, with the dispatchers as they are just now.
func (d *Deep) mend(ctx context.Context, repair bool, ids []string, is func(id, kind string)) error {
	act := 0
	if repair {
		act = 1
	}
	for len(ids) > 0 {
		for tries := 0; ; tries++ {
			dispatchers, err := d.q.rdb.ZRange(ctx, d.q.keys.Ticks, 0, -1).Result()
			if err != nil {
				return err
			}
			k, batch := d.q.keys, ids[:min(len(ids), mendBatch(len(dispatchers)))]
			keys := []string{k.Ticks, k.Body, k.Delayed, k.Dead, k.Crashes}
			args := []any{act, len(dispatchers)}
			for _, id := range dispatchers {
				keys, args = append(keys, k.Worker(id)), append(args, id)
			}
			for _, id := range batch {
				args = append(args, id)
			}
			reply, err := d.q.run(ctx, mendScript, keys, args...)
			if err != nil {
				return err
			}
			r := reader{items: reply}
			if r.text() == "RETRY" {
				if tries == 10 {
					return errUnsettled
				}
				continue
			}
			for r.more() {
				is(r.text(), r.text())
			}
			if r.err != nil {
				return r.err
			}
			ids = ids[len(batch):]
			break
		}
	}
	return nil
}

// mendBatch is how many tasks one call of the script looks for, each in the in-flight hash of every dispatcher.
func mendBatch(dispatchers int) int {
	return max(1, min(maxSweep, mendLookups/max(1, dispatchers)))
}

// bodies hands out the ids of all tasks that have a body, in steps.
func (d *Deep) bodies(ctx context.Context, do func(ids []string) error) error {
	count := 1
	for cursor := "0"; ; {
		reply, err := d.q.run(ctx, namesScript, []string{d.q.keys.Body}, cursor, count, d.small)
		if err != nil {
			return err
		}
		r := reader{items: reply}
		cursor = r.text()
		count = nextCount(count, r.number())
		var ids []string
		for r.more() {
			ids = append(ids, r.text())
		}
		if r.err != nil {
			return r.err
		}
		if err := do(ids); err != nil || cursor == "0" {
			return err
		}
	}
}

// nextCount is how many bodies to look at after a step that looked at count of them and copied so many bytes.
func nextCount(count int, copied int64) int {
	if copied > namesBytes {
		return max(1, count/4)
	}
	return min(2*count, namesCount)
}

// parked hands out the ids of all parked tasks, in steps.
func (d *Deep) parked(ctx context.Context, do func(ids []string) error) error {
	for cursor := uint64(0); ; {
		page, next, err := d.q.rdb.ZScan(ctx, d.q.keys.Delayed, cursor, "*", scanCount).Result()
		if err != nil {
			return err
		}
		ids := make([]string, 0, len(page)/2)
		for member := range slices.Chunk(page, 2) { // the other of each two is its score
			ids = append(ids, member[0])
		}
		if err := do(ids); err != nil || next == 0 {
			return err
		}
		cursor = next
	}
}

// node is the client of the server that holds key: SCAN goes through one server only.
func node(ctx context.Context, rdb redis.UniversalClient, key string) (redis.UniversalClient, error) {
	if cluster, ok := rdb.(*redis.ClusterClient); ok {
		return cluster.MasterForKey(ctx, key)
	}
	return rdb, nil
}
