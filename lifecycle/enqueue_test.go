package lifecycle

import (
	"errors"
	"testing"
	"time"

	"github.com/queuehook/queuehook/internal/audit"
)

func TestAddTellsWhenATaskIsDue(t *testing.T) {
	onBoth(t, func(b *bench) {
		q, err := Open(b.rdb, b.keys.Source)
		if err != nil {
			b.Fatal(err)
		}
		o := EnqueueOptions{ID: "first", Delay: time.Hour, DedupKey: "k", DedupTTL: time.Hour}
		first, err := q.Add(b.ctx, []byte("a"), o)
		if err != nil || first.Duplicate {
			b.Fatalf("Add = %+v, %v", first, err)
		}
		b.trial.Pushed[audit.Sum([]byte("a"))]++
		due := int64(b.places().Delayed["first"])
		if late := due - first.Due.UnixMilli(); late < 0 || late > 10_000 {
			b.Errorf("due %d, said %d", due, first.Due.UnixMilli())
		}
		o.ID, o.Delay = "second", 0
		second, err := q.Add(b.ctx, []byte("a"), o)
		if err != nil || second.ID != "first" || !second.Duplicate || second.Due.UnixMilli() != due {
			b.Errorf("a duplicate: %+v, %v, want first, due %d", second, err, due)
		}
		o.DedupKey, o.DedupTTL = "", 0
		o.ID = "first"
		if known, err := q.Add(b.ctx, []byte("a"), o); !errors.Is(err, ErrExists) || known.ID != "first" {
			b.Errorf("a known id: %+v, %v", known, err)
		}
	})
}

func TestCursorGoesOnAfterALetter(t *testing.T) {
	onBoth(t, func(b *bench) {
		q, err := Open(b.rdb, b.keys.Source)
		if err != nil {
			b.Fatal(err)
		}
		for i, id := range []string{"a", "b-1", "c", "d"} {
			b.do("hset", b.keys.Body, id, id)
			b.do("zadd", b.keys.Dead, 1000+i/2, id)
			b.trial.Pushed[audit.Sum([]byte(id))]++
		}
		all, _, err := q.Dead(b.ctx, "", 10)
		if err != nil || len(all) != 4 {
			b.Fatalf("Dead = %v, %v", all, err)
		}
		for i, letter := range all {
			rest, _, err := q.Dead(b.ctx, letter.Cursor(), 10)
			if err != nil || len(rest) != 3-i || len(rest) > 0 && rest[0].ID != all[i+1].ID {
				b.Errorf("after %s: %v, %v", letter.ID, rest, err)
			}
		}
	})
}
