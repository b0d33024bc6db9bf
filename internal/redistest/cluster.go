package redistest

import (
	"context"
	"net/url"
	"os/exec"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Cluster is a Redis Cluster of primaries without replicas. Its nodes may be killed, paused and started like any
// Server; a cluster with a missing node refuses everything (CLUSTERDOWN).
type Cluster struct {
	Nodes []*Server
}

// StartCluster runs a cluster of n nodes, 3 at least, for t and returns once all of them serve. It takes some seconds.
func StartCluster(t testing.TB, n int) *Cluster {
	t.Helper()
	cli, err := lookPath("redis-cli")
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{}
	for range n {
		c.Nodes = append(c.Nodes, Start(t, Config{kind: clusterNode}))
	}
	args := append([]string{"--cluster", "create"}, c.Addrs()...)
	args = append(args, "--cluster-replicas", "0", "--cluster-yes")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, cli, args...).CombinedOutput() //nolint:gosec // our own arguments
	if err != nil {
		t.Fatalf("create cluster: %v\n%s", err, out)
	}
	if !poll(ctx, func() bool { return c.serves(ctx) }) {
		t.Fatalf("cluster does not serve after %s\n%s", patience, c.Nodes[0].Log())
	}
	return c
}

// serves reports whether every node sees all slots covered and all nodes connected.
func (c *Cluster) serves(ctx context.Context) bool {
	for _, n := range c.Nodes {
		rdb := redis.NewClient(n.adminOptions())
		info, err := rdb.ClusterInfo(ctx).Result()
		nodes, err2 := rdb.ClusterNodes(ctx).Result()
		_ = rdb.Close()
		if err != nil || err2 != nil || !strings.Contains(info, "cluster_state:ok") ||
			strings.Count(nodes, " connected ") != len(c.Nodes) {
			return false
		}
	}
	return true
}

// Addrs are the nodes' addresses.
func (c *Cluster) Addrs() []string {
	addrs := make([]string, len(c.Nodes))
	for i, n := range c.Nodes {
		addrs[i] = n.Addr()
	}
	return addrs
}

// URL names the nodes as redis.ParseClusterURL and DISPATCHER_REDIS_URL take them.
func (c *Cluster) URL() string {
	u := url.URL{Scheme: "redis", Host: c.Nodes[0].Addr(), RawQuery: url.Values{"addr": c.Addrs()[1:]}.Encode()}
	return u.String()
}

// Options are a fresh copy of what a client needs. Redirections are followed, other failures are not retried.
func (c *Cluster) Options() *redis.ClusterOptions {
	return &redis.ClusterOptions{
		Addrs:                    c.Addrs(),
		MaxRetries:               -1,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

// Client is closed when t ends.
func (c *Cluster) Client(t testing.TB) *redis.ClusterClient {
	t.Helper()
	rdb := redis.NewClusterClient(c.Options())
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// Migration is one slot on its way from one node to another.
type Migration struct {
	Slot     int
	From, To *Server
	cluster  *Cluster
	toID     string
}

// Migrate starts to move key's slot to a node that does not own it. From here on, From answers ASK for keys that it
// lacks, and TRYAGAIN when it has only some of a command's keys.
func (c *Cluster) Migrate(t testing.TB, key string) *Migration {
	t.Helper()
	m := &Migration{cluster: c}
	slot, err := c.Nodes[0].Admin(t).ClusterKeySlot(t.Context(), key).Result()
	if err != nil {
		t.Fatalf("find slot of %q: %v", key, err)
	}
	m.Slot = int(slot)
	for _, n := range c.Nodes {
		// A node owns the slot if it does not redirect.
		err := n.Admin(t).Exists(t.Context(), key).Err()
		switch {
		case err == nil:
			m.From = n
		case strings.HasPrefix(err.Error(), "MOVED "):
			m.To = n
		default:
			t.Fatalf("find owner of %q: %v", key, err)
		}
	}
	if m.From == nil || m.To == nil {
		t.Fatalf("slot %d has no owner or no other node", m.Slot)
	}
	fromID := id(t, m.From)
	m.toID = id(t, m.To)
	m.setSlot(t, m.To, "IMPORTING", fromID)
	m.setSlot(t, m.From, "MIGRATING", m.toID)
	return m
}

// Move moves up to n keys of the slot and returns how many.
func (m *Migration) Move(t testing.TB, n int) int {
	t.Helper()
	from := m.From.Admin(t)
	keys, err := from.ClusterGetKeysInSlot(t.Context(), m.Slot, n).Result()
	if err != nil {
		t.Fatalf("list keys of slot %d: %v", m.Slot, err)
	}
	for _, k := range keys {
		host, port, _ := strings.Cut(m.To.Addr(), ":")
		if err := from.Migrate(t.Context(), host, port, k, 0, patience).Err(); err != nil {
			t.Fatalf("move key %q: %v", k, err)
		}
	}
	return len(keys)
}

// Finish moves the rest and hands the slot over. Clients learn of it by MOVED.
func (m *Migration) Finish(t testing.TB) {
	t.Helper()
	const batch = 100
	for moved := batch; moved > 0; {
		moved = m.Move(t, batch)
	}
	// The new owner first: then no node believes that nobody owns the slot.
	m.setSlot(t, m.To, "NODE", m.toID)
	m.setSlot(t, m.From, "NODE", m.toID)
	for _, n := range m.cluster.Nodes {
		if n != m.To && n != m.From {
			m.setSlot(t, n, "NODE", m.toID)
		}
	}
}

func (m *Migration) setSlot(t testing.TB, on *Server, state, nodeID string) {
	t.Helper()
	err := on.Admin(t).Do(t.Context(), "CLUSTER", "SETSLOT", m.Slot, state, nodeID).Err()
	if err != nil {
		t.Fatalf("set slot %d %s: %v", m.Slot, state, err)
	}
}

func id(t testing.TB, n *Server) string {
	t.Helper()
	got, err := n.Admin(t).ClusterMyID(t.Context()).Result()
	if err != nil {
		t.Fatalf("read node id: %v", err)
	}
	return got
}
