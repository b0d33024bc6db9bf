package task_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/queuehook/queuehook/task"
)

// settler returns the next of its errors for each settlement, nil once they have run out, and counts settlements.
type settler struct {
	mu       sync.Mutex
	errs     []error
	succeeds atomic.Int64
	fails    atomic.Int64
	ctx      context.Context // the last settlement's
}

func (s *settler) next(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ctx = ctx
	if len(s.errs) == 0 {
		return nil
	}
	err := s.errs[0]
	s.errs = s.errs[1:]
	return err
}

func (s *settler) Succeed(ctx context.Context, _ *task.Task) error {
	s.succeeds.Add(1)
	return s.next(ctx)
}

func (s *settler) Fail(ctx context.Context, _ *task.Task) error {
	s.fails.Add(1)
	return s.next(ctx)
}

func TestATaskIsResolvedOnce(t *testing.T) {
	t.Parallel()
	s := &settler{}
	one := task.New("id", []byte("x"), s)
	if one.IsResolved() {
		t.Error("resolved from the start")
	}
	var won, late atomic.Int64
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			settle := one.Succeed
			if i%2 == 0 {
				settle = one.Fail
			}
			switch err := settle(); {
			case err == nil:
				won.Add(1)
			case errors.Is(err, task.ErrAlreadyResolved):
				late.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if won.Load() != 1 || late.Load() != 49 || s.succeeds.Load()+s.fails.Load() != 1 {
		t.Errorf("%d won, %d came late, %d settlements; want 1, 49, 1", won.Load(), late.Load(), s.succeeds.Load()+s.fails.Load())
	}
	if !one.IsResolved() {
		t.Error("not resolved")
	}
}

func TestAFailedSettlementMayBeTriedAgain(t *testing.T) {
	t.Parallel()
	away := errors.New("redis is away")
	s := &settler{errs: []error{away, fmt.Errorf("wrapped: %w", away)}}
	one := task.New("id", nil, s)
	for _, settle := range []func() error{one.Succeed, one.Fail} {
		if err := settle(); !errors.Is(err, away) || one.IsResolved() {
			t.Fatalf("%v, resolved %v, want the settler's error and an unresolved task", err, one.IsResolved())
		}
	}
	if err := one.Succeed(); err != nil {
		t.Error(err)
	}
	if err := one.Fail(); !errors.Is(err, task.ErrAlreadyResolved) {
		t.Errorf("%v, want ErrAlreadyResolved", err)
	}
}

func TestALostLeaseResolvesForGood(t *testing.T) {
	t.Parallel()
	one := task.New("id", nil, &settler{errs: []error{fmt.Errorf("complete: %w", task.ErrNotFound)}})
	if err := one.Succeed(); !errors.Is(err, task.ErrNotFound) {
		t.Errorf("%v, want ErrNotFound", err)
	}
	if err := one.Succeed(); !errors.Is(err, task.ErrAlreadyResolved) {
		t.Errorf("%v, want ErrAlreadyResolved", err)
	}
}

func TestASettlementOutlivesTheTasksContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	s := &settler{}
	one := task.From(task.Spec{ID: "id", Settler: s, Context: ctx, Now: time.Now()})
	cancel()
	<-one.Closer()
	if err := one.Succeed(); err != nil || s.ctx.Err() != nil {
		t.Errorf("%v, settled under a context that is %v", err, s.ctx.Err())
	}
}

func TestATaskShowsWhatWasLeased(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_700_000_000_000)
	s := &settler{}
	one := task.From(task.Spec{
		ID: "id", Queue: "q", Payload: []byte("\x00pay"), Meta: task.Meta{Attempt: 2}, Now: now,
		Context: t.Context(), Settler: s,
	})
	if one.ID() != "id" || one.Queue() != "q" || string(one.Bytes()) != "\x00pay" || one.Attempt() != 3 || one.Redelivered() {
		t.Errorf("%v", one)
	}
	if got := one.Now(); got.Before(now) || got.After(now.Add(time.Minute)) {
		t.Errorf("Now() = %v, want about %v", got, now)
	}
	if text := one.String(); strings.Contains(text, "pay") || !strings.Contains(text, "id") {
		t.Errorf("String() = %q, want the id and no payload", text)
	}
	if dump := one.HexDump(); !strings.HasPrefix(dump, "00000000  00 70 61 79 ") {
		t.Errorf("HexDump() = %q", dump)
	}
	for _, spec := range []task.Spec{{Redelivered: true}, {Meta: task.Meta{Redelivered: true}}} {
		if !task.From(spec).Redelivered() {
			t.Errorf("%+v is not redelivered", spec)
		}
	}
	other := &settler{}
	if err := one.With(other).Fail(); err != nil || other.fails.Load() != 1 || s.fails.Load() != 0 {
		t.Errorf("With: %v, settled %d times by the new settler", err, other.fails.Load())
	}
}

