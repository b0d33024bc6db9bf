package redistest

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// MasterName is what the sentinels call the primary.
const MasterName = "queuehook"

// Sentinel is a primary with one replica, watched by three sentinels of which two must agree. A primary that is gone
// for two seconds is replaced in about two more.
type Sentinel struct {
	Nodes     []*Server // the two that hold data
	Sentinels []*Server
}

// StartSentinel runs all five for t, with append-only files, and returns once a failover would succeed. It takes some
// seconds.
func StartSentinel(t testing.TB) *Sentinel {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()

	primary := Start(t, Config{AppendOnly: true})
	replica := Start(t, Config{AppendOnly: true, Directives: []string{"replicaof " + spaced(primary.Addr())}})
	s := &Sentinel{Nodes: []*Server{primary, replica}}
	// A sentinel that starts before the replica is online learns of it ten seconds later.
	admin := primary.Admin(t)
	if !poll(ctx, func() bool {
		return strings.Contains(admin.Info(ctx, "replication").Val(), "state=online")
	}) {
		t.Fatalf("replica is not online after %s\n%s", patience, replica.Log())
	}
	for range 3 {
		s.Sentinels = append(s.Sentinels, startSentinel(t, primary.Addr()))
	}
	if !poll(ctx, func() bool { return s.ready(ctx, primary.Addr()) }) {
		t.Fatalf("sentinels are not ready after %s\n%s", patience, s.Sentinels[0].Log())
	}
	return s
}

// startSentinel runs one sentinel, with its clocks sped up where it can (7.0). By default it asks a node for its role
// every ten seconds, so that long would a demoted primary go on; and it pings once in down-after, so that a small one
// declares a node dead that it has just begun to watch. The ping period must not be small either: once the primary is
// gone, a replica is good enough to take its place only within five periods of its last INFO, and INFO comes once a
// second.
func startSentinel(t testing.TB, primary string) *Server {
	t.Helper()
	n := Start(t, Config{kind: sentinel, Directives: []string{
		fmt.Sprintf("sentinel monitor %s %s 2", MasterName, spaced(primary)),
		fmt.Sprintf("sentinel down-after-milliseconds %s 2000", MasterName),
		fmt.Sprintf("sentinel failover-timeout %s 3000", MasterName),
	}})
	err := n.Admin(t).Do(t.Context(), "SENTINEL", "DEBUG", "info-period", 200, "ping-period", 500,
		"publish-period", 200, "tilt-trigger", 10_000).Err()
	if err != nil {
		t.Logf("this sentinel keeps its slow clocks: %v", err)
	}
	return n
}

// spaced writes an address as Redis's directives do: host port.
func spaced(addr string) string { return strings.Replace(addr, ":", " ", 1) }

// ready reports whether every sentinel names addr as the primary, sees it up with one good replica, and knows the
// other sentinels.
func (s *Sentinel) ready(ctx context.Context, addr string) bool {
	for _, n := range s.Sentinels {
		c := redis.NewSentinelClient(n.adminOptions())
		m, err := c.Master(ctx, MasterName).Result()
		replicas, err2 := c.Replicas(ctx, MasterName).Result()
		_ = c.Close()
		if err != nil || err2 != nil || m["ip"]+":"+m["port"] != addr || m["flags"] != "master" ||
			m["num-other-sentinels"] != "2" || len(replicas) != 1 || replicas[0]["flags"] != "slave" ||
			replicas[0]["master-link-status"] != "ok" {
			return false
		}
	}
	return true
}

// Addrs are the sentinels' addresses.
func (s *Sentinel) Addrs() []string {
	addrs := make([]string, len(s.Sentinels))
	for i, n := range s.Sentinels {
		addrs[i] = n.Addr()
	}
	return addrs
}

// URL names the sentinels as redis.ParseFailoverURL and DISPATCHER_REDIS_URL take them.
func (s *Sentinel) URL() string {
	q := url.Values{"addr": s.Addrs()[1:], "master_name": {MasterName}}
	u := url.URL{Scheme: "redis", Host: s.Sentinels[0].Addr(), Path: "/0", RawQuery: q.Encode()}
	return u.String()
}

