package chaos_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queuehook/queuehook/internal/chaos"
	"github.com/queuehook/queuehook/internal/fleet"
)

func TestMain(m *testing.M) {
	// These tests wait more than they compute, so more of them run at once than there are processors. -parallel
	// overrides it.
	_ = flag.Set("test.parallel", "6")
	os.Exit(fleet.Main(m))
}

const (
	short = 20 * time.Second // a trial beside the other tests
	round = 45 * time.Second // a trial of a long run: a failing one replays in no more than that
)

// TestChaos runs one short trial with a random seed on one server. With QUEUEHOOK_CHAOS_SECONDS it runs trials for so
// long, of which every fourth has sentinels and every fourth a cluster. QUEUEHOOK_SEED replays one trial of the same
// length; the seed modulo four says which kind of Redis it has.
func TestChaos(t *testing.T) {
	seconds := setting(t, "QUEUEHOOK_CHAOS_SECONDS")
	if seconds == 0 {
		t.Parallel()
	}
	length := short
	if seconds > 0 {
		length = min(round, time.Duration(seconds)*time.Second)
	}
	if seed := setting(t, "QUEUEHOOK_SEED"); seed > 0 {
		t.Logf("\n%s", chaos.Run(t, seed, length, site(seed)))
		return
	}
	var all chaos.Figures
	trial := func(t *testing.T) {
		seed := 4*(uint64(rand.Uint32())+1) + uint64(all.Trials%4)
		all.Add(chaos.Run(t, seed, length, site(seed)))
	}
	if seconds == 0 {
		trial(t)
	}
	for end := time.Now().Add(time.Duration(seconds) * time.Second); time.Now().Before(end) && !t.Failed(); {
		t.Run(fmt.Sprintf("trial %d", all.Trials+1), trial)
	}
	t.Logf("\n%s", all)
}

func site(seed uint64) chaos.Site {
	switch seed % 4 {
	case 1:
		return chaos.Sentinels
	case 3:
		return chaos.Cluster
	default:
		return chaos.Alone
	}
}

func setting(t *testing.T, name string) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

func TestPlanIsTheSeeds(t *testing.T) {
	t.Parallel()
	const length = 5 * time.Minute
	plan := chaos.Plan(7, length, chaos.Alone)
	if diff := cmp.Diff(plan, chaos.Plan(7, length, chaos.Alone)); diff != "" {
		t.Errorf("two plans of one seed differ:\n%s", diff)
	}
	if cmp.Equal(plan, chaos.Plan(8, length, chaos.Alone)) {
		t.Error("two seeds have one plan")
	}
	kinds := map[chaos.Kind]int{}
	for _, f := range plan {
		kinds[f.Kind]++
	}
	if len(kinds) != 22 {
		t.Errorf("%d kinds of faults in %s, want all 22: %v", len(kinds), length, kinds)
	}
}
