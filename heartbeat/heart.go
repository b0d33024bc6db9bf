// Package heartbeat keeps account of which dispatchers of a queue are alive. A dispatcher's Heart moves its alive-until
// time on; a Detector names those whose time has run out. Only the Redis server's clock decides, so hosts may disagree on
// the time.
package heartbeat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/redis/go-redis/v9"

	"github.com/queuehook/queuehook/keyspace"
)

// The time to live and the grace of a dispatcher, in its intervals. It is suspected when the time to live has passed
// without a beat, and its tasks are taken when it stays silent for the grace.
const (
	ttlBeats   = 3
	GraceBeats = 2
)

// MinInterval is the least time between beats.
const MinInterval = 10 * time.Millisecond

// minPatience is what one beat may take at least, however short the interval.
const minPatience = 250 * time.Millisecond

// maxRetry bounds the wait after a failed beat: once Redis is back, leasing goes on within about this time.
const maxRetry = time.Second

var (
	// ErrFenced is returned when the dispatcher was given up: its tasks are being taken back, or have been. It should
	// settle what it still has and register anew.
	ErrFenced = errors.New("dispatcher is fenced")
	// ErrBusy is returned while the dispatcher has tasks in flight; it was not forgotten.
	ErrBusy = errors.New("dispatcher holds tasks")
)

// Config says how a heart beats.
type Config struct {
	// Interval is the time between beats, at least MinInterval; 0 = 5 s. The time to live is three intervals, the grace
	// two.
	Interval time.Duration
	// Info describes the dispatcher to whoever lists dispatchers. Its Interval, TTL and Grace are filled in.
	Info Info
	// Observe is told of each beat and registration: when it was sent, by this process's clock, and how it went;
	// nil = nobody is told.
	Observe func(at time.Time, err error)
	// Logger gets failed beats; nil = slog.Default().
	Logger *slog.Logger
}

// Info is what is known of a dispatcher besides its tick. Interval, TTL and Grace are in ms.
type Info struct {
	Host        string    `json:"host,omitempty"`
	PID         int       `json:"pid,omitempty"`
	Version     string    `json:"version,omitempty"`
	Started     time.Time `json:"started"`
	Concurrency int       `json:"concurrency,omitempty"`
	Interval    int64     `json:"interval_ms"`
	TTL         int64     `json:"ttl_ms"`
	Grace       int64     `json:"grace_ms"`
}

// Heart is one registration of a dispatcher of one queue. Its methods may be called by many goroutines, but Register
// comes first.
type Heart struct {
	rdb  redis.UniversalClient
	keys keyspace.Keys
	cfg  Config
	ttl  time.Duration

	id     string
	good   atomic.Int64  // sinceBoot before the last good beat was sent
	listed atomic.Bool   // the queue is in the set of all queues
	warned atomic.Bool   // that it is not yet
	mu     sync.Mutex    // guards fresh
	fresh  chan struct{} // closed and renewed at each good beat
}

