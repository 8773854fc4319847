package quota

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 5, 15, 12, 0, 0, 0, time.UTC)

func TestWhatCountsAsOneTarget(t *testing.T) {
	for host, want := range map[string]string{
		"example.com": "example.com", "www.example.com": "example.com", "a.b.c.Example.COM.": "example.com",
		"shop.example.co.uk": "example.co.uk", "co.uk": "co.uk", "localhost": "localhost", "user.github.io": "user.github.io",
		"192.0.2.1": "192.0.2.1", "::ffff:192.0.2.1": "192.0.2.1", "2001:db8:1:2::5": "2001:db8:1:2::/64",
		"2001:db8:1:2:ffff::5": "2001:db8:1:2::/64", "xn--bcher-kva.example": "xn--bcher-kva.example",
	} {
		name, network := target(host)
		if network.IsValid() {
			name = strings.TrimSuffix(network.String(), "/32")
		}
		if name != want {
			t.Errorf("%s counts as %s, want %s", host, name, want)
		}
	}
}

func TestConnectionsToOneTargetAreLimited(t *testing.T) {
	ts := NewTargets()
	for n := range 60 {
		if wait := ts.Take("agt_1", ts.Of(fmt.Sprintf("h%d.example.com", n)), 60, noon); wait != 0 {
			t.Fatalf("connection %d has to wait for %v", n, wait)
		}
	}
	if wait := ts.Take("agt_1", ts.Of("EXAMPLE.com."), 60, noon); wait != time.Second {
		t.Errorf("the next one waits for %v, want 1s", wait)
	}
	for _, other := range []struct{ agent, host string }{{"agt_2", "example.com"}, {"agt_1", "example.org"}} {
		if wait := ts.Take(other.agent, ts.Of(other.host), 60, noon); wait != 0 {
			t.Errorf("%v waits for %v", other, wait)
		}
	}
	if wait := ts.Take("agt_1", ts.Of("example.com"), 0, noon); wait != 0 {
		t.Errorf("without a limit one waits for %v", wait)
	}
	if wait := ts.Take("agt_1", ts.Of("example.com"), 60, noon.Add(time.Second)); wait != 0 {
		t.Errorf("after the wait one waits for %v", wait)
	}
	if wait := ts.Take("agt_1", ts.Of("example.com"), 60, noon.Add(-time.Hour)); wait > time.Minute {
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
		if ts.Take("agt_1", ts.Of("198.51.100.7"), 60, at) == 0 {
			made++
		}
	}
	if made != 62 {
		t.Errorf("%d connections were made, want 62", made)
	}
}

// reached counts the connections that an agent makes in a second by names of addresses in turn, as many as it tries.
func reached(ts *Targets, trial bool, perMinute, tries int, name func(int) string, address func(int) string) (made int) {
	for n := range tries {
		at := noon.Add(time.Duration(n) * time.Second / time.Duration(tries))
		if ts.Take("agt_1", ts.Of(name(n)), perMinute, at) == 0 &&
			ts.TakeAddress("agt_1", netip.MustParseAddr(address(n)), true, trial, perMinute, at) == 0 {
			made++
		}
	}
	return made
}

// By 40 names of duckdns.org, each a registrable domain of its own, a trial account made 994 connections to one
// address in a second.
func TestNamesOfOneAddressShareItsLimit(t *testing.T) {
	name := func(n int) string { return fmt.Sprintf("h%d.duckdns.org", n%40) }
	for _, c := range []struct {
		claim   string
		trial   bool
		limit   int
		address func(int) string
		want    int
	}{
		{"one address on trial", true, 60, func(int) string { return "198.51.100.7" }, 60},
		{"one IPv6 address on trial", true, 60, func(int) string { return "2001:db8::7" }, 60},
		{"a network on trial", true, 60, func(n int) string { return fmt.Sprint("198.51.100.", n%200) }, 243},
		{"an IPv6 /64 on trial", true, 60, func(n int) string { return fmt.Sprintf("2001:db8::%x", n%200) }, 243},
		{"networks on trial", true, 60, func(n int) string { return fmt.Sprintf("198.51.%d.7", n%200) }, 994},
		{"an address of a content network", false, 600, func(int) string { return "198.51.100.7" }, 994},
	} {
		if got := reached(NewTargets(), c.trial, c.limit, 994, name, c.address); got != c.want {
			t.Errorf("%s: %d connections, want %d", c.claim, got, c.want)
		}
	}
}

// A paying agent at its limit of distinct targets is not refused although all are at one address.
func TestSharedAddressesServePayingAgents(t *testing.T) {
	shop := func(n int) string { return fmt.Sprintf("shop%d.example", n) }
	if got := reached(NewTargets(), false, 600, 2000, shop, func(int) string { return "198.51.100.7" }); got != 2000 {
		t.Errorf("%d shops of 2000 at one address", got)
	}
	if got := reached(NewTargets(), false, 600, 9000, shop, func(n int) string { return fmt.Sprint("198.51.100.", n%250) }); got != 4879 {
		t.Errorf("%d connections to one network, want 4,800 and 79 of the second", got)
	}
}

// The connections to an address count for it by number and by name.
func TestAnAddressIsOneTargetByNumberAndByName(t *testing.T) {
	ts, addr := NewTargets(), netip.MustParseAddr("198.51.100.7")
	for range 30 {
		if ts.Take("agt_1", ts.Of("198.51.100.7"), 60, noon) > 0 || ts.TakeAddress("agt_1", addr, false, true, 60, noon) > 0 ||
			ts.TakeAddress("agt_1", addr, true, true, 60, noon) > 0 {
			t.Fatal("refused too early")
		}
	}
	if ts.TakeAddress("agt_1", addr, true, true, 60, noon) == 0 || ts.Take("agt_1", ts.Of("::ffff:198.51.100.7"), 60, noon) == 0 {
		t.Error("the limit is not shared")
	}
	if ts.TakeAddress("agt_2", addr, true, true, 60, noon) > 0 || ts.TakeAddress("agt_1", addr, true, true, 0, noon) > 0 {
		t.Error("another agent, or one without a limit, is refused")
	}
	if ts.TakeAddress("agt_1", netip.MustParseAddr("2001:db8::1"), false, true, 1, noon) > 0 || ts.Len() != 4 {
		t.Errorf("an IPv6 address by number was counted twice: %d targets", ts.Len())
	}
}

// An agent with many targets does not make the counters of another disappear first.
func TestTargetsAreBounded(t *testing.T) {
	ts := NewTargets()
	ts.max = 100
	for range 60 {
		ts.Take("agt_1", ts.Of("victim.example"), 60, noon)
	}
	for n := range 10_000 {
		ts.Take("agt_2", ts.Of(fmt.Sprintf("h%d.example", n)), 60, noon)
	}
	if ts.Len() > 100 {
		t.Errorf("%d targets are counted", ts.Len())
	}
	if wait := ts.Take("agt_1", ts.Of("victim.example"), 60, noon); wait == 0 {
		t.Error("a counter at its limit was forgotten for new ones")
	}
}
