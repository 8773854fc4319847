package contract

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// LocalProvider sells both types without IO.
type LocalProvider interface {
	ports.Dynamic
	ports.Static
}

// Local tests a provider of addresses of this host for its contract beyond Seller. Open
// returns one with 20 static addresses and two dynamic ones, all free.
func Local(t *testing.T, open func(t *testing.T) LocalProvider) {
	t.Run("a static session gets different addresses that no other session has", func(t *testing.T) { localStatic(t, open(t)) })
	t.Run("an order of a session is answered as before", func(t *testing.T) { localRepeat(t, open(t)) })
	t.Run("a rotation gives another exit", func(t *testing.T) { localRotate(t, open(t)) })
	t.Run("a static address is never a dynamic exit", func(t *testing.T) { localDisjoint(t, open(t)) })
	t.Run("an address that an agent may not have is not given to it", func(t *testing.T) { localAllows(t, open(t)) })
	t.Run("an order beyond the stock delivers nothing", func(t *testing.T) { localStock(t, open(t)) })
}

// localIntent returns the intent of the n-th session.
func localIntent(typ session.Type, n, quantity int) procurement.Intent {
	return procurement.Intent{Key: fmt.Sprint(n), SessionID: fmt.Sprintf("sess_%020d", n), Type: typ, Quantity: quantity, Days: 30}
}

func localBuy(t *testing.T, p ports.Provider, in procurement.Intent) (ips []string) {
	t.Helper()
	d, err := p.Order(t.Context(), in)
	if err != nil || d.State != procurement.Live {
		t.Fatalf("order of %s: %s, %v", in.SessionID, d.State, err)
	}
	for _, ip := range d.IPs {
		if !ip.Addr.IsValid() || ip.Host != "" || in.Taken[ip.Addr.String()] {
			t.Errorf("%s got the address %s at %q, which is invalid or taken", in.SessionID, ip.Addr, ip.Host)
		}
		ips = append(ips, ip.Addr.String())
	}
	if slices.Sort(ips); len(ips) != in.Quantity || len(slices.Compact(slices.Clone(ips))) != in.Quantity {
		t.Fatalf("%s got %v, want %d different addresses", in.SessionID, ips, in.Quantity)
	}
	return ips
}

func localStatic(t *testing.T, p ports.Provider) {
	taken := map[string]bool{}
	for n := range 4 {
		in := localIntent(session.Static, n, 5)
		in.Taken = taken
		for _, ip := range localBuy(t, p, in) {
			taken[ip] = true
		}
		if len(taken) != (n+1)*5 {
			t.Fatalf("after %d orders of 5 there are %d different addresses", n+1, len(taken))
		}
		// An address of a cancelled order stays taken while a session owns it.
		if err := p.Cancel(t.Context(), in.SessionID); err != nil {
			t.Fatal(err)
		}
	}
}

func localRepeat(t *testing.T, p ports.Provider) {
	for _, in := range []procurement.Intent{localIntent(session.Dynamic, 1, 1), localIntent(session.Static, 2, 3)} {
		first := localBuy(t, p, in)
		for range 5 {
			if again := localBuy(t, p, in); !slices.Equal(again, first) {
				t.Errorf("%s: repeated, the order got %v, want %v", in.Type, again, first)
			}
		}
	}
}

func localRotate(t *testing.T, p ports.Dynamic) {
	in := localIntent(session.Dynamic, 1, 1)
	d, err := p.Order(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	current := session.Exit{IP: d.IPs[0].Addr}
	for range 50 {
		next, err := p.NewExit(in, current)
		if err != nil {
			t.Fatal(err)
		}
		if next == current || !next.IP.IsValid() {
			t.Fatalf("rotated from %s to %s", current.IP, next.IP)
		}
		current = next
	}
}

func localDisjoint(t *testing.T, p ports.Dynamic) {
	static := localBuy(t, p, localIntent(session.Static, 1, 20))
	for n := range 200 {
		in := localIntent(session.Dynamic, 100+n, 1)
		ip := localBuy(t, p, in)[0]
		rotated, err := p.NewExit(in, session.Exit{})
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(static, ip) || slices.Contains(static, rotated.IP.String()) {
			t.Fatalf("%s or %s is a static address too", ip, rotated.IP)
		}
	}
}

func localStock(t *testing.T, p ports.Provider) {
	taken := map[string]bool{}
	for n := range 200 {
		in := localIntent(session.Static, n, 7)
		in.Taken = taken
		d, err := p.Order(t.Context(), in)
		if procurement.ClassOf(err) == procurement.OutOfStock {
			if n < 2 || len(d.IPs) > 0 {
				t.Errorf("order %d of 7 is out of stock with %v", n+1, d.IPs)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, ip := range d.IPs {
			taken[ip.Addr.String()] = true
		}
	}
	t.Error("it is never out of stock")
}

func localAllows(t *testing.T, p ports.Provider) {
	in := localIntent(session.Static, 1, 10)
	in.Avoid = map[string]bool{}
	for _, ip := range localBuy(t, p, in) {
		in.Avoid[ip] = true
	}
	for _, ip := range localBuy(t, p, in) {
		if in.Avoid[ip] {
			t.Errorf("%s was to be avoided", ip)
		}
	}
	in.Passes = func(netip.Addr) bool { return false }
	if _, err := p.Order(t.Context(), in); procurement.ClassOf(err) != procurement.OutOfStock {
		t.Errorf("none passes: %v", err)
	}
}
