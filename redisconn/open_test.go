package redisconn

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/queuehook/queuehook/config"
)

// essentials are what must be so on every client, whatever the URL says.
type essentials struct {
	Retries, Dials, Pipeline int
	Obeys, Anonymous         bool
	Maintenance              maintnotifications.Mode
}

func TestURLCannotUndoWhatMatters(t *testing.T) {
	t.Parallel()
	const greedy = "?max_retries=7&pool_size=3&read_timeout=-1&min_idle_conns=5&max_active_conns=1&pipeline_pool_size=9"
	want := essentials{-1, 1, -1, true, true, maintnotifications.ModeDisabled}
	for name, cfg := range map[string]config.Redis{
		"single":   {URL: "redis://h" + greedy},
		"failover": {URL: "redis://h" + greedy + "&master_name=m"},
		"cluster":  {URL: "redis://h" + greedy, Cluster: true},
	} {
		conn, err := OpenAll(cfg, 20)
		if err != nil {
			t.Fatal(err)
		}
		sizes := map[string]int{}
		for purpose, rdb := range map[string]redis.UniversalClient{
			"commands": conn.Commands, "waits": conn.Waits, "beats": conn.Beats,
		} {
			opt := options(rdb)
			got := essentials{
				opt.MaxRetries, opt.DialerRetries, opt.PipelinePoolSize, opt.ContextTimeoutEnabled, opt.DisableIdentity,
				opt.MaintNotificationsConfig.Mode,
			}
			// Client options show what go-redis made of them: 0 retries after -1 was asked for.
			if got.Retries == 0 {
				got.Retries = -1
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s %s (-want +got):\n%s", name, purpose, diff)
			}
			if opt.ReadTimeout <= time.Second || opt.MinIdleConns != 0 || opt.MaxActiveConns != 0 {
				t.Errorf("%s %s: read timeout %s, %d idle, %d active at most", name, purpose, opt.ReadTimeout,
					opt.MinIdleConns, opt.MaxActiveConns)
			}
			sizes[purpose] = opt.PoolSize
		}
		if diff := cmp.Diff(map[string]int{"commands": 3, "waits": 20, "beats": 8}, sizes); diff != "" {
			t.Errorf("%s: pool sizes (-want +got):\n%s", name, diff)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestFromClientDerivesSiblings(t *testing.T) {
	t.Parallel()
	for name, rdb := range map[string]redis.UniversalClient{
		"single":   redis.NewClient(&redis.Options{Addr: "h:1", Password: "sesame", DB: 3}),
		"failover": redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{"h:1"}, Password: "sesame"}),
		"cluster":  redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"h:1"}, Password: "sesame"}),
	} {
		conn := FromClient(rdb)
		if conn.Commands != rdb || conn.Waits == rdb || conn.Beats == rdb || conn.Waits == conn.Beats {
			t.Errorf("%s: waits and beats have no clients of their own", name)
		}
		before, after := options(rdb), options(conn.Waits)
		if after.Addr != before.Addr || after.Password != "sesame" || after.DB != before.DB {
			t.Errorf("%s: the sibling has other options", name)
		}
		if after.PoolSize != manyRoutes || before.PoolSize == manyRoutes {
			t.Errorf("%s: pool sizes %d and %d", name, before.PoolSize, after.PoolSize)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		if err := rdb.Close(); err != nil {
			t.Errorf("%s: Close closed the caller's client: %v", name, err)
		}
	}
}

func TestFromClientOfAnotherKind(t *testing.T) {
	t.Parallel()
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "h:1"}})
	conn := FromClient(ring)
	if conn.Commands != redis.UniversalClient(ring) || conn.Waits != conn.Commands || conn.Beats != conn.Commands {
		t.Error("a client of unknown kind must serve all purposes")
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	if err := ring.Close(); err != nil {
		t.Errorf("Close closed the caller's client: %v", err)
	}
}

// options reads a client's options; those of a cluster as far as this test looks at them.
func options(rdb redis.UniversalClient) redis.Options {
	switch client := rdb.(type) {
	case *redis.Client:
		return *client.Options()
	case *redis.ClusterClient:
		o := client.Options()
		return redis.Options{
			Addr: o.Addrs[0], Password: o.Password,
			MaxRetries: o.MaxRetries, DialerRetries: o.DialerRetries, PipelinePoolSize: o.PipelinePoolSize,
			ContextTimeoutEnabled: o.ContextTimeoutEnabled, DisableIdentity: o.DisableIdentity,
			MaintNotificationsConfig: o.MaintNotificationsConfig, ReadTimeout: o.ReadTimeout,
			MinIdleConns: o.MinIdleConns, MaxActiveConns: o.MaxActiveConns, PoolSize: o.PoolSize,
		}
	}
	return redis.Options{}
}
