package e2e_test

import (
	"flag"
	"os"
	"testing"

	"github.com/queuehook/queuehook/internal/fleet"
)

func TestMain(m *testing.M) {
	// These tests wait more than they compute, so more of them run at once than there are processors. -parallel
	// overrides it.
	_ = flag.Set("test.parallel", "6")
	os.Exit(fleet.Main(m))
}

// long says that the long variants of the tests are wanted.
func long() bool { return os.Getenv("QUEUEHOOK_LONG") != "" }
