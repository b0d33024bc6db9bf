package dispatcher_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/queuehook/queuehook/dispatcher"
	"github.com/queuehook/queuehook/internal/redistest"
	"github.com/queuehook/queuehook/redisconn"
	"github.com/queuehook/queuehook/task"
	"github.com/queuehook/queuehook/webhook"
)

// BenchmarkDelivery compares deliveries through the queue with the same client POSTing the same payloads from a bare
// loop, round by round in turn, so that a noisy machine spoils neither alone. The receiver runs in this process too.
func BenchmarkDelivery(b *testing.B) {
	const slots, tasks = 64, 5000
	rdb := redistest.Shared(b).Client(b)
	var received atomic.Int64
	arrived := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusNoContent)
		if received.Add(1)%tasks == 0 {
			arrived <- struct{}{}
		}
	}))
	defer server.Close()
	target, err := webhook.New(webhook.Config{URL: server.URL, MaxConns: slots})
	if err != nil {
		b.Fatal(err)
	}
	defer target.Close()
	payload := make([]byte, 256)

	bare := func() {
		var workers sync.WaitGroup
		var next atomic.Int64
		for range slots {
			workers.Go(func() {
				for next.Add(1) <= tasks {
					ctx, cancel := context.WithTimeout(b.Context(), 20*time.Second)
					err := target.Deliver(ctx, task.New(strconv.FormatInt(next.Load(), 10), payload, nil))
					cancel()
					if err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		workers.Wait()
		<-arrived
	}
	queue := redistest.Queue(b)
	conn := redisconn.FromClient(rdb)
	defer conn.Close()
	d, err := dispatcher.New(dispatcher.Config{
		Queue: queue, Redis: conn, Target: target, Concurrency: slots, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- d.Run(ctx) }()
	queued := func() {
		push(b, rdb, queue, payload, tasks)
		<-arrived
	}

	var direct, through time.Duration
	for b.Loop() {
		direct += timed(bare)
		through += timed(queued)
	}
	stop()
	if err := <-stopped; err != nil {
		b.Fatal(err)
	}
	n := float64(tasks * b.N)
	b.ReportMetric(n/direct.Seconds(), "bare/s")
	b.ReportMetric(n/through.Seconds(), "queued/s")
	b.ReportMetric(direct.Seconds()/through.Seconds(), "queued/bare")
}

// push is a producer; it pushes a thousand payloads a call.
func push(b *testing.B, rdb *redis.Client, queue string, payload []byte, n int) {
	b.Helper()
	batch := make([]any, 1000)
	for i := range batch {
		batch[i] = payload
	}
	for range n / len(batch) {
		if err := rdb.LPush(b.Context(), queue, batch...).Err(); err != nil {
			b.Fatal(err)
		}
	}
}

func timed(f func()) time.Duration {
	begin := time.Now()
	f()
	return time.Since(begin)
}
