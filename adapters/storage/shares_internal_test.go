package storage

import (
	"context"
	"errors"
	"testing"

	"agentproxy/ports"
)

// The connections of an agent are one share, however its units name it, and nothing is kept of an agent
// without units.
func TestSharesAreForgotten(t *testing.T) {
	t.Parallel()
	s := newShares(1)
	named := ports.WithReadSet(ports.WithAgent(t.Context(), "agt_other"), ports.ReadSet{Agent: "agt_1"})
	release, err := s.take(ports.WithAgent(t.Context(), "agt_1"))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		gone, cancel := context.WithCancel(named)
		cancel()
		if _, err := s.take(gone); !errors.Is(err, context.Canceled) {
			t.Fatalf("another unit of the agent, whose caller has left: %v", err)
		}
	}
	for what, ctx := range map[string]context.Context{"another agent": ports.WithAgent(t.Context(), "agt_2"), "nobody": t.Context()} {
		free, err := s.take(ctx)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		free()
	}
	if len(s.of) != 1 || s.of["agt_1"].users != 1 {
		t.Errorf("kept: %v", s.of)
	}
	release()
	if len(s.of) != 0 {
		t.Errorf("%d agents are kept, none of which has units", len(s.of))
	}
	if release, err = s.take(named); err != nil {
		t.Error("the share is not free again:", err)
	} else {
		release()
	}
}
