package redisconn_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/queuehook/queuehook/config"
	"github.com/queuehook/queuehook/internal/localca"
	"github.com/queuehook/queuehook/internal/redistest"
	"github.com/queuehook/queuehook/redisconn"
)

func TestMain(m *testing.M) {
	redisconn.LogTo(slog.New(slog.DiscardHandler))
	os.Exit(redistest.Main(m))
}

func at(url string) config.Redis { return config.Redis{URL: config.Secret(url)} }

func open(t *testing.T, cfg config.Redis) redis.UniversalClient {
	t.Helper()
	rdb, err := redisconn.Open(cfg, redisconn.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

func check(t *testing.T, cfg config.Redis) error {
	t.Helper()
	return redisconn.Check(t.Context(), open(t, cfg), "orders")
}

func TestCheckLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Config{})
	if err := check(t, at(s.URL())); err != nil {
		t.Fatal(err)
	}
	if n := s.Admin(t).DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("Check left %d keys", n)
	}
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Config{User: "alice", Password: "sesame"})
	good := at(s.URL())
	override := at("redis://nobody:nothing@" + s.Addr())
	override.Username, override.Password = "alice", "sesame"
	for name, cfg := range map[string]config.Redis{"from the URL": good, "overriding the URL's": override} {
		if err := check(t, cfg); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, url := range map[string]string{
		"none": "redis://" + s.Addr(), "wrong": "redis://alice:hunter2@" + s.Addr(), "wrong, with a database": "redis://alice:hunter2@" + s.Addr() + "/3",
	} {
		err := check(t, at(url))
		if !errors.Is(err, redisconn.ErrCredentials) {
			t.Errorf("%s: %v, want ErrCredentials", name, err)
		}
		hides(t, err)
	}
}

// TestEveryCommandOfTheScriptsIsChecked denies the user each command that a script calls, one at a time.
func TestEveryCommandOfTheScriptsIsChecked(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Config{User: "alice", Password: "sesame"})
	rdb := open(t, at(s.URL()))
	commands := scriptCommands(t)
	if len(commands) < 20 {
		t.Fatalf("the scripts call %v only: they are read wrongly", commands)
	}
	for command := range commands {
		if command == "LMOVE" {
			continue // of the sweep of redutil's lists only, which tells by itself
		}
		if err := s.Admin(t).Do(t.Context(), "ACL", "SETUSER", "alice", "+@all", "-"+command).Err(); err != nil {
			t.Fatal(err)
		}
		err := redisconn.Check(t.Context(), rdb, "orders")
		if !errors.Is(err, redisconn.ErrPermission) || !strings.HasSuffix(err.Error(), ": "+command) {
			t.Errorf("without %s: Check = %v, want it named", command, err)
		}
	}
}

// scriptCommands are the commands that the scripts call.
func scriptCommands(t *testing.T) map[string]bool {
	t.Helper()
	scripts, err := filepath.Glob("../*/lua/*.lua")
	if err != nil {
		t.Fatal(err)
	}
	called := regexp.MustCompile(`redis\.p?call\(\s*(?:'([A-Z]+)')?`)
	commands := map[string]bool{}
	for _, script := range scripts {
		text, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		for _, call := range called.FindAllSubmatch(text, -1) {
			if len(call[1]) == 0 {
				t.Errorf("%s calls a command whose name does not stand there", script)
			}
			commands[string(call[1])] = true
		}
	}
	return commands
}

func TestPermissionsAreNamed(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Config{
		User: "alice", Password: "sesame", Rules: "~orders* ~{orders}* +@all -hset -blmove -config -info",
	})
	rdb := open(t, at(s.URL()))
	err := redisconn.Check(t.Context(), rdb, "orders")
	if !errors.Is(err, redisconn.ErrPermission) || !strings.HasSuffix(err.Error(), ": the key queuehook:queues HSET BLMOVE") {
		t.Errorf("Check = %v, want what is missing", err)
	}
	hides(t, err)
	if got := redisconn.Warnings(t.Context(), rdb); got != nil {
		t.Errorf("Warnings without the right to ask: %q, want none", got)
	}

	s = redistest.Start(t, redistest.Config{
		User: "alice", Password: "sesame", Rules: "~orders* ~{orders}* ~queuehook:queues +@all -@dangerous -@admin",
	})
	if err := check(t, at(s.URL())); err != nil {
		t.Errorf("a user of one queue without dangerous commands: %v", err)
	}
	if refused, err := s.Admin(t).ACLLog(t.Context(), 10).Result(); err != nil || len(refused) > 0 {
		t.Errorf("Redis wrote down that he was refused: %+v, %v", refused, err)
	}
	err = redisconn.Check(t.Context(), open(t, at(s.URL())), "thumbs")
	if !errors.Is(err, redisconn.ErrPermission) || !strings.HasSuffix(err.Error(), `: the keys of queue "thumbs"`) {
		t.Errorf("Check of another queue = %v, want its keys named", err)
	}
}

