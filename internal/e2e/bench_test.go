package e2e_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/queuehook/queuehook/internal/fleet"
	"github.com/queuehook/queuehook/internal/receiver"
	"github.com/queuehook/queuehook/internal/redistest"
)

// BenchmarkIsolation measures one route of a dispatcher, alone and beside a route whose endpoint hangs while 1000 tasks
// wait: the tasks a second when all of them wait, and the p99 of the time from push to arrival when they come one by
// one. It takes turns and the median of each, so that a noisy machine does not spoil one of the two alone. The
// dispatcher has the race detector on, so the figures are only good for comparing.
func BenchmarkIsolation(b *testing.B) {
	const tasks, hanging, rounds = 2000, 1000, 5
	server := redistest.Shared(b)
	bad := fleet.NewQueue(b, server, receiver.Config{Script: receiver.Always(receiver.Never())})
	bad.PushN(b, hanging)
	var perSecond, p99 [2][]float64 // alone, beside
	for range rounds * b.N {
		for i, beside := range []bool{false, true} {
			good := fleet.NewQueue(b, server, receiver.Config{})
			queues := []*fleet.Queue{good}
			if beside {
				queues = append(queues, bad)
			}
			before := bad.Receiver.Count()
			d := fleet.StartDispatcher(b, server.URL(), fleet.Routes(queues...), "TIMEOUT=10m", "SHUTDOWN_GRACE=0s")
			if beside {
				bad.AwaitRequests(b, before+32)
			}
			begin := time.Now()
			good.PushN(b, tasks)
			good.AwaitRequests(b, tasks)
			perSecond[i] = append(perSecond[i], tasks/time.Since(begin).Seconds())
			p99[i] = append(p99[i], oneByOne(b, good))
			good.AwaitDrained(b)
			d.Stop(b)
			good.Law(b)
		}
	}
	bad.Law(b)
	for i, name := range []string{"alone", "beside"} {
		b.ReportMetric(median(perSecond[i]), "tasks/s-"+name)
		b.ReportMetric(1000*median(p99[i]), "ms-p99-"+name)
	}
	b.ReportMetric(median(perSecond[1])/median(perSecond[0]), "ratio-tasks/s")
	b.ReportMetric(median(p99[1])/median(p99[0]), "ratio-p99")
	b.ReportMetric(0, "ns/op") // the whole round says nothing
}

// oneByOne pushes 500 tasks, each after the one before has arrived, and returns the p99 of the time from push to
// arrival in seconds.
func oneByOne(b *testing.B, q *fleet.Queue) float64 {
	b.Helper()
	const n = 500
	ctx, cancel := context.WithTimeout(b.Context(), fleet.Patience)
	defer cancel()
	took := make([]float64, n)
	for i := range took {
		next := q.Receiver.Count() + 1
		begin := time.Now()
		q.PushN(b, 1)
		if err := q.Receiver.WaitCount(ctx, next); err != nil {
			b.Fatal(err)
		}
		took[i] = time.Since(begin).Seconds()
	}
	slices.Sort(took)
	return took[n*99/100]
}

func median(of []float64) float64 {
	slices.Sort(of)
	return of[len(of)/2]
}
