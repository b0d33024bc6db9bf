package script

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// errNoReply is the error of a call whose reply never came, where the connection gave no other.
var errNoReply = errors.New("no reply from Redis")

// Call is the keys and arguments of one of many runs.
type Call struct {
	Keys []string
	Args []any
}

// Result is what came of one Call, as Run answers it.
type Result struct {
	Reply any
	Err   error
}

// RunMany carries the script out for each call, in their order and in one round trip, each once at most; others may
// come in between. All keys are of one cluster slot. The source goes along with the first call, so that the
// server knows it for the others; were it to forget it in the midst, NOSCRIPT would be the answer to the rest.
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
