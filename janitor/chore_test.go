package janitor_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queuehook/queuehook/janitor"
)

func TestChoresAreDoneNowAndThenAndSoonerWhenTheyAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hourly, eager []time.Duration
		begin := time.Now()
		var alive atomic.Bool
		alive.Store(true)
		j, err := janitor.New(janitor.Config{
			Detector: &queue{}, Sweeper: &queue{}, Interval: time.Second, Alive: alive.Load,
			Logger: slog.New(slog.DiscardHandler),
			Chores: []janitor.Chore{
				{Name: "hourly", Every: time.Hour, Do: func(context.Context) (time.Duration, error) {
					hourly = append(hourly, time.Since(begin))
					return 0, errors.New("no luck")
				}},
				{Name: "eager", Every: time.Hour, Do: func(context.Context) (time.Duration, error) {
					eager = append(eager, time.Since(begin))
					return 10 * time.Second, nil
				}},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Hour, stop)
		time.AfterFunc(9*time.Hour, func() { alive.Store(false) })
		if err := j.Run(ctx); err != nil {
			t.Fatal(err)
		}
		// 9 hours, at 45 to 75 minutes each, the first one within the first hour; nothing while not alive.
		if n := len(hourly); n < 7 || n > 13 || hourly[0] > time.Hour+2*time.Second || hourly[n-1] > 9*time.Hour {
			t.Errorf("done at %s", hourly)
		}
		for i := 1; i < len(eager); i++ {
			if d := eager[i] - eager[i-1]; d < 10*time.Second || d > 12*time.Second {
				t.Fatalf("done again after %s, want the 10 s asked for and at most a pass more", d)
			}
		}
		if len(eager) < 8*300 {
			t.Errorf("done %d times", len(eager))
		}
	})
}
