package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/queuehook/queuehook/config"
	"github.com/queuehook/queuehook/internal/fleet"
	"github.com/queuehook/queuehook/internal/localca"
	"github.com/queuehook/queuehook/internal/receiver"
	"github.com/queuehook/queuehook/internal/redistest"
	"github.com/queuehook/queuehook/redisconn"
)

const (
	interval = 500 * time.Millisecond
	beats    = "HEARTBEAT_INTERVAL=500ms"
)

// prefixed gives settings the prefix of a program.
func prefixed(prefix string, env ...string) []string {
	all := make([]string, len(env))
	for i, entry := range env {
		all[i] = prefix + entry
	}
	return all
}

// serves drives everything that the programs do with Redis: deliver, fail, die, recover in both ways, stop, look.
func serves(t *testing.T, q *fleet.Queue, env ...string) {
	t.Helper()
	const tasks = 300
	q.Receiver.SetScript(receiver.Fraction(1, 0.2, 500, 204))
	settings := append([]string{beats, "CONCURRENCY=8"}, env...)
	q.PushN(t, tasks)
	victim := fleet.StartDispatcher(t, "", fleet.Routes(q), settings...)
	q.AwaitRequests(t, 20)
	q.Receiver.SetScript(receiver.Always(receiver.Never()))
	q.PushN(t, 8)
	q.AwaitInFlight(t, 8)
	if held := q.Crash(t, victim); len(held) == 0 {
		t.Error("nobody holds a task")
	}
	fleet.Pass(3 * interval) // its time runs out
	code, _, log := fleet.Run(t, fleet.Janitor, nil, prefixed("JANITOR_", append([]string{"GRACE=500ms"}, env...)...))
	if code != 0 {
		t.Errorf("janitor: exit code %d\n%s", code, log)
	}
	if d := q.Depth(t); d.InFlight != 0 {
		t.Errorf("%d tasks in flight after the janitor's run, want none", d.InFlight)
	}
	q.Receiver.SetScript(nil)
	heir := fleet.StartDispatcher(t, "", fleet.Routes(q), settings...)
	q.AwaitDrained(t)
	for _, args := range [][]string{
		{"queues"},
		{"enqueue", q.Name, "--data", "by hand"},
		{"dead", "list", q.Name},
		{"pause", q.Name},
		{"resume", q.Name},
		{"sweep", q.Name, "--grace", "1ms"},
	} {
		code, _, log := fleet.Run(t, fleet.Dispatcher, args, prefixed("DISPATCHER_", env...))
		if code != 0 {
			t.Errorf("dispatcher %q: exit code %d\n%s", args, code, log)
		}
	}
	q.Offered([]byte("by hand"), nil)
	q.AwaitDrained(t)
	heir.Stop(t)
	if log := heir.Log(); strings.Contains(log, "NOPERM") {
		t.Errorf("a permission is missing:\n%s", log)
	}
	q.Law(t)
}

func TestTLS(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Config{TLS: true, User: "dispatcher", Password: "sesame"})
	files := server.ClientFiles()
	serves(t, fleet.NewQueue(t, server, receiver.Config{}), "REDIS_URL="+server.URL(),
		"REDIS_CA_FILE="+files.CAFile, "REDIS_CERT_FILE="+files.CertFile, "REDIS_KEY_FILE="+files.KeyFile)
}

func TestUnixSocket(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Config{UnixSocket: true})
	serves(t, fleet.NewQueue(t, server, receiver.Config{}), "REDIS_URL="+server.URL())
}

// TestUserOfREADME runs as a Redis user who may do exactly what the README names.
func TestUserOfREADME(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Config{})
	q := fleet.NewQueueOn(t, server.Admin(t), receiver.Config{})
	grant(t, server, q.Name)
	serves(t, q, "REDIS_URL=redis://queuehook:secret@"+server.Addr())
	if refused, err := server.Admin(t).ACLLog(t.Context(), 10).Result(); err != nil || len(refused) > 0 {
		t.Errorf("he was refused something: %+v, %v", refused, err)
	}
}

// grant makes the README's Redis user for this queue, with further rules.
func grant(t *testing.T, server *redistest.Server, queue string, more ...string) {
	t.Helper()
	rules := append(aclOfREADME(t, queue), more...)
	args := make([]any, 0, 3+len(rules))
	args = append(args, "acl", "setuser", "queuehook")
	for _, rule := range rules {
		args = append(args, rule)
	}
	if err := server.Admin(t).Do(t.Context(), args...).Err(); err != nil {
		t.Fatal(err)
	}
}

