package slots_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"agentproxy/app/slots"
)

func TestAProviderThatHangsDelaysItselfAlone(t *testing.T) {
	s, hold := slots.New(2, 1), make(chan struct{})
	var now atomic.Int32
	held, _ := s.Go("slow", items("1", "2", "3"), func(string) {
		if now.Add(1) > 2 {
			t.Error("more than two ran at once")
		}
		<-hold
		now.Add(-1)
	})
	var ran atomic.Int32
	if _, waits := s.Go("slow", items("4"), func(string) { t.Error("what was dropped is done") }); !waits {
		t.Error("a provider without a free slot got more work")
	}
	wait(s.Go("other", items("5", "6"), func(string) { ran.Add(1) }))
	if ran.Load() != 2 {
		t.Errorf("%d of the other ran", ran.Load())
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if s.Wait(ended) == nil {
		t.Error("Wait returned while work was running")
	}
	close(hold)
	<-held
	if err := s.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	again := 0
	wait(s.Go("slow", items("1"), func(string) { again++ }))
	if again != 1 {
		t.Error("the slots are not free again")
	}
}

func TestAnItemRunsOnceAtATime(t *testing.T) {
	s, began, hold := slots.New(4, 1), make(chan struct{}), make(chan struct{})
	first, _ := s.Go("p", items("1"), func(string) {
		close(began)
		<-hold
	})
	<-began
	wait(s.Go("p", items("1"), func(string) { t.Error("it ran twice at once") }))
	close(hold)
	<-first
}

func TestACallerWaitsNoLongerThanATimeout(t *testing.T) {
	s, hold, ended := slots.New(1, 1), make(chan struct{}), make(chan struct{})
	if ended, begun := s.Await("p", "a", 0, func() {
		<-hold
		close(ended)
	}); ended || !begun {
		t.Error("it ended at once, or was not begun")
	}
	if _, begun := s.Await("p", "b", time.Hour, func() { t.Error("more ran than were to") }); begun {
		t.Error("a caller was served who was one too many")
	}
	if ended, _ := s.Await("other", "a", time.Hour, func() {}); !ended {
		t.Error("another provider has no place")
	}
	close(hold)
	<-ended
	if err := s.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	if ended, _ := s.Await("p", "b", time.Hour, func() {}); !ended {
		t.Error("its place is not free again")
	}
}

// An agent with 500 items delays another's by the ones that run.
func TestAgentsWhoseWorkWaitsTakeTurns(t *testing.T) {
	s, hold := slots.New(1, 1), make(chan struct{})
	var ran []string
	do := func(id string) {
		<-hold
		ran = append(ran, id) // there is one slot
	}
	many := make([]slots.Item, 500)
	for i := range many {
		many[i] = slots.Item{ID: fmt.Sprint("many", i), Agent: "many"}
	}
	first, _ := s.Go("p", many[:1], do)
	rest, _ := s.Go("p", many[1:], do)
	one, waits := s.Go("p", []slots.Item{{ID: "one", Agent: "one"}}, do)
	if !waits {
		t.Error("there was a free slot")
	}
	close(hold)
	<-first
	<-one
	<-rest
	if len(ran) != 501 || slices.Index(ran, "one") > 2 {
		t.Errorf("%d ran, the one of another agent as number %d", len(ran), slices.Index(ran, "one"))
	}
}

// An agent whose calls hang leaves room for the calls of others.
func TestAnAgentHasAShareOfTheCallersThatAreServed(t *testing.T) {
	s, hold := slots.New(1, 256), make(chan struct{})
	served := 0
	for range 300 {
		if _, begun := s.Await("p", "many", 0, func() { <-hold }); begun {
			served++
		}
	}
	if ended, _ := s.Await("p", "one", time.Hour, func() {}); !ended || served != 64 {
		t.Errorf("%d calls of one agent are served; another was: %v", served, ended)
	}
	close(hold)
	if err := s.Wait(t.Context()); err != nil {
		t.Error(err)
	}
}

func items(ids ...string) (list []slots.Item) {
	for _, id := range ids {
		list = append(list, slots.Item{ID: id, Agent: "a"})
	}
	return list
}

func wait(done <-chan struct{}, _ bool) { <-done }
