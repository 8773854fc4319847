package slots_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"agentproxy/app/slots"
)

func TestAProviderThatHangsDelaysItselfAlone(t *testing.T) {
	s, hold := slots.New(2, 1), make(chan struct{})
	var now atomic.Int32
	held := s.Go("slow", []string{"1", "2", "3"}, func(string) {
		if now.Add(1) > 2 {
			t.Error("more than two ran at once")
		}
		<-hold
		now.Add(-1)
	})
	var ran atomic.Int32
	<-s.Go("slow", []string{"4"}, func(string) { t.Error("a provider without a free slot got more work") })
	<-s.Go("other", []string{"5", "6"}, func(string) { ran.Add(1) })
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
	<-s.Go("slow", []string{"1"}, func(string) { again++ })
	if again != 1 {
		t.Error("the slots are not free again")
	}
}

func TestAnItemRunsOnceAtATime(t *testing.T) {
	s, began, hold := slots.New(4, 1), make(chan struct{}), make(chan struct{})
	first := s.Go("p", []string{"1"}, func(string) {
		close(began)
		<-hold
	})
	<-began
	<-s.Go("p", []string{"1"}, func(string) { t.Error("it ran twice at once") })
	close(hold)
	<-first
}

func TestACallerWaitsNoLongerThanATimeout(t *testing.T) {
	s, hold, ended := slots.New(1, 1), make(chan struct{}), make(chan struct{})
	if s.Await("p", 0, func() {
		<-hold
		close(ended)
	}) {
		t.Error("it ended at once")
	}
	if s.Await("p", time.Hour, func() { t.Error("more ran than were to") }) {
		t.Error("a caller was served who was one too many")
	}
	if !s.Await("other", time.Hour, func() {}) {
		t.Error("another provider has no place")
	}
	close(hold)
	<-ended
	if err := s.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	if !s.Await("p", time.Hour, func() {}) {
		t.Error("its place is not free again")
	}
}
