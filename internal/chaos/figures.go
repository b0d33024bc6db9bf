package chaos

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Figures count what trials did and what came of it.
type Figures struct {
	Trials    int
	Faults    map[Kind]int
	Runs      map[int]int    // janitor runs by exit code
	Pushed    int            // tasks that Redis said it took
	Requests  int            // that the receiver saw
	Delivered int            // tasks answered 2xx
	Buried    int            // dead letters
	Lost      int            // tasks neither answered 2xx nor held by Redis
	Fences    int            // times that a living dispatcher learnt that it had been given up
	Repeats   map[string]int // further deliveries of tasks that were answered 2xx, by cause
}

func (f *Figures) count(exit int) {
	if f.Runs == nil {
		f.Runs = map[int]int{}
	}
	f.Runs[exit]++
}

// Add adds the figures of another trial.
func (f *Figures) Add(more Figures) {
	f.Trials += more.Trials
	f.Pushed += more.Pushed
	f.Requests += more.Requests
	f.Delivered += more.Delivered
	f.Buried += more.Buried
	f.Lost += more.Lost
	f.Fences += more.Fences
	f.Faults = sum(f.Faults, more.Faults)
	f.Runs = sum(f.Runs, more.Runs)
	f.Repeats = sum(f.Repeats, more.Repeats)
}

func sum[K comparable](a, b map[K]int) map[K]int {
	all := maps.Clone(a)
	if all == nil {
		all = map[K]int{}
	}
	for k, n := range b {
		all[k] += n
	}
	return all
}

// String is the figures as a table. They are a summary: it is the law that compares task by task.
func (f Figures) String() string {
	var b strings.Builder
	faults := 0
	for _, n := range f.Faults {
		faults += n
	}
	fmt.Fprintf(&b, "%d faults in %d trials\n", faults, f.Trials)
	for _, kind := range slices.Sorted(maps.Keys(f.Faults)) {
		fmt.Fprintf(&b, "  %6d  %s\n", f.Faults[kind], kind)
	}
	fmt.Fprintf(&b, "%6d tasks pushed\n%6d delivered, by %d requests\n%6d buried\n%6d lost\n",
		f.Pushed, f.Delivered, f.Requests, f.Buried, f.Lost)
	fmt.Fprintf(&b, "%6d times a living dispatcher was given up\n", f.Fences)
	fmt.Fprintf(&b, "%6d janitor runs, of which %d ended well\n", f.Faults[Janitor], f.Runs[0])
	repeats := 0
	for _, n := range f.Repeats {
		repeats += n
	}
	fmt.Fprintf(&b, "%6d repeated deliveries, each with its cause\n", repeats)
	for _, cause := range slices.Sorted(maps.Keys(f.Repeats)) {
		fmt.Fprintf(&b, "  %6d  %s\n", f.Repeats[cause], cause)
	}
	return b.String()
}
