package faultproxy_test

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/queuehook/queuehook/internal/faultproxy"
	"github.com/queuehook/queuehook/internal/redistest"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

// through is a proxy in front of the shared server, a client that goes through it, and one that does not.
func through(t *testing.T) (p *faultproxy.Proxy, proxied, direct *redis.Client) {
	t.Helper()
	s := redistest.Shared(t)
	p = faultproxy.Start(t, s.Addr())
	o := s.Options()
	o.Addr = p.Addr()
	o.ContextTimeoutEnabled = true
	o.DialerRetries = 1
	o.ClientName = redistest.Queue(t)
	proxied = redis.NewClient(o)
	t.Cleanup(func() { _ = proxied.Close() })
	if err := proxied.Ping(t.Context()).Err(); err != nil {
		t.Fatalf("PING through the proxy: %v", err)
	}
	return p, proxied, s.Client(t)
}

// within is a context for a wait that should succeed.
func within(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatalf("timed out: %s", what)
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(20 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("timed out: %s", what)
		}
		<-tick.C
	}
}

// short is a context that ends soon, for calls that must not be answered.
func short(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

func isTimeout(err error) bool {
	var nerr net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &nerr) && nerr.Timeout()
}

func TestPassesBytesOn(t *testing.T) {
	t.Parallel()
	p, proxied, direct := through(t)
	q := redistest.Queue(t)
	big := strings.Repeat("\x00\r\n$5", 1<<20)
	if err := proxied.Set(t.Context(), q, big, 0).Err(); err != nil {
		t.Fatal(err)
	}
	if got := direct.Get(t.Context(), q).Val(); got != big {
		t.Errorf("the server got %d bytes, want the %d sent", len(got), len(big))
	}
	if got := proxied.Get(t.Context(), q).Val(); got != big {
		t.Errorf("the client got %d bytes, want %d", len(got), len(big))
	}
	if accepted, open := p.Connections(); accepted < 1 || open < 1 {
		t.Errorf("accepted %d, open %d, want some", accepted, open)
	}
	if err := proxied.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "links end with their clients", func() bool { _, open := p.Connections(); return open == 0 })
}

func TestCutAndRestore(t *testing.T) {
	t.Parallel()
	p, proxied, direct := through(t)
	q := redistest.Queue(t)
	blocked := make(chan error, 1)
	go func() { blocked <- proxied.BLPop(t.Context(), 0, q).Err() }()
	waits(t, direct, proxied, "blpop")

	p.Cut()
	if err := <-blocked; err == nil || isTimeout(err) {
		t.Errorf("BLPOP under Cut = %v, want a broken connection", err)
	}
	for range 3 {
		if err := proxied.Ping(t.Context()).Err(); err == nil {
			t.Error("PING answered under Cut")
		}
	}
	p.Restore()
	if err := proxied.Ping(t.Context()).Err(); err != nil {
		t.Errorf("PING after Restore: %v", err)
	}
}

// waits returns once the server holds a connection of c on which cmd was the last command.
func waits(t *testing.T, direct, c *redis.Client, cmd string) {
	t.Helper()
	eventually(t, cmd+" waits", func() bool {
		list, err := direct.ClientList(t.Context()).Result()
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(list) {
			if strings.Contains(line, " name="+c.Options().ClientName+" ") && strings.Contains(line, " cmd="+cmd+" ") {
				return true
			}
		}
		return false
	})
}

func TestSeverLetsNewOnesIn(t *testing.T) {
	t.Parallel()
	p, proxied, direct := through(t)
	q := redistest.Queue(t)
	blocked := make(chan error, 1)
	go func() { blocked <- proxied.BRPop(t.Context(), 0, q).Err() }()
	waits(t, direct, proxied, "brpop")
	p.Sever()
	if err := <-blocked; err == nil || isTimeout(err) {
		t.Errorf("BRPOP under Sever = %v, want a broken connection", err)
	}
	if err := proxied.Ping(t.Context()).Err(); err != nil {
		t.Errorf("PING after Sever: %v", err)
	}
}

