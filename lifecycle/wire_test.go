package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/queuehook/queuehook/internal/script"
)

var errLost = errors.New("reply lost")

// wire is a hook that plays the network: it loses replies, refuses requests, holds calls and counts them.
type wire struct {
	mu      sync.Mutex
	sent    map[string]int // by sha
	losing  map[string]int // replies still to lose: the script is carried out
	failing map[string]int // requests still to lose: it is not
	refused map[string]int // calls that Redis still refuses, as while it loads its data
	gates   map[string]chan struct{}
	between map[string]func() // called once, when the script is carried out and its reply not yet read
}

func newWire() *wire {
	return &wire{
		sent: make(map[string]int), losing: make(map[string]int), failing: make(map[string]int),
		refused: make(map[string]int), gates: make(map[string]chan struct{}),
		between: make(map[string]func()),
	}
}

// sha is the name by which a script is called.
func sha(s script.Script) string {
	hook, name := newWire(), ""
	rdb := redis.NewClient(&redis.Options{})
	defer func() { _ = rdb.Close() }()
	rdb.AddHook(peek{hook, &name})
	_, _ = s.Run(context.Background(), rdb, nil)
	return name
}

// peek answers every call with an error after noting the script's name.
type peek struct {
	*wire

	name *string
}

func (p peek) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, cmd redis.Cmder) error {
		*p.name = fmt.Sprint(cmd.Args()[1])
		return errLost
	}
}

func (w *wire) lose(s script.Script, n int)   { w.set(w.losing, s, n) }
func (w *wire) fail(s script.Script, n int)   { w.set(w.failing, s, n) }
func (w *wire) refuse(s script.Script, n int) { w.set(w.refused, s, n) }

func (w *wire) set(m map[string]int, s script.Script, n int) {
	name := sha(s)
	w.mu.Lock()
	defer w.mu.Unlock()
	m[name] = n
}

// hold makes calls of the script wait until the returned function is called.
func (w *wire) hold(s script.Script) (open func()) {
	name, gate := sha(s), make(chan struct{})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gates[name] = gate
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.gates, name)
		close(gate)
	}
}

// before has do called once, between the script's next run and its reply.
func (w *wire) before(s script.Script, do func()) {
	name := sha(s)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.between[name] = do
}

// calls is how often the script was sent.
func (w *wire) calls(s script.Script) int {
	name := sha(s)
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sent[name]
}

func (w *wire) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (w *wire) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (w *wire) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() != "evalsha" {
			return next(ctx, cmd)
		}
		name := fmt.Sprint(cmd.Args()[1])
		w.mu.Lock()
		w.sent[name]++
		gate, between := w.gates[name], w.between[name]
		lose, fail, refuse := take(w.losing, name), take(w.failing, name), take(w.refused, name)
		w.mu.Unlock()
		if gate != nil {
			<-gate
		}
		switch {
		case fail:
			return errLost
		case refuse:
			cmd.SetErr(loading{})
			return loading{}
		}
		err := next(ctx, cmd)
		if lose && !redis.HasErrorPrefix(err, "NOSCRIPT") {
			return errLost
		}
		if between != nil && err == nil {
			w.mu.Lock()
			delete(w.between, name)
			w.mu.Unlock()
			between()
		}
		return err
	}
}

// loading is an answer of Redis, unlike errLost.
type loading struct{}

func (loading) Error() string { return "LOADING Redis is loading the dataset in memory" }
func (loading) RedisError()   {}

func take(left map[string]int, name string) bool {
	if left[name] == 0 {
		return false
	}
	left[name]--
	return true
}
