package redistest

import (
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"testing"
)

// shared is the one server of a test binary. It is a package variable because a test binary has nothing else that
// TestMain and its tests have in common.
var shared struct { //nolint:gochecknoglobals // see above
	mu     sync.Mutex
	main   bool // Main runs and will stop the server
	server *Server
	err    error
}

// Main runs the tests of a package and then ends the server that they shared. It returns the exit code for os.Exit.
func Main(m *testing.M) int {
	shared.mu.Lock()
	shared.main = true
	shared.mu.Unlock()

	code := m.Run()

	shared.mu.Lock()
	defer shared.mu.Unlock()
	shared.main = false
	if shared.server != nil {
		shared.server.discard()
		shared.server = nil
	}
	return code
}

// Shared is the package's server, started by the first call: without persistence, open to all. Its tests run in
// parallel, each on a queue of its own; none may stop, pause, flush or reconfigure it.
func Shared(t testing.TB) *Server {
	t.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if !shared.main {
		t.Fatal("redistest.Shared needs: func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }")
	}
	if shared.server == nil && shared.err == nil {
		shared.server, shared.err = launch(Config{})
	}
	if shared.err != nil {
		t.Fatalf("start redis-server: %v", shared.err)
	}
	return shared.server
}

// Queue is a queue name that nobody else uses and that shows the test's name.
func Queue(t testing.TB) string {
	t.Helper()
	const room = 60
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		default:
			return '-'
		}
	}, strings.TrimPrefix(t.Name(), "Test"))
	return fmt.Sprintf("%s-%s", name[:min(len(name), room)], strings.ToLower(rand.Text()[:12]))
}
