// Package config is the only place that spells a setting's name: DISPATCHER_* for the dispatcher, JANITOR_* for the
// janitor function. It turns the process environment into plain values, or into one error that lists everything that
// is wrong with it. It opens no connection; the files that a *_FILE variable names are read here.
//
// Beside main it is the one package that reads the environment: envconfig looks variables up in the process and takes
// no other source. So the Load functions have no parameter, read everything once, and tests use t.Setenv.
//
// A new setting is a field with its tags in env.go, a field here, and the line in env.go that checks and shows it.
package config

import (
	"io"
	"log/slog"
	"time"

	"github.com/queuehook/queuehook/signing"
)

// Dispatcher is the validated configuration of a dispatcher.
type Dispatcher struct {
	Redis             Redis
	Routes            []Route       // of ROUTES and of the routes file
	RoutesFile        *RoutesFile   // tells when it changes; nil = none
	Concurrency       int           // attempts in flight per route, unless the route says otherwise
	Timeout           time.Duration // of a whole attempt, the answer's body included
	Retry             Retry
	CrashLimit        int              // sweeps of one task before it is buried
	SigningSecrets    []signing.Secret // each of which signs; nil = unsigned, unless the route says
	HeartbeatInterval time.Duration    // a dispatcher is dead after 3 of them, taken for it after 2 more
	Janitor           bool             // whether the in-process janitor runs
	ShutdownGrace     time.Duration    // what attempts in flight get to end by themselves; 0 = nothing
	AdminAddr         string           // host:port to listen on; empty = none
	Log               Log
	DeadMaxAge        time.Duration // how long a dead letter is kept; 0 = for good
	DeadMaxCount      int           // dead letters kept per queue, the newest ones; 0 = all

	Warnings []string // what is accepted but worth a log line; free of secrets
	Settings Settings // every variable as it was understood, secrets redacted
}

// Janitor is the validated configuration of the janitor function.
type Janitor struct {
	Redis               Redis
	RedisPasswordSecret SecretID      // holds the password that wins over that of Redis; zero = none
	Queues              []string      // empty = every queue that a dispatcher ever served
	Grace               time.Duration // how long a suspect stays one before its tasks are taken
	Batch               int           // tasks moved per script call, at most 100
	Legacy              bool          // also move the tasks of dead redutil workers back to their queues
	Log                 Log

	Warnings []string // what is accepted but worth a log line; free of secrets
	Settings Settings // every variable as it was understood, secrets redacted
}

// Redis says how to reach Redis. Username, Password and SentinelPassword, when not empty, win over those in the URL.
// The files were readable, and the PEM in them valid, when the configuration was loaded.
type Redis struct {
	URL              Secret // redis, rediss or unix, with go-redis URL options; master_name = Sentinel
	Cluster          bool   // the URL names a node of a Redis Cluster
	Username         string
	Password         Secret
	SentinelPassword Secret
	CAFile           string // PEM; trusted instead of the system's authorities
	CertFile         string // PEM; set if and only if KeyFile is
	KeyFile          string
}

// The values of Log.Format.
const (
	LogJSON = "json"
	LogText = "text"
)

// Log says what is logged, and how.
type Log struct {
	Level  slog.Level
	Format string // LogJSON or LogText
}

// Logger returns the logger that the settings ask for, which writes to w.
func (l Log) Logger(w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: l.Level}
	if l.Format == LogText {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
}

// LoadDispatcher reads the DISPATCHER_ variables of the process. When any of them is wrong or unknown, the error is an
// *Error that names them all.
func LoadDispatcher() (Dispatcher, error) { return loadDispatcher() }

// LoadOperator is LoadDispatcher for those who look after queues and serve none. They must be able to when the routes file
// was replaced by a bad one, while a dispatcher that runs has refused it and goes on: then there are the routes of ROUTES.
func LoadOperator() (Dispatcher, error) {
	return loadDispatcher("ROUTES_FILE")
}

// loadDispatcher passes over what is wrong in the files that the variables forgiven name.
func loadDispatcher(forgiven ...string) (Dispatcher, error) {
	var env dispatcherEnv
	c, err := read(dispatcherPrefix, "`dispatcher help environment`", &env)
	if err != nil {
		return Dispatcher{}, err
	}
	d := env.validate(c)
	for _, short := range forgiven {
		c.forgive(short)
	}
	if err := c.err(); err != nil {
		return Dispatcher{}, err
	}
	d.Warnings, d.Settings = c.warnings, c.settings
	return d, nil
}

// LoadAdminAddr reads DISPATCHER_ADMIN_ADDR alone. Whoever asks a dispatcher that runs how it is must get an answer also
// when another could not start: when its routes file was replaced by a bad one, say, which it refused.
func LoadAdminAddr() (string, error) {
	var env dispatcherEnv
	c, err := read(dispatcherPrefix, "`dispatcher help environment`", &env)
	if err != nil {
		return "", err
	}
	c.problems = nil // unknown names
	return c.address("ADMIN_ADDR", env.AdminAddr), c.err()
}

// LoadJanitor reads the JANITOR_ variables of the process. When any of them is wrong or unknown, the error is an
// *Error that names them all.
func LoadJanitor() (Janitor, error) {
	var env janitorEnv
	c, err := read(janitorPrefix, "`lambda-janitor --help`", &env)
	if err != nil {
		return Janitor{}, err
	}
	j := env.validate(c)
	if err := c.err(); err != nil {
		return Janitor{}, err
	}
	j.Warnings, j.Settings = c.warnings, c.settings
	return j, nil
}
