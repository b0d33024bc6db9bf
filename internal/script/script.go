// Package script sends Lua scripts to Redis in such a way that only the caller ever repeats one.
//
// go-redis repeats a command by itself after a lost reply. A script that was carried out once would then be carried out
// twice, and the caller would see only the second reply: a lease would leave tasks behind that nobody knows of.
package script

import (
	"context"
	"crypto/sha1" //nolint:gosec // the name that EVALSHA gives to a script, no protection
	"encoding/hex"
	"errors"

	"github.com/redis/go-redis/v9"
)

// Script is one Lua script.
type Script struct {
	source, sha string
}

// New returns the script with this source.
func New(source string) Script {
	sum := sha1.Sum([]byte(source)) //nolint:gosec // see the import
	return Script{source: source, sha: hex.EncodeToString(sum[:])}
}

// Run carries the script out once at most. The source is sent only when the server does not know it: that answer says
// that nothing was carried out. See Answered for what an error means.
func (s Script) Run(ctx context.Context, rdb redis.UniversalClient, keys []string, args ...any) (any, error) {
	reply, err := send(ctx, rdb, "evalsha", s.sha, keys, args)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		reply, err = send(ctx, rdb, "eval", s.source, keys, args)
	}
	return reply, err
}

// Answered tells an error that Redis answered, so that the script had no effect, from one of the connection, after
// which the script may have been carried out.
func Answered(err error) bool {
	var answer redis.Error
	return errors.As(err, &answer)
}

func send(ctx context.Context, rdb redis.UniversalClient, verb, script string, keys []string, args []any) (any, error) {
	cmd := command(ctx, verb, script, keys, args)
	err := rdb.Process(ctx, cmd)
	if err != nil {
		return nil, err
	}
	return cmd.Result()
}

func command(ctx context.Context, verb, script string, keys []string, args []any) once {
	words := make([]any, 0, 3+len(keys)+len(args))
	words = append(words, verb, script, len(keys))
	for _, key := range keys {
		words = append(words, key)
	}
	words = append(words, args...)
	cmd := once{redis.NewCmd(ctx, words...)}
	if len(keys) > 0 {
		cmd.SetFirstKeyPos(3)
	}
	return cmd
}

// once is a command that go-redis must not repeat, neither its client nor its cluster client.
type once struct{ *redis.Cmd }

// NoRetry is what go-redis asks before it repeats a command.
func (once) NoRetry() bool { return true }
