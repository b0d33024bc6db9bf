package dev

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/queuehook/queuehook/config"
)

// banner says what runs, where it is and how to look at it.
func (a *account) banner(o Options, cfg config.Dispatcher, receiverURL string) error {
	redisURL := string(cfg.Redis.URL) // no secret: it is ours, without a password
	at, err := url.Parse(redisURL)
	if err != nil {
		return fmt.Errorf("read the URL of Redis: %w", err)
	}
	bold := func(s string) string {
		if a.color {
			return "\x1b[1m" + s + "\x1b[0m"
		}
		return s
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: Redis, receiver, sample tasks and dispatcher in one process.\n", bold("queuehook "+o.Version))
	fmt.Fprintf(&b, "All of it is in memory, for trying out, and gone when it ends. %s stops it.\n\n", bold("Ctrl-C"))
	fmt.Fprintf(&b, "  Redis     %s\n", redisURL)
	fmt.Fprintf(&b, "  receiver  %s\n", receiverURL)
	fmt.Fprintf(&b, "  admin     http://%s  with /healthz /readyz /metrics\n", cfg.AdminAddr)
	fmt.Fprintf(&b, "\n  %-*s  what its receiver does\n", a.width, "queue")
	for _, s := range samples() {
		fmt.Fprintf(&b, "  %-*s  %s\n", a.width, s.queue, s.shows)
	}
	fmt.Fprintf(&b, "\nFrom another terminal:\n")
	fmt.Fprintf(&b, "  redis-cli -p %s LPUSH %s hello\n", at.Port(), orders)
	fmt.Fprintf(&b, "  export DISPATCHER_REDIS_URL=%s\n", redisURL)
	fmt.Fprintf(&b, "  %s queues\n", o.Program)
	fmt.Fprintf(&b, "  %s dead list %s\n\n", o.Program, refunds)
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, err := fmt.Fprint(a.out, b.String()); err != nil {
		return fmt.Errorf("print banner: %w", err)
	}
	return nil
}
