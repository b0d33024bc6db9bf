package audit_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/queuehook/queuehook/internal/audit"
	"github.com/queuehook/queuehook/internal/redistest"
	"github.com/queuehook/queuehook/keyspace"
)

var (
	a = audit.Sum([]byte("a"))
	b = audit.Sum([]byte("b"))
)

// lawful has one task in each place, and one that was answered and forgotten.
func lawful() (audit.Places, audit.Trial) {
	p := audit.Places{
		Source: []string{"a"}, Landing: []string{"a"},
		InFlight: map[string]map[string]string{"w": {"flying": "token"}, "stray": {"strayed": "token"}},
		Delayed:  map[string]float64{"parked": 0}, Dead: map[string]float64{"died": 1},
		Body:    map[string]string{"flying": "a", "strayed": "a", "parked": "b", "died": "b"},
		Meta:    map[string]string{"parked": "{}"},
		Crashes: map[string]string{"parked": "1"},
	}
	return p, audit.Trial{
		Pushed:    map[string]int{a: 5, b: 3},
		Delivered: map[string]audit.Answered{"done": {a, 1}, "flying": {a, 0}},
		Gone:      map[string]string{"purged": b},
	}
}

func TestCheckFindsEachWayToBreakTheLaw(t *testing.T) {
	tests := []struct {
		name     string
		breaking func(*audit.Places, *audit.Trial)
		want     []audit.Kind
	}{
		{"lawful", func(*audit.Places, *audit.Trial) {}, nil},
		{"raw lost", func(p *audit.Places, _ *audit.Trial) { p.Source = nil }, []audit.Kind{audit.Lost}},
		{"landed lost", func(p *audit.Places, _ *audit.Trial) { p.Landing = nil }, []audit.Kind{audit.Lost}},
		{"raw doubled", func(p *audit.Places, _ *audit.Trial) { p.Source = []string{"a", "a"} }, []audit.Kind{audit.Invented}},
		{"other bytes", func(p *audit.Places, _ *audit.Trial) { p.Source = []string{"A"} }, []audit.Kind{audit.Invented, audit.Lost}},
		{"forgotten", func(p *audit.Places, _ *audit.Trial) {
			delete(p.Delayed, "parked")
			delete(p.Body, "parked")
		}, []audit.Kind{audit.Leftover, audit.Leftover, audit.Lost}},
		{"in no index", func(p *audit.Places, _ *audit.Trial) { delete(p.Dead, "died") }, []audit.Kind{audit.NoPlace, audit.Lost}},
		{"body lost", func(p *audit.Places, _ *audit.Trial) { delete(p.Body, "flying") }, []audit.Kind{audit.NoBody, audit.Lost}},
		{"in flight twice", func(p *audit.Places, _ *audit.Trial) { p.InFlight["stray"]["flying"] = "x" }, []audit.Kind{audit.TwoPlaces}},
		{"parked and dead", func(p *audit.Places, _ *audit.Trial) { p.Dead["parked"] = 1 }, []audit.Kind{audit.TwoPlaces}},
		{"strange key", func(p *audit.Places, _ *audit.Trial) { p.Strange = []string{"{q}:odd"} }, []audit.Kind{audit.Strange}},
		{"answered twice", func(_ *audit.Places, t *audit.Trial) {
			t.Delivered["done"] = audit.Answered{a, 2}
		}, []audit.Kind{audit.Repeated}},
		{"answered twice for a cause", func(_ *audit.Places, t *audit.Trial) {
			t.Delivered["done"] = audit.Answered{a, 2}
			t.Causes = map[string]string{"done": "killed"}
		}, nil},
		{"answered and held", func(_ *audit.Places, t *audit.Trial) {
			t.Delivered["parked"] = audit.Answered{b, 1}
		}, []audit.Kind{audit.Repeated}},
		{"answered and held for a cause of all", func(_ *audit.Places, t *audit.Trial) {
			t.Delivered["parked"] = audit.Answered{b, 1}
			t.CauseOfAll = "the fleet was killed"
		}, nil},
		{"changed on the way", func(_ *audit.Places, t *audit.Trial) {
			t.Delivered["parked"] = audit.Answered{a, 0}
		}, []audit.Kind{audit.Changed}},
		{"delivered without a push", func(_ *audit.Places, t *audit.Trial) {
			t.Delivered["more"] = audit.Answered{a, 1}
		}, []audit.Kind{audit.Invented}},
		{"delivered under a second id after a failover", func(_ *audit.Places, t *audit.Trial) {
			t.Delivered["more"] = audit.Answered{a, 1}
			t.Renamed = true
		}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, trial := lawful()
			tt.breaking(&p, &trial)
			vs := audit.Check(p, trial)
			var got []audit.Kind
			for _, v := range vs {
				got = append(got, v.Kind)
			}
			sortKinds := cmp.Transformer("sorted", func(ks []audit.Kind) map[audit.Kind]int {
				m := make(map[audit.Kind]int)
				for _, k := range ks {
					m[k]++
				}
				return m
			})
			if diff := cmp.Diff(tt.want, got, sortKinds); diff != "" {
				t.Errorf("kinds (-want +got):\n%s%v", diff, audit.Err(vs))
			}
		})
	}
}

