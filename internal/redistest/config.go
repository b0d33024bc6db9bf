package redistest

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Config says what kind of server a test wants. The zero value is a server on a loopback port without persistence,
// limits or passwords.
type Config struct {
	// AppendOnly keeps every acknowledged write over Kill and Restart: an append-only file, written before each reply.
	// It is left to the kernel when that reaches the disk, for kernels don't crash here and the main thread of a Redis
	// that syncs before each reply stands still for seconds beside a compiler. (Redis's default, once a second, may hold
	// a write back while it syncs and lose it with the process.)
	AppendOnly bool

	// MaxMemory is the limit in bytes, with the policy noeviction: a full server refuses writes. 0 is no limit.
	MaxMemory int64

	// User and Password close the server to everyone else. A Password without a User belongs to Redis's default user.
	User, Password string

	// Rules are the ACL rules of User in Redis's notation, "~* &* +@all" when empty.
	Rules string

	// TLS closes the plain port and speaks TLS on Server.Addr, to clients that show a certificate of the server's own
	// throw-away authority: Server.ClientFiles.
	TLS bool

	// UnixSocket makes the server listen on a socket in its directory too; Server.URL then names the socket.
	UnixSocket bool

	// Directives are appended to redis.conf, one a line ("notify-keyspace-events KEA").
	Directives []string

	kind kind
}

// kind is what the process is for.
type kind int

const (
	standalone kind = iota
	clusterNode
	sentinel // a redis-server run with --sentinel
)

// conf renders redis.conf for the server s.
func (c Config) conf(s *Server) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }

	line("bind 127.0.0.1")
	line("dir %s", s.dir)
	line("daemonize no")
	if c.TLS {
		line("port 0")
		line("tls-port %d", s.port)
		line("tls-cert-file %s", s.files.serverCert)
		line("tls-key-file %s", s.files.serverKey)
		line("tls-ca-cert-file %s", s.files.CAFile)
		line("tls-auth-clients yes")
	} else {
		line("port %d", s.port)
	}
	if c.kind != sentinel {
		c.data(s, line)
	}
	for _, d := range c.Directives {
		line("%s", d)
	}
	return b.String()
}

// data renders what concerns servers that hold data.
func (c Config) data(s *Server, line func(string, ...any)) {
	line(`save ""`)
	line("appendonly %s", yesNo(c.AppendOnly))
	line("appendfsync no")
	line("auto-aof-rewrite-percentage 0") // see Server.Writes
	line("maxmemory %d", c.MaxMemory)
	line("maxmemory-policy noeviction")
	if c.UnixSocket {
		line("unixsocket %s", socketPath(s.dir))
		line("unixsocketperm 700")
	}
	line("user %s on >%s ~* &* +@all", adminUser, s.adminPassword)
	switch {
	case c.User != "":
		rules := c.Rules
		if rules == "" {
			rules = "~* &* +@all"
		}
		line("user default off")
		line("user %s on >%s %s", c.User, c.Password, rules)
	case c.Password != "":
		line("requirepass %s", c.Password)
	}
	if c.kind == clusterNode {
		line("cluster-enabled yes")
		line("cluster-port %d", s.busPort)
		line("cluster-node-timeout 2000")
	}
	// Else a primary waits five seconds for more replicas before it syncs the first.
	line("repl-diskless-sync-delay 0")
}

func yesNo(v bool) string {
	if v {
		return "yes"
	}
	return "no"
}

func socketPath(dir string) string { return filepath.Join(dir, "redis.sock") }
