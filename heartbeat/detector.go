package heartbeat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/queuehook/queuehook/keyspace"
)

// Detector names the dispatchers of a queue that look dead.
type Detector struct {
	rdb  redis.UniversalClient
	keys keyspace.Keys
}

// NewDetector returns the detector of one queue.
func NewDetector(rdb redis.UniversalClient, queue string) (*Detector, error) {
	keys, err := keyspace.New(queue)
	if err != nil {
		return nil, err
	}
	return &Detector{rdb: rdb, keys: keys}, nil
}

// Detect returns the ids of the dispatchers whose time has run out by the server's clock. It changes nothing; a sweep
// looks at each of them again before it takes anything.
func (d *Detector) Detect(ctx context.Context) ([]string, error) {
	reply, err := detectScript.Run(ctx, d.rdb, []string{d.keys.Ticks})
	if err != nil {
		return nil, fmt.Errorf("detect dead dispatchers: %w", err)
	}
	items, _ := reply.([]any)
	ids := make([]string, 0, len(items))
	for _, item := range items {
		if id, ok := item.(string); ok {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// Purge forgets a dispatcher that holds no tasks; ErrBusy when it holds some.
func (d *Detector) Purge(ctx context.Context, id string) error {
	if err := deregister(ctx, d.rdb, d.keys, id); err != nil && !errors.Is(err, ErrFenced) {
		return err
	}
	return nil
}

// Seen is one dispatcher of a queue as Redis knows it.
type Seen struct {
	ID string
	// Left is for how much longer it counts as alive; below zero, for how long it has not.
	Left time.Duration
	// Condemned says that its tasks are being taken.
	Condemned bool
	Info      Info
}

// List returns every dispatcher that Redis knows, the dead ones included.
func (d *Detector) List(ctx context.Context) ([]Seen, error) {
	var clock *redis.TimeCmd
	var ticks *redis.ZSliceCmd
	var infos *redis.MapStringStringCmd
	if _, err := d.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		ticks = p.ZRangeWithScores(ctx, d.keys.Ticks, 0, -1)
		infos = p.HGetAll(ctx, d.keys.Info)
		clock = p.Time(ctx)
		return nil
	}); err != nil {
		return nil, fmt.Errorf("list dispatchers: %w", err)
	}
	seen := make([]Seen, 0, len(ticks.Val()))
	for _, tick := range ticks.Val() {
		id, _ := tick.Member.(string)
		s := Seen{ID: id, Condemned: tick.Score == -1}
		if !s.Condemned {
			s.Left = time.UnixMilli(int64(tick.Score)).Sub(clock.Val())
		}
		_ = json.Unmarshal([]byte(infos.Val()[id]), &s.Info) // a dispatcher without readable info is still one
		seen = append(seen, s)
	}
	return seen, nil
}