// TestSelectIsNamed denies SELECT, which comes before every other command, and only for a database other than 0.
func TestSelectIsNamed(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Config{User: "alice", Password: "sesame", Rules: "~* +@all -config -select"})
	err := check(t, at(strings.TrimSuffix(s.URL(), "0")+"1"))
	if !errors.Is(err, redisconn.ErrPermission) || !strings.HasSuffix(err.Error(), ": SELECT") {
		t.Errorf("Check = %v, want SELECT named", err)
	}
	hides(t, err)
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]config.Redis{
		"nobody listens":    at("redis://alice:hunter2@" + freeAddr(t)),
		"TLS, nobody":       at("rediss://alice:hunter2@" + freeAddr(t)),
		"no socket":         at("unix://alice:hunter2@" + filepath.Join(t.TempDir(), "none.sock")),
		"no sentinel":       at("redis://alice:hunter2@" + freeAddr(t) + "?master_name=m"),
		"no cluster":        {URL: config.Secret("redis://alice:hunter2@" + freeAddr(t)), Cluster: true},
		"answers with junk": at("redis://alice:hunter2@" + listen(t, "HTTP/1.1 400 Bad Request\r\n\r\n")),
	} {
		err := check(t, cfg)
		if !errors.Is(err, redisconn.ErrUnreachable) {
			t.Errorf("%s: %v, want ErrUnreachable", name, err)
		}
		hides(t, err)
	}
}

func TestFrozenServerIsGivenUp(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Config{})
	s.Pause(t)
	defer s.Continue(t)
	rdb, err := redisconn.Open(at(s.URL()+"?read_timeout=100ms"), redisconn.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rdb.Close() }()
	if err := redisconn.Check(t.Context(), rdb, "orders"); !errors.Is(err, redisconn.ErrUnreachable) {
		t.Errorf("Check of a frozen server = %v, want ErrUnreachable", err)
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	ca, err := localca.New()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	caFile := filepath.Join(dir, "ca.crt")
	if err := os.WriteFile(caFile, ca.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	serverCert, serverKey := issue(t, ca, dir, "server")
	clientCert, clientKey := issue(t, ca, dir, "client")
	secure := freeAddr(t)
	_, port, _ := net.SplitHostPort(secure)
	s := redistest.Start(t, redistest.Config{Directives: []string{
		"tls-port " + port, "tls-cert-file " + serverCert, "tls-key-file " + serverKey, "tls-ca-cert-file " + caFile,
	}})

	full := config.Redis{URL: config.Secret("rediss://" + secure), CAFile: caFile, CertFile: clientCert, KeyFile: clientKey}
	if err := check(t, full); err != nil {
		t.Errorf("with authority and client certificate: %v", err)
	}
	conn, err := redisconn.OpenAll(full, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Beats.Ping(t.Context()).Err(); err != nil {
		t.Errorf("Beats: %v", err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}

	unknown := config.Redis{URL: full.URL, CertFile: clientCert, KeyFile: clientKey}
	if err := check(t, unknown); !errors.Is(err, redisconn.ErrTLS) || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("an authority nobody knows: %v", err)
	}
	err = check(t, at("redis://"+secure))
	if !errors.Is(err, redisconn.ErrTLS) || !strings.Contains(err.Error(), "rediss://") {
		t.Errorf("plain text to a TLS port: %v", err)
	}
	err = check(t, config.Redis{URL: config.Secret("rediss://" + s.Addr() + "?dial_timeout=200ms"), CAFile: caFile})
	if !errors.Is(err, redisconn.ErrTLS) || !strings.Contains(err.Error(), "redis://") {
		t.Errorf("TLS to a plain port: %v", err)
	}
}

func TestWrongKind(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	if err := check(t, config.Redis{URL: config.Secret(s.URL()), Cluster: true}); !errors.Is(err, redisconn.ErrKind) {
		t.Errorf("cluster mode on one server: %v, want ErrKind", err)
	}
	clustered := redistest.Start(t, redistest.Config{Directives: []string{"cluster-enabled yes"}})
	if err := check(t, at(clustered.URL())); !errors.Is(err, redisconn.ErrKind) {
		t.Errorf("a cluster without cluster mode: %v, want ErrKind", err)
	}
	_, port, _ := net.SplitHostPort(s.Addr())
	replica := redistest.Start(t, redistest.Config{Directives: []string{"replicaof 127.0.0.1 " + port}})
	if err := check(t, at(replica.URL())); !errors.Is(err, redisconn.ErrKind) {
		t.Errorf("a replica: %v, want ErrKind", err)
	}
	for name, c := range map[string]struct{ options, says string }{
		"a server in the place of its Sentinels": {"/0?master_name=m", "no Sentinel answers; leave master_name out of the URL"},
		"a database that there is not":           {"/99", "it has no database of the URL's number"},
	} {
		err := check(t, at("redis://"+s.Addr()+c.options))
		if !errors.Is(err, redisconn.ErrKind) || !strings.HasSuffix(err.Error(), ": "+c.says) {
			t.Errorf("%s: %v, want ErrKind: %s", name, err, c.says)
		}
	}
}

func TestTooOld(t *testing.T) {
	t.Parallel()
	hello := "*6\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n6.0.9\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n"
	for name, answer := range map[string]string{"6.0 says so": hello, "5 knows no HELLO": "-ERR unknown command `hello`\r\n"} {
		if err := check(t, at("redis://"+listen(t, answer))); !errors.Is(err, redisconn.ErrTooOld) {
			t.Errorf("%s: %v, want ErrTooOld", name, err)
		}
	}
}

func TestWarnsOfEviction(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Config{})
	rdb := open(t, at(s.URL()))
	if got := redisconn.Warnings(t.Context(), rdb); len(got) != 0 {
		t.Errorf("Warnings = %q, want none", got)
	}
	for policy, want := range map[string]string{
		"allkeys-lru":     "deletes tasks; ",
		"allkeys-random":  "deletes tasks; ",
		"volatile-lru":    "; no tasks; ",
		"volatile-ttl":    "; no tasks; ",
		"volatile-random": "; no tasks; ",
	} {
		if err := s.Admin(t).ConfigSet(t.Context(), "maxmemory-policy", policy).Err(); err != nil {
			t.Fatal(err)
		}
		got := redisconn.Warnings(t.Context(), rdb)
		if len(got) != 1 || !strings.HasPrefix(got[0], "maxmemory-policy is "+policy+": ") || !strings.Contains(got[0], want) {
			t.Errorf("Warnings = %q, want the policy, and %q", got, want)
		}
	}
}

func TestUnixSocket(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Config{UnixSocket: true, Password: "sesame"})
	if err := check(t, at(s.URL())); err != nil {
		t.Error(err)
	}
}

