package chaos

import (
	"testing"

	"github.com/queuehook/queuehook/internal/faultproxy"
	"github.com/queuehook/queuehook/internal/fleet"
	"github.com/queuehook/queuehook/internal/receiver"
	"github.com/queuehook/queuehook/internal/redistest"
)

// Site is the kind of Redis that a trial has.
type Site string

// One server behind proxies; a primary whose replica takes over; a cluster that moves the queue's slot.
const (
	Alone     Site = "one server"
	Sentinels Site = "sentinels"
	Cluster   Site = "cluster"
)

// many is a Redis that consists of several servers.
type many struct {
	sentinel *redistest.Sentinel
	cluster  *redistest.Cluster
	queue    string
	dead     *redistest.Server    // the primary that was killed
	moving   *redistest.Migration // of the queue's slot
}

// build starts the site's servers and makes the queue.
func (tr *trial) build() {
	t, cfg := tr.t, receiver.Config{LogLimit: logLimit}
	switch tr.site {
	case Sentinels:
		tr.many.sentinel = redistest.StartSentinel(t)
		tr.queue = fleet.NewQueueOn(t, tr.many.sentinel.Client(t), cfg)
		tr.queue.Undone("failover")
	case Cluster:
		tr.many.cluster = redistest.StartCluster(t, 3)
		tr.queue = fleet.NewQueueOn(t, tr.many.cluster.Client(t), cfg)
		tr.queue.Undone("what a dispatcher held when it was killed could not be asked for")
	default:
		tr.server = redistest.Start(t, redistest.Config{AppendOnly: true})
		tr.queue = fleet.NewQueue(t, tr.server, cfg)
	}
	tr.many.queue = tr.queue.Name
	for i := range tr.slots {
		tr.slots[i] = new(slot)
		if tr.server != nil {
			tr.slots[i].proxy = faultproxy.Start(t, tr.server.Addr())
		}
	}
}

// redis is the setting with which a program reaches Redis, through a slot's proxy or directly.
func (tr *trial) redis(s *slot) []string {
	switch {
	case tr.site == Sentinels:
		return []string{"REDIS_URL=" + tr.many.sentinel.URL()}
	case tr.site == Cluster:
		return []string{"REDIS_URL=" + tr.many.cluster.URL(), "REDIS_CLUSTER=true"}
	case s != nil:
		return []string{"REDIS_URL=redis://" + s.proxy.Addr() + "/0"}
	}
	return []string{"REDIS_URL=" + tr.server.URL()}
}

// begin returns when a failover is done, or a slot is on its way.
func (m *many) begin(t testing.TB, f Fault) {
	switch f.Kind {
	case Failover:
		m.sentinel.Failover(t)
	case Takeover:
		m.dead = m.sentinel.Primary(t)
		m.sentinel.KillPrimary(t)
	default:
		m.moving = m.cluster.Migrate(t, m.queue)
		m.moving.Move(t, 1+int(f.Draw*4)) // some of a script's keys are here, some there
	}
}

func (m *many) over(t testing.TB, f Fault) {
	switch f.Kind {
	case Takeover:
		m.dead.Start(t) // and is the replica
		m.sentinel.AwaitReplica(t)
	case SlotMoves:
		m.moving.Finish(t)
	default:
	}
}

// prefixed gives settings the prefix of a program.
func prefixed(prefix string, env []string) []string {
	all := make([]string, len(env))
	for i, entry := range env {
		all[i] = prefix + entry
	}
	return all
}
