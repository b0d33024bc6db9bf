package dispatcher_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/queuehook/queuehook/dispatcher"
	"github.com/queuehook/queuehook/internal/redistest"
	"github.com/queuehook/queuehook/redisconn"
	"github.com/queuehook/queuehook/task"
)

// stress is one queue whose dispatchers come and go.
type stress struct {
	*rig
	conn  redisconn.Conn
	calls atomic.Int64
	seen  sync.Map // payloads that a target or a program had
}

// TestStartsAndStops starts and stops dispatchers of one queue, several at a time, in every way and at every moment of
// their lives. Each must end, none may leave a goroutine behind, and no task may be lost.
func TestStartsAndStops(t *testing.T) { // alone: it counts goroutines
	const atOnce = 16
	cycles := int64(100)
	if os.Getenv("QUEUEHOOK_LONG") != "" {
		cycles = 1000
	}
	r := newRig(t)
	s := &stress{rig: r, conn: redisconn.FromClient(redistest.Shared(t).Client(t))}
	t.Cleanup(func() { _ = s.conn.Close() })
	before := runtime.NumGoroutine()
	var all sync.WaitGroup
	var next atomic.Int64
	for range atOnce {
		all.Go(func() {
			for n := next.Add(1); n <= cycles; n = next.Add(1) {
				s.cycle(n)
			}
		})
	}
	all.Wait()
	r.eventually("no goroutine is left", func() bool { return runtime.NumGoroutine() <= before+atOnce })

	r.serve(dispatcher.Config{Target: s.target(false)})
	r.eventually("all tasks delivered", func() bool {
		for n := range cycles {
			if _, ok := s.seen.Load(strconv.FormatInt(n+1, 10)); !ok {
				return false
			}
		}
		return true
	})
	r.eventually("nothing is left", func() bool {
		return r.rdb.Exists(t.Context(), r.keys.Source, r.keys.Landing, r.keys.Body, r.keys.Delayed, r.keys.Dead).Val() == 0
	})
}

// cycle pushes one task and runs one dispatcher from start to stop.
func (s *stress) cycle(n int64) {
	d, err := dispatcher.New(dispatcher.Config{
		Queue: s.keys.Source, Redis: s.conn, Concurrency: 2, Grace: time.Millisecond, Interval: time.Second,
		Target: s.target(true), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		s.Error(err)
		return
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.Context()))
	defer cancel()
	ended := make(chan error, 1)
	if n%2 == 0 {
		go func() { ended <- d.Run(ctx) }()
	} else {
		go func() { ended <- s.pull(d.Start(ctx)) }()
	}
	if err := s.rdb.LPush(ctx, s.keys.Source, n).Err(); err != nil {
		s.Error(err)
	}
	<-time.After(rand.N(30 * time.Millisecond))
	switch n % 3 {
	case 0:
		cancel()
	case 1:
		go func() { _ = d.Close(context.Background()) }()
	default:
		go func() { _ = d.Halt(context.Background()) }()
	}
	select {
	case err := <-ended:
		if err != nil && !errors.Is(err, dispatcher.ErrStarted) { // the stop came first
			s.Errorf("cycle %d: %v", n, err)
		}
	case <-time.After(40 * time.Second):
		s.Errorf("cycle %d does not end", n)
	}
}

// target delivers, except that every fifth of the calls that may hang waits for the end of its context.
func (s *stress) target(hangs bool) dispatcher.TargetFunc {
	return func(ctx context.Context, t *task.Task) error {
		if hangs && s.calls.Add(1)%5 == 0 {
			<-ctx.Done()
			return ctx.Err()
		}
		s.seen.Store(string(t.Bytes()), true)
		return nil
	}
}

// pull is a program that pulls until the channel is closed.
func (s *stress) pull(tasks <-chan *task.Task, faults <-chan error) error {
	for t := range tasks {
		s.seen.Store(string(t.Bytes()), true)
		if err := t.Succeed(); err != nil {
			return err
		}
	}
	for err := range faults {
		return err
	}
	return nil
}