func TestLosesTheReplyOfOneScript(t *testing.T) {
	t.Parallel()
	p, proxied, direct := through(t)
	q := redistest.Queue(t)
	incr := redis.NewScript(`return redis.call("INCR", KEYS[1])`)
	other := redis.NewScript(`return redis.call("GET", KEYS[1]) -- another`)
	for _, s := range []*redis.Script{incr, other} {
		if err := s.Load(t.Context(), direct).Err(); err != nil {
			t.Fatal(err)
		}
	}

	const n = 2
	loss := p.LoseReplies(n, incr.Hash())
	for i := range n {
		if err := proxied.Ping(t.Context()).Err(); err != nil {
			t.Errorf("PING: %v", err)
		}
		if err := other.EvalSha(t.Context(), proxied, []string{q}).Err(); err != nil && !errors.Is(err, redis.Nil) {
			t.Errorf("another script: %v", err)
		}
		if err := incr.EvalSha(t.Context(), proxied, []string{q}).Err(); err == nil || isTimeout(err) {
			t.Errorf("lost reply = %v, want a broken connection", err)
		}
		if got, err := direct.Get(t.Context(), q).Int(); got != i+1 || err != nil {
			t.Errorf("ran %d times (%v), want %d", got, err, i+1)
		}
	}
	within(t, "all lost", loss.Done())
	if loss.Count() != n {
		t.Errorf("lost %d, want %d", loss.Count(), n)
	}
	if got, err := incr.EvalSha(t.Context(), proxied, []string{q}).Int(); got != n+1 || err != nil {
		t.Errorf("after the losses = %d, %v, want %d", got, err, n+1)
	}
}

func TestLosesTheReplyOfABlockingMove(t *testing.T) {
	t.Parallel()
	p, proxied, direct := through(t)
	src := redistest.Queue(t)
	dst := src + "-in"
	loss := p.LoseReplies(1, "blmove")
	moved := make(chan error, 1)
	go func() { moved <- proxied.BLMove(t.Context(), src, dst, "RIGHT", "LEFT", 0).Err() }()
	if err := direct.LPush(t.Context(), src, "task").Err(); err != nil {
		t.Fatal(err)
	}
	within(t, "reply lost", loss.Done())
	if err := <-moved; err == nil || isTimeout(err) {
		t.Errorf("BLMOVE = %v, want a broken connection", err)
	}
	if got := direct.LRange(t.Context(), dst, 0, -1).Val(); len(got) != 1 || got[0] != "task" {
		t.Errorf("moved %q, want the task: only its reply is lost", got)
	}
}

func TestLosesRequests(t *testing.T) {
	t.Parallel()
	p, proxied, direct := through(t)
	q := redistest.Queue(t)
	loss := p.LoseRequests(1, q)
	if err := proxied.Incr(t.Context(), q).Err(); err == nil || isTimeout(err) {
		t.Errorf("lost request = %v, want a broken connection", err)
	}
	within(t, "request lost", loss.Done())
	if n := direct.Exists(t.Context(), q).Val(); n != 0 {
		t.Error("the request reached the server")
	}
	if err := proxied.Incr(t.Context(), q).Err(); err != nil {
		t.Errorf("the next request: %v", err)
	}
}

func TestRestoreEndsLosses(t *testing.T) {
	t.Parallel()
	p, proxied, _ := through(t)
	loss := p.LoseReplies(-1, "")
	// A PING may also fail by a connection that an earlier loss broke, so the losses are counted, not the failures.
	for loss.Count() < 3 {
		if err := proxied.Ping(t.Context()).Err(); err == nil {
			t.Fatal("PING answered")
		}
	}
	p.Restore()
	if err := proxied.Ping(t.Context()).Err(); err != nil {
		t.Errorf("PING after Restore: %v", err)
	}
	within(t, "nothing to lose", p.LoseReplies(0, "").Done())
}

func TestLossSurvivesAServerThatDiesFirst(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Config{})
	p := faultproxy.Start(t, s.Addr())
	o := s.Options()
	o.Addr, o.ClientName = p.Addr(), "waiter"
	c := redis.NewClient(o)
	defer func() { _ = c.Close() }()
	loss := p.LoseReplies(1, "brpop")
	popped := make(chan error, 1)
	go func() { popped <- c.BRPop(t.Context(), 0, "q").Err() }()
	waits(t, s.Client(t), c, "brpop")
	s.Restart(t)
	if err := <-popped; err == nil {
		t.Error("BRPOP survived the server")
	}
	eventually(t, "link ends", func() bool { _, open := p.Connections(); return open == 0 })
	if err := s.Client(t).LPush(t.Context(), "q", "x").Err(); err != nil {
		t.Fatal(err)
	}
	if err := c.BRPop(t.Context(), 0, "q").Err(); err == nil {
		t.Error("the reply was not lost on the second connection")
	}
	within(t, "reply lost", loss.Done())
}

