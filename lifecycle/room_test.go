package lifecycle

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/queuehook/queuehook/internal/faultproxy"
	"github.com/queuehook/queuehook/internal/redistest"
)

func TestLateRepliesNarrowTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := room{most: 8 << 20}
		wants := func(want int) {
			t.Helper()
			if got := r.bytes(); got != want {
				t.Errorf("room for %d bytes, want %d", got, want)
			}
		}
		wants(8 << 20)
		r.failed(io.EOF)
		wants(8 << 20)
		late := fmt.Errorf("lease: %w", os.ErrDeadlineExceeded)
		r.failed(late)
		wants(2 << 20)
		for range 100 {
			r.failed(late)
		}
		wants(leastRoom)
		time.Sleep(growEvery)
		wants(512 << 10)
		wants(512 << 10)
		time.Sleep(growEvery)
		wants(2 << 20)
		time.Sleep(growEvery)
		wants(8 << 20)

		r = room{most: 1000}
		r.failed(late)
		wants(1000)
	})
}

func TestALinkThatIsTooSlowForAFullLeaseStillCarriesTasks(t *testing.T) {
	// A reply with all tasks takes longer than the client waits; one of 256 KiB does not.
	t.Parallel()
	const total = 20
	server := redistest.Shared(t)
	b := newBench(t, server.Client(t))
	b.alive("w")
	payload := strings.Repeat("x", 100_000)
	for range total {
		b.push(payload)
	}
	slow := faultproxy.Start(t, server.Addr())
	slow.Throttle(faultproxy.Replies, 1_000_000)
	o := server.Options()
	o.Addr, o.MaxRetries, o.ReadTimeout = slow.Addr(), -1, time.Second
	client := redis.NewClient(o)
	defer func() { _ = client.Close() }()
	l, err := New(client, b.keys.Source, "w", Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	tasks, _ := l.Listen(b.ctx)
	for range total {
		got := b.receive(tasks)
		b.delivered(took{ID: got.ID(), Payload: payload})
		if err := got.Succeed(); err != nil {
			b.Error(err)
		}
	}
	slow.Restore()
	b.ends("StopListening", l.StopListening)
}
