package procurement_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"agentproxy/test/campaign"
)

var (
	creates = flag.Int("creates", campaign.Rounds(75, 5000), "creates in all, shared by the seeds")
	seeds   = flag.Int("seeds", campaign.Rounds(3, 10), "how many seeds are run, from -seed on")
	chance  = flag.Float64("faults", 0.3, "how many of the sellers' requests go wrong")
	story   = flag.Bool("log", false, "print the log of the service")
)

// TestMain plays more seeds at a time than there are processors: most of the time
// they wait for adapters that try again.
func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f != nil && f.Value.String() == fmt.Sprint(runtime.GOMAXPROCS(0)) {
		_ = flag.Set("test.parallel", "8")
	}
	os.Exit(m.Run())
}

// TestCampaign runs the seeds. A large campaign fails if something that it tests
// never happened.
func TestCampaign(t *testing.T) {
	first, each := campaign.Seed(t), max(*creates / *seeds, 1)
	all := tally{counts: map[string]int{}}
	t.Run("seed", func(t *testing.T) {
		for seed := first; seed < first+uint64(*seeds); seed++ {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				w := open(t, seed)
				w.play(each)
				w.finish()
				w.check()
				w.grow()
				all.add(w.counts)
				t.Logf("%s", &w.tally)
				if t.Failed() {
					t.Logf("repeat it with\n\tgo test ./test/procurement -seed=%d -seeds=1 -creates=%d -count=5 -v", seed, each)
				}
			})
		}
	})
	t.Logf("all: %s", &all)
	if *creates >= 1000 && *seeds > 1 && !t.Failed() {
		for _, what := range tried {
			if all.counts[what] == 0 {
				t.Errorf("in the whole campaign this never happened: %s", what)
			}
		}
	}
}

// tried is what a campaign has to come across.
var tried = []string{"created", "created later", "create refused", "key repeated", "terminated", "terminated while creating",
	"renewal asked", "renewal confirmed", "rotated", "unit failed", "unit committed unheard", "process died", "order vanished",
	"provider lost", "order unknown", "order adopted", "order proven absent", "other source tried", "callback taken", "callback refused",
	"sold out for a while", "direct traffic"}

// tally counts what happened.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
}

func (c *tally) count(what string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[what] += n
}

func (c *tally) add(counts map[string]int) {
	for what, n := range counts {
		c.count(what, n)
	}
}

func (c *tally) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	for _, what := range slices.Sorted(maps.Keys(c.counts)) {
		fmt.Fprintf(&b, "%s %d, ", what, c.counts[what])
	}
	return strings.TrimSuffix(b.String(), ", ")
}
