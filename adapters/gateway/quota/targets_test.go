package quota

import (
	"fmt"
	"testing"
	"time"
)

var noon = time.Date(2026, 5, 15, 12, 0, 0, 0, time.UTC)

func TestRegistrable(t *testing.T) {
	for host, want := range map[string]string{
		"example.com": "example.com", "www.example.com": "example.com", "a.b.c.Example.COM.": "example.com",
		"shop.example.co.uk": "example.co.uk", "co.uk": "co.uk", "localhost": "localhost", "user.github.io": "user.github.io",
		"192.0.2.1": "192.0.2.1", "::ffff:192.0.2.1": "192.0.2.1", "2001:db8:1:2::5": "2001:db8:1:2::/64",
		"2001:db8:1:2:ffff::5": "2001:db8:1:2::/64", "xn--bcher-kva.example": "xn--bcher-kva.example",
	} {
		if got := Registrable(host); got != want {
			t.Errorf("%s counts as %s, want %s", host, got, want)
		}
	}
}

func TestConnectionsToOneTargetAreLimited(t *testing.T) {
	ts := NewTargets()
	for n := range 60 {
		if wait := ts.Take("agt_1", fmt.Sprintf("h%d.example.com", n), 60, noon); wait != 0 {
			t.Fatalf("connection %d has to wait for %v", n, wait)
		}
	}
	if wait := ts.Take("agt_1", "EXAMPLE.com.", 60, noon); wait != time.Second {
		t.Errorf("the next one waits for %v, want 1s", wait)
	}
	for _, other := range []struct{ agent, host string }{{"agt_2", "example.com"}, {"agt_1", "example.org"}} {
		if wait := ts.Take(other.agent, other.host, 60, noon); wait != 0 {
			t.Errorf("%v waits for %v", other, wait)
		}
	}
	if wait := ts.Take("agt_1", "example.com", 0, noon); wait != 0 {
		t.Errorf("without a limit one waits for %v", wait)
	}
	if wait := ts.Take("agt_1", "example.com", 60, noon.Add(time.Second)); wait != 0 {
		t.Errorf("after the wait one waits for %v", wait)
	}
	if wait := ts.Take("agt_1", "example.com", 60, noon.Add(-time.Hour)); wait > time.Minute {
		t.Errorf("after the clock was set back one waits for %v", wait)
	}
	ts.Trim(noon.Add(3 * time.Minute))
	if ts.Len() != 0 {
		t.Errorf("%d targets are counted after their minute", ts.Len())
	}
}

// A scan of all ports of a host, at 5,396 connections in 2.4 seconds, makes 62 of them on trial: empty
// connections cost nothing, and are bounded by their number.
func TestAScanOfPortsIsBounded(t *testing.T) {
	ts := NewTargets()
	made := 0
	for n := range 5396 {
		at := noon.Add(time.Duration(n) * 2400 * time.Millisecond / 5396)
		if ts.Take("agt_1", "198.51.100.7", 60, at) == 0 {
			made++
		}
	}
	if made != 62 {
		t.Errorf("%d connections were made, want 62", made)
	}
}

// An agent with many targets does not make the counters of another disappear first.
func TestTargetsAreBounded(t *testing.T) {
	ts := NewTargets()
	ts.max = 100
	for range 60 {
		ts.Take("agt_1", "victim.example", 60, noon)
	}
	for n := range 10_000 {
		ts.Take("agt_2", fmt.Sprintf("h%d.example", n), 60, noon)
	}
	if ts.Len() > 100 {
		t.Errorf("%d targets are counted", ts.Len())
	}
	if wait := ts.Take("agt_1", "victim.example", 60, noon); wait == 0 {
		t.Error("a counter at its limit was forgotten for new ones")
	}
}