func TestErrNamesEveryViolation(t *testing.T) {
	if err := audit.Err(nil); err != nil {
		t.Errorf("Err(nil) = %v", err)
	}
	err := audit.Err([]audit.Violation{
		{audit.TwoPlaces, "t1", "delayed, dead"}, {audit.Strange, "", "{q}:odd"},
	})
	for _, want := range []string{"two places: task t1: delayed, dead", "strange: {q}:odd"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Err = %v, want %q in it", err, want)
		}
	}
}

func TestReadSeesEveryPlace(t *testing.T) {
	t.Parallel()
	rdb, ctx, queue := redistest.Mini(t), t.Context(), "q*[x]"
	k, err := keyspace.New(queue)
	if err != nil {
		t.Fatal(err)
	}
	other, err := keyspace.New("qq")
	if err != nil {
		t.Fatal(err)
	}
	for _, cmd := range [][]any{
		{"lpush", k.Source, "raw\x00", "\xff"},
		{"lpush", k.Landing, ""},
		{"hset", k.Worker("w"), "flying", "token"},
		{"hset", k.Worker("no tick"), "strayed", "token"},
		{"zadd", k.Delayed, "1.5", "parked"},
		{"zadd", k.Dead, "2", "died"},
		{"hset", k.Body, "flying", "x", "parked", ""},
		{"hset", k.Meta, "flying", "{}"},
		{"hset", k.Crashes, "flying", "3"},
		{"zadd", k.Ticks, "-1", "w"},
		{"set", k.Dedup("d"), "x"},
		{"set", k.Hook("h"), "x"},
		{"set", k.Paused, "1"},
		{"set", strings.TrimSuffix(k.Landing, "in") + "odd", "x"},
		{"hset", other.Worker("w"), "flying", "token"},
	} {
		if err := rdb.Do(ctx, cmd...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	got, err := audit.Read(ctx, rdb, queue)
	if err != nil {
		t.Fatal(err)
	}
	want := audit.Places{
		Queue: queue, Source: []string{"\xff", "raw\x00"}, Landing: []string{""},
		InFlight: map[string]map[string]string{"w": {"flying": "token"}, "no tick": {"strayed": "token"}},
		Delayed:  map[string]float64{"parked": 1.5}, Dead: map[string]float64{"died": 2},
		Body: map[string]string{"flying": "x", "parked": ""}, Meta: map[string]string{"flying": "{}"},
		Crashes: map[string]string{"flying": "3"}, Ticks: map[string]float64{"w": -1}, Strange: []string{"{q*[x]}:odd"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Read (-want +got):\n%s", diff)
	}
	if got.Waiting() != 6 {
		t.Errorf("Waiting() = %d, want 6", got.Waiting())
	}
}
