package redisconn

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"

	"github.com/redis/go-redis/v9"

	"github.com/queuehook/queuehook/config"
)

// Purpose is what a client is for; its timeouts follow from it.
type Purpose int

// The purposes. Each has a client of its own, so that none waits behind another for a connection.
const (
	Commands Purpose = iota // whatever is answered at once
	Waits                   // blocking waits of up to a second
	Beats                   // heartbeats: few, small, and better failed soon than late
)

// Options say of a client what is not in the configuration.
type Options struct {
	Purpose Purpose
	// PoolSize bounds the connections, in a cluster those to each node; 0 = 10. For Commands a pool_size in the URL wins
	// over it.
	PoolSize int
}

var (
	errURL    = errors.New("the Redis URL can't be parsed")
	errOption = errors.New("the Redis URL has an option or a value that go-redis does not take")
	errRouted = errors.New("the Redis URL has an option that reads from replicas, which answer late")
)

// Open returns a client of the configured Redis: one server, a cluster, or the primary that Sentinels name. It makes no
// connection, so an error is one of the configuration; none holds a part of the URL.
func Open(cfg config.Redis, o Options) (redis.UniversalClient, error) {
	client, err := open(cfg, o)
	if err != nil {
		return nil, fmt.Errorf("open Redis client: %w", err)
	}
	return client, nil
}

func open(cfg config.Redis, o Options) (redis.UniversalClient, error) {
	u, err := url.Parse(string(cfg.URL))
	if err != nil {
		return nil, errURL // without the cause, which quotes the URL
	}
	switch {
	case cfg.Cluster:
		return openCluster(cfg, o)
	case u.Query().Has("master_name"):
		return openFailover(cfg, o)
	default:
		return openSingle(cfg, o)
	}
}

func openSingle(cfg config.Redis, o Options) (redis.UniversalClient, error) {
	opt, err := redis.ParseURL(string(cfg.URL))
	if err != nil {
		return nil, errOption
	}
	overrideCredentials(cfg, &opt.Username, &opt.Password)
	if err := addFiles(cfg, opt.TLSConfig); err != nil {
		return nil, err
	}
	tune(singleKnobs(opt), o)
	return redis.NewClient(opt), nil
}

func openFailover(cfg config.Redis, o Options) (redis.UniversalClient, error) {
	opt, err := redis.ParseFailoverURL(string(cfg.URL))
	if err != nil {
		return nil, errOption
	}
	if opt.ReplicaOnly || opt.RouteByLatency || opt.RouteRandomly {
		return nil, errRouted
	}
	overrideCredentials(cfg, &opt.Username, &opt.Password)
	if cfg.SentinelPassword != "" {
		opt.SentinelPassword = string(cfg.SentinelPassword)
	}
	if opt.TLSConfig != nil {
		// The primary has another name than the Sentinel in the URL: each is checked against the address dialed.
		opt.TLSConfig.ServerName = ""
	}
	if err := addFiles(cfg, opt.TLSConfig); err != nil {
		return nil, err
	}
	tune(failoverKnobs(opt), o)
	return redis.NewFailoverClient(opt), nil
}

func openCluster(cfg config.Redis, o Options) (redis.UniversalClient, error) {
	opt, err := redis.ParseClusterURL(string(cfg.URL))
	if err != nil {
		return nil, errOption
	}
	if opt.ReadOnly || opt.RouteByLatency || opt.RouteRandomly {
		return nil, errRouted
	}
	overrideCredentials(cfg, &opt.Username, &opt.Password)
	if opt.TLSConfig != nil {
		opt.TLSConfig.MinVersion = tls.VersionTLS12
	}
	if err := addFiles(cfg, opt.TLSConfig); err != nil {
		return nil, err
	}
	tune(clusterKnobs(opt), o)
	return redis.NewClusterClient(opt), nil
}

func overrideCredentials(cfg config.Redis, username, password *string) {
	if cfg.Username != "" {
		*username = cfg.Username
	}
	if cfg.Password != "" {
		*password = string(cfg.Password)
	}
}
