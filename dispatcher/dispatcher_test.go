package dispatcher_test

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/dispatcher"
	"github.com/queuehook/queuehook/task"
)

// stub is a Lifecycle in memory: it hands pushed tasks out and notes how each was settled.
type stub struct {
	pending chan *task.Task

	mu      sync.Mutex
	out     map[string]*task.Task
	settled map[string]string
	changed chan struct{}
	refuse  error // of Complete
	stop    context.CancelFunc
	stopped chan struct{}
}

func newStub(ids ...string) *stub {
	s := &stub{
		pending: make(chan *task.Task, 100), out: map[string]*task.Task{}, settled: map[string]string{},
		changed: make(chan struct{}), stopped: make(chan struct{}),
	}
	for _, id := range ids {
		s.pending <- task.New(id, []byte(id), nil)
	}
	return s
}

func (s *stub) Listen(ctx context.Context) (<-chan *task.Task, <-chan error) {
	ctx, s.stop = context.WithCancel(ctx)
	tasks, errs := make(chan *task.Task), make(chan error)
	go func() {
		defer close(s.stopped)
		defer close(errs)
		defer close(tasks)
		for {
			select {
			case <-ctx.Done():
				return
			case t := <-s.pending:
				s.mu.Lock()
				s.out[t.ID()] = t
				s.mu.Unlock()
				select {
				case tasks <- t:
				case <-ctx.Done():
					s.settle(t, "returned")
					return
				}
			}
		}
	}()
	return tasks, errs
}

func (s *stub) StopListening() {
	s.stop()
	<-s.stopped
}

func (s *stub) settle(t *task.Task, how string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.out[t.ID()]; !ok {
		how = "twice: " + s.settled[t.ID()] + ", " + how
	}
	delete(s.out, t.ID())
	s.settled[t.ID()] = how
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *stub) Complete(_ context.Context, t *task.Task) error {
	s.settle(t, "completed")
	return s.refuse
}

func (s *stub) Abandon(_ context.Context, t *task.Task, delay time.Duration) error {
	s.settle(t, "abandoned for "+delay.String())
	return nil
}

func (s *stub) Bury(_ context.Context, t *task.Task, reason delivery.Reason) error {
	s.settle(t, "buried "+reason.String())
	return nil
}

func (s *stub) Release(_ context.Context, tasks ...*task.Task) error {
	for _, t := range tasks {
		s.settle(t, "released")
	}
	return nil
}

func (s *stub) AbandonAll(context.Context) error {
	s.mu.Lock()
	var left []*task.Task
	for _, t := range s.out {
		left = append(left, t)
	}
	s.mu.Unlock()
	for _, t := range left {
		s.settle(t, "released at last")
	}
	return nil
}

func (s *stub) Await(ctx context.Context) error {
	for {
		s.mu.Lock()
		left, changed := len(s.out), s.changed
		s.mu.Unlock()
		if left == 0 {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (s *stub) wants(t *testing.T, want map[string]string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if diff := cmp.Diff(want, s.settled); diff != "" {
		t.Error(diff)
	}
}

func newDispatcher(t *testing.T, cfg dispatcher.Config) *dispatcher.Dispatcher {
	t.Helper()
	cfg.Queue = "orders"
	cfg.Logger = slog.New(slog.DiscardHandler)
	cfg.Retry.Schedule = []time.Duration{time.Minute}
	d, err := dispatcher.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestRunSettlesEachOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub("good", "bad", "never", "slow", "panic")
		d := newDispatcher(t, dispatcher.Config{
			Lifecycle: s, Timeout: time.Second,
			Target: dispatcher.TargetFunc(func(ctx context.Context, tk *task.Task) error {
				switch tk.ID() {
				case "bad":
					return errors.New("no luck")
				case "never":
					return delivery.Errorf(delivery.Rejected, "never again")
				case "slow":
					<-ctx.Done()
					return ctx.Err()
				case "panic":
					panic("ouch")
				}
				return nil
			}),
		})
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, stop)
		if err := d.Run(ctx); err != nil {
			t.Fatal(err)
		}
		s.wants(t, map[string]string{
			"good": "completed", "bad": "abandoned for 1m0s", "never": "buried rejected", "slow": "abandoned for 1m0s",
			"panic": "abandoned for 1m0s",
		})
	})
}

func TestConcurrencyBoundsAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		for i := range 50 {
			s.pending <- task.New(strconv.Itoa(i), nil, nil)
		}
		var now, peak atomic.Int32
		d := newDispatcher(t, dispatcher.Config{
			Lifecycle: s, Concurrency: 3,
			Target: dispatcher.TargetFunc(func(context.Context, *task.Task) error {
				peak.Store(max(peak.Load(), now.Add(1)))
				time.Sleep(time.Second)
				now.Add(-1)
				return nil
			}),
		})
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Hour, stop)
		if err := d.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if peak.Load() != 3 || len(s.settled) != 50 {
			t.Errorf("peak of %d attempts, %d settled; want 3, 50", peak.Load(), len(s.settled))
		}
	})
}

func TestStartHandsTasksToAProgramThatPulls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub("good", "bad", "left")
		d := newDispatcher(t, dispatcher.Config{Lifecycle: s, Grace: time.Second})
		tasks, faults := d.Start(t.Context())
		if err := (<-tasks).Succeed(); err != nil {
			t.Error(err)
		}
		bad := <-tasks
		if err := bad.Fail(); err != nil {
			t.Error(err)
		}
		if err := bad.Succeed(); !errors.Is(err, task.ErrAlreadyResolved) {
			t.Errorf("second settlement = %v", err)
		}
		<-tasks // and never resolved
		if err := d.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if _, ok := <-tasks; ok {
			t.Error("a task after Close")
		}
		if _, ok := <-faults; ok {
			t.Error("a fault")
		}
		s.wants(t, map[string]string{"good": "completed", "bad": "abandoned for 1m0s", "left": "released at last"})
	})
}

// forgetful is a Lifecycle whose first Abandon fails.
type forgetful struct {
	*stub
	failed bool
}

func (f *forgetful) Abandon(ctx context.Context, t *task.Task, delay time.Duration) error {
	if !f.failed {
		f.failed = true
		return errors.New("not now")
	}
	return f.stub.Abandon(ctx, t, delay)
}

func TestAFailThatIsTriedAgainIsOneAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub("bad")
		d := newDispatcher(t, dispatcher.Config{Lifecycle: &forgetful{stub: s}, Retry: dispatcher.Retry{MaxAttempts: 2}})
		tasks, _ := d.Start(t.Context())
		bad := <-tasks
		if err := bad.Fail(); err == nil || bad.IsResolved() {
			t.Errorf("Fail = %v, resolved %v; want an error, and to be tried again", err, bad.IsResolved())
		}
		if err := bad.Fail(); err != nil {
			t.Error(err)
		}
		if err := d.Close(t.Context()); err != nil {
			t.Error(err)
		}
		s.wants(t, map[string]string{"bad": "abandoned for 1m0s"})
	})
}

func TestATaskThatNobodyTakesIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub("waiting")
		d := newDispatcher(t, dispatcher.Config{Lifecycle: s})
		d.Start(t.Context())
		synctest.Wait()
		if err := d.Halt(t.Context()); err != nil {
			t.Error(err)
		}
		s.wants(t, map[string]string{"waiting": "released"})
	})
}

func TestALostLeaseIsCountedNotRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub("swept")
		s.refuse = task.ErrNotFound
		d := newDispatcher(t, dispatcher.Config{Lifecycle: s})
		tasks, _ := d.Start(t.Context())
		swept := <-tasks
		if err := swept.Succeed(); !errors.Is(err, task.ErrNotFound) {
			t.Errorf("Succeed = %v, want ErrNotFound", err)
		}
		if !swept.IsResolved() {
			t.Error("the task can be resolved again")
		}
		if err := d.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestADispatcherServesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		none := dispatcher.TargetFunc(func(context.Context, *task.Task) error { return nil })
		d := newDispatcher(t, dispatcher.Config{Lifecycle: newStub(), Target: none})
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, stop)
		if err := d.Run(ctx); err != nil {
			t.Error(err)
		}
		if err := d.Run(ctx); !errors.Is(err, dispatcher.ErrStarted) {
			t.Errorf("second Run = %v", err)
		}
		_, faults := d.Start(ctx)
		if err := <-faults; !errors.Is(err, dispatcher.ErrStarted) {
			t.Errorf("Start after Run = %v", err)
		}
		never := newDispatcher(t, dispatcher.Config{Lifecycle: newStub(), Target: none})
		if err := never.Close(t.Context()); err != nil {
			t.Errorf("Close of one that never started = %v", err)
		}
	})
}

func TestNewNamesEveryFault(t *testing.T) {
	_, err := dispatcher.New(dispatcher.Config{Concurrency: -1, Interval: 1, Retry: dispatcher.Retry{Base: -1}})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, part := range []string{"no queue", "neither Redis", "concurrency -1", "interval 1ns: at least 10ms", "backoff base"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q lacks %q", err, part)
		}
	}
}
