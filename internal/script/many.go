package script

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// errNoReply is the error of a call whose reply never came, where the connection gave no other.
var errNoReply = errors.New("no reply from Redis")

// Call is the keys and arguments of one run among many.
type Call struct {
	Keys []string
	Args []any
}

// Result is what came of one Call, as Run answers it.
type Result struct {
	Reply any
	Err   error
}

// RunMany runs the script for each call, in this order and in one round trip, each at most once; commands of others may
// come in between. All keys must be of one cluster slot. The first call carries the source, so that the server knows it
// for the others; if it forgets it in between, the rest are answered with NOSCRIPT.
func (s Script) RunMany(ctx context.Context, rdb redis.UniversalClient, calls []Call) []Result {
	cmds := make([]once, len(calls))
	_, err := rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, c := range calls {
			verb, script := "evalsha", s.sha
			if i == 0 {
				verb, script = "eval", s.source
			}
			cmds[i] = command(ctx, verb, script, c.Keys, c.Args)
			_ = p.Process(ctx, cmds[i]) // only queues it
		}
		return nil
	})
	results := make([]Result, len(calls))
	for i, cmd := range cmds {
		reply, own := cmd.Result()
		switch {
		case own != nil:
			results[i].Err = own
		case reply != nil:
			results[i].Reply = reply
		case err != nil && !Answered(err):
			results[i].Err = err
		default:
			results[i].Err = errNoReply
		}
	}
	return results
}
