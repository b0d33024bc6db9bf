package dispatcher_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queuehook/queuehook/dispatcher"
	"github.com/queuehook/queuehook/task"
)

func TestStopLetsAttemptsEndWithinTheGraceAndReleasesTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub("short", "long")
		var d *dispatcher.Dispatcher
		d = newDispatcher(t, dispatcher.Config{
			Lifecycle: s, Timeout: time.Hour, Grace: 10 * time.Second,
			Target: dispatcher.TargetFunc(func(ctx context.Context, tk *task.Task) error {
				if tk.ID() == "short" {
					if err := d.Ready(); err != nil {
						t.Errorf("Ready = %v before the stop", err)
					}
					time.Sleep(5 * time.Second)
					if err := d.Ready(); !errors.Is(err, dispatcher.ErrDraining) {
						t.Errorf("Ready = %v after the stop, want ErrDraining", err)
					}
					return nil
				}
				<-ctx.Done()
				return ctx.Err()
			}),
		})
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, stop)
		begin := time.Now()
		if err := d.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took != 11*time.Second {
			t.Errorf("stopped after %s, want 1 s and the grace", took)
		}
		s.wants(t, map[string]string{"short": "completed", "long": "released"})
	})
}

// hoarder is a target that finishes no task until it is told that no more will come.
type hoarder struct {
	life *stub
	told chan struct{}
}

func (h hoarder) Drain() {
	<-h.life.stopped // never before that
	close(h.told)    // once
}

func (h hoarder) Deliver(ctx context.Context, _ *task.Task) error {
	select {
	case <-h.told:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestATargetIsToldThatNoMoreTasksCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub("a", "b")
		d := newDispatcher(t, dispatcher.Config{
			Lifecycle: s, Timeout: time.Hour, Target: hoarder{life: s, told: make(chan struct{})},
		})
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, stop)
		begin := time.Now()
		if err := d.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took != time.Second {
			t.Errorf("stopped after %s, want 1 s", took)
		}
		s.wants(t, map[string]string{"a": "completed", "b": "completed"})
	})
}

func TestHaltCutsTheGraceShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub("long")
		d := newDispatcher(t, dispatcher.Config{
			Lifecycle: s, Timeout: time.Hour,
			Target: dispatcher.TargetFunc(func(ctx context.Context, _ *task.Task) error {
				<-ctx.Done()
				return ctx.Err()
			}),
		})
		go func() {
			time.Sleep(time.Second)
			hurried, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := d.Close(hurried); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Close = %v, want its own deadline", err)
			}
			if err := d.Halt(t.Context()); err != nil {
				t.Errorf("Halt = %v", err)
			}
		}()
		begin := time.Now()
		if err := d.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took != 2*time.Second {
			t.Errorf("stopped after %s, want 2 s", took)
		}
		synctest.Wait()
		s.wants(t, map[string]string{"long": "released"})
	})
}

func TestATargetThatHeedsNothingKeepsNoStopWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub("deaf")
		begun, end := make(chan struct{}), make(chan struct{})
		d := newDispatcher(t, dispatcher.Config{
			Lifecycle: s, Timeout: time.Minute, Grace: time.Second,
			Target: dispatcher.TargetFunc(func(context.Context, *task.Task) error {
				close(begun)
				<-end
				return nil
			}),
		})
		go func() {
			<-begun
			d.Close(t.Context())
		}()
		if err := d.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.wants(t, map[string]string{"deaf": "released at last"})
		close(end)
	})
}

// silent is a Lifecycle whose Redis no longer answers.
type silent struct{ *stub }

func (s silent) Release(ctx context.Context, _ ...*task.Task) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

func (s silent) AbandonAll(ctx context.Context) error { return s.Release(ctx) }

func TestATaskThatNobodyTakesKeepsNoStopWaitingForRedis(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDispatcher(t, dispatcher.Config{Lifecycle: silent{newStub("waiting")}})
		tasks, _ := d.Start(t.Context())
		synctest.Wait()
		hurried, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := d.Halt(hurried); err != nil {
			t.Errorf("Halt = %v", err)
		}
		if _, ok := <-tasks; ok {
			t.Error("a task after Halt")
		}
	})
}

func (s silent) Complete(ctx context.Context, _ *task.Task) error { return s.Release(ctx) }

// TestASilentRedisIsNotTheTargetsFault stops a dispatcher whose target is done, but whose Redis does not take the
// outcome.
func TestASilentRedisIsNotTheTargetsFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		d, err := dispatcher.New(dispatcher.Config{
			Queue: "orders", Lifecycle: silent{newStub("done")}, Grace: time.Second,
			Target: dispatcher.TargetFunc(func(context.Context, *task.Task) error { return nil }),
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		stopped := make(chan error)
		go func() { stopped <- d.Run(t.Context()) }()
		synctest.Wait()
		if err := errors.Join(d.Close(t.Context()), <-stopped); err != nil {
			t.Error(err)
		}
		if strings.Contains(log.String(), "attempts go on after the stop") {
			t.Errorf("the attempt had ended:\n%s", log.String())
		}
	})
}

// TestTheHeartBeatsWhileADispatcherDrains has an attempt that, after the order to stop, goes on for longer than a
// dispatcher counts as alive without a beat.
func TestTheHeartBeatsWhileADispatcherDrains(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	begun, answer := make(chan struct{}), make(chan struct{})
	d, _ := r.serve(dispatcher.Config{
		NoJanitor: true, Timeout: time.Hour, Grace: time.Hour,
		Target: dispatcher.TargetFunc(func(ctx context.Context, _ *task.Task) error {
			close(begun)
			select {
			case <-answer:
			case <-ctx.Done():
			}
			return ctx.Err()
		}),
	})
	id := r.only()
	r.push(1)
	<-begun
	closed := make(chan error, 1)
	go func() { closed <- d.Close(context.WithoutCancel(t.Context())) }()
	r.eventually("draining", func() bool { return errors.Is(d.Ready(), dispatcher.ErrDraining) })
	tick := func() float64 { return r.rdb.ZScore(t.Context(), r.keys.Ticks, id).Val() }
	last := tick() + 10*float64(beat.Milliseconds())
	r.eventually("beats go on", func() bool { return tick() > last })
	close(answer)
	if err := <-closed; err != nil || r.held(id) > 0 {
		t.Errorf("Close = %v, %d tasks held", err, r.held(id))
	}
}

// TestATargetThatHeedsNothingIsNoReasonToBeSuspected stops a dispatcher whose target goes on regardless. It holds no
// task any more, so it must be forgotten.
func TestATargetThatHeedsNothingIsNoReasonToBeSuspected(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	begun, end := make(chan struct{}), make(chan struct{})
	defer close(end)
	d, _ := r.serve(dispatcher.Config{
		NoJanitor: true,
		Target: dispatcher.TargetFunc(func(context.Context, *task.Task) error {
			close(begun)
			<-end
			return nil
		}),
	})
	r.push(1)
	<-begun
	if err := d.Halt(context.Background()); err != nil {
		t.Error(err)
	}
	if left := r.rdb.ZRange(t.Context(), r.keys.Ticks, 0, -1).Val(); len(left) != 0 {
		t.Errorf("still registered: %v", left)
	}
}
