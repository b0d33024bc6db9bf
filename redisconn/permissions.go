package redisconn

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/queuehook/queuehook/keyspace"
)

// nobody is the id of a dispatcher that there never is.
const nobody = ":check"

// trial is a command that passes the check of permissions and then does nothing: it reads, takes from a key that is not
// there, or has an argument that only the command itself refuses.
type trial []any

func trials(queue keyspace.Keys) []trial {
	none := queue.Hook(nobody)
	return []trial{
		{"ping"},
		{"time"},
		{"evalsha", strings.Repeat("0", 40), 0},
		{"eval", "return 1", 0},
		{"smembers", keyspace.Queues},
		{"type", none},
		{"exists", none},
		{"scan", 0, "match", none, "count", 1},
		{"del", none},
		{"get", none},
		{"set", none, "", "px", 0},
		{"hget", none, "f"},
		{"hmget", none, "f"},
		{"hexists", none, "f"},
		{"hgetall", none},
		{"hkeys", none},
		{"hlen", none},
		{"hrandfield", none, 1},
		{"hstrlen", none, "f"},
		{"hscan", none, 0},
		{"hset", none, "f", "v", "one too many"},
		{"hincrby", none, "f", "no number"},
		{"hdel", none, "f"},
		{"lindex", none, 0},
		{"llen", queue.Source},
		{"rpop", none},
		{"blmove", none, none, "right", "left", "no number"},
		{"zadd", none, "no number", "m"},
		{"zcard", none},
		{"zcount", none, 0, 0},
		{"zrange", none, 0, 0},
		{"zrangebyscore", none, 0, 0},
		{"zrem", none, "m"},
		{"zscan", none, 0},
		{"zscore", none, "m"},
	}
}

// checkPermissions tries every command that queuehook sends, from scripts or not. It names the commands that the user may
// not send and the keys that it may not touch: those of this queue, and the one that all queues share. It tries no other
// key, since Redis would note the refusal in its ACL LOG. (SADD is left out, since it has no harmless form, and so is
// LMOVE, which only the sweep of redutil's lists needs.)
func checkPermissions(ctx context.Context, rdb redis.UniversalClient, queue string) error {
	keys, err := keyspace.New(queue)
	if err != nil {
		return err
	}
	var cmds []*redis.Cmd
	_, err = rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		all := trials(keys)
		if _, cluster := rdb.(*redis.ClusterClient); cluster {
			all = append(all, trial{"asking"}) // while a slot moves
		}
		for _, t := range all {
			cmds = append(cmds, p.Do(ctx, t...))
		}
		return nil
	})
	var missing []string
	ownKeys := false // those of the queue are denied
	for _, cmd := range cmds {
		switch err := cmd.Err(); {
		case denied(err, cmd.Name()):
			missing = append(missing, strings.ToUpper(cmd.Name()))
		case redis.HasErrorPrefix(err, "NOPERM") && slices.Contains(cmd.Args(), any(keyspace.Queues)):
			missing = append(missing, "the key "+keyspace.Queues)
		case redis.HasErrorPrefix(err, "NOPERM"):
			ownKeys = true
		case redis.IsReadOnlyError(err):
			return fmt.Errorf("%w: a read-only replica answers; name the primary", ErrKind)
		case redis.HasErrorPrefix(err, "unknown command"):
			return fmt.Errorf("%w: it has no %s", ErrTooOld, strings.ToUpper(cmd.Name()))
		case refused(err):
			return ErrCredentials
		}
	}
	if ownKeys {
		missing = append(missing, "the keys of queue "+strconv.Quote(queue))
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: %s", ErrPermission, strings.Join(missing, " "))
	}
	if _, answered := err.(redis.Error); err != nil && !answered { //nolint:errorlint // a wrapped one is of the connection
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return nil
}

// denied reports whether the user may not send the command at all. Redis has the same code for that and for a key that
// may not be touched; only in the first case does its text quote the command.
func denied(err error, command string) bool {
	return redis.HasErrorPrefix(err, "NOPERM") && quotes(err, command)
}

// quotes reports whether Redis's answer names the command. Before 7.0 it quoted what it did not know in another way.
func quotes(err error, command string) bool {
	return strings.Contains(err.Error(), "'"+command) || strings.Contains(err.Error(), "`"+command)
}