// New returns the heart of a dispatcher of queue, which Register gives an id. rdb should be a client of its own: a beat
// must not wait for a connection or behind a large reply.
func New(rdb redis.UniversalClient, queue string, cfg Config) (*Heart, error) {
	keys, err := keyspace.New(queue)
	if err != nil {
		return nil, err
	}
	if cfg.Interval == 0 {
		cfg.Interval = 5 * time.Second
	}
	if cfg.Interval < MinInterval {
		return nil, fmt.Errorf("heartbeat interval %s: at least %s is accepted", cfg.Interval, MinInterval)
	}
	if cfg.Observe == nil {
		cfg.Observe = func(time.Time, error) {}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	ttl := ttlBeats * cfg.Interval
	cfg.Info.Interval = cfg.Interval.Milliseconds()
	cfg.Info.TTL = ttl.Milliseconds()
	cfg.Info.Grace = (GraceBeats * cfg.Interval).Milliseconds()
	return &Heart{rdb: rdb, keys: keys, cfg: cfg, ttl: ttl, fresh: make(chan struct{})}, nil
}

// Register announces the dispatcher under an id that is made for this call. After a lost reply nobody can tell whether
// the id was registered; call it again, and a sweep forgets the earlier id.
func (h *Heart) Register(ctx context.Context) error {
	at := time.Now()
	err := h.register(ctx)
	h.cfg.Observe(at, err)
	return err
}

func (h *Heart) register(ctx context.Context) error {
	info, err := json.Marshal(h.cfg.Info)
	if err != nil {
		return fmt.Errorf("register dispatcher: %w", err)
	}
	id, sent := ulid.Make().String(), sinceBoot()
	reply, err := registerScript.Run(ctx, h.rdb, []string{h.keys.Ticks, h.keys.Info}, id, h.ttl.Milliseconds(), info)
	if err != nil {
		return fmt.Errorf("register dispatcher: %w", err)
	}
	if reply != int64(1) {
		return fmt.Errorf("register dispatcher: %w", ErrFenced)
	}
	h.id = id
	h.beaten(sent)
	h.list(ctx)
	return nil
}

// ID is the id that the last successful Register made.
func (h *Heart) ID() string { return h.id }

// Beat makes the dispatcher alive for one time to live from now. ErrFenced when it was given up.
func (h *Heart) Beat(ctx context.Context) error {
	at := time.Now()
	err := h.beat(ctx)
	h.cfg.Observe(at, err)
	return err
}

func (h *Heart) beat(ctx context.Context) error {
	sent := sinceBoot()
	reply, err := beatScript.Run(ctx, h.rdb, []string{h.keys.Ticks}, h.id, h.ttl.Milliseconds())
	if err != nil {
		return fmt.Errorf("beat: %w", err)
	}
	if reply != int64(1) {
		return fmt.Errorf("beat: %w", ErrFenced)
	}
	h.beaten(sent)
	h.list(ctx)
	return nil
}

// Run beats until ctx ends, and then returns nil, or until the dispatcher is fenced, and then returns ErrFenced. A failed
// beat is tried again within the interval.
func (h *Heart) Run(ctx context.Context) error {
	failures := 0
	wait := h.cfg.Interval
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		err := h.beatWithin(ctx, max(h.cfg.Interval, minPatience))
		switch {
		case err == nil:
			failures, wait = 0, h.cfg.Interval
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, ErrFenced):
			return err
		default:
			failures++
			wait = min(h.cfg.Interval, maxRetry)/2 + rand.N(min(h.cfg.Interval, maxRetry)/2) //nolint:gosec // jitter
			if failures == 1 {
				h.cfg.Logger.WarnContext(ctx, "heartbeat failed", "queue", h.keys.Source, "dispatcher", h.id, "error", err)
			}
		}
	}
}

// beatWithin is Beat, but gives up on a silent connection in time for another beat on a fresh one.
func (h *Heart) beatWithin(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return h.Beat(ctx)
}

// Deregister forgets the dispatcher. ErrBusy while it holds tasks: it stays known then, so that a sweep finds them.
// ErrFenced when it had been given up; it is forgotten all the same.
func (h *Heart) Deregister(ctx context.Context) error {
	return deregister(ctx, h.rdb, h.keys, h.id)
}

// Alive says that the dispatcher is registered and may start work: nobody can have suspected it yet. It goes by this
// machine's clock, which counts time spent suspended, from before the last good beat was sent, with a margin of half an
// interval.
func (h *Heart) Alive() bool {
	good := h.good.Load()
	return good != 0 && sinceBoot()-time.Duration(good) < h.ttl-h.cfg.Interval/2
}

// Fresh returns a channel that is closed at the next good beat.
func (h *Heart) Fresh() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.fresh
}

func (h *Heart) beaten(sent time.Duration) {
	h.good.Store(int64(sent))
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.fresh)
	h.fresh = make(chan struct{})
}

// list adds the queue to the set of all queues, once. That key has a cluster slot of its own, so it takes a command of its
// own; when that fails the next beat tries again.
func (h *Heart) list(ctx context.Context) {
	if h.listed.Load() {
		return
	}
	err := h.rdb.SAdd(ctx, keyspace.Queues, h.keys.Source).Err()
	h.listed.Store(err == nil)
	if err != nil && h.warned.CompareAndSwap(false, true) {
		h.cfg.Logger.WarnContext(ctx, "queue not listed yet", "queue", h.keys.Source, "error", err)
	}
}

func deregister(ctx context.Context, rdb redis.UniversalClient, k keyspace.Keys, id string) error {
	reply, err := deregisterScript.Run(ctx, rdb, []string{k.Ticks, k.Info, k.Suspects, k.Worker(id)}, id)
	if err != nil {
		return fmt.Errorf("deregister dispatcher: %w", err)
	}
	if held, ok := reply.([]any); ok {
		return fmt.Errorf("deregister dispatcher: %w: %d or more", ErrBusy, len(held))
	}
	if reply != int64(1) {
		return fmt.Errorf("deregister dispatcher: %w", ErrFenced)
	}
	return nil
}
