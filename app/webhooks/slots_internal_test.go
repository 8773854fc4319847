package webhooks

import (
	"testing"
	"testing/synctest"
	"time"

	"agentproxy/domain/webhook"
)

// Deliveries without a slot are put off for longer the more there are, and nothing is kept of an agent without any.
func TestSlotsOfAnAgentAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(nil)
		to := webhook.Endpoint{AgentID: "agt_1", LastDeliveryAt: time.Unix(1, 0)}
		for range 2 {
			var release []func()
			for range slotsPerAgent {
				r, wait := s.acquire(t.Context(), webhook.Test, to)
				if r == nil {
					t.Fatalf("a free slot is refused for %v", wait)
				}
				release = append(release, r)
			}
			for i := range slotsPerAgent {
				r, wait := s.acquire(t.Context(), webhook.Test, to)
				if want := requeueStep * time.Duration(1+(i+1)/slotsPerAgent); r != nil || wait != want {
					t.Errorf("delivery %d without a slot is put off for %v, want %v", i, wait, want)
				}
			}
			for _, r := range release {
				r()
			}
			if len(s.requeued) != 0 || s.agents.Users("agt_1") != 0 {
				t.Errorf("kept are %v, %d users", s.requeued, s.agents.Users("agt_1"))
			}
		}
	})
}
