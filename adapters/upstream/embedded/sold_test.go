package embedded_test

import (
	"net/netip"
	"testing"

	"agentproxy/adapters/upstream/embedded"
	"agentproxy/domain/session"
)

// Loopback addresses of development are for anybody; a declared fixed address takes own money.
func TestTrialCreditBuysNoDeclaredFixedAddress(t *testing.T) {
	for _, everywhere := range []bool{true, false} {
		p, err := embedded.New(embedded.Config{Exits: addresses("203.0.113.1", "203.0.113.2"), Usable: any,
			Everywhere: everywhere}, silent)
		if err != nil {
			t.Fatal(err)
		}
		for _, sold := range p.Products() {
			if want := !everywhere && sold.Type == session.Static; sold.OwnMoneyOnly != want {
				t.Errorf("%s, everywhere %t: own money alone is %t", sold.No, everywhere, sold.OwnMoneyOnly)
			}
		}
	}
}

// What is sold static is served where it is configured and can be bound; what is not configured is not.
func TestWhatIsSoldStaticIsServed(t *testing.T) {
	down := netip.MustParseAddr("203.0.113.3")
	p, err := embedded.New(embedded.Config{Exits: addresses("203.0.113.1", "203.0.113.2"),
		Usable: func(a netip.Addr) bool { return a != down }}, silent)
	if err != nil {
		t.Fatal(err)
	}
	for exit, want := range map[string]bool{"203.0.113.1": true, "203.0.113.2": true, "203.0.113.9": false} {
		if got := p.Serves(netip.MustParseAddr(exit)); got != want {
			t.Errorf("%s is served: %t", exit, got)
		}
	}
	down = netip.MustParseAddr("203.0.113.2")
	if p.Serves(down) {
		t.Error("an address that cannot be bound is served")
	}
}
