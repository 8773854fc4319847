package gateway

import (
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"agentproxy/adapters/gateway/monotime"
	"agentproxy/domain/policy"
)

// An address counts for ten minutes after a denied name resolved to it, and no longer than the name is denied.
func TestAnAddressOfADeniedNameCountsForTenMinutes(t *testing.T) {
	t.Parallel()
	var b policy.Builder
	if err := b.Deny("bad.test"); err != nil {
		t.Fatal(err)
	}
	layers, addr := policy.Layers{Operator: b.Rules()}, netip.MustParseAddr("198.51.100.7")
	synctest.Test(t, func(t *testing.T) {
		d := newDeniedNames()
		denied := func() bool { return d.denialOf(addr, layers, "", "").Refuses() }
		d.add(scope{layer: policy.Operator}, "bad.test", addr)
		time.Sleep(10*time.Minute - 1)
		if !denied() {
			t.Error("it is not denied before ten minutes are over")
		}
		if d.denialOf(addr, policy.Layers{}, "", "").Refuses() {
			t.Error("it is denied without the rule")
		}
		time.Sleep(time.Nanosecond)
		if denied() {
			t.Error("it is denied after ten minutes")
		}
		if d.trim(monotime.Now()); len(d.addrs) != 0 {
			t.Errorf("%d addresses are remembered after their time", len(d.addrs))
		}
	})
}

// One with many denied names neither fills the memory nor holds up the resolver.
func TestDeniedNamesAreBounded(t *testing.T) {
	t.Parallel()
	d := newDeniedNames()
	mine := scope{layer: policy.Session, id: "sess_1"}
	for n := range maxDenied + 100 {
		d.add(mine, "bad.test", netip.AddrFrom4([4]byte{198, byte(n >> 16), byte(n >> 8), byte(n)}))
	}
	if n := len(d.addrs); n > maxDenied {
		t.Errorf("%d addresses are remembered", n)
	}
	begun := 0
	for n := range maxLookups + 10 {
		if d.beginLookup(mine, fmt.Sprintf("h%d.bad.test", n)) {
			begun++
		}
	}
	if begun != maxLookups {
		t.Errorf("%d names are looked up at once, want %d", begun, maxLookups)
	}
	d.endLookup()
	if d.beginLookup(mine, "h0.bad.test") || !d.beginLookup(mine, "another.bad.test") {
		t.Error("a name is looked up again, or another one is not")
	}
}
