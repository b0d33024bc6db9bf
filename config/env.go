package config

import (
	"fmt"
	"math"
	"time"
)

// The environment as envconfig fills it. A field's place is its variable's place in every table, its name, split into
// words, is the variable's name: an `envconfig:"NAME"` tag would make NAME without the prefix count as well. A
// variable that may also come from a file is a secret followed by a text named ...File.

const (
	dispatcherPrefix = "DISPATCHER"
	janitorPrefix    = "JANITOR"
)

type dispatcherEnv struct {
	Redis             redisEnv   `split_words:"true"`
	Routes            routes     `split_words:"true" desc:"queue=target entries separated by spaces, newlines or commas; a target is an http(s) URL or lambda:NAME[:QUALIFIER]; a comma in a URL is written %2C"`
	RoutesFile        text       `split_words:"true" desc:"YAML file of routes, beside those of ROUTES; read again on SIGHUP and when it changes"`
	Concurrency       integer    `split_words:"true" default:"32" desc:"attempts in flight per route and dispatcher, unless the route says otherwise"`
	Timeout           text       `split_words:"true" default:"20s" desc:"longest time of a whole attempt, including the answer's body"`
	MaxAttempts       integer    `split_words:"true" default:"40" desc:"attempts before a task is dead-lettered; 0 = no limit"`
	MaxAge            text       `split_words:"true" default:"24h" desc:"age, since it was first due, at which a failed task is dead-lettered; 0 = no limit"`
	BackoffBase       text       `split_words:"true" default:"1s" desc:"delay after the first failed attempt, doubled after each further one"`
	BackoffCap        text       `split_words:"true" default:"1h" desc:"longest delay between two attempts"`
	MaxRetryAfter     text       `split_words:"true" default:"1h" desc:"longest Retry-After that is obeyed"`
	CrashLimit        integer    `split_words:"true" default:"5" desc:"dispatchers that may die while they hold a task before it is dead-lettered"`
	Signing           signingEnv `split_words:"true"`
	HeartbeatInterval text       `split_words:"true" default:"5s" desc:"time between two heartbeats; a dispatcher counts as dead after 3 intervals, its tasks are taken after 2 more"`
	Janitor           boolean    `split_words:"true" default:"true" desc:"whether this dispatcher recovers the tasks of dead ones"`
	ShutdownGrace     text       `split_words:"true" default:"25s" desc:"how long attempts in flight may go on after the first SIGTERM"`
	AdminAddr         text       `split_words:"true" default:":8080" desc:"address of health and metrics; empty = none"`
	Log               logEnv     `split_words:"true"`
	DeadMaxAge        text       `split_words:"true" default:"720h" desc:"how long dead letters are kept; 0 = for good"`
	DeadMaxCount      integer    `split_words:"true" default:"0" desc:"dead letters kept per queue, the newest ones; 0 = all"`
}

type signingEnv struct {
	Secret     secret `split_words:"true" desc:"Standard Webhooks secrets (whsec_...) that sign every request, several separated by spaces"`
	SecretFile text   `split_words:"true" desc:"file that holds the signing secrets"`
}

type janitorEnv struct {
	Redis                  redisEnv `split_words:"true"`
	RedisPasswordSecretARN text     `split_words:"true" desc:"ARN of the password in AWS Secrets Manager, instead of REDIS_PASSWORD; :JSON-KEY:: may follow"`
	Queues                 list     `split_words:"true" desc:"queues to sweep, separated by spaces, newlines or commas; unset = every queue that a dispatcher ever served"`
	Grace                  text     `split_words:"true" default:"10s" desc:"how long a dispatcher is suspected before its tasks are taken"`
	Batch                  integer  `split_words:"true" default:"100" desc:"tasks moved per call to Redis, at most 100"`
	Legacy                 boolean  `split_words:"true" default:"false" desc:"also move the tasks of dead redutil workers back to their queues"`
	Log                    logEnv   `split_words:"true"`
}

type redisEnv struct {
	URL                  secret  `split_words:"true" default:"redis://127.0.0.1:6379/0" desc:"redis://, rediss:// or unix://, with go-redis URL options; ?master_name= asks a Sentinel"`
	URLFile              text    `split_words:"true" desc:"file that holds the URL"`
	Cluster              boolean `split_words:"true" default:"false" desc:"the URL names a node of a Redis Cluster"`
	Username             text    `split_words:"true" desc:"overrides the URL's user name"`
	Password             secret  `split_words:"true" desc:"overrides the URL's password"`
	PasswordFile         text    `split_words:"true" desc:"file that holds the password"`
	SentinelPassword     secret  `split_words:"true" desc:"password of the Sentinels; overrides the URL's"`
	SentinelPasswordFile text    `split_words:"true" desc:"file that holds the password of the Sentinels"`
	CAFile               text    `split_words:"true" desc:"PEM file of the authorities that Redis's certificate is checked against; unset = the system's"`
	CertFile             text    `split_words:"true" desc:"PEM file of the client certificate shown to Redis"`
	KeyFile              text    `split_words:"true" desc:"PEM file of the client certificate's key"`
}

