package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/queuehook/queuehook/internal/redistest"
	"github.com/queuehook/queuehook/redisconn"
)

func TestMain(m *testing.M) {
	redisconn.LogTo(slog.New(slog.DiscardHandler))
	os.Exit(redistest.Main(m))
}

// environment points the program at a Redis and, by default, at no route and no admin address. Other DISPATCHER_
// variables are unset: they are settings of whoever runs the tests.
func environment(t *testing.T, url string, more ...string) {
	t.Helper()
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "DISPATCHER_") {
			t.Setenv(name, "") // restores the old value at the end
			if err := os.Unsetenv(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Setenv("DISPATCHER_REDIS_URL", url)
	t.Setenv("DISPATCHER_ADMIN_ADDR", "")
	for _, set := range more {
		name, value, _ := strings.Cut(set, "=")
		t.Setenv("DISPATCHER_"+name, value)
	}
}

// said is what a run of the program printed and how it ended.
type said struct {
	code     int
	out, err string
}

// call runs the program in this process, without a terminal.
func call(t *testing.T, args ...string) said {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(t.Context(), t.Context(), args, stdio{in: strings.NewReader(""), out: &out, err: &errs})
	return said{code, out.String(), errs.String()}
}

// answer runs the program on a terminal where somebody types this.
func answer(t *testing.T, typed string, args ...string) said {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(t.Context(), t.Context(), args, stdio{
		in: strings.NewReader(typed), out: &out, err: &errs, asks: true, shows: true,
	})
	return said{code, out.String(), errs.String()}
}

// ok fails the test unless the program exited with 0 and wrote nothing to standard error.
func ok(t *testing.T, s said) string {
	t.Helper()
	if s.code != exitOK || s.err != "" {
		t.Fatalf("exit %d, standard error %q, standard output %q", s.code, s.err, s.out)
	}
	return s.out
}

// fails fails the test unless the program exited with this code and wrote one line that contains all of parts.
func fails(t *testing.T, s said, code int, parts ...string) {
	t.Helper()
	if s.code != code || strings.Count(s.err, "\n") != 1 || !strings.HasPrefix(s.err, "dispatcher: ") {
		t.Errorf("exit %d, standard error %q; want %d and one line", s.code, s.err, code)
	}
	for _, part := range parts {
		if !strings.Contains(s.err, part) {
			t.Errorf("standard error %q, want %q in it", s.err, part)
		}
	}
	if s.out != "" {
		t.Errorf("standard output %q beside an error", s.out)
	}
}

// nobody is an address where nobody listens.
func nobody(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func TestUnknownCommands(t *testing.T) {
	environment(t, "redis://"+nobody(t))
	fails(t, call(t, "runn"), exitUsage, `unknown command "runn"; did you mean run?`)
	fails(t, call(t, "xyzzy"), exitUsage, `unknown command "xyzzy"; see dispatcher --help`)
	fails(t, call(t, "run", "now"), exitUsage, `unexpected argument "now"`)
	fails(t, call(t, "help", "queue"), exitUsage, `unknown command "queue"; did you mean enqueue or queues?`)
	fails(t, call(t, "help", "dead", "lst"), exitUsage, `unknown command "lst"; did you mean list?`)
	fails(t, call(t, "--nope"), exitUsage, "unknown flag: --nope", "dispatcher --help")
}

func TestEveryConfigurationErrorHasItsLine(t *testing.T) {
	environment(t, "redis://"+nobody(t), "TIMEOUT=20", "CONCURENCY=3", "XYZZY=")
	s := call(t, "run")
	if s.code != exitUsage || strings.Count(s.err, "\n") != 3 || !strings.Contains(s.err, "did you mean DISPATCHER_CONCURRENCY?") ||
		!strings.Contains(s.err, "DISPATCHER_XYZZY: no such variable; want one of those that `dispatcher help environment` lists\n") {
		t.Errorf("exit %d, standard error %q", s.code, s.err)
	}
}

// TestHelp looks at every verb: each says what it is for and has an example that names it.
func TestHelp(t *testing.T) {
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, c := range cmd.Commands() {
			visit(c)
		}
		if path := cmd.CommandPath(); cmd.Runnable() && !cmd.HasSubCommands() {
			if cmd.Short == "" || !strings.Contains(cmd.Example, path) {
				t.Errorf("%s: help without a description or an example", path)
			}
			out := ok(t, call(t, append(strings.Fields(path)[1:], "--help")...))
			if !strings.Contains(out, "Examples:") {
				t.Errorf("%s --help: %s", path, out)
			}
		}
	}
	if out := ok(t, call(t, "help", "dead", "list")); out != ok(t, call(t, "dead", "list", "--help")) {
		t.Errorf("help dead list: %s", out)
	}
	visit(newRoot(t.Context(), stdio{}))
	if out := ok(t, call(t, "--help")); !strings.Contains(out, "dispatcher environment") {
		t.Errorf("--help does not name the topic: %s", out)
	}
}

func TestHelpOnTheEnvironmentFitsATerminal(t *testing.T) {
	out := ok(t, call(t, "help", "environment"))
	for line := range strings.Lines(out) {
		if len(line) > width+1 || strings.TrimSpace(line) == "" {
			t.Errorf("%d bytes: %q", len(line), line)
		}
	}
	if !strings.Contains(out, "\nDISPATCHER_CONCURRENCY\n    attempts in flight per route and dispatcher, unless the route says otherwise\n"+
		"    (default 32)\n") {
		t.Errorf("help: %s", out)
	}
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if out := ok(t, call(t, "completion", shell)); !strings.Contains(out, "dispatcher") {
			t.Errorf("%s: %q", shell, out)
		}
	}
}