func TestRecordKeepsTheLastCall(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1_700_000_000_123)
	before := task.Meta{Attempt: 1, Throttles: 2, History: []task.Attempt{{At: 1, Attempt: 1, Reason: "status"}}}
	one := task.From(task.Spec{ID: "id", Meta: before})
	if one.Recorded() {
		t.Error("recorded from the start")
	}
	one.Record(task.Result{At: at, Reason: "timeout", Charged: true, Unknown: true})
	one.Record(task.Result{At: at, Status: 429, Reason: "throttled", Error: "slow down", Throttled: true})
	want := task.Meta{
		Attempt: 1, Throttles: 3, LastAttemptAt: 1_700_000_000_123, LastStatus: 429, LastReason: "throttled",
		LastError: "slow down",
		History: []task.Attempt{
			{At: 1, Attempt: 1, Reason: "status"},
			{At: 1_700_000_000_123, Attempt: 2, Status: 429, Reason: "throttled", Error: "slow down"},
		},
	}
	if diff := cmp.Diff(want, one.Meta()); diff != "" {
		t.Errorf("Meta (-want +got):\n%s", diff)
	}
	if !one.Recorded() || one.Attempt() != 2 || len(before.History) != 1 {
		t.Error("recording changed the attempt that goes on, or the metadata that it was leased with")
	}
}

func TestRedeliveredIsNeverForgotten(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		crashed, before, unknown, want bool
	}{{want: false}, {crashed: true, want: true}, {before: true, want: true}, {unknown: true, want: true}} {
		one := task.From(task.Spec{Meta: task.Meta{Redelivered: tt.before}, Redelivered: tt.crashed})
		one.Record(task.Result{Reason: "status", Unknown: tt.unknown})
		if got := one.Meta().Redelivered; got != tt.want {
			t.Errorf("%+v: redelivered %v", tt, got)
		}
	}
}

func TestMetaStaysSmall(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		strings.Repeat("x", 5000), strings.Repeat("\xffa", 5000), strings.Repeat("ä", 5000), "x" + strings.Repeat("€", 5000),
	} {
		meta := task.Meta{Headers: map[string]string{"a": "b"}}
		for range 100 {
			one := task.From(task.Spec{ID: "id", Meta: meta})
			one.Record(task.Result{At: time.UnixMilli(1), Status: 500, Reason: "status", Error: text, Charged: true})
			meta = one.Meta()
		}
		if meta.Attempt != 100 || len(meta.History) != 10 || meta.History[9].Attempt != 100 || meta.History[0].Attempt != 91 {
			t.Errorf("attempt %d, history %v, want the last ten of 100", meta.Attempt, meta.History)
		}
		if n := len(meta.LastError); n > 512 || n < 509 || !utf8.ValidString(meta.LastError) {
			t.Errorf("last error of %d bytes", n)
		}
		if n := len(meta.History[0].Error); n > 128 || n < 125 || !utf8.ValidString(meta.History[0].Error) {
			t.Errorf("history's error of %d bytes", n)
		}
		b, err := meta.Encode()
		if err != nil || len(b) > 4096 {
			t.Errorf("%d bytes encoded, %v", len(b), err)
		}
	}
}

func TestRedriven(t *testing.T) {
	t.Parallel()
	dead := task.Meta{
		Attempt: 5, Throttles: 3, EnqueuedAt: 1, FirstDueAt: 2, LastReason: "status", History: []task.Attempt{{Attempt: 5}},
		Headers: map[string]string{"a": "b"},
	}
	got := dead.Redriven(time.UnixMilli(99), true)
	want := dead
	want.Attempt, want.Throttles, want.FirstDueAt, want.Redelivered = 0, 0, 99, true
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Redriven (-want +got):\n%s", diff)
	}
	if dead.Redriven(time.UnixMilli(99), false).Redelivered {
		t.Error("a known outcome became unknown")
	}
}

