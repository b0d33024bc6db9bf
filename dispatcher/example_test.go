package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/dispatcher"
	"github.com/queuehook/queuehook/redisconn"
	"github.com/queuehook/queuehook/task"
)

// A worker that pulls: tasks arrive on a channel, and each is resolved by Succeed or Fail. Heartbeat and janitor run
// beside it.
func Example() {
	rdb := connect("orders", "first", "second")
	conn := redisconn.FromClient(rdb)
	defer conn.Close()

	d, err := dispatcher.New(dispatcher.Config{Queue: "orders", Redis: conn, Concurrency: 1})
	if err != nil {
		log.Fatal(err)
	}
	tasks, _ := d.Start(context.Background())
	for t := range tasks {
		fmt.Printf("working on %s\n", t.Bytes())
		if err := t.Succeed(); err != nil { // or t.Fail(), to have it again later
			log.Print(err)
		}
		if string(t.Bytes()) == "second" {
			go d.Close(context.Background())
		}
	}
	// Output:
	// working on first
	// working on second
}

// A Go func as the target: nil completes a task, an error brings it back after a backoff, and a *delivery.Error says
// more, here that the task should not come back at all.
func ExampleTargetFunc() {
	rdb := connect("mails", "to everybody", "to nobody")
	conn := redisconn.FromClient(rdb)
	defer conn.Close()

	ctx, stop := context.WithCancel(context.Background())
	send := func(_ context.Context, t *task.Task) error {
		fmt.Printf("mail %s\n", t.Bytes())
		if string(t.Bytes()) == "to nobody" {
			stop()
			return delivery.Errorf(delivery.Rejected, "no such address")
		}
		return nil
	}
	d, err := dispatcher.New(dispatcher.Config{
		Queue: "mails", Redis: conn, Target: dispatcher.TargetFunc(send), Concurrency: 1, Timeout: 10 * time.Second,
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := d.Run(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println("dead letters:", rdb.ZCard(context.Background(), "{mails}:dead").Val())
	// Output:
	// mail to everybody
	// mail to nobody
	// dead letters: 1
}

// audit is told of every dispatcher whose tasks are about to be given back, and may prevent it.
type audit struct{ frozen bool }

func (a audit) OnPreConcat(_ context.Context, queue, dead string) error {
	if a.frozen {
		return errors.New("change freeze: " + queue + " of " + dead + " stays as it is")
	}
	return nil
}

func (a audit) OnPostConcat(_ context.Context, queue, dead string) error {
	log.Printf("%s: the tasks of %s were given back", queue, dead)
	return nil
}

// Hooks are called around each sweep of a dead dispatcher. One that needs Redis closes over a client of its own.
func ExampleConfig_hooks() {
	rdb := connect("orders", "first")
	conn := redisconn.FromClient(rdb)
	defer conn.Close()

	d, err := dispatcher.New(dispatcher.Config{Queue: "orders", Redis: conn, Hooks: audit{frozen: true}})
	if err != nil {
		log.Fatal(err)
	}
	tasks, _ := d.Start(context.Background())
	fmt.Println((<-tasks).Succeed())
	fmt.Println(d.Close(context.Background()))
	// Output:
	// <nil>
	// <nil>
}

// memory is a Lifecycle without Redis: tasks come from a slice, and their settlements are printed.
type memory struct {
	todo []string
	stop context.CancelFunc
	wg   sync.WaitGroup // tasks that are out
}

func (m *memory) Listen(ctx context.Context) (<-chan *task.Task, <-chan error) {
	ctx, m.stop = context.WithCancel(ctx)
	tasks, errs := make(chan *task.Task), make(chan error)
	go func() {
		defer close(errs)
		defer close(tasks)
		for i, payload := range m.todo {
			m.wg.Add(1)
			select {
			case tasks <- task.New(fmt.Sprint(i), []byte(payload), nil):
			case <-ctx.Done():
				m.wg.Done()
				return
			}
		}
		<-ctx.Done()
	}()
	return tasks, errs
}

func (m *memory) StopListening() { m.stop() }

func (m *memory) end(t *task.Task, how string) error {
	fmt.Printf("%s: %s\n", t.Bytes(), how)
	m.wg.Done()
	return nil
}

func (m *memory) Complete(_ context.Context, t *task.Task) error { return m.end(t, "done") }
func (m *memory) Abandon(_ context.Context, t *task.Task, _ time.Duration) error {
	return m.end(t, "failed")
}

func (m *memory) Bury(_ context.Context, t *task.Task, r delivery.Reason) error {
	return m.end(t, r.String())
}

func (m *memory) Release(_ context.Context, tasks ...*task.Task) error {
	for _, t := range tasks {
		_ = m.end(t, "given back")
	}
	return nil
}
func (m *memory) AbandonAll(context.Context) error { return nil }
func (m *memory) Await(context.Context) error      { m.wg.Wait(); return nil }

// A Lifecycle of your own: another store, or a test's.
func ExampleLifecycle() {
	ctx, stop := context.WithCancel(context.Background())
	d, err := dispatcher.New(dispatcher.Config{
		Queue: "orders", Concurrency: 1, Lifecycle: &memory{todo: []string{"good", "bad"}},
		Target: dispatcher.TargetFunc(func(_ context.Context, t *task.Task) error {
			if string(t.Bytes()) == "bad" {
				defer stop()
				return errors.New("no luck")
			}
			return nil
		}),
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := d.Run(ctx); err != nil {
		log.Fatal(err)
	}
	// Unordered output:
	// good: done
	// bad: failed
}

// connect gives the examples a Redis in memory, with a queue that holds some payloads.
func connect(queue string, payloads ...string) *redis.Client {
	m, err := miniredis.Run()
	if err != nil {
		log.Fatal(err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: m.Addr()})
	for _, payload := range payloads {
		rdb.LPush(context.Background(), queue, payload)
	}
	return rdb
}
