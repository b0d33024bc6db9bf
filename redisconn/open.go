package redisconn

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

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

// Options say what is not in the configuration.
type Options struct {
	Purpose Purpose
	// PoolSize bounds the connections, in a cluster those to each node; 0 = 10. For Commands a pool_size in the URL wins.
	PoolSize int
}

const (
	defaultPool = 10
	maxPool     = 10_000 // go-redis counts connections in an int32 and panics beyond
	// A wait is answered within lifecycle's second; a reply that is later than this one comes from a dead connection.
	waitRead = 5 * time.Second
)

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
	tune(opt, o)
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
	t := &redis.Options{
		DialTimeout: opt.DialTimeout, ReadTimeout: opt.ReadTimeout, WriteTimeout: opt.WriteTimeout,
		PoolSize: opt.PoolSize, PoolTimeout: opt.PoolTimeout, Protocol: opt.Protocol,
		Dialer: opt.Dialer, TLSConfig: opt.TLSConfig,
	}
	tune(t, o)
	opt.Dialer, opt.DialTimeout, opt.ReadTimeout, opt.WriteTimeout = t.Dialer, t.DialTimeout, t.ReadTimeout, t.WriteTimeout
	opt.PoolSize, opt.PoolTimeout, opt.PipelinePoolSize = t.PoolSize, t.PoolTimeout, t.PipelinePoolSize
	opt.MinIdleConns, opt.MaxIdleConns, opt.MaxActiveConns = 0, 0, 0
	opt.MaxRetries, opt.DialerRetries = t.MaxRetries, t.DialerRetries
	opt.ContextTimeoutEnabled, opt.DisableIdentity, opt.Protocol = true, true, t.Protocol
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
	tuneCluster(opt, o)
	return redis.NewClusterClient(opt), nil
}

// tune sets what must be so whatever the URL says, and for the rest what suits the purpose.
func tune(opt *redis.Options, o Options) {
	size := o.PoolSize
	if o.Purpose == Commands {
		if opt.PoolSize > 0 {
			size = opt.PoolSize
		}
		opt.DialTimeout = positive(opt.DialTimeout, 3*time.Second)
		opt.ReadTimeout = positive(opt.ReadTimeout, 5*time.Second)
		opt.WriteTimeout = positive(opt.WriteTimeout, 5*time.Second)
	} else {
		opt.DialTimeout, opt.ReadTimeout, opt.WriteTimeout, opt.PoolTimeout = o.Purpose.timeouts()
	}
	if size <= 0 {
		size = defaultPool
	}
	opt.PoolSize = min(size, maxPool)
	opt.MinIdleConns, opt.MaxIdleConns, opt.MaxActiveConns = 0, 0, 0
	opt.PipelinePoolSize = -1 // pipelines take part in the pool: its size says how many connections there are
	opt.MaxRetries = -1
	opt.DialerRetries = 1
	opt.Dialer = dialer(opt.Dialer, opt.DialTimeout, opt.TLSConfig)
	opt.ContextTimeoutEnabled = true
	opt.DisableIdentity = true // 7.0 knows no CLIENT SETINFO
	opt.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	if opt.Protocol == 0 {
		opt.Protocol = 2 // nothing here needs pushes, and looking for them costs each read
	}
}

// tuneCluster is tune for a cluster's nodes. Redirections stay: they say that nothing was carried out.
func tuneCluster(opt *redis.ClusterOptions, o Options) {
	t := &redis.Options{
		DialTimeout: opt.DialTimeout, ReadTimeout: opt.ReadTimeout, WriteTimeout: opt.WriteTimeout,
		PoolSize: opt.PoolSize, PoolTimeout: opt.PoolTimeout, Protocol: opt.Protocol,
		Dialer: opt.Dialer, TLSConfig: opt.TLSConfig,
	}
	tune(t, o)
	opt.Dialer, opt.DialTimeout, opt.ReadTimeout, opt.WriteTimeout = t.Dialer, t.DialTimeout, t.ReadTimeout, t.WriteTimeout
	opt.PoolSize, opt.PoolTimeout, opt.PipelinePoolSize = t.PoolSize, t.PoolTimeout, t.PipelinePoolSize
	opt.MinIdleConns, opt.MaxIdleConns, opt.MaxActiveConns = 0, 0, 0
	opt.MaxRetries, opt.DialerRetries = t.MaxRetries, t.DialerRetries
	opt.ContextTimeoutEnabled, opt.DisableIdentity, opt.Protocol = true, true, t.Protocol
	opt.MaintNotificationsConfig = t.MaintNotificationsConfig
}

// timeouts answers dial, read, write and pool timeouts of a purpose that the URL has no say in: it can't know that a
// wait is meant to be long, nor that a beat must leave time for the next one.
func (p Purpose) timeouts() (dial, read, write, pool time.Duration) {
	if p == Beats {
		return 2 * time.Second, 2 * time.Second, 2 * time.Second, 2 * time.Second
	}
	return 3 * time.Second, waitRead, 3 * time.Second, waitRead
}

// positive refuses timeouts of 0 and "never": a half-open connection would hold its caller for ever.
func positive(d, instead time.Duration) time.Duration {
	if d <= 0 {
		return instead
	}
	return d
}

func overrideCredentials(cfg config.Redis, username, password *string) {
	if cfg.Username != "" {
		*username = cfg.Username
	}
	if cfg.Password != "" {
		*password = string(cfg.Password)
	}
}
