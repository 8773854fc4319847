package economics_test

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"agentproxy/test/campaign"
)

var (
	histories = flag.Int("histories", campaign.Rounds(30, 2000), "how many histories are played, from -seed on")
	length    = flag.Int("steps", 30, "steps of a history")
	story     = flag.Bool("log", false, "print the log of the service")
)

// TestAgentsPayForWhatIsDelivered plays the histories. A large campaign fails if something that it
// tests never happened.
func TestAgentsPayForWhatIsDelivered(t *testing.T) {
	first := campaign.Seed(t)
	all := &census{counts: map[string]int{}}
	t.Run("seed", func(t *testing.T) {
		for seed := first; seed < first+uint64(*histories); seed++ {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				w := open(t, seed, all)
				w.play(*length)
				w.finish()
				w.check()
				if t.Failed() {
					t.Logf("repeat it with\n\tgo test ./test/economics -seed=%d -histories=1 -v", seed)
				}
			})
		}
	})
	t.Logf("%s", all)
	for _, what := range tried {
		if *histories >= 1000 && all.counts[what] == 0 {
			t.Errorf("in the whole campaign this never happened: %s", what)
		}
	}
}

// tried is what a campaign has to come across.
var tried = []string{"created", "created later", "create refused", "terminated", "renewal answered", "renewed", "direct traffic",
	"metered traffic", "a month passed", "list empty", "order hidden", "transaction failed", "call refused", "request lost",
	"answer lost", "too dear", "delivered late", "delivered after a day", "listed very late", "cancelled", "something happened during a call",
	"decided by the operator", "never delivered", "given up by the operator", "reported as an orphan", "covered", "exempt"}

// census counts what happened.
type census struct {
	mu     sync.Mutex
	counts map[string]int
}

func (c *census) add(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[what]++
}

func (c *census) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	for _, what := range slices.Sorted(maps.Keys(c.counts)) {
		fmt.Fprintf(&b, "%s %d, ", what, c.counts[what])
	}
	return strings.TrimSuffix(b.String(), ", ")
}