// aclOfREADME is the rules that the README names, for this queue instead of its example.
func aclOfREADME(t *testing.T, queue string) []string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "ACL SETUSER queuehook ")
	rules, _, ended := strings.Cut(rest, "\n\n")
	if !found || !ended {
		t.Fatal("the README names no ACL user")
	}
	return strings.Fields(strings.NewReplacer("orders", queue).Replace(rules))
}

// TestEachPermissionIsNeeded takes each command away from that user, and each key: the check at the start names it.
func TestEachPermissionIsNeeded(t *testing.T) {
	t.Parallel()
	// Those that are needed for a warning only, and those that cannot be tried without writing.
	untried := map[string]bool{"info|memory": true, "sadd": true}
	server := redistest.Start(t, redistest.Config{})
	rdb, err := redisconn.Open(config.Redis{URL: config.Secret("redis://queuehook:secret@" + server.Addr())}, redisconn.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rdb.Close() }()
	grant(t, server, "orders")
	if err := redisconn.Check(t.Context(), rdb, "orders"); err != nil {
		t.Fatalf("the README's user: %v", err)
	}
	for _, rule := range aclOfREADME(t, "orders") {
		command, ok := strings.CutPrefix(rule, "+")
		if !ok || untried[command] {
			continue
		}
		grant(t, server, "orders", "-"+command)
		err := redisconn.Check(t.Context(), rdb, "orders")
		if !errors.Is(err, redisconn.ErrPermission) || !strings.Contains(err.Error(), " "+strings.ToUpper(command)) {
			t.Errorf("without %s: %v, want it named", command, err)
		}
	}
}

// TestStartErrors starts the program with mistakes that only people can put right.
func TestStartErrors(t *testing.T) {
	t.Parallel()
	plain := redistest.Start(t, redistest.Config{User: "dispatcher", Password: "sesame"})
	secure := redistest.Start(t, redistest.Config{TLS: true})
	limited := redistest.Start(t, redistest.Config{User: "dispatcher", Password: "sesame", Rules: "~* +@all -hset -blmove"})
	clustered := redistest.Start(t, redistest.Config{Directives: []string{"cluster-enabled yes"}})
	files := secure.ClientFiles()
	fleet.Run(t, fleet.Dispatcher, []string{"version"}, nil) // it is built now
	certificate := []string{"REDIS_CERT_FILE=" + files.CertFile, "REDIS_KEY_FILE=" + files.KeyFile}
	for name, c := range map[string]struct {
		env  []string
		says string
	}{
		"plain text to a TLS port": {[]string{"REDIS_URL=redis://" + secure.Addr()}, "rediss://"},
		"TLS to a plain port":      {[]string{"REDIS_URL=rediss://" + plain.Addr()}, "redis://"},
		"wrong authority": {
			append([]string{"REDIS_URL=" + secure.URL(), "REDIS_CA_FILE=" + otherCA(t)}, certificate...), "unknown authority",
		},
		"no client certificate": {[]string{"REDIS_URL=" + secure.URL(), "REDIS_CA_FILE=" + files.CAFile}, "certificate required"},
		"wrong password":        {[]string{"REDIS_URL=redis://dispatcher:hunter2@" + plain.Addr()}, "password"},
		"no password":           {[]string{"REDIS_URL=redis://" + plain.Addr()}, "password"},
		"missing permission":    {[]string{"REDIS_URL=" + limited.URL()}, "HSET BLMOVE"},
		"a cluster":             {[]string{"REDIS_URL=" + clustered.URL()}, "REDIS_CLUSTER"},
		"no cluster":            {[]string{"REDIS_URL=" + plain.URL(), "REDIS_CLUSTER=true"}, "REDIS_CLUSTER"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := append([]string{"ROUTES=orders=http://127.0.0.1:9/", "ADMIN_ADDR="}, c.env...)
			began := time.Now()
			code, _, log := fleet.Run(t, fleet.Dispatcher, nil, prefixed("DISPATCHER_", env...))
			took := time.Since(began)
			if code == 0 || !strings.Contains(log, c.says) || strings.Contains(log, "hunter2") || strings.Contains(log, "sesame") {
				t.Errorf("exit code %d, want a failure that tells %q and no secret\n%s", code, c.says, log)
			}
			if took > 20*time.Second { // half of it for a busy machine
				t.Errorf("it took %s, want less than 10s", took)
			}
		})
	}
}

