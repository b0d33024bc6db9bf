package script_test

import (
	"context"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/queuehook/queuehook/internal/faultproxy"
	"github.com/queuehook/queuehook/internal/redistest"
	"github.com/queuehook/queuehook/internal/script"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

// count is a script that counts how often it was carried out.
const count = `return redis.call('INCR', KEYS[1])`

// clients are go-redis clients that repeat commands by themselves, connected through the proxy.
func clients(t *testing.T, addr string) map[string]redis.UniversalClient {
	t.Helper()
	o := redistest.Shared(t).Options()
	o.Addr, o.MaxRetries = addr, 3
	one := redis.NewClient(o)
	many := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: []string{addr}, MaxRedirects: 3, DisableIdentity: true, MaintNotificationsConfig: o.MaintNotificationsConfig,
		ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
			return []redis.ClusterSlot{{Start: 0, End: 16383, Nodes: []redis.ClusterNode{{Addr: addr}}}}, nil
		},
	})
	t.Cleanup(func() {
		_ = one.Close()
		_ = many.Close()
	})
	return map[string]redis.UniversalClient{"client": one, "cluster client": many}
}

func TestNobodyRepeatsAScript(t *testing.T) {
	t.Parallel()
	proxy := faultproxy.Start(t, redistest.Shared(t).Addr())
	direct, s := redistest.Shared(t).Client(t), script.New(count)
	for name, rdb := range clients(t, proxy.Addr()) {
		t.Run(name, func(t *testing.T) {
			ctx, key := t.Context(), redistest.Queue(t)
			if got, err := s.Run(ctx, rdb, []string{key}); err != nil || got != int64(1) {
				t.Fatalf("Run = %v, %v, want 1", got, err)
			}
			proxy.LoseReplies(1, key)
			got, err := s.Run(ctx, rdb, []string{key})
			if err == nil {
				t.Errorf("Run = %v although its reply was lost: somebody repeated it", got)
			}
			if script.Answered(err) {
				t.Errorf("%v counts as an answer", err)
			}
			if n := direct.Get(ctx, key).Val(); n != "2" {
				t.Errorf("carried out %s times, want 2", n)
			}

			// The control: these clients do repeat other commands.
			proxy.LoseReplies(1, key)
			if err := rdb.Incr(ctx, key).Err(); err != nil {
				t.Fatalf("INCR through the same client: %v, want it repeated", err)
			}
			if n := direct.Get(ctx, key).Val(); n != "4" {
				t.Errorf("INCR left %s, want 4: sent twice", n)
			}
		})
	}
}

func TestAnUnknownScriptIsSentInFull(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Config{})
	rdb, s, ctx := server.Client(t), script.New(count), t.Context()
	for want := int64(1); want <= 3; want++ {
		if err := rdb.ScriptFlush(ctx).Err(); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Run(ctx, rdb, []string{"n"}); err != nil || got != want {
			t.Fatalf("Run = %v, %v, want %d", got, err, want)
		}
	}
}

func TestAnsweredTellsRefusalsFromLosses(t *testing.T) {
	t.Parallel()
	rdb, ctx := redistest.Shared(t).Client(t), t.Context()
	_, err := script.New(`return redis.error_reply('WRONGTYPE of our own')`).Run(ctx, rdb, nil)
	if err == nil || !script.Answered(err) {
		t.Errorf("%v does not count as an answer", err)
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	for _, err := range []error{io.EOF, os.ErrDeadlineExceeded, context.Canceled, redis.ErrClosed, errors.New("dial tcp: refused")} {
		if script.Answered(err) {
			t.Errorf("%v counts as an answer", err)
		}
	}
	if _, err := script.New(count).Run(cancelled, rdb, []string{"n"}); err == nil || script.Answered(err) {
		t.Errorf("%v counts as an answer", err)
	}
}

func TestArgumentsAreByteExact(t *testing.T) {
	t.Parallel()
	rdb, ctx := redistest.Shared(t).Client(t), t.Context()
	for _, arg := range []string{"", "\x00", "\xff\xfe", "a\r\nb"} {
		got, err := script.New(`return ARGV[1]`).Run(ctx, rdb, nil, []byte(arg))
		if err != nil || got != arg {
			t.Errorf("%q came back as %q, %v", arg, got, err)
		}
	}
}
