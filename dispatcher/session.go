package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/heartbeat"
	"github.com/queuehook/queuehook/lifecycle"
	"github.com/queuehook/queuehook/task"
)

// session is one registration of the dispatcher: an id, the heart that keeps it, and the tasks leased under it. A
// dispatcher that is fenced opens another and lets the attempts of the old one end and settle under the old id.
type session struct {
	life  Lifecycle
	heart *heartbeat.Heart // nil with a Lifecycle of the user's own

	log *slog.Logger
	bounds
	told    sync.Once
	beating chan struct{} // closed when the heart has stopped
	still   context.CancelFunc
	working atomic.Int64 // attempts that have a slot, or are about to
}

// bounds are how long a dispatcher's work may last.
type bounds struct {
	attempts context.Context //nolint:containedctx // parent of the attempts: ends when they are cut off
	settling context.Context //nolint:containedctx // ends when Redis is waited for no longer
}

// open begins a session, trying until Redis takes it or ctx ends.
func (d *Dispatcher) open(ctx context.Context, b bounds) (*session, error) {
	if d.cfg.Lifecycle != nil {
		return &session{life: d.cfg.Lifecycle, log: d.log, bounds: b}, nil
	}
	host, _ := os.Hostname() // for people only
	heart, err := heartbeat.New(d.cfg.Redis.Beats, d.cfg.Queue, heartbeat.Config{
		Interval: d.cfg.Interval, Observe: d.beaten, Logger: d.cfg.Logger,
		Info: heartbeat.Info{
			Host: host, PID: os.Getpid(), Version: d.cfg.Version, Started: time.Now().UTC(), Concurrency: d.cfg.Concurrency,
		},
	})
	if err != nil {
		return nil, err
	}
	if err := d.register(ctx, heart); err != nil {
		return nil, err
	}
	s := &session{heart: heart, log: d.log, bounds: b}
	s.life, err = lifecycle.New(d.cfg.Redis.Commands, d.cfg.Queue, heart.ID(), lifecycle.Config{
		Concurrency: d.cfg.Concurrency, MaxOut: d.cfg.MaxBytes, Ordered: d.cfg.Ordered, Rate: d.cfg.Rate,
		Waits: d.cfg.Redis.Waits,
		Admit: func(out, free int) (int, time.Duration) {
			taken := d.elsewhere(s)
			return d.gate.admit(out+taken, free-taken)
		},
		Fault: d.cfg.Observer.RedisError, Buried: d.cfg.Observer.Buried, Logger: d.cfg.Logger,
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// elsewhere is how many slots are taken by attempts of earlier sessions, which were fenced. Leased nevertheless, tasks
// would wait here for these to end, while another dispatcher could deliver them, or be given back at once when one of
// these is the probe of a route that is held back.
func (d *Dispatcher) elsewhere(s *session) int { return max(0, len(d.slots)-int(s.working.Load())) }

// beaten passes on how a heartbeat went.
func (d *Dispatcher) beaten(at time.Time, err error) {
	d.cfg.Progress()
	switch {
	case err == nil:
		d.cfg.Observer.Beat(at)
	case !errors.Is(err, heartbeat.ErrFenced):
		d.cfg.Observer.RedisError("beat")
	}
}

// register tries until Redis answers, at least once a second, and says so in the log once.
func (d *Dispatcher) register(ctx context.Context, heart *heartbeat.Heart) error {
	for tries := 0; ; tries++ {
		err := heart.Register(ctx)
		if err == nil {
			if tries > 0 {
				d.log.InfoContext(ctx, "dispatcher registered", "dispatcher", heart.ID())
			}
			return nil
		}
		if tries == 0 && ctx.Err() == nil {
			d.log.WarnContext(ctx, "dispatcher not registered yet", "error", err)
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Second/2 + rand.N(time.Second/2)): //nolint:gosec // jitter
		}
	}
}

// serve hands tasks to take until ctx ends or the dispatcher is fenced, and returns when nothing more is leased. The
// heart goes on.
func (s *session) serve(
	serving context.Context, take func(context.Context, *session, *task.Task), faults chan<- error,
) error {
	ctx, stop := context.WithCancel(serving)
	defer stop()
	if s.heart != nil {
		s.beat(context.WithoutCancel(ctx), stop)
	}
	tasks, errs := s.life.Listen(ctx)
	defer s.life.StopListening()
	var last error
	for tasks != nil {
		select {
		case t, ok := <-tasks:
			if !ok {
				tasks = nil
				continue
			}
			take(ctx, s, t)
		case err, ok := <-errs:
			if !ok {
				errs = nil
				continue
			}
			last = err
			tell(faults, err)
		}
	}
	switch {
	case serving.Err() != nil: // asked to stop
	case s.heart == nil:
		return fmt.Errorf("listening ended: %w", errors.Join(last, errors.New("the lifecycle closed its channel")))
	default:
		s.givenUp(serving)
	}
	return nil
}

// givenUp tells once that the dispatcher was fenced. A lease may learn of it before the heart does.
func (s *session) givenUp(ctx context.Context) {
	s.told.Do(func() {
		s.log.WarnContext(ctx, "dispatcher was given up by the others", "dispatcher", s.heart.ID())
	})
}

// beat starts the heart; stop is called when it finds itself fenced.
func (s *session) beat(ctx context.Context, stop context.CancelFunc) {
	ctx, s.still = context.WithCancel(ctx)
	s.beating = make(chan struct{})
	go func() {
		defer close(s.beating)
		if s.heart.Run(ctx) != nil {
			s.givenUp(ctx)
			stop()
		}
	}()
}

// fit waits until the dispatcher may start an attempt: not while others might think it dead and deliver the task too.
// ErrFenced when it was given up: then no beat will ever come.
func (s *session) fit(ctx context.Context) error {
	if s.heart == nil {
		return nil
	}
	for {
		fresh := s.heart.Fresh() // before the look, so that no beat is missed
		select {
		case <-s.beating:
			return heartbeat.ErrFenced
		default:
		}
		if s.heart.Alive() {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.beating:
		case <-fresh:
		}
	}
}

// settle writes a decision down. It is not bound to the attempt: what is known is recorded although the attempt was cut
// off.
func (s *session) settle(t *task.Task, d decision) error {
	switch d.settlement {
	case delivery.Complete:
		return s.life.Complete(s.settling, t)
	case delivery.Bury:
		return s.life.Bury(s.settling, t, d.reason)
	case delivery.Release:
		return s.life.Release(s.settling, t)
	default:
		return s.life.Abandon(s.settling, t, d.delay)
	}
}

// release gives back a task that nobody began to work on, trying until ctx ends.
func (s *session) release(ctx context.Context, t *task.Task) {
	if err := s.life.Release(ctx, t); err != nil {
		s.log.WarnContext(ctx, "task stays in flight until a sweep", "task", t.ID(), "error", err)
	}
}

// refuse is release for a task that comes when the session has ended. The stop waits for it, so it does not wait long
// for Redis: what is left is tried once more when everything else has stopped.
func (s *session) refuse(t *task.Task) {
	ctx, cancel := context.WithTimeout(s.settling, releaseFor)
	defer cancel()
	s.release(ctx, t)
}

// drained says that no task is out.
func (s *session) drained() bool {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return s.life.Await(ctx) == nil
}

// close ends the session after its last task: the heart stops last of all, then the id is forgotten. When tasks are left,
// which Redis could not be told of, it stays known, for a sweep. That it was fenced it may learn here first, when the
// stop came before the next beat.
func (s *session) close(ctx context.Context) error {
	if s.heart == nil {
		return nil
	}
	s.still()
	<-s.beating
	err := s.heart.Deregister(ctx)
	if errors.Is(err, heartbeat.ErrFenced) {
		s.givenUp(ctx)
		return nil
	}
	return err
}

func tell(faults chan<- error, err error) {
	select {
	case faults <- err:
	default:
	}
}
