package dispatcher_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/dispatcher"
	"github.com/queuehook/queuehook/metrics"
	"github.com/queuehook/queuehook/task"
)

// hollow is an Observer that counts the tasks that were buried without a body.
type hollow struct {
	*metrics.Route
	tasks atomic.Int64
}

func (h *hollow) Buried(r delivery.Reason) {
	if r == delivery.BodyMissing {
		h.tasks.Add(1)
	}
}

func TestATaskWithoutABodyIsCounted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	seen := &hollow{Route: metrics.New("test").Route(r.keys.Source, "nowhere")}
	if err := r.rdb.ZAdd(t.Context(), r.keys.Delayed, redis.Z{Score: 1, Member: "hollow"}).Err(); err != nil {
		t.Fatal(err)
	}
	r.serve(dispatcher.Config{
		NoJanitor: true, Observer: seen,
		Target: dispatcher.TargetFunc(func(context.Context, *task.Task) error { return nil }),
	})
	r.eventually("counted", func() bool { return seen.tasks.Load() == 1 })
}
