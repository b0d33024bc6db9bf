package chaos_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/queuehook/queuehook/internal/fleet"
	"github.com/queuehook/queuehook/internal/receiver"
	"github.com/queuehook/queuehook/internal/redistest"
	"github.com/queuehook/queuehook/lifecycle"
)

// TestCrowdOfDelayedTasks has many parked tasks due at once. While dispatchers work them off, one of these is killed
// every second.
func TestCrowdOfDelayedTasks(t *testing.T) {
	t.Parallel()
	tasks, kills, beats := 20_000, 3, "HEARTBEAT_INTERVAL=1s"
	if long() { // reading who holds what takes seconds then
		tasks, kills, beats = 1_000_000, 10, "HEARTBEAT_INTERVAL=5s"
	}
	server := redistest.Start(t, slowLog())
	q := fleet.NewQueue(t, server, receiver.Config{LogLimit: 2 * tasks})
	queue, err := lifecycle.Open(q.Redis, q.Name)
	if err != nil {
		t.Fatal(err)
	}
	for from := 0; from < tasks; from += 1000 {
		payloads := make([][]byte, min(1000, tasks-from))
		for i := range payloads {
			payloads[i] = fmt.Appendf(nil, `{"n":%d}`, from+i)
		}
		if _, err := queue.AddAll(t.Context(), payloads, lifecycle.EnqueueOptions{Delay: time.Millisecond}); err != nil {
			t.Fatal(err)
		}
		q.Handed(payloads...)
	}

	begun := time.Now()
	var serving []*fleet.Server
	for range 3 {
		serving = append(serving, fleet.StartDispatcher(t, server.URL(), fleet.Routes(q), beats, "CONCURRENCY=64"))
	}
	for range kills {
		fleet.Pass(time.Second)
		lost := q.Crash(t, serving[0])
		t.Logf("killed one with %d tasks in flight, at %d requests", len(lost), q.Receiver.Count())
		serving = append(serving[1:], fleet.StartDispatcher(t, server.URL(), fleet.Routes(q), beats, "CONCURRENCY=64"))
	}
	fleet.Await(t, 10*time.Minute, "all delivered", func() error {
		if d := q.Depth(t); d.Ready+d.Delayed+d.InFlight > 0 {
			return fmt.Errorf("%+v, %d requests", d, q.Receiver.Count())
		}
		return nil
	})
	t.Logf("%d tasks took %d requests and %s", tasks, q.Receiver.Count(), time.Since(begun).Round(time.Second))
	tellSlow(t, server)
	for _, s := range serving {
		s.Stop(t)
	}
	q.Law(t)
}
