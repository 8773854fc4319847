package metering_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/policy"
	"agentproxy/test/apptest"
)

// A thousand sessions with a thousand equal rules have one set of them in memory; it goes with the last one.
func TestEqualRulesAreSharedBySessions(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{TrialBalance: 1000 * domain.Dollar})
	agent := w.Register()
	var own policy.Own
	for i := range 1000 {
		own.Deny = append(own.Deny, fmt.Sprintf("host%d.example.com", i))
	}
	other := policy.Own{Deny: own.Deny[:999], Allow: own.Deny[999:]}
	sets := map[*policy.Rules]int{}
	for i := range 1001 {
		id := w.Buy(agent, apptest.Local).ID
		rules := own
		if i == 1000 {
			rules = other
		}
		_, err := w.Policies.Put(t.Context(), agent, id, rules)
		apptest.OK(t, err)
		route, err := w.Traffic.Route(t.Context(), id)
		apptest.OK(t, err)
		sets[route.Policy]++
		if route.Policy.Name("host1.example.com", 443) == "" {
			t.Fatal("a rule is missing")
		}
	}
	apptest.Equal(t, "sets of rules", len(sets), 2)
	apptest.Equal(t, "sets that are kept", w.Traffic.RuleSets(), 2)
	runtime.KeepAlive(sets)
	clear(sets)
	for deadline := time.Now().Add(time.Minute); w.Traffic.RuleSets() > 0; runtime.GC() {
		if time.Now().After(deadline) {
			t.Fatalf("%d sets are left", w.Traffic.RuleSets())
		}
	}
}