func otherCA(t *testing.T) string {
	t.Helper()
	ca, err := localca.New()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, ca.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestEvictionIsWarnedOf(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Config{})
	if err := server.Admin(t).ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lru").Err(); err != nil {
		t.Fatal(err)
	}
	q := fleet.NewQueue(t, server, receiver.Config{})
	d := fleet.StartDispatcher(t, server.URL(), fleet.Routes(q))
	d.Stop(t)
	warned := d.Logged("redis configuration")
	if len(warned) != 1 || warned[0]["level"] != "WARN" || !strings.Contains(fmt.Sprint(warned[0]["warning"]), "allkeys-lru") {
		t.Errorf("warnings %v, want one of the policy", warned)
	}
	q.Law(t)
}

// offering offers payloads until the returned function is called, which waits until it has stopped.
func offering(t *testing.T, offer func(context.Context, []byte) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ctx.Err() == nil; n++ {
			one, done := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
			_ = offer(one, fmt.Appendf(nil, `{"offer":%d}`, n)) // its outcome is on the queue's record
			done()
			<-tick.C
		}
	})
	return func() {
		cancel()
		all.Wait()
	}
}

// TestClusterSlotMoves moves the queue's slot to another node twice: key by key while the queue is busy, and while it
// is idle. The dispatchers run as the README's Redis user.
func TestClusterSlotMoves(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	q := fleet.NewQueueOn(t, cluster.Client(t), receiver.Config{
		Script: receiver.Always(receiver.Status(204).After(2 * time.Millisecond)),
	})
	for _, node := range cluster.Nodes {
		grant(t, node, q.Name, "+cluster|slots", "+asking")
	}
	u, err := url.Parse(cluster.URL())
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("queuehook", "secret")
	env := []string{"REDIS_URL=" + u.String(), "REDIS_CLUSTER=true"}
	var dispatchers []*fleet.Server
	for range 2 {
		dispatchers = append(dispatchers, fleet.StartDispatcher(t, "", fleet.Routes(q), append(env, beats)...))
	}
	stop := offering(t, q.Offer)
	q.AwaitRequests(t, 100)
	busy := cluster.Migrate(t, q.Name)
	for moved := 1; moved > 0; {
		fleet.Pass(100 * time.Millisecond) // some of a script's keys are here, some there
		moved = busy.Move(t, 1)
	}
	before := q.Receiver.Count()
	busy.Finish(t)
	q.AwaitRequests(t, before+100)
	stop()
	q.AwaitDrained(t)

	fleet.Pass(time.Second)
	idle := cluster.Migrate(t, q.Name)
	fleet.Pass(time.Second)
	idle.Finish(t)
	before = q.Receiver.Count()
	q.PushN(t, 100)
	q.AwaitRequests(t, before+100)
	q.AwaitDrained(t)
	code, out, log := fleet.Run(t, fleet.Janitor, nil, prefixed("JANITOR_", env...))
	if code != 0 || !strings.Contains(out, q.Name) {
		t.Errorf("janitor: exit code %d, %s\n%s", code, out, log)
	}
	for _, d := range dispatchers {
		d.Stop(t)
		if strings.Contains(d.Log(), "NOPERM") {
			t.Errorf("a permission is missing:\n%s", d.Log())
		}
	}
	q.Law(t)
}

// TestSentinelFailover kills the primary under load. Producers count a task as pushed when the replica has it, since
// what only the primary had is lost with it, as the documentation says.
func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	sentinel := redistest.StartSentinel(t)
	q := fleet.NewQueueOn(t, sentinel.Client(t), receiver.Config{Script: receiver.Always(receiver.Status(204).After(2 * time.Millisecond))})
	q.Undone("failover")
	var dispatchers []*fleet.Server
	for range 2 {
		dispatchers = append(dispatchers, fleet.StartDispatcher(t, sentinel.URL(), fleet.Routes(q), beats))
	}
	stop := offering(t, q.OfferSafely)
	q.AwaitRequests(t, 100)
	old := sentinel.Primary(t)
	sentinel.KillPrimary(t)
	old.Start(t) // and is a replica
	sentinel.AwaitReplica(t)
	q.AwaitRequests(t, q.Receiver.Count()+100)
	stop()
	q.AwaitDrained(t)
	for _, d := range dispatchers {
		d.AwaitReady(t)
		d.Stop(t)
	}
	q.Law(t)
}
