package dev

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/queuehook/queuehook/internal/receiver"
	"github.com/queuehook/queuehook/lifecycle"
)

// sample is a queue and how its receiver behaves.
type sample struct {
	queue   string
	shows   string // for the banner
	payload string // format of a task, with its number
	answers receiver.Script
}

func (s sample) path() string { return "/" + s.queue }

const (
	orders   = "orders"
	invoices = "invoices"
	refunds  = "refunds"
	reports  = "reports"
	messages = "messages"
)

// samples are the queues in the order of the banner.
func samples() []sample {
	const slow, patience = 2 * time.Second, 2
	ok, broken := receiver.Status(http.StatusNoContent), receiver.Status(http.StatusInternalServerError)
	busy := receiver.Status(http.StatusTooManyRequests).With("Retry-After", strconv.Itoa(patience))
	return []sample{
		{orders, "answers well", `{"order":%d,"cents":1999}`, receiver.Always(ok)},
		{invoices, "fails twice, then answers: retried with backoff", `{"invoice":%d}`, receiver.ByAttempt(broken, broken, ok)},
		{refunds, "always fails: a dead letter after three attempts", `{"refund":%d}`, receiver.Always(broken)},
		{reports, "answers slowly, and holds nothing else up", `{"report":%d}`, receiver.Always(ok.After(slow))},
		{messages, "now and then asks to wait: 429 with Retry-After", `{"message":%d}`, cycle(ok, busy, ok)},
	}
}

// script is the receiver's, for all queues.
func script() receiver.Script {
	paths := map[string]receiver.Script{}
	for _, s := range samples() {
		paths[s.path()] = s.answers
	}
	return receiver.ByPath(paths, receiver.Always(receiver.Status(http.StatusNotFound)))
}

// cycle gives one answer after the other, over and over.
func cycle(answers ...receiver.Answer) receiver.Script {
	var asked atomic.Uint64
	return func(receiver.Request) receiver.Answer {
		return answers[(asked.Add(1)-1)%uint64(len(answers))]
	}
}

// reminderDelay is how long the tasks wait that are not due at once.
const reminderDelay = 3 * time.Second

// producer pushes sample tasks, as any program would. One goroutine owns it.
type producer struct {
	rdb     redis.UniversalClient
	queues  []*lifecycle.Queue // of the samples, in their order
	account *account
	pushed  int
}

// push adds the next task. Most are raw payloads, pushed with Redis's own LPUSH; now and then one is enqueued with
// an id, a header and a delay.
func (p *producer) push(ctx context.Context) error {
	turns := [...]int{0, 1, 2, 0, 4, 3, -1, 4, 0, 4} // indices of samples, -1 = a reminder among the orders
	turn := turns[p.pushed%len(turns)]
	p.pushed++
	all := samples()
	if turn < 0 {
		return p.remind(ctx, fmt.Sprintf(all[0].payload, p.pushed))
	}
	payload := fmt.Sprintf(all[turn].payload, p.pushed)
	queue := all[turn].queue
	// Told before it is done: once it is in Redis it may be delivered before the next line of this program runs.
	p.account.pushed(queue, "", payload)
	if err := p.rdb.LPush(ctx, queue, payload).Err(); err != nil {
		return fmt.Errorf("push task: %w", err)
	}
	return nil
}

func (p *producer) remind(ctx context.Context, payload string) error {
	id := fmt.Sprintf("reminder-%d", p.pushed)
	p.account.pushed(orders, id, payload+", due in "+span(reminderDelay))
	_, err := p.queues[0].Enqueue(ctx, []byte(payload), lifecycle.EnqueueOptions{
		ID: id, Delay: reminderDelay, Headers: map[string]string{"X-Tenant": "acme"},
	})
	return err
}