// TestHalfOpen is the ghost: the client is gone, the server still moves a task for it.
func TestHalfOpen(t *testing.T) {
	t.Parallel()
	p, proxied, direct := through(t)
	src := redistest.Queue(t)
	dst := src + "-in"
	ctx, cancel := context.WithCancel(t.Context())
	moved := make(chan error, 1)
	go func() { moved <- proxied.BLMove(ctx, src, dst, "LEFT", "LEFT", 0).Err() }()
	waits(t, direct, proxied, "blmove")

	p.Swallow(faultproxy.Both)
	cancel()
	_ = proxied.Close() // breaks the waiting call: the client goes away for good
	if err := <-moved; err == nil {
		t.Error("BLMOVE succeeded in a partition")
	}
	<-time.After(100 * time.Millisecond) // for the proxy to see the client go: too short proves nothing, never fails
	if _, open := p.Connections(); open == 0 {
		t.Error("the server learnt that the client left")
	}
	if err := direct.RPush(t.Context(), src, "task").Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the ghost takes the task", func() bool { return direct.LLen(t.Context(), dst).Val() == 1 })

	o := redistest.Shared(t).Options()
	o.Addr, o.ContextTimeoutEnabled = p.Addr(), true
	late := redis.NewClient(o)
	defer func() { _ = late.Close() }()
	if err := late.Ping(short(t)).Err(); !isTimeout(err) {
		t.Errorf("PING in a partition = %v, want silence", err)
	}
	p.Restore()
	if err := late.Ping(t.Context()).Err(); err != nil {
		t.Errorf("PING after Restore: %v", err)
	}
}

func TestSwallowReplies(t *testing.T) {
	t.Parallel()
	p, proxied, direct := through(t)
	q := redistest.Queue(t)
	p.Swallow(faultproxy.Replies)
	if err := proxied.Incr(short(t), q).Err(); !isTimeout(err) {
		t.Errorf("INCR without reply = %v, want silence", err)
	}
	eventually(t, "the request arrives", func() bool { return direct.Get(t.Context(), q).Val() == "1" })
	p.Restore()
	if got, err := proxied.Incr(t.Context(), q).Result(); got != 2 || err != nil {
		t.Errorf("INCR after Restore = %d, %v, want 2", got, err)
	}
}

func TestSwallowRequests(t *testing.T) {
	t.Parallel()
	p, proxied, direct := through(t)
	q := redistest.Queue(t)
	p.Swallow(faultproxy.Requests)
	if err := proxied.Incr(short(t), q).Err(); !isTimeout(err) {
		t.Errorf("INCR into nowhere = %v, want silence", err)
	}
	if n := direct.Exists(t.Context(), q).Val(); n != 0 {
		t.Error("the request reached the server")
	}
}

func TestDelayAndThrottleEndWithRestore(t *testing.T) {
	t.Parallel()
	for name, slow := range map[string]func(*faultproxy.Proxy){
		"requests delayed":   func(p *faultproxy.Proxy) { p.Delay(faultproxy.Requests, time.Hour) },
		"replies delayed":    func(p *faultproxy.Proxy) { p.Delay(faultproxy.Replies, time.Hour) },
		"requests throttled": func(p *faultproxy.Proxy) { p.Throttle(faultproxy.Requests, 1) },
		"replies throttled":  func(p *faultproxy.Proxy) { p.Throttle(faultproxy.Replies, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, proxied, _ := through(t)
			slow(p)
			answered := make(chan error, 1)
			go func() { answered <- proxied.Echo(context.WithoutCancel(t.Context()), strings.Repeat("x", 1000)).Err() }()
			select {
			case err := <-answered:
				t.Errorf("answered: %v", err)
			case <-time.After(100 * time.Millisecond): // proves nothing when slow, fails when broken
			}
			p.Restore()
			if err := <-answered; err != nil {
				t.Errorf("after Restore: %v", err)
			}
		})
	}
}

func TestDelayPasses(t *testing.T) {
	t.Parallel()
	p, proxied, _ := through(t)
	p.Delay(faultproxy.Both, 20*time.Millisecond)
	p.Throttle(faultproxy.Both, 1<<20)
	began := time.Now()
	if err := proxied.Echo(t.Context(), strings.Repeat("x", 10_000)).Err(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 40*time.Millisecond {
		t.Errorf("took %s, want at least the delay both ways", took) // a lower bound holds on any machine
	}
}