func TestBadURLsShowNothing(t *testing.T) {
	t.Parallel()
	for _, cfg := range []config.Redis{
		at("redis://alice:hunter2@host:port"),
		at("redis://alice:hunter2@host/db"),
		at("redis://alice:hunter2@host/?alice=hunter2"),
		at("hunter2://alice@host"),
		at("redis://alice:hunter2@host?master_name=m&replica_only=true"),
		{URL: "redis://alice:hunter2@host?addr=hunter2", Cluster: true},
		{URL: "redis://alice:hunter2@host?route_randomly=true", Cluster: true},
		{URL: "redis://alice:hunter2@host", CAFile: "ca.pem"},
		{URL: "rediss://alice:hunter2@host", CAFile: "does-not-exist.pem"},
	} {
		_, err := redisconn.OpenAll(cfg, 1)
		if err == nil {
			t.Errorf("%s: accepted", string(cfg.URL))
		}
		hides(t, err)
	}
}

// hides fails the test when an error shows a user name or a password.
func hides(t *testing.T, err error) {
	t.Helper()
	for _, secret := range []string{"hunter2", "alice", "sesame"} {
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("error tells %q: %v", secret, err)
		}
	}
}

func issue(t *testing.T, ca *localca.CA, dir, name string) (certFile, keyFile string) {
	t.Helper()
	pair, err := ca.Issue(localca.Leaf{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	if certFile, keyFile, err = pair.Write(dir, name); err != nil {
		t.Fatal(err)
	}
	return certFile, keyFile
}

func freeAddr(t *testing.T) string {
	t.Helper()
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(ln.Addr().(*net.TCPAddr).Port)) //nolint:forcetypeassert // a TCP listener
}

// listen is the address of a server that gives each connection the same answer to whatever it sends.
func listen(t *testing.T, answer string) string {
	t.Helper()
	ln, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
				for buf := make([]byte, 4096); ; {
					if _, err := conn.Read(buf); err != nil {
						return
					}
					if _, err := fmt.Fprint(conn, answer); err != nil {
						return
					}
				}
			}()
		}
	}()
	return ln.Addr().String()
}