// lines is a log that tests wait for.
type lines struct {
	mu    sync.Mutex
	text  string
	wrote chan struct{} // a token after each write, unless one is there
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text += string(b)
	select {
	case l.wrote <- struct{}{}:
	default:
	}
	return len(b), nil
}

func (l *lines) await(t *testing.T, part string) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		l.mu.Lock()
		text := l.text
		l.mu.Unlock()
		if strings.Contains(text, part) {
			return
		}
		select {
		case <-l.wrote:
		case <-deadline:
			t.Fatalf("log without %q: %s", part, text)
		}
	}
}

// serving starts a dispatcher. stop ends it and returns its exit code.
func serving(t *testing.T) (log *lines, stop func() int) {
	t.Helper()
	log = &lines{wrote: make(chan struct{}, 1)}
	closing, closeNow := context.WithCancel(t.Context())
	code := make(chan int, 1)
	go func() { code <- run(closing, t.Context(), nil, stdio{in: strings.NewReader(""), out: log, err: log}) }()
	return log, sync.OnceValue(func() int {
		closeNow()
		return <-code
	})
}

func TestServeEndsOverWhatPeopleMustPutRight(t *testing.T) {
	s := redistest.Start(t, redistest.Config{User: "alice", Password: "sesame", Rules: "~* &* +@all -hset"})
	for name, c := range map[string]struct{ url, want string }{
		"password":   {"redis://alice:hunter2@" + s.Addr(), "refuses the user name or the password"},
		"permission": {s.URL(), "lacks a permission: HSET"},
		"TLS":        {"rediss://alice:sesame@" + s.Addr(), "use a redis:// URL"},
	} {
		t.Run(name, func(t *testing.T) {
			environment(t, c.url, "ROUTES=orders=http://127.0.0.1:1/")
			if got := call(t); got.code != exitFailure || !strings.Contains(got.err, c.want) || strings.Contains(got.err, "hunter2") {
				t.Errorf("exit %d, %s", got.code, got.err)
			}
		})
	}
}

func TestServeWaitsForARedisThatIsAway(t *testing.T) {
	environment(t, "redis://"+nobody(t), "ROUTES=orders=http://127.0.0.1:1/", "LOG_FORMAT=text")
	log, stop := serving(t)
	log.await(t, "redis is away")
	log.await(t, "dispatcher started")
	if code := stop(); code != exitOK {
		t.Errorf("exit %d", code)
	}
}

func TestServeWarnsOfARedisThatDeletesTasks(t *testing.T) {
	s := redistest.Start(t, redistest.Config{Directives: []string{"maxmemory-policy allkeys-lru"}})
	environment(t, s.URL(), "ROUTES=orders=http://127.0.0.1:1/", "LOG_FORMAT=text")
	log, stop := serving(t)
	log.await(t, "maxmemory-policy is allkeys-lru")
	log.await(t, "dispatcher started")
	if code := stop(); code != exitOK {
		t.Errorf("exit %d", code)
	}
}

func TestServeNeedsARouteAndItsAddress(t *testing.T) {
	t.Setenv("DISPATCHER_ROUTES", "orders=http://127.0.0.1:1/") // somebody tries the program out
	environment(t, "redis://"+nobody(t))
	fails(t, call(t), exitUsage, "DISPATCHER_ROUTES: nothing to serve")
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	environment(t, "redis://"+nobody(t), "ROUTES=orders=http://127.0.0.1:1/", "ADMIN_ADDR="+l.Addr().String())
	if got := call(t); got.code != exitFailure || !strings.Contains(got.err, "DISPATCHER_ADMIN_ADDR") {
		t.Errorf("an address in use: exit %d, %s", got.code, got.err)
	}
}

// TestServeTellsOfEveryRouteThatCannotBe has several routes that the configuration accepts and their targets refuse.
func TestServeTellsOfEveryRouteThatCannotBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "routes.yaml")
	text := "routes:\n"
	for i := range 8 {
		text += fmt.Sprintf("  - {queue: q%d, lambda: thumbs}\n", i)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	environment(t, "redis://127.0.0.1:1", "ROUTES_FILE="+file)
	noAWS(t) // so that nothing says in which region the functions are
	got := call(t)
	for i := range 8 {
		fails(t, got, exitUsage, fmt.Sprintf("queue q%d: ", i))
	}
}
