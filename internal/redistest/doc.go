// Package redistest runs real redis-server processes for tests.
//
// A package whose tests share one server writes
//
//	func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }
//
//	func TestLease(t *testing.T) {
//		t.Parallel()
//		rdb := redistest.Shared(t).Client(t)
//		queue := redistest.Queue(t)
//		...
//	}
//
// The shared server starts with the first call of [Shared], so a run that needs none starts none. Tests that
// restart, pause or kill their server, or that need a variant of it, call [Start] and own what they get.
//
// [StartCluster] and [StartSentinel] run several servers as one.
//
// Every server listens on loopback only, keeps its files in a directory of its own and is ended with SIGKILL when the
// test (or, for the shared one, the package) ends. A test binary that panics or is killed takes its servers with it:
// on Linux the kernel kills them, elsewhere a watching shell does. Only the directories of such a run stay behind.
//
// A machine without redis-server fails the tests: a skipped test of the queue proves nothing.
package redistest
