package redisconn

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/queuehook/queuehook/keyspace"
)

// scratch is a key that never exists.
const scratch = keyspace.Queues + ":check"

// trial is a command that reaches the check of permissions and then does nothing: it reads, takes from a key that is
// not there, or has an argument that only the command itself refuses.
type trial []any

func trials() []trial {
	return []trial{
		{"ping"},
		{"time"},
		{"evalsha", strings.Repeat("0", 40), 0},
		{"eval", "return 1", 0},
		{"smembers", keyspace.Queues},
		{"type", scratch},
		{"exists", scratch},
		{"scan", 0, "match", scratch, "count", 1},
		{"del", scratch},
		{"get", scratch},
		{"set", scratch, "", "px", 0},
		{"hget", scratch, "f"},
		{"hmget", scratch, "f"},
		{"hexists", scratch, "f"},
		{"hgetall", scratch},
		{"hkeys", scratch},
		{"hlen", scratch},
		{"hrandfield", scratch, 1},
		{"hstrlen", scratch, "f"},
		{"hscan", scratch, 0},
		{"hset", scratch, "f", "v", "one too many"},
		{"hincrby", scratch, "f", "no number"},
		{"hdel", scratch, "f"},
		{"lindex", scratch, 0},
		{"llen", scratch},
		{"rpop", scratch},
		{"blmove", scratch, scratch, "right", "left", "no number"},
		{"zadd", scratch, "no number", "m"},
		{"zcard", scratch},
		{"zcount", scratch, 0, 0},
		{"zrange", scratch, 0, 0},
		{"zrangebyscore", scratch, 0, 0},
		{"zrem", scratch, "m"},
		{"zscan", scratch, 0},
		{"zscore", scratch, "m"},
	}
}

// checkPermissions tries every command that queuehook sends, from scripts or not, and names those that the user may
// not send. Of the keys it asks for the one that all queues share: which queues there are is not known here. (SADD is left
// out: it has no harmless form. So is LMOVE, which only the sweep of redutil's lists needs.)
func checkPermissions(ctx context.Context, rdb redis.UniversalClient) error {
	var cmds []*redis.Cmd
	_, err := rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		all := trials()
		if _, cluster := rdb.(*redis.ClusterClient); cluster {
			all = append(all, trial{"asking"}) // while a slot moves
		}
		for _, t := range all {
			cmds = append(cmds, p.Do(ctx, t...))
		}
		return nil
	})
	var missing []string
	for _, cmd := range cmds {
		switch err := cmd.Err(); {
		case denied(err, cmd.Name()):
			missing = append(missing, strings.ToUpper(cmd.Name()))
		case redis.HasErrorPrefix(err, "NOPERM") && cmd.Args()[1] == keyspace.Queues:
			missing = append(missing, "the key "+keyspace.Queues)
		case redis.IsReadOnlyError(err):
			return fmt.Errorf("%w: a read-only replica answers; name the primary", ErrKind)
		case redis.HasErrorPrefix(err, "unknown command"):
			return fmt.Errorf("%w: it has no %s", ErrTooOld, strings.ToUpper(cmd.Name()))
		case refused(err):
			return ErrCredentials
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: %s", ErrPermission, strings.Join(missing, " "))
	}
	if _, answered := err.(redis.Error); err != nil && !answered { //nolint:errorlint // a wrapped one is of the connection
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return nil
}

// denied reports whether the user may not send the command at all. Redis has one code for that and for a key that he may
// not touch; its text quotes the command in the first case only.
func denied(err error, command string) bool {
	return redis.HasErrorPrefix(err, "NOPERM") && strings.Contains(err.Error(), "'"+command)
}
