package janitor_test

import (
	"context"
	"errors"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queuehook/queuehook/janitor"
)

func TestSweepTakesBatchAfterBatch(t *testing.T) {
	t.Parallel()
	q := &queue{dead: map[string]*dispatcher{"a": {tasks: 250}, "b": {tasks: 0}}}
	got, err := janitor.Sweep(t.Context(), q.config())
	if err != nil {
		t.Fatal(err)
	}
	want := janitor.Report{Queue: "orders", Dead: []string{"a", "b"}, Recovered: 250}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"take a", "take a", "forget a", "forget b"}, q.log); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestSweepReportsSuspects(t *testing.T) {
	t.Parallel()
	q := &queue{dead: map[string]*dispatcher{"a": {tasks: 1, grace: time.Minute}, "b": {tasks: 1, grace: time.Hour}}}
	got, err := janitor.Sweep(t.Context(), q.config())
	if err != nil {
		t.Fatal(err)
	}
	want := janitor.Report{Queue: "orders", Suspects: []string{"a", "b"}, Wait: time.Hour}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

func TestOneDispatchersErrorHurtsNoOther(t *testing.T) {
	t.Parallel()
	q := &queue{dead: map[string]*dispatcher{"a": {err: errStub}, "b": {tasks: 2}}}
	got, err := janitor.Sweep(t.Context(), q.config())
	if !errors.Is(err, errStub) || got.Recovered != 2 {
		t.Errorf("Sweep = %+v, %v; want b's tasks and a's error", got, err)
	}
}

func TestSweepGivesUpWhereNothingWorks(t *testing.T) {
	t.Parallel()
	q := &queue{dead: map[string]*dispatcher{}}
	for id := range strings.SplitSeq("abcdefgh", "") {
		q.dead[id] = &dispatcher{err: errStub}
	}
	got, err := janitor.Sweep(t.Context(), q.config())
	if !errors.Is(err, errStub) || !got.Stopped || len(q.log) != 3 {
		t.Errorf("Sweep = %+v, %v after %q; want three tries", got, err, q.log)
	}
}

func TestRefusingHooksKeepNoOtherDispatcherFromBeingSwept(t *testing.T) {
	t.Parallel()
	q := &queue{dead: map[string]*dispatcher{}}
	for id := range strings.SplitSeq("abcdefgh", "") {
		q.dead[id] = &dispatcher{tasks: 1}
	}
	cfg := q.config()
	cfg.Hooks = &hooks{q: q, pre: errStub, only: "abcdefg"}
	got, err := janitor.Sweep(t.Context(), cfg)
	if !errors.Is(err, errStub) || got.Stopped || got.Recovered != 1 {
		t.Errorf("Sweep = %+v, %v; want the one task that the hooks let go", got, err)
	}
}

func TestSweepStopsWithoutErrorWhenTimeIsUp(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	q := &queue{dead: map[string]*dispatcher{"a": {tasks: 250}, "b": {tasks: 7}}, during: cancel}
	got, err := janitor.Sweep(ctx, q.config())
	if err != nil {
		t.Fatal(err)
	}
	want := janitor.Report{Queue: "orders", Dead: []string{"a"}, Recovered: 100, Left: 150, Stopped: true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

func TestACallUnderWayMayFinish(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &queue{dead: map[string]*dispatcher{"a": {tasks: 1}}, slow: time.Second}
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		got, err := janitor.Sweep(ctx, q.config())
		if err != nil || got.Recovered != 1 {
			t.Errorf("Sweep = %+v, %v; want the call that began in time to count", got, err)
		}
	})
}

func TestACallThatHangsIsCut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &queue{dead: map[string]*dispatcher{"a": {tasks: 1}}, slow: time.Minute}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		start := time.Now()
		if _, err := janitor.Sweep(ctx, q.config()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error = %v, want the deadline: nobody knows what Redis did", err)
		}
		if took := time.Since(start); took != 6*time.Second {
			t.Errorf("took %s, want the deadline and a second", took)
		}
	})
}

func TestHooks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pre, post error
		want      []string
		recovered int
	}{
		"in order": {
			want:      []string{"ready a", "pre orders a", "take a", "take a", "post orders a", "forget a"},
			recovered: 150,
		},
		"pre aborts": {pre: errStub, want: []string{"ready a", "pre orders a"}},
		"post fails, so it is not forgotten": {
			post: errStub, want: []string{"ready a", "pre orders a", "take a", "take a", "post orders a"}, recovered: 150,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := &queue{dead: map[string]*dispatcher{"a": {tasks: 150}}}
			cfg := q.config()
			cfg.Hooks = &hooks{q: q, pre: c.pre, post: c.post}
			got, err := janitor.Sweep(t.Context(), cfg)
			if failed := c.pre != nil || c.post != nil; failed != errors.Is(err, errStub) {
				t.Errorf("error = %v", err)
			}
			if diff := cmp.Diff(c.want, q.log); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if got.Recovered != c.recovered {
				t.Errorf("recovered %d, want %d", got.Recovered, c.recovered)
			}
			if _, kept := q.dead["a"]; kept != (err != nil) {
				t.Errorf("kept = %t with error %v", kept, err)
			}
		})
	}
}

func TestRecoverWaitsTheGraceOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &queue{dead: map[string]*dispatcher{
			"a": {tasks: 3, grace: 2 * time.Second}, "b": {tasks: 4, grace: 10 * time.Second}, "c": {tasks: 5},
		}}
		start := time.Now()
		got, err := janitor.Recover(t.Context(), q.config())
		if err != nil {
			t.Fatal(err)
		}
		want := janitor.Report{Queue: "orders", Dead: []string{"c", "a", "b"}, Recovered: 12}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("report (-want +got):\n%s", diff)
		}
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("took %s, want the longest grace", took)
		}
	})
}

func TestRecoverKeepsToItsDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &queue{dead: map[string]*dispatcher{
			"a": {tasks: 3, grace: 2 * time.Second}, "b": {tasks: 4, grace: 10 * time.Second},
		}}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		start := time.Now()
		got, err := janitor.Recover(ctx, q.config())
		if err != nil || got.Recovered != 3 || !cmp.Equal(got.Suspects, []string{"b"}) {
			t.Errorf("Recover = %+v, %v; want a's tasks, and b still suspect", got, err)
		}
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("took %s: a wait beyond the deadline is of no use", took)
		}
	})
}

func TestRecoverEndsAmongEverNewSuspects(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &queue{dead: map[string]*dispatcher{"0": {tasks: 1, grace: time.Second}}}
		q.during = func() { q.dead[time.Now().String()] = &dispatcher{tasks: 1, grace: time.Second} }
		if _, err := janitor.Recover(t.Context(), q.config()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestRecoverGoesOnWhenItsLooksComeLate(t *testing.T) {
	t.Parallel()
	for late, recovered := range map[int]int{3: 1, 1000: 0} {
		synctest.Test(t, func(t *testing.T) {
			q := &queue{dead: map[string]*dispatcher{"a": {tasks: 1, grace: 50 * time.Millisecond, late: late}}}
			start := time.Now()
			got, err := janitor.Recover(t.Context(), q.config())
			if err != nil || got.Recovered != recovered || len(got.Suspects) != 1-recovered {
				t.Errorf("late %d times: Recover = %+v, %v; want %d tasks", late, got, err, recovered)
			}
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("late %d times: took %s", late, took)
			}
		})
	}
}

func TestRecoverAsksAFailedHookOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &queue{dead: map[string]*dispatcher{"a": {tasks: 1}, "b": {tasks: 1, grace: time.Second}}}
		cfg := q.config()
		cfg.Hooks = &hooks{q: q, pre: errStub}
		_, err := janitor.Recover(t.Context(), cfg)
		if !errors.Is(err, errStub) {
			t.Errorf("error = %v", err)
		}
		want := []string{"ready a", "pre orders a", "mark b", "ready b", "pre orders b"}
		if diff := cmp.Diff(want, q.log); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

// looks returns a look that writes into the queue's log, and asks this many times to be done again.
func looks(q *queue, name string, again int, err error) janitor.Look {
	return func(context.Context) (bool, error) {
		q.log = append(q.log, "look "+name)
		again--
		return again >= 0, err
	}
}

func TestRecoverLooksTwiceWithinOneGrace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &queue{dead: map[string]*dispatcher{"a": {tasks: 1, grace: 2 * time.Second}}}
		cfg := q.config()
		cfg.Grace = 2 * time.Second
		cfg.Looks = []janitor.Look{looks(q, "once", 0, nil), looks(q, "ever", 9, nil), looks(q, "failing", 9, errStub)}
		start := time.Now()
		got, err := janitor.Recover(t.Context(), cfg)
		if !errors.Is(err, errStub) || got.Recovered != 1 || got.Stopped {
			t.Errorf("Recover = %+v, %v; want the tasks, and the failed look told", got, err)
		}
		want := []string{"look once", "look ever", "look failing", "mark a", "look ever", "forget a"}
		if diff := cmp.Diff(want, q.log); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("took %s, want the graces to pass together", took)
		}
	})
}

func TestRecoverTellsOfALookThatItHadNoTimeFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &queue{dead: map[string]*dispatcher{"a": {tasks: 1}}}
		cfg := q.config()
		cfg.Grace = 2 * time.Second
		cfg.Looks = []janitor.Look{looks(q, "ever", 9, nil)}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		got, err := janitor.Recover(ctx, cfg)
		if err != nil || got.Recovered != 1 || !got.Stopped {
			t.Errorf("Recover = %+v, %v; want the tasks, and that it stopped early", got, err)
		}
		if ctx.Err() != nil {
			t.Error("it waited for what its deadline left no time for")
		}
	})
}

func TestNothingToSweepWith(t *testing.T) {
	t.Parallel()
	if _, err := janitor.New(janitor.Config{}); err == nil {
		t.Error("New accepted a config without parts")
	}
	if _, err := janitor.Sweep(t.Context(), janitor.Config{}); err == nil {
		t.Error("Sweep accepted a config without parts")
	}
	if _, err := janitor.Recover(t.Context(), janitor.Config{}); err == nil {
		t.Error("Recover accepted a config without parts")
	}
}

// Policy can be read and tested in memory, since it knows nothing of connections.
func TestImports(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), e.Name(), nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, imp := range f.Imports {
			for _, banned := range []string{"redis", "net/http", "aws", "heartbeat"} {
				if strings.Contains(imp.Path.Value, banned) {
					t.Errorf("%s imports %s", e.Name(), imp.Path.Value)
				}
			}
		}
	}
}
