package quota

import (
	"fmt"
	"testing"
	"time"
)

var trialLimits = StartLimits{PerSecond: 10, Targets: 120, Trial: true}

// A scan of one port at many addresses made 11,992 connections in 8.3 seconds. By the limit of connections alone it makes
// three seconds' worth and ten a second, by that of targets alone 120.
func TestAScanOfAddressesIsBounded(t *testing.T) {
	for _, c := range []struct {
		limits StartLimits
		want   int
	}{
		{StartLimits{PerSecond: 10, Trial: true}, 30 + 82},
		{StartLimits{PerSecond: 100}, 1000 + 829},
		{StartLimits{Targets: 120}, 120},
		{StartLimits{Targets: 2000}, 2000},
		{trialLimits, 30 + 82},
		{StartLimits{}, 11_992},
	} {
		s, ts, made := NewStarts(), NewTargets(), 0
		for n := range 11_992 {
			at := noon.Add(time.Duration(n) * 8300 * time.Millisecond / 11_992)
			if why, _ := s.Take("agt_1", ts.Of(fmt.Sprintf("198.%d.%d.7", n/256, n%256)), c.limits, at); why == NotRefused {
				made++
			}
		}
		if made != c.want {
			t.Errorf("%+v: %d connections were made, want %d", c.limits, made, c.want)
		}
	}
}

func TestDistinctTargetsAMinute(t *testing.T) {
	s, l := NewStarts(), StartLimits{Targets: 3}
	take := func(agent string, target Target, after time.Duration) time.Duration {
		t.Helper()
		why, wait := s.Take(agent, target, l, noon.Add(after))
		if (why == TooWide) != (wait > 0) {
			t.Errorf("%v with %v to wait", why, wait)
		}
		return wait
	}
	for n := range 3 {
		if wait := take("agt_1", Target(n), time.Duration(n)*10*time.Second); wait > 0 {
			t.Fatalf("target %d waits for %v", n, wait)
		}
	}
	for range 100 {
		if wait := take("agt_1", 1, 20*time.Second); wait > 0 {
			t.Fatalf("a target of before waits for %v", wait)
		}
	}
	if wait := take("agt_1", 7, 20*time.Second); wait != 40*time.Second {
		t.Errorf("the fourth waits for %v, want until the first is a minute ago", wait)
	}
	if wait := take("agt_2", 7, 20*time.Second); wait > 0 {
		t.Errorf("another agent waits for %v", wait)
	}
	if wait := take("agt_1", 7, time.Minute); wait > 0 {
		t.Errorf("after a minute it waits for %v", wait)
	}
	if wait := take("agt_1", 8, time.Minute); wait != 20*time.Second {
		t.Errorf("the next waits for %v, want until those that were used at 0:20 are a minute ago", wait)
	}
	if wait := take("agt_1", 8, -time.Hour); wait > 0 {
		t.Errorf("after the clock was set back it waits for %v", wait)
	}
}

// A refusal has the time after which it is none.
func TestConnectionsASecond(t *testing.T) {
	s, l := NewStarts(), StartLimits{PerSecond: 2, Trial: true}
	for n := range 6 {
		if why, _ := s.Take("agt_1", Target(n), l, noon); why != NotRefused {
			t.Fatalf("connection %d is refused", n)
		}
	}
	why, wait := s.Take("agt_1", 1, l, noon)
	if why != TooOften || wait != time.Second {
		t.Errorf("the seventh: %v, %v to wait", why, wait)
	}
	for n, want := range []Refused{NotRefused, NotRefused, TooOften} {
		if why, _ := s.Take("agt_1", 1, l, noon.Add(time.Second)); why != want {
			t.Errorf("connection %d a second later: %v", n, why)
		}
	}
}

// The memory is bounded whatever comes; who is at its limit is not forgotten for others first.
func TestStartsAreBounded(t *testing.T) {
	s := NewStarts()
	s.maxAgents, s.maxSeen = 150, 1000
	for n := range 8_000 { // 80 of each agent at most: the scanner has most
		s.Take(fmt.Sprint(n%200), Target(n), StartLimits{PerSecond: 1, Targets: 100}, noon.Add(time.Duration(n)*time.Millisecond))
		for range n % 3 {
			s.Take("scanner", Target(n), StartLimits{Targets: 100}, noon.Add(time.Duration(n)*time.Millisecond))
		}
		s.Note(fmt.Sprint(n%200), Target(n), n%2 == 0, noon.Add(time.Duration(n)*time.Millisecond))
		seen := 0
		for _, a := range s.agents {
			seen += a.size()
		}
		if len(s.agents) > 150 || seen > 1000 || seen != s.seen {
			t.Fatalf("%d agents with %d targets, counted %d", len(s.agents), seen, s.seen)
		}
	}
	if a := s.agents["scanner"]; a == nil || len(a.seen) != 100 {
		t.Errorf("the scanner is forgotten: %+v", a)
	}
	s.Trim(noon.Add(11 * time.Minute))
	if len(s.agents) != 0 || s.seen != 0 {
		t.Errorf("%d agents with %d targets are left", len(s.agents), s.seen)
	}
}

// BenchmarkStart is a new connection of one of 1,000 agents with 100 targets, and to one target with a name.
func BenchmarkStart(b *testing.B) {
	s, ts := NewStarts(), NewTargets()
	l := StartLimits{PerSecond: 1_000_000, Targets: 2000}
	for n := 0; b.Loop(); n++ {
		agent := fmt.Sprint(n % 1000)
		target := ts.Of("www.shop.example")
		s.Take(agent, target+Target(n/1000%100), l, noon)
		ts.Take(agent, target, 1_000_000, noon)
	}
}
