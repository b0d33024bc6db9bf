// Package audit computes the law that every test of queuehook ends with: each task that was pushed has been answered
// 2xx, or Redis holds it in exactly one place, and nobody saw it more often than a recorded cause explains.
//
// It reads Redis by itself, by the names of keys alone, so that it shares no mistake with the code that moves tasks.
package audit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/queuehook/queuehook/keyspace"
)

// Places is what Redis holds of one queue at one moment.
type Places struct {
	Queue string
	// Source and Landing are raw payloads, the list's left end first.
	Source, Landing []string
	// InFlight is task id -> lease token by dispatcher id, those included that no tick knows.
	InFlight map[string]map[string]string
	// Delayed is task id -> due, Dead is task id -> died; ms.
	Delayed, Dead map[string]float64
	// Body, Meta and Crashes are by task id, as stored.
	Body, Meta, Crashes map[string]string
	// Ticks is dispatcher id -> alive until, ms; -1 = condemned.
	Ticks map[string]float64
	// Strange are keys with the queue's prefix that the key space does not know.
	Strange []string
}

// Sum names a payload: its SHA-256 in lower-case hex.
func Sum(payload []byte) string {
	sum := sha256.Sum256(payload)
	return hex.EncodeToString(sum[:])
}

// Of is task id -> every place that holds it, as "delayed", "dead" or "in flight at <dispatcher>".
func (p Places) Of() map[string][]string {
	places := make(map[string][]string)
	for _, dispatcher := range slices.Sorted(maps.Keys(p.InFlight)) {
		for id := range p.InFlight[dispatcher] {
			places[id] = append(places[id], "in flight at "+dispatcher)
		}
	}
	for id := range p.Delayed {
		places[id] = append(places[id], "delayed")
	}
	for id := range p.Dead {
		places[id] = append(places[id], "dead")
	}
	return places
}

// Waiting is how many tasks Redis holds, dead letters not counted.
func (p Places) Waiting() int {
	n := len(p.Source) + len(p.Landing) + len(p.Delayed)
	for _, tasks := range p.InFlight {
		n += len(tasks)
	}
	return n
}

// Read takes the inventory of a queue. Everything is read in one transaction, so it may be called while tasks move.
// In-flight hashes are found by SCAN: one that no dispatcher answers for counts too. A Redis over its memory limit
// refuses transactions, and so Read.
func Read(ctx context.Context, rdb redis.UniversalClient, queue string) (Places, error) {
	k, err := keyspace.New(queue)
	if err != nil {
		return Places{}, err
	}
	for {
		before, err := scan(ctx, rdb, k)
		if err != nil {
			return Places{}, err
		}
		p, err := read(ctx, rdb, k, before)
		if err != nil {
			return Places{}, err
		}
		after, err := scan(ctx, rdb, k)
		if err != nil {
			return Places{}, err
		}
		if !slices.ContainsFunc(after, func(key string) bool { return !slices.Contains(before, key) }) {
			return p, nil // no in-flight hash came up meanwhile
		}
	}
}

func read(ctx context.Context, rdb redis.UniversalClient, k keyspace.Keys, found []string) (Places, error) {
	p := Places{Queue: k.Source, InFlight: make(map[string]map[string]string)}
	hands := make(map[string]*redis.MapStringStringCmd)
	var source, landing *redis.StringSliceCmd
	var delayed, dead, ticks *redis.ZSliceCmd
	var body, meta, crashes *redis.MapStringStringCmd
	_, err := rdb.TxPipelined(ctx, func(tx redis.Pipeliner) error {
		source, landing = tx.LRange(ctx, k.Source, 0, -1), tx.LRange(ctx, k.Landing, 0, -1)
		delayed, dead = tx.ZRangeWithScores(ctx, k.Delayed, 0, -1), tx.ZRangeWithScores(ctx, k.Dead, 0, -1)
		ticks = tx.ZRangeWithScores(ctx, k.Ticks, 0, -1)
		body, meta, crashes = tx.HGetAll(ctx, k.Body), tx.HGetAll(ctx, k.Meta), tx.HGetAll(ctx, k.Crashes)
		for _, key := range found {
			if id, ok := strings.CutPrefix(key, k.Worker("")); ok {
				hands[id] = tx.HGetAll(ctx, key)
			} else if !known(k, key) {
				p.Strange = append(p.Strange, key)
			}
		}
		return nil
	})
	if err != nil {
		return Places{}, fmt.Errorf("read queue %s: %w", k.Source, err)
	}
	p.Source, p.Landing = source.Val(), landing.Val()
	p.Delayed, p.Dead, p.Ticks = scores(delayed.Val()), scores(dead.Val()), scores(ticks.Val())
	p.Body, p.Meta, p.Crashes = body.Val(), meta.Val(), crashes.Val()
	for id, cmd := range hands {
		if len(cmd.Val()) > 0 {
			p.InFlight[id] = cmd.Val()
		}
	}
	return p, nil
}

// scan returns the queue's keys but its source, each once, of every node that may hold them.
func scan(ctx context.Context, rdb redis.UniversalClient, k keyspace.Keys) ([]string, error) {
	var mu sync.Mutex
	var keys []string
	one := func(ctx context.Context, c redis.Cmdable) error {
		it := c.Scan(ctx, 0, k.All(), 1000).Iterator()
		for it.Next(ctx) {
			mu.Lock()
			keys = append(keys, it.Val())
			mu.Unlock()
		}
		return it.Err()
	}
	var err error
	if cluster, ok := rdb.(*redis.ClusterClient); ok {
		err = cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error { return one(ctx, c) })
	} else {
		err = one(ctx, rdb)
	}
	if err != nil {
		return nil, fmt.Errorf("scan queue %s: %w", k.Source, err)
	}
	slices.Sort(keys)
	return slices.Compact(keys), nil
}

func known(k keyspace.Keys, key string) bool {
	switch key {
	case k.Landing, k.Body, k.Meta, k.Crashes, k.Delayed, k.Dead, k.Ticks, k.Info, k.Suspects, k.Holder, k.Stats,
		k.Paused, k.Rate:
		return true
	}
	return strings.HasPrefix(key, k.Dedup("")) || strings.HasPrefix(key, k.Hook(""))
}

func scores(zs []redis.Z) map[string]float64 {
	m := make(map[string]float64, len(zs))
	for _, z := range zs {
		if id, ok := z.Member.(string); ok {
			m[id] = z.Score
		}
	}
	return m
}