// Options are a fresh copy of what a client needs. No command is sent twice.
func (s *Sentinel) Options() *redis.FailoverOptions {
	return &redis.FailoverOptions{
		MasterName:      MasterName,
		SentinelAddrs:   s.Addrs(),
		MaxRetries:      -1,
		DisableIdentity: true,
	}
}

// Client follows the primary and is closed when t ends.
func (s *Sentinel) Client(t testing.TB) *redis.Client {
	t.Helper()
	return closing(t, redis.NewFailoverClient(s.Options()))
}

// Primary is the node that the first sentinel calls the primary.
func (s *Sentinel) Primary(t testing.TB) *Server {
	t.Helper()
	addr, err := s.named(t.Context(), s.Sentinels[0])
	if err != nil {
		t.Fatalf("ask for the primary: %v", err)
	}
	return s.node(t, addr)
}

func (s *Sentinel) named(ctx context.Context, by *Server) (string, error) {
	c := redis.NewSentinelClient(by.adminOptions())
	defer func() { _ = c.Close() }()
	pair, err := c.GetMasterAddrByName(ctx, MasterName).Result()
	if err != nil {
		return "", err
	}
	return strings.Join(pair, ":"), nil
}

func (s *Sentinel) node(t testing.TB, addr string) *Server {
	t.Helper()
	for _, n := range s.Nodes {
		if n.Addr() == addr {
			return n
		}
	}
	t.Fatalf("no node has the address %s", addr)
	return nil
}

// Failover makes the sentinels swap the nodes' roles, both being alive, and returns the new primary once all agree and
// the old one follows it. Writes that the old primary took last may be lost, as ever. Sentinels may give a failover up,
// and turn one back when the new primary is slow to answer: it is ordered again then.
func (s *Sentinel) Failover(t testing.TB) *Server {
	t.Helper()
	old := s.Primary(t)
	c := redis.NewSentinelClient(s.Sentinels[0].adminOptions())
	defer func() { _ = c.Close() }()
	return s.awaitOther(t, old, func(ctx context.Context, now *Server) bool {
		if s.ready(ctx, old.Addr()) {
			_ = c.Failover(ctx, MasterName).Err() // INPROG while one is under way
		}
		return s.ready(ctx, now.Addr())
	})
}

// KillPrimary ends the primary as a crash does and returns the node that takes its place, once all sentinels agree and
// it takes writes. The dead one may be started again and becomes the replica: see AwaitReplica.
func (s *Sentinel) KillPrimary(t testing.TB) *Server {
	t.Helper()
	old := s.Primary(t)
	old.Kill(t)
	return s.awaitOther(t, old, s.agreed)
}

// AwaitReplica returns once the node that is not the primary follows it, so that the next failover would succeed.
func (s *Sentinel) AwaitReplica(t testing.TB) {
	t.Helper()
	primary := s.Primary(t).Addr()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	if !poll(ctx, func() bool { return s.ready(ctx, primary) }) {
		t.Fatalf("no replica follows %s after %s\n%s", primary, 2*patience, s.Sentinels[0].Log())
	}
}

// awaitOther waits until done says that the node that is not old is the primary.
func (s *Sentinel) awaitOther(t testing.TB, old *Server, done func(context.Context, *Server) bool) *Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	now := s.Nodes[0]
	if now == old {
		now = s.Nodes[1]
	}
	if !poll(ctx, func() bool { return done(ctx, now) }) {
		t.Fatalf("no failover after %s\n%s", 2*patience, s.Sentinels[0].Log())
	}
	return now
}

// agreed reports whether all sentinels name n, and n takes writes.
func (s *Sentinel) agreed(ctx context.Context, n *Server) bool {
	for _, by := range s.Sentinels {
		if addr, err := s.named(ctx, by); err != nil || addr != n.Addr() {
			return false
		}
	}
	c := redis.NewClient(n.adminOptions())
	defer func() { _ = c.Close() }()
	return strings.Contains(c.Info(ctx, "replication").Val(), "role:master")
}
