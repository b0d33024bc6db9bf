package redisconn

import (
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/queuehook/queuehook/config"
)

// The pools. Settlements come from as many goroutines as there are attempts, yet each takes a connection for a fraction
// of a millisecond only.
const (
	commandsBase, commandsPerRoute, maxCommands = 16, 4, 256
	maxBeats                                    = 8
	manyRoutes                                  = 1000 // more than anybody has; unused room in a pool costs nothing
)

// Conn holds the clients of one dispatching process.
type Conn struct {
	Commands redis.UniversalClient // leases, settlements, whatever is answered at once
	Waits    redis.UniversalClient // idle waits, one connection for each route
	Beats    redis.UniversalClient // heartbeats

	own []redis.UniversalClient
}

// OpenAll opens the three clients for a process with this number of routes. Like Open it makes no connection, and its
// error is one of the configuration.
func OpenAll(cfg config.Redis, routes int) (Conn, error) {
	sizes := pools(routes)
	var clients [3]redis.UniversalClient
	for purpose := Commands; purpose <= Beats; purpose++ {
		client, err := Open(cfg, Options{Purpose: purpose, PoolSize: sizes[purpose]})
		if err != nil {
			for _, opened := range clients[:purpose] {
				_ = opened.Close() // never used
			}
			return Conn{}, err
		}
		clients[purpose] = client
	}
	return Conn{Commands: clients[Commands], Waits: clients[Waits], Beats: clients[Beats], own: clients[:]}, nil
}

// FromClient makes a Conn around a client that the caller owns, and closes after the Conn. From a *redis.Client or
// *redis.ClusterClient it derives further clients for waits and heartbeats, without the hooks that were added to the
// given one. A client of any other kind serves all three purposes: its pool must then have room for a connection for each
// route besides those for commands, and its read timeout must be well over a second.
func FromClient(rdb redis.UniversalClient) Conn {
	sizes := pools(manyRoutes)
	var derive func(Purpose) redis.UniversalClient
	switch client := rdb.(type) {
	case *redis.Client:
		derive = func(purpose Purpose) redis.UniversalClient {
			opt := *client.Options()
			opt.ClientSideCacheConfig, opt.ClientSideCache = nil, nil
			tune(singleKnobs(&opt), Options{Purpose: purpose, PoolSize: sizes[purpose]})
			return redis.NewClient(&opt)
		}
	case *redis.ClusterClient:
		derive = func(purpose Purpose) redis.UniversalClient {
			opt := *client.Options()
			tune(clusterKnobs(&opt), Options{Purpose: purpose, PoolSize: sizes[purpose]})
			return redis.NewClusterClient(&opt)
		}
	default:
		return Conn{Commands: rdb, Waits: rdb, Beats: rdb}
	}
	waits, beats := derive(Waits), derive(Beats)
	return Conn{Commands: rdb, Waits: waits, Beats: beats, own: []redis.UniversalClient{waits, beats}}
}

// Close closes the clients that OpenAll or FromClient made.
func (c Conn) Close() error {
	var errs []error
	for _, client := range c.own {
		errs = append(errs, client.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close Redis clients: %w", err)
	}
	return nil
}

// pools returns the pool size of each purpose.
func pools(routes int) [3]int {
	routes = max(routes, 1)
	return [3]int{
		Commands: min(commandsBase+commandsPerRoute*routes, maxCommands),
		Waits:    routes,
		Beats:    min(routes, maxBeats),
	}
}
