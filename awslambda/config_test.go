package awslambda_test

import (
	"testing"
	"time"

	"github.com/queuehook/queuehook/awslambda"
)

// TestBounds checks how many tasks and bytes of a route may be out at once, and for how long.
func TestBounds(t *testing.T) {
	for name, c := range map[string]struct {
		cfg          awslambda.Config
		slots, bytes int
		patience     time.Duration
	}{
		"alone":         {awslambda.Config{Concurrency: 3, Timeout: time.Second}, 3, 18 << 20, time.Second},
		"asynchronous":  {awslambda.Config{Concurrency: 3, Timeout: time.Second, Async: true}, 3, 3 << 20, time.Second},
		"batches":       {awslambda.Config{Concurrency: 3, BatchSize: 10, BatchWait: 5, Timeout: time.Second}, 30, 18 << 20, 2*time.Second + 5},
		"large batches": {awslambda.Config{Concurrency: 3, BatchSize: 10_000}, 20_000, 18 << 20, 0},
		"many calls":    {awslambda.Config{Concurrency: 30_000, BatchSize: 2, Async: true}, 30_000, 30_000 << 20, 0},
	} {
		if slots, bytes, patience := c.cfg.Slots(), c.cfg.Bytes(), c.cfg.Patience(); slots != c.slots || bytes != c.bytes || patience != c.patience {
			t.Errorf("%s: %d slots, %d bytes, %s", name, slots, bytes, patience)
		}
	}
}
