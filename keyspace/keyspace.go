// Package keyspace names every Redis key that queuehook touches. The names are a wire format, since dispatchers of
// different versions and the janitor meet in them: golden tests pin each string, and no other package spells one.
package keyspace

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Queues is the SET of every queue that a dispatcher ever served. It lives in a cluster slot of its own, so only
// one-key commands may touch it.
const Queues = "queuehook:queues"

// maxName bounds a queue's name in bytes: names become header values, metric labels and parts of keys.
const maxName = 200

// ErrName marks a queue name that cannot be used.
var ErrName = errors.New("bad queue name")

// ours matches names that end like a key of ours would: such a queue could be another queue's bookkeeping.
var ours = regexp.MustCompile(`(:qh|\}):(in|body|meta|crashes|delayed|dead|ticks|info|suspects|holder|stats|paused|rate|(worker|dedup|hook)_.*)$`)

// Keys holds the key names of one queue. All of them share the cluster slot of Source, except where Clusterable
// reports false.
type Keys struct {
	Source   string // LIST: raw payloads, the producers' own
	Landing  string // LIST: where the idle wait moves what it popped
	Body     string // HASH: task id -> payload
	Meta     string // HASH: task id -> JSON metadata
	Crashes  string // HASH: task id -> sweeps since its last attempt ended
	Delayed  string // ZSET: task id -> due, ms
	Dead     string // ZSET: task id -> died, ms
	Ticks    string // ZSET: dispatcher id -> alive until, ms; -1 = condemned
	Info     string // HASH: dispatcher id -> JSON
	Suspects string // HASH: dispatcher id -> "since:last look", ms
	Holder   string // STRING: ordered queues: the one task that is out
	Stats    string // HASH: counters
	Paused   string // STRING: present = nothing is leased
	Rate     string // HASH: the fleet-wide token bucket

	prefix      string
	clusterable bool
}

// New returns the keys of the queue whose producers push onto the list named queue. The error wraps ErrName.
func New(queue string) (Keys, error) {
	if err := check(queue); err != nil {
		return Keys{}, err
	}
	t, clusterable := prefix(queue)
	return Keys{
		Source:   queue,
		Landing:  t + ":in",
		Body:     t + ":body",
		Meta:     t + ":meta",
		Crashes:  t + ":crashes",
		Delayed:  t + ":delayed",
		Dead:     t + ":dead",
		Ticks:    t + ":ticks",
		Info:     t + ":info",
		Suspects: t + ":suspects",
		Holder:   t + ":holder",
		Stats:    t + ":stats",
		Paused:   t + ":paused",
		Rate:     t + ":rate",

		prefix:      t,
		clusterable: clusterable,
	}, nil
}

// Worker is the HASH task id -> lease token of what is in flight at one dispatcher.
func (k Keys) Worker(id string) string { return k.prefix + ":worker_" + id }

// Dedup is the STRING that remembers a deduplication key's task id for a while.
func (k Keys) Dedup(key string) string { return k.prefix + ":dedup_" + key }

// Hook is the STRING with the token of the sweeper whose hooks run for a dead dispatcher.
func (k Keys) Hook(id string) string { return k.prefix + ":hook_" + id }

// Workers is the pattern, for SCAN MATCH, of all the queue's in-flight hashes.
func (k Keys) Workers() string { return globEscape(k.prefix) + ":worker_*" }

// All is the pattern, for SCAN MATCH, of all the queue's keys but Source.
func (k Keys) All() string { return globEscape(k.prefix) + ":*" }

// LegacyTicks is the HASH worker id -> time of the library redutil, whose queue may have this name too.
func (k Keys) LegacyTicks() string { return k.Source + ":ticks" }

// LegacyWorker is the LIST of what is in flight at a worker of redutil.
func (k Keys) LegacyWorker(id string) string { return k.Source + ":worker_" + id }

// LegacyClusterable reports whether redutil's keys share the queue's slot in a Redis Cluster. Names that only begin alike
// do so by a hash tag alone.
func (k Keys) LegacyClusterable() bool { return tagged(k.Source) }

// WorkerID is the id of the dispatcher whose in-flight hash this key is.
func (k Keys) WorkerID(key string) (id string, ok bool) { return strings.CutPrefix(key, k.Worker("")) }

// Clusterable reports whether all keys of the queue share one slot of a Redis Cluster.
func (k Keys) Clusterable() bool { return k.clusterable }

// prefix returns the text that our keys of a queue begin with, and whether it shares the slot of the queue's name.
// By Redis's rule the slot is that of the text between the first '{' and the next '}' when it is not empty, else that
// of the whole name (https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/#hash-tags).
func prefix(queue string) (string, bool) {
	if tagged(queue) {
		return queue + ":qh", true
	}
	if !strings.Contains(queue, "}") {
		return "{" + queue + "}", true
	}
	return queue + ":qh", false
}

func tagged(name string) bool {
	_, rest, found := strings.Cut(name, "{")
	return found && strings.Index(rest, "}") > 0
}

func check(queue string) error {
	switch {
	case queue == "":
		return fmt.Errorf("%w: empty", ErrName)
	case len(queue) > maxName:
		return fmt.Errorf("%w: %d bytes, at most %d are accepted", ErrName, len(queue), maxName)
	case !utf8.ValidString(queue):
		return fmt.Errorf("%w %q: not UTF-8", ErrName, queue)
	case strings.ContainsFunc(queue, func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) }):
		return fmt.Errorf("%w %q: spaces and control characters are not accepted", ErrName, queue)
	case queue == Queues || ours.MatchString(queue):
		return fmt.Errorf("%w %q: it ends like a key of queuehook's own", ErrName, queue)
	}
	return nil
}

func globEscape(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(s)
}
