package sim_test

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"agentproxy/test/campaign"
)

var (
	seeds     = flag.Int("seeds", campaign.Rounds(5, 200), "how many seeds are run, from -seed on")
	onServer  = flag.Int("postgres", campaign.Rounds(2, 50), "how many seeds are run on PostgreSQL too")
	keepGoing = flag.Bool("all", false, "go on after a seed failed")
)

// TestSimulation runs seeds on SQLite, as many at a time as there are processors.
func TestSimulation(t *testing.T) { simulate(t, *seeds, newFile) }

// TestSimulationOnPostgres runs some of them where units of work run concurrently.
func TestSimulationOnPostgres(t *testing.T) { simulate(t, *onServer, newServer) }

func simulate(t *testing.T, seeds int, database databaseFunc) {
	var failed atomic.Bool
	seen := tally{counts: map[string]int{}}
	first := campaign.Seed(t)
	t.Run("seed", func(t *testing.T) {
		for seed := first; seed < first+uint64(seeds); seed++ {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				if failed.Load() && !*keepGoing {
					t.Skip("another seed failed")
				}
				w := play(t, seed, database)
				seen.add(w)
				if report(t, w) {
					failed.Store(true)
				} else if seeds == 1 {
					t.Log(w.logText())
				}
			})
		}
	})
	t.Logf("counted: %s", &seen)
	if seeds >= 50 && !failed.Load() {
		seen.requireAll(t)
	}
}

// report fails the test for a world that ended badly.
func report(t *testing.T, w *world) bool {
	faults := w.violations()
	if len(faults) == 0 {
		return false
	}
	note := ""
	if w.concurrent {
		note = " (the watchers of this seed run concurrently: repeat it several times, -count=20)"
	}
	test, _, _ := strings.Cut(t.Name(), "/")
	t.Errorf("seed %d failed; repeat it with\n\tgo test ./test/sim -run '^%s$' -seed=%d -seeds=1 -postgres=1 -v%s\n%s\nwhat happened:\n%s",
		w.seed, test, w.seed, note, strings.Join(faults, "\n"), w.logText())
	return true
}

// tally counts what happened in the seeds.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
}

func (c *tally) add(w *world) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for what, n := range w.counts {
		c.counts[what] += n
	}
}

func (c *tally) String() string {
	var b strings.Builder
	for _, what := range slices.Sorted(maps.Keys(c.counts)) {
		fmt.Fprintf(&b, "%s %d, ", what, c.counts[what])
	}
	return strings.TrimSuffix(b.String(), ", ")
}

// requireAll fails a campaign in which something that it tests never happened.
func (c *tally) requireAll(t *testing.T) {
	for _, what := range []string{
		"order paid", "order expired", "order failed", "went pending to confirming", "went confirming to pending",
		"went confirming to paid", "went expired to confirming", "went confirming to failed", "went confirming to expired",
		"money without an order", "order in parts", "order paid over", "order paid late", "transfer orphaned",
		"unit not begun", "unit rolled back", "unit committed and reported as failed", "unit run twice", "statement failed",
		"call failed", "call cancelled", "chain moved during a call", "read by block", "read by address",
	} {
		if c.counts[what] == 0 {
			t.Errorf("in the whole campaign this never happened: %s", what)
		}
	}
}
