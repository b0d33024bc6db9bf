package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/queuehook/queuehook/internal/fleet"
)

// write writes a file for the test and returns its path.
func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	replace(t, path, content)
	return path
}

// replace replaces a file's content in one step, by renaming.
func replace(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// routes is a routes file with these routes.
func routes(each ...string) string { return "routes:\n  - " + strings.Join(each, "\n  - ") + "\n" }

// route is the entry of a queue: to its receiver, with these keys.
func route(q *fleet.Queue, keys ...string) string {
	return routeTo(q, q.Receiver.URL()+"/hook", keys...)
}

// routeTo is the entry of a queue for any URL.
func routeTo(q *fleet.Queue, url string, keys ...string) string {
	return "{" + strings.Join(append([]string{"queue: " + q.Name, "url: '" + url + "'"}, keys...), ", ") + "}"
}

// serve starts a dispatcher for these routes.
func serve(t *testing.T, redisURL string, file string, env ...string) *fleet.Server {
	t.Helper()
	return fleet.StartDispatcher(t, redisURL, "", append(env, "ROUTES_FILE="+write(t, "routes.yaml", file))...)
}

// serveAll starts n dispatchers at once for these routes.
func serveAll(t *testing.T, n int, redisURL string, file string, env ...string) []*fleet.Server {
	t.Helper()
	env = append(env, "ROUTES_FILE="+write(t, "routes.yaml", file))
	all := make([]*fleet.Server, n)
	for i := range all {
		all[i] = fleet.Launch(t, redisURL, "", env...)
	}
	for _, d := range all {
		d.AwaitReady(t)
	}
	return all
}

// command runs a verb of the dispatcher, which must succeed, and returns what it printed.
func command(t *testing.T, redisURL string, args ...string) (stdout string) {
	t.Helper()
	code, stdout, stderr := fleet.Run(t, fleet.Dispatcher, args, []string{"DISPATCHER_REDIS_URL=" + redisURL})
	if code != 0 {
		t.Fatalf("dispatcher %s: exit code %d\n%s%s", strings.Join(args, " "), code, stdout, stderr)
	}
	return stdout
}
