// Package lifecycle owns where a task is. Every move is one Lua script of lua/, so that after each of them Redis holds
// each task in exactly one place: the producers' list, the landing list, one dispatcher's in-flight hash, delayed or
// dead. Nobody else writes those keys.
//
// A Queue is for producers, operators and sweepers; a DefaultLifecycle is one dispatcher's hold on the queue.
package lifecycle

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/queuehook/queuehook/keyspace"
)

// maxBatch bounds the tasks of one script call, so that no call holds Redis up.
const maxBatch = 1000

var (
	// ErrFenced is returned when the dispatcher was given up: it can lease nothing more under this id.
	ErrFenced = errors.New("dispatcher is fenced")
	// ErrUnexpected is returned when Redis replies with something that the script cannot have said.
	ErrUnexpected = errors.New("unexpected reply from Redis")
)

// Queue is one queue as producers, operators and sweepers see it. Its methods may be called by many goroutines.
type Queue struct {
	rdb  redis.UniversalClient
	keys keyspace.Keys
}

// Open returns the queue whose producers push onto the list named queue. Its error wraps keyspace.ErrName: the name cannot
// be used, or not in a cluster. It opens no connection.
func Open(rdb redis.UniversalClient, queue string) (*Queue, error) {
	keys, err := keyspace.New(queue)
	if err != nil {
		return nil, err
	}
	if _, cluster := rdb.(*redis.ClusterClient); cluster && !keys.Clusterable() {
		return nil, fmt.Errorf("%w %q: in a cluster a name with \"}\" must hold a hash tag, as {orders}",
			keyspace.ErrName, queue)
	}
	return &Queue{rdb: rdb, keys: keys}, nil
}

// Name is the name of the list that producers push onto.
func (q *Queue) Name() string { return q.keys.Source }

// Queues returns the names of all queues that a dispatcher ever served, in no order.
func Queues(ctx context.Context, rdb redis.UniversalClient) ([]string, error) {
	names, err := rdb.SMembers(ctx, keyspace.Queues).Result()
	if err != nil {
		return nil, fmt.Errorf("list queues: %w", err)
	}
	return names, nil
}