func TestHeadersWithAFieldOfTheirOwn(t *testing.T) {
	m := task.Meta{TraceParent: "set before"}
	for _, h := range [][2]string{
		{"content-TYPE", "text/plain"}, {"TraceParent", "too late"}, {"tracestate", "a=b"}, {"x-team", "payments"},
	} {
		m.AddHeader(h[0], h[1])
	}
	want := task.Meta{
		ContentType: "text/plain", TraceParent: "set before", TraceState: "a=b", Headers: map[string]string{"x-team": "payments"},
	}
	if diff := cmp.Diff(want, m); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	all := map[string]string{
		"Content-Type": "text/plain", "traceparent": "set before", "tracestate": "a=b", "x-team": "payments",
	}
	if diff := cmp.Diff(all, m.AllHeaders()); diff != "" {
		t.Errorf("all headers (-want +got):\n%s", diff)
	}
	if got := (task.Meta{}).AllHeaders(); len(got) > 0 {
		t.Errorf("headers of no metadata: %v", got)
	}
	for key, want := range map[string]bool{"Content-Type": true, "Traceparent": true, "Tracestate": true, "X-Team": false} {
		if task.FieldHeader(key) != want {
			t.Errorf("FieldHeader(%q) = %t", key, !want)
		}
	}
}

func TestMetaRoundTrip(t *testing.T) {
	t.Parallel()
	for _, want := range []task.Meta{
		{},
		{
			Attempt: 1, Throttles: 2, EnqueuedAt: 1_700_000_000_123, FirstDueAt: 4, LastAttemptAt: 5, LastStatus: 500,
			LastReason: "status", LastError: "<&> \u2028 \"quoted\" \x00", Redelivered: true,
			Headers: map[string]string{"X-A": "", "x": "ä"}, ContentType: "text/plain", MaxAttempts: 3,
			TraceParent: "00-a", TraceState: "b=c",
			History: []task.Attempt{{At: 1_700_000_000_123, Attempt: 1, Status: 500, Reason: "status", Error: "e"}},
		},
	} {
		b, err := want.Encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := task.DecodeMeta(b)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if got, err := task.DecodeMeta(nil); err != nil || !cmp.Equal(got, task.Meta{}) {
		t.Errorf("no metadata: %+v, %v", got, err)
	}
}

func TestUnreadableMetaIsNoMeta(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{`, `[]`, `"x"`, `{"attempt":7,"headers":3}`, `{"attempt":7}{`, "\xff"} {
		if got, err := task.DecodeMeta([]byte(text)); err == nil || !cmp.Equal(got, task.Meta{}) {
			t.Errorf("%s: %+v, %v, want nothing and an error", text, got, err)
		}
	}
}

func FuzzDecodeMeta(f *testing.F) {
	for _, seed := range []string{
		"", "{}", `{"attempt":3,"history":[{"at":1,"attempt":2,"reason":"status"}]}`, `{"headers":{"a":"b"}}`, `{"attempt":-1}`,
		`{"attempt":1e999}`, `null`, `[]`, "{\"last_error\":\"\\ud800\"}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := task.DecodeMeta(b)
		if err != nil {
			if !cmp.Equal(m, task.Meta{}) {
				t.Fatalf("half of it was read: %+v", m)
			}
			return
		}
		stored, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := task.DecodeMeta(stored)
		if err != nil {
			t.Fatal(err)
		}
		stored2, err := again.Encode()
		if err != nil || string(stored) != string(stored2) {
			t.Fatalf("%s became %s, %v", stored, stored2, err)
		}
		if !json.Valid(stored) {
			t.Fatalf("%q is no JSON", stored)
		}
		one := task.From(task.Spec{Meta: m})
		one.Record(task.Result{Charged: true, Error: string(b)})
		if got := one.Meta(); len(got.History) > 10 || len(got.LastError) > 512 {
			t.Fatalf("grew to %d lines and %d bytes", len(got.History), len(got.LastError))
		}
	})
}