type logEnv struct {
	Level  text `split_words:"true" default:"info" desc:"debug, info, warn or error"`
	Format text `split_words:"true" default:"json" desc:"json or text"`
}

// The bounds have reasons: Redis counts in milliseconds; more attempts in flight than there are ports to dial one
// address from cannot run; five heartbeat intervals must stay a time that someone would wait for.
const (
	tick           = time.Millisecond
	maxConcurrency = 1<<16 - 1
	minHeartbeat   = 10 * time.Millisecond
	maxHeartbeat   = time.Hour
	maxAttempts    = 1_000_000
	maxCrashes     = 1_000
	maxBatch       = 100
	maxDead        = math.MaxInt32
)

// validate checks the whole environment, so that one run reports everything. Where it finds fault the value answered
// means nothing and c has the problems.
func (e *dispatcherEnv) validate(c *checker) Dispatcher {
	d := Dispatcher{
		Redis:       e.Redis.validate(c),
		Routes:      c.routes("ROUTES", e.Routes),
		RoutesFile:  c.routesFile("ROUTES_FILE", e.RoutesFile),
		Concurrency: c.integer("CONCURRENCY", e.Concurrency, 1, maxConcurrency),
		Timeout:     c.duration("TIMEOUT", e.Timeout, tick, forever),
		Retry: Retry{
			MaxAttempts:   c.integer("MAX_ATTEMPTS", e.MaxAttempts, 0, maxAttempts),
			MaxAge:        c.duration("MAX_AGE", e.MaxAge, 0, forever),
			BackoffBase:   c.duration("BACKOFF_BASE", e.BackoffBase, tick, forever),
			BackoffCap:    c.duration("BACKOFF_CAP", e.BackoffCap, tick, forever),
			MaxRetryAfter: c.duration("MAX_RETRY_AFTER", e.MaxRetryAfter, tick, forever),
		},
		CrashLimit:        c.integer("CRASH_LIMIT", e.CrashLimit, 1, maxCrashes),
		SigningSecrets:    c.signingSecrets(e.Signing.Secret, e.Signing.SecretFile),
		HeartbeatInterval: c.duration("HEARTBEAT_INTERVAL", e.HeartbeatInterval, minHeartbeat, maxHeartbeat),
		Janitor:           c.boolean("JANITOR", e.Janitor),
		ShutdownGrace:     c.duration("SHUTDOWN_GRACE", e.ShutdownGrace, 0, forever),
		AdminAddr:         c.address("ADMIN_ADDR", e.AdminAddr),
		Log:               e.Log.validate(c),
		DeadMaxAge:        c.duration("DEAD_MAX_AGE", e.DeadMaxAge, 0, forever),
		DeadMaxCount:      c.integer("DEAD_MAX_COUNT", e.DeadMaxCount, 0, maxDead),
	}
	if c.good("BACKOFF_BASE") && c.good("BACKOFF_CAP") && d.Retry.BackoffBase > d.Retry.BackoffCap {
		c.problem("BACKOFF_BASE", fmt.Sprintf("%s is above %s, which is %s", d.Retry.BackoffBase, c.name("BACKOFF_CAP"),
			d.Retry.BackoffCap), "the base to be at most the cap")
	}
	if d.Timeout > d.ShutdownGrace {
		c.warn("TIMEOUT", fmt.Sprintf("%s is above %s (%s): a slow attempt can be cut at shutdown and repeated",
			d.Timeout, c.name("SHUTDOWN_GRACE"), d.ShutdownGrace))
	}
	for i, r := range d.Routes {
		c.queue("ROUTES", r.Queue, d.Redis.Cluster)
		d.Routes[i] = d.NewRoute(r.Queue, r.Target)
	}
	if d.RoutesFile != nil {
		d.RoutesFile.begin(c, &d)
	}
	return d
}

func (e *janitorEnv) validate(c *checker) Janitor {
	j := Janitor{
		Redis:               e.Redis.validate(c),
		RedisPasswordSecret: c.secretID("REDIS_PASSWORD_SECRET_ARN", e.RedisPasswordSecretARN),
		Queues:              c.list("QUEUES", e.Queues),
		Grace:               c.duration("GRACE", e.Grace, tick, forever),
		Batch:               c.integer("BATCH", e.Batch, 1, maxBatch),
		Legacy:              c.boolean("LEGACY", e.Legacy),
		Log:                 e.Log.validate(c),
	}
	for _, other := range []string{"REDIS_PASSWORD", "REDIS_PASSWORD_FILE"} {
		if c.isSet("REDIS_PASSWORD_SECRET_ARN") && c.isSet(other) {
			c.problem("REDIS_PASSWORD_SECRET_ARN", "is set together with "+c.name(other), "only one of the two")
		}
	}
	for _, q := range j.Queues {
		c.queue("QUEUES", q, j.Redis.Cluster)
	}
	return j
}
