package redisconn

import (
	"crypto/tls"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const (
	defaultPool = 10
	maxPool     = 10_000 // go-redis counts connections in an int32 and panics beyond
	// A wait is answered within lifecycle's second; a reply that is later than this comes from a dead connection.
	waitRead = 5 * time.Second
)

// knobs are the options that matter here. go-redis has them in three types, one for each kind of client, under the same
// names; a knob points into one of these. One that is missing makes tune panic.
type knobs struct {
	dialer                                     *dial
	trust                                      *tls.Config // the connection's; nil = no TLS
	dialTimeout, readTimeout, writeTimeout     *time.Duration
	poolTimeout                                *time.Duration
	poolSize, pipelinePoolSize                 *int
	minIdleConns, maxIdleConns, maxActiveConns *int
	maxRetries, dialerRetries, protocol        *int
	contextTimeoutEnabled, disableIdentity     *bool
}

func singleKnobs(opt *redis.Options) knobs {
	opt.MaintNotificationsConfig = noMaintNotifications()
	return knobs{
		&opt.Dialer, opt.TLSConfig, &opt.DialTimeout, &opt.ReadTimeout, &opt.WriteTimeout, &opt.PoolTimeout,
		&opt.PoolSize, &opt.PipelinePoolSize, &opt.MinIdleConns, &opt.MaxIdleConns, &opt.MaxActiveConns,
		&opt.MaxRetries, &opt.DialerRetries, &opt.Protocol, &opt.ContextTimeoutEnabled, &opt.DisableIdentity,
	}
}

// clusterKnobs are those of a cluster's nodes. Redirections stay: they say that nothing was carried out.
func clusterKnobs(opt *redis.ClusterOptions) knobs {
	opt.MaintNotificationsConfig = noMaintNotifications()
	return knobs{
		&opt.Dialer, opt.TLSConfig, &opt.DialTimeout, &opt.ReadTimeout, &opt.WriteTimeout, &opt.PoolTimeout,
		&opt.PoolSize, &opt.PipelinePoolSize, &opt.MinIdleConns, &opt.MaxIdleConns, &opt.MaxActiveConns,
		&opt.MaxRetries, &opt.DialerRetries, &opt.Protocol, &opt.ContextTimeoutEnabled, &opt.DisableIdentity,
	}
}

// failoverKnobs are those of the primary's client; for it go-redis itself switches maintenance notifications off.
func failoverKnobs(opt *redis.FailoverOptions) knobs {
	return knobs{
		&opt.Dialer, opt.TLSConfig, &opt.DialTimeout, &opt.ReadTimeout, &opt.WriteTimeout, &opt.PoolTimeout,
		&opt.PoolSize, &opt.PipelinePoolSize, &opt.MinIdleConns, &opt.MaxIdleConns, &opt.MaxActiveConns,
		&opt.MaxRetries, &opt.DialerRetries, &opt.Protocol, &opt.ContextTimeoutEnabled, &opt.DisableIdentity,
	}
}

func noMaintNotifications() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

// tune sets what must be so whatever the URL says, and for the rest what suits the purpose.
func tune(k knobs, o Options) {
	size := o.PoolSize
	if o.Purpose == Commands {
		if *k.poolSize > 0 {
			size = *k.poolSize
		}
		*k.dialTimeout = positive(*k.dialTimeout, 3*time.Second)
		*k.readTimeout = positive(*k.readTimeout, 5*time.Second)
		*k.writeTimeout = positive(*k.writeTimeout, 5*time.Second)
	} else {
		*k.dialTimeout, *k.readTimeout, *k.writeTimeout, *k.poolTimeout = o.Purpose.timeouts()
	}
	if size <= 0 {
		size = defaultPool
	}
	*k.poolSize = min(size, maxPool)
	*k.pipelinePoolSize = -1 // pipelines take part in the pool: its size says how many connections there are
	*k.minIdleConns, *k.maxIdleConns, *k.maxActiveConns = 0, 0, 0
	*k.maxRetries, *k.dialerRetries = -1, 1
	*k.dialer = dialer(*k.dialer, *k.dialTimeout, k.trust)
	*k.contextTimeoutEnabled = true
	*k.disableIdentity = true // 7.0 knows no CLIENT SETINFO
	if *k.protocol == 0 {
		*k.protocol = 2 // nothing here needs pushes, and looking for them costs each read
	}
}

// timeouts are a purpose's dial, read, write and pool timeouts where the URL has no say in them: it cannot know that a
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
