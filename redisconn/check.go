package redisconn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// checkFor bounds a whole Check.
const checkFor = 8 * time.Second

// What can be wrong with a Redis. The texts are for whoever set the URL.
var (
	ErrUnreachable = errors.New("Redis can't be reached")
	ErrCredentials = errors.New("Redis refuses the user name or the password, or wants one")
	ErrTLS         = errors.New("TLS with Redis failed")
	ErrTooOld      = errors.New("this Redis is too old: queuehook needs 6.2 or later")
	ErrKind        = errors.New("this is another kind of Redis than configured")
	ErrPermission  = errors.New("the Redis user lacks a permission")
)

// Check finds out, within 8 seconds, whether queuehook can work with this Redis, and changes nothing there. It tries
// what the Redis user may do with the keys of one queue, which should be one that is served. Its errors wrap one of this
// package's sentinels where the cause is known, and hold neither user name nor password. A client that was not made by
// this package must have ContextTimeoutEnabled for the bound to hold.
func Check(ctx context.Context, rdb redis.UniversalClient, queue string) error {
	ctx, cancel := context.WithTimeout(ctx, checkFor)
	defer cancel()
	if err := Reach(ctx, rdb); err != nil {
		return err
	}
	if err := checkPermissions(ctx, rdb, queue); err != nil {
		return fmt.Errorf("check Redis: %w", err)
	}
	return nil
}

// Reach is the first part of Check: it finds out whether a Redis of the right kind and age answers and lets the user in,
// but not which commands it may send. That suits a program that needs few of them.
func Reach(ctx context.Context, rdb redis.UniversalClient) error {
	ctx, cancel := context.WithTimeout(ctx, checkFor)
	defer cancel()
	if err := reach(ctx, rdb); err != nil {
		return fmt.Errorf("check Redis: %w", err)
	}
	return nil
}

// reach reads what the server says of itself. HELLO is allowed to every user.
func reach(ctx context.Context, rdb redis.UniversalClient) error {
	hello := redis.NewCmd(ctx, "hello")
	if err := rdb.Process(ctx, hello); err != nil {
		return explain(ctx, rdb, err)
	}
	about := pairs(hello.Val())
	_, cluster := rdb.(*redis.ClusterClient)
	switch mode := about["mode"]; {
	case mode == "sentinel":
		return fmt.Errorf("%w: a Sentinel answers; name its primary with ?master_name= in the URL", ErrKind)
	case mode == "cluster" && !cluster:
		return fmt.Errorf("%w: a Redis Cluster answers; switch cluster mode on (REDIS_CLUSTER)", ErrKind)
	case about["server"] == "redis" && older(about["version"], 6, 2):
		return fmt.Errorf("%w, this one is %s", ErrTooOld, about["version"])
	}
	return nil
}

// explain says in an operator's words what a failed first command means.
func explain(ctx context.Context, rdb redis.UniversalClient, err error) error {
	var unverified *tls.CertificateVerificationError
	var answer redis.Error
	_, cluster := rdb.(*redis.ClusterClient)
	switch {
	case refused(err):
		return ErrCredentials // without the reply, which may name the user
	case redis.IsLoadingError(err):
		return fmt.Errorf("%w: it still loads its data", ErrUnreachable)
	case redis.IsClusterDownError(err):
		return fmt.Errorf("%w: its cluster is down", ErrUnreachable)
	case redis.HasErrorPrefix(err, "NOPERM"):
		return fmt.Errorf("%w: %s", ErrPermission, withheld(err))
	case redis.HasErrorPrefix(err, "unknown command") && quotes(err, "sentinel"):
		return fmt.Errorf("%w: no Sentinel answers; leave master_name out of the URL", ErrKind)
	case redis.HasErrorPrefix(err, "unknown command"):
		return ErrTooOld
	case redis.HasErrorPrefix(err, "DB index"):
		return fmt.Errorf("%w: it has no database of the URL's number", ErrKind)
	case cluster && errors.As(err, &answer):
		return fmt.Errorf("%w: no cluster answers; switch cluster mode off (REDIS_CLUSTER)", ErrKind)
	case errors.As(err, &unverified), alerted(err):
		return fmt.Errorf("%w: %w", ErrTLS, err)
	}
	if addr, withTLS, ok := target(rdb); ok {
		if mismatch := probe(ctx, addr, withTLS); mismatch != nil {
			return mismatch
		}
	}
	return fmt.Errorf("%w: %w", ErrUnreachable, err)
}

// withheld names the command that the user may not send, of those that come before all others.
func withheld(err error) string {
	for _, command := range []string{"hello", "select", "sentinel"} {
		if denied(err, command) {
			return strings.ToUpper(command)
		}
	}
	return "CLUSTER SLOTS"
}

// alerted reports whether the server ended the connection with a TLS alert: it wants a client certificate, or another.
func alerted(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error" // crypto/tls's own word
}

// refused reports whether the reply is one to wrong or missing credentials.
func refused(err error) bool {
	return redis.IsAuthError(err) || redis.HasErrorPrefix(err, "WRONGPASS") || redis.HasErrorPrefix(err, "NOAUTH")
}

// Warnings returns what works but is unwise, as far as the Redis user may see it.
func Warnings(ctx context.Context, rdb redis.UniversalClient) []string {
	ctx, cancel := context.WithTimeout(ctx, checkFor)
	defer cancel()
	info := redis.NewStringCmd(ctx, "info", "memory")
	if err := rdb.Process(ctx, info); err != nil {
		return nil
	}
	var warnings []string
	for line := range strings.Lines(info.Val()) {
		policy, found := strings.CutPrefix(strings.TrimSpace(line), "maxmemory_policy:")
		if found && policy != "noeviction" {
			warnings = append(warnings, "maxmemory-policy is "+policy+": a full Redis then deletes "+evicted(policy)+
				"; set it to noeviction")
		}
	}
	return warnings
}

// evicted returns what Redis deletes of a queue when it is full.
func evicted(policy string) string {
	if strings.HasPrefix(policy, "volatile-") {
		return "keys that expire: of queuehook's those of deduplication, so that a duplicate is accepted, and those of " +
			"a dead dispatcher's hooks, so that they may run twice; no tasks"
	}
	return "tasks"
}

// pairs reads a reply of names and values as RESP2 (a list) or RESP3 (a map) sends it; values that are no text are left
// out.
func pairs(reply any) map[string]string {
	all := map[string]string{}
	put := func(k, v any) {
		name, nameOK := k.(string)
		value, valueOK := v.(string)
		if nameOK && valueOK {
			all[name] = value
		}
	}
	switch reply := reply.(type) {
	case map[any]any:
		for k, v := range reply {
			put(k, v)
		}
	case []any:
		for i := 0; i+1 < len(reply); i += 2 {
			put(reply[i], reply[i+1])
		}
	}
	return all
}

// older compares the first two numbers of a version; one that can't be read is not older.
func older(version string, major, minor int) bool {
	first, rest, _ := strings.Cut(version, ".")
	second, _, _ := strings.Cut(rest, ".")
	a, errA := strconv.Atoi(first)
	b, errB := strconv.Atoi(second)
	if errA != nil || errB != nil {
		return false
	}
	return a < major || a == major && b < minor
}
