package redistest_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/queuehook/queuehook/internal/redistest"
)

func TestTLS(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Config{TLS: true, User: "dispatcher", Password: "secret", AppendOnly: true})
	if err := s.Client(t).Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}

	// What a user does: the URL and the three files.
	o, err := redis.ParseURL(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	files := s.ClientFiles()
	cert, err := tls.LoadX509KeyPair(files.CertFile, files.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(files.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	o.TLSConfig.RootCAs = x509.NewCertPool()
	if !o.TLSConfig.RootCAs.AppendCertsFromPEM(ca) {
		t.Fatal("no certificate in the CA file")
	}
	o.MaxRetries, o.DialerRetries, o.DisableIdentity = -1, 1, true

	bare := *o
	bare.TLSConfig = o.TLSConfig.Clone()
	refused := redis.NewClient(&bare)
	defer func() { _ = refused.Close() }()
	if err := refused.Ping(t.Context()).Err(); err == nil {
		t.Error("PING without a client certificate answered")
	}

	o.TLSConfig.Certificates = []tls.Certificate{cert}
	c := redis.NewClient(o)
	defer func() { _ = c.Close() }()
	if got := c.Get(t.Context(), "k").Val(); got != "v" {
		t.Errorf("GET through URL and files = %q, want v", got)
	}

	s.Restart(t)
	if got, err := s.Client(t).Get(t.Context(), "k").Result(); got != "v" || err != nil {
		t.Errorf("GET after Restart = %q, %v, want v", got, err)
	}

	plain := redis.NewClient(&redis.Options{Addr: s.Addr(), MaxRetries: -1, DialerRetries: 1})
	defer func() { _ = plain.Close() }()
	if err := plain.Ping(t.Context()).Err(); err == nil {
		t.Error("PING without TLS answered")
	}
}

func TestCluster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3)
	o, err := redis.ParseClusterURL(c.URL())
	if err != nil {
		t.Fatal(err)
	}
	o.DisableIdentity = true
	rdb := redis.NewClusterClient(o)
	defer func() { _ = rdb.Close() }()

	for i := range 100 {
		if err := rdb.Set(t.Context(), fmt.Sprintf("k%d", i), i, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for i, n := range c.Nodes {
		if size := n.Admin(t).DBSize(t.Context()).Val(); size == 0 {
			t.Errorf("node %d holds no key: the slots are not spread", i)
		}
	}

	const tag = "{orders}"
	for i := range 10 {
		if err := rdb.Set(t.Context(), fmt.Sprintf("%s%d", tag, i), "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	m := c.Migrate(t, tag)
	if n := m.Move(t, 4); n != 4 {
		t.Errorf("moved %d keys, want 4", n)
	}
	if err := m.From.Client(t).Set(t.Context(), tag+"new", "v", 0).Err(); err == nil || !strings.HasPrefix(err.Error(), "ASK ") {
		t.Errorf("a new key amid the migration = %v, want ASK", err)
	}
	// The keys are on several nodes, so no node can serve them all.
	keys := make([]string, 10)
	for i := range keys {
		keys[i] = fmt.Sprintf("%s%d", tag, i)
	}
	err = m.From.Client(t).MGet(t.Context(), keys...).Err()
	if err == nil || !strings.HasPrefix(err.Error(), "TRYAGAIN") {
		t.Errorf("MGET amid the migration = %v, want TRYAGAIN", err)
	}
	m.Finish(t)
	if err := m.From.Client(t).Get(t.Context(), keys[0]).Err(); err == nil || !strings.HasPrefix(err.Error(), "MOVED ") {
		t.Errorf("the old owner = %v, want MOVED", err)
	}
	if err := rdb.MGet(t.Context(), keys...).Err(); err != nil {
		t.Errorf("MGET after the migration: %v", err)
	}
	if got := c.Client(t).Get(t.Context(), keys[9]).Val(); got != "v" {
		t.Errorf("GET after the migration = %q, want v", got)
	}
}

func TestSentinel(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t)
	o, err := redis.ParseFailoverURL(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	o.DisableIdentity = true
	rdb := redis.NewFailoverClient(o)
	defer func() { _ = rdb.Close() }()

	write := func(v string) {
		t.Helper()
		// The client learns of a failover from the sentinels and may meet the old primary before.
		deadline := time.Now().Add(20 * time.Second)
		for rdb.Set(t.Context(), "k", v, 0).Err() != nil {
			if time.Now().After(deadline) {
				t.Fatal("no write succeeded")
			}
			<-time.After(20 * time.Millisecond)
		}
	}
	replicated := func(on *redistest.Server, v string) {
		t.Helper()
		deadline := time.Now().Add(20 * time.Second)
		for on.Admin(t).Get(t.Context(), "k").Val() != v {
			if time.Now().After(deadline) {
				t.Fatalf("%s did not reach %s", v, on.Addr())
			}
			<-time.After(20 * time.Millisecond)
		}
	}

	first := s.Primary(t)
	write("one")
	for _, n := range s.Nodes {
		replicated(n, "one")
	}
	second := s.Failover(t)
	if second == first || s.Primary(t) != second {
		t.Fatalf("primary after Failover is %s, was %s", s.Primary(t).Addr(), first.Addr())
	}
	write("two")
	replicated(first, "two")

	third := s.KillPrimary(t)
	if third != first {
		t.Errorf("primary after KillPrimary is %s, want %s", third.Addr(), first.Addr())
	}
	write("three")
	second.Start(t)
	s.AwaitReplica(t)
	replicated(second, "three")
}
