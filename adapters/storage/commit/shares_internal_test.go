package commit

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"agentproxy/domain"
	"agentproxy/ports"
)

// An agent whose share is taken waits, without delaying another: until one of its units ends, until its
// caller leaves, or until the calls are answered 503.
func TestAnAgentWaitsForItsOwnShare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewShares(2, 0)
		busy := ports.WithAgent(t.Context(), "agt_busy")
		type outcome struct {
			release func()
			err     error
		}
		take := func(ctx context.Context) chan outcome {
			done := make(chan outcome, 1)
			go func() {
				release, err := s.Take(ctx, ports.AgentOf(ctx))
				done <- outcome{release, err}
			}()
			synctest.Wait()
			return done
		}
		first, second := take(busy), take(busy)
		gone, leave := context.WithCancel(busy)
		left, third, late := take(gone), take(busy), take(busy)
		if len(first) != 1 || len(second) != 1 || len(left)+len(third)+len(late) != 0 {
			t.Fatalf("%d of 2 units began, and %d more", len(first)+len(second), len(left)+len(third)+len(late))
		}
		if other := take(ports.WithAgent(t.Context(), "agt_other")); len(other) != 1 {
			t.Fatal("another agent waits")
		} else {
			(<-other).release()
		}
		leave()
		synctest.Wait()
		if len(left) != 1 || !errors.Is((<-left).err, context.Canceled) || s.AtWork("agt_busy") != 4 {
			t.Errorf("a caller that left is waited for, %d are counted", s.AtWork("agt_busy"))
		}
		(<-first).release()
		synctest.Wait()
		if len(third) != 1 || len(late) != 0 {
			t.Error("the end of a unit began another number than one")
		}
		time.Sleep(ShareWithin)
		synctest.Wait()
		var known interface{ Cause() string }
		if len(late) != 1 {
			t.Fatal("a unit waits for its share for good")
		} else if err := (<-late).err; !errors.Is(err, domain.ErrUnavailable) || !errors.As(err, &known) ||
			known.Cause() != "agent_share" {
			t.Errorf("a unit that waited for too long: %v", err)
		}
		(<-second).release()
		(<-third).release()
		if n := s.AtWork("agt_busy"); n != 0 {
			t.Errorf("%d units are counted, none of which is at work", n)
		}
	})
}

// The connections of an agent are one share, however its units name it, and nothing is kept of an agent
// without units.
func TestSharesAreForgotten(t *testing.T) {
	t.Parallel()
	s := NewShares(1, 0)
	other := ports.WithAgent(t.Context(), "agt_other")
	named := AgentOf(other, &ports.ReadSet{Agent: "agt_1"})
	release, err := s.Take(t.Context(), "agt_1")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		gone, cancel := context.WithCancel(other)
		cancel()
		if _, err := s.Take(gone, named); !errors.Is(err, context.Canceled) {
			t.Fatalf("another unit of the agent, whose caller has left: %v", err)
		}
	}
	for what, ctx := range map[string]context.Context{"another agent": ports.WithAgent(t.Context(), "agt_2"), "unknown": t.Context()} {
		free, err := s.Take(ctx, ports.AgentOf(ctx))
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		free()
	}
	if n := [3]int{s.AtWork("agt_1"), s.AtWork("agt_other"), s.AtWork("agt_2")}; n != [3]int{1, 0, 0} {
		t.Errorf("at work are %v", n)
	}
	release()
	if n := s.AtWork("agt_1"); n != 0 {
		t.Errorf("%d units are counted, none of which is at work", n)
	}
	if release, err = s.Take(other, named); err != nil {
		t.Error("the share is not free again:", err)
	} else {
		release()
	}
}
