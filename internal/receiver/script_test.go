package receiver_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/queuehook/queuehook/internal/receiver"
)

func TestScripts(t *testing.T) {
	t.Parallel()
	ask := func(s receiver.Script, rs ...receiver.Request) []int {
		var codes []int
		for _, r := range rs {
			codes = append(codes, s(r).Status)
		}
		return codes
	}
	task := func(id string) receiver.Request { return receiver.Request{TaskID: id} }
	attempt := func(n string) receiver.Request {
		return receiver.Request{Header: http.Header{receiver.AttemptHeader: {n}}}
	}
	fail := receiver.Always(receiver.Status(500))
	pass := receiver.Always(receiver.Status(200))
	once := func() receiver.Script { return receiver.Sequence(receiver.Status(500), receiver.Status(200)) }

	for name, tc := range map[string]struct {
		got, want []int
	}{
		"sequence keeps its last": {ask(once(), task("A"), task("B"), task("C")), []int{500, 200, 200}},
		"empty sequence":          {ask(receiver.Sequence(), task("A")), []int{0}},
		"each task": {
			ask(receiver.EachTask(once), task("A"), task("B"), task("A"), task("B"), task("A")),
			[]int{500, 500, 200, 200, 200},
		},
		"by attempt": {
			ask(receiver.ByAttempt(receiver.Status(500), receiver.Status(200)),
				attempt("1"), attempt("2"), attempt("9"), attempt("1"), attempt("x"), attempt("0"), attempt("-3")),
			[]int{500, 200, 200, 500, 500, 500, 500},
		},
		"by task": {
			ask(receiver.ByTask(map[string]receiver.Script{"A": fail}, pass), task("A"), task("B")), []int{500, 200},
		},
		"by path": {
			ask(receiver.ByPath(map[string]receiver.Script{"/bad": fail}, pass),
				receiver.Request{Path: "/bad"}, receiver.Request{Path: "/"}),
			[]int{500, 200},
		},
	} {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestFraction(t *testing.T) {
	t.Parallel()
	draw := func(seed uint64, p float64) (codes []int, bad int) {
		s := receiver.Fraction(seed, p, 500, 204)
		for range 1000 {
			code := s(receiver.Request{}).Status
			codes = append(codes, code)
			if code == 500 {
				bad++
			}
		}
		return codes, bad
	}
	a, bad := draw(1, 0.3)
	if bad < 200 || bad > 400 {
		t.Errorf("%d of 1000 are bad, want about 300", bad)
	}
	if again, _ := draw(1, 0.3); !cmp.Equal(a, again) {
		t.Error("the same seed draws differently")
	}
	if other, _ := draw(2, 0.3); cmp.Equal(a, other) {
		t.Error("another seed draws the same")
	}
	if _, bad := draw(1, 0); bad != 0 {
		t.Errorf("%d of 1000 are bad, want none", bad)
	}
	if _, bad := draw(1, 1); bad != 1000 {
		t.Errorf("%d of 1000 are bad, want all", bad)
	}
}
