package script_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/queuehook/queuehook/internal/faultproxy"
	"github.com/queuehook/queuehook/internal/redistest"
	"github.com/queuehook/queuehook/internal/script"
)

// appended is a script whose runs show in which order they were carried out; it refuses one argument.
const appended = `if ARGV[1] == 'bad' then return redis.error_reply('BAD it is') end return redis.call('RPUSH', KEYS[1], ARGV[1])`

func calls(key string, args ...string) []script.Call {
	var all []script.Call
	for _, arg := range args {
		all = append(all, script.Call{Keys: []string{key}, Args: []any{arg}})
	}
	return all
}

func TestRunMany(t *testing.T) {
	t.Parallel()
	proxy := faultproxy.Start(t, redistest.Shared(t).Addr())
	direct, s := redistest.Shared(t).Client(t), script.New(appended)
	for name, rdb := range clients(t, proxy.Addr()) {
		t.Run(name, func(t *testing.T) {
			ctx, key := t.Context(), redistest.Queue(t)
			results := s.RunMany(ctx, rdb, calls(key, "a", "bad", "b", "c"))
			for i, want := range []any{int64(1), nil, int64(2), int64(3)} {
				if got := results[i]; got.Reply != want || (got.Err != nil) != (i == 1) || i == 1 && !script.Answered(got.Err) {
					t.Errorf("call %d: %+v, want %v", i, got, want)
				}
			}
			if results := s.RunMany(ctx, rdb, nil); len(results) != 0 {
				t.Errorf("no calls: %v", results)
			}

			proxy.LoseReplies(1, key)
			for i, got := range s.RunMany(ctx, rdb, calls(key, "d", "e")) {
				if got.Err == nil || script.Answered(got.Err) {
					t.Errorf("call %d: %+v although its reply was lost", i, got)
				}
			}
			want := []string{"a", "b", "c", "d", "e"}
			if diff := cmp.Diff(want, direct.LRange(ctx, key, 0, -1).Val()); diff != "" {
				t.Errorf("carried out (-want +got):\n%s", diff)
			}
		})
	}
}
