package sim_test

import (
	"flag"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

var (
	seeds    = flag.Int("sim.seeds", 40, "how many seeds to play")
	first    = flag.Uint64("sim.first", 1, "the first of them")
	only     = flag.Uint64("sim.seed", 0, "the one seed to play; 0: all")
	onServer = flag.Int("sim.postgres", 10, "how many seeds to play on PostgreSQL too")
	keepGoes = flag.Bool("sim.all", false, "play on after a seed failed")
)

// TestSimulation plays seeds, as many at a time as there are processors.
func TestSimulation(t *testing.T) { simulate(t, *seeds, newFile) }

// TestSimulationOnPostgres plays some of them where units of work run side by
// side, and not one after the other.
func TestSimulationOnPostgres(t *testing.T) { simulate(t, *onServer, newServer) }

func simulate(t *testing.T, seeds int, database databaseFunc) {
	if *only != 0 {
		w := play(t, *only, database)
		t.Logf("seed %d:\n%s", *only, w.story())
		report(t, w)
		return
	}
	var next atomic.Uint64
	var failed atomic.Bool
	next.Store(*first)
	seen := census{counts: map[string]int{}}
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				seed := next.Add(1) - 1
				if seed >= *first+uint64(seeds) || failed.Load() && !*keepGoes {
					return
				}
				w := play(t, seed, database)
				seen.add(w)
				if report(t, w) {
					failed.Store(true)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("played: %s", &seen)
	if seeds >= 50 && !failed.Load() {
		seen.demand(t)
	}
}

// report fails the test for a world that ended badly.
func report(t *testing.T, w *world) bool {
	faults := w.faults()
	if len(faults) == 0 {
		return false
	}
	note := ""
	if w.crowded {
		note = " (watchers of this seed run side by side: play it several times, -count=20)"
	}
	story := ""
	if *only == 0 {
		story = "\nwhat happened:\n" + w.story()
	}
	t.Errorf("seed %d failed; play it again with\n\tgo test ./test/sim -run %s$ -sim.seed=%d -v%s\n%s%s",
		w.seed, t.Name(), w.seed, note, strings.Join(faults, "\n"), story)
	return true
}

// census counts what the seeds came across, to know that they tried it.
type census struct {
	mu     sync.Mutex
	counts map[string]int
}

func (c *census) add(w *world) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for what, n := range w.counts {
		c.counts[what] += n
	}
}

func (c *census) String() string {
	var b strings.Builder
	for _, what := range slices.Sorted(maps.Keys(c.counts)) {
		fmt.Fprintf(&b, "%s %d, ", what, c.counts[what])
	}
	return strings.TrimSuffix(b.String(), ", ")
}

// demand fails a campaign that never came across what it is for.
func (c *census) demand(t *testing.T) {
	for _, what := range []string{
		"order paid", "order expired", "order failed", "went pending to confirming", "went confirming to pending",
		"went confirming to paid", "went expired to confirming", "went confirming to failed", "went confirming to expired",
		"money without an order", "order in parts", "order paid over", "order paid late", "transfer orphaned",
		"unit not begun", "unit rolled back", "unit committed unheard", "unit run twice", "statement failed",
		"call failed", "call cancelled", "chain moved during a call", "read by block", "read by address",
	} {
		if c.counts[what] == 0 {
			t.Errorf("in the whole campaign this never happened: %s", what)
		}
	}
}
