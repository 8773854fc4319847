package conns_test

import (
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"agentproxy/adapters/conns"
)

// peer is a connection whose closing takes effect when the test removes it.
type peer struct {
	slot    conns.Slot
	evicted bool
	sent    bool // something that is unread
}

func (p *peer) Evict()       { p.evicted = true }
func (p *peer) Unread() bool { return p.sent }

func address(n int) netip.Addr { return netip.AddrFrom4([4]byte{198, 51, byte(n >> 8), byte(n)}) }

// join adds a connection of an address, and demands that it is admitted.
func join(t *testing.T, table *conns.Table, addr netip.Addr) *peer {
	t.Helper()
	p := &peer{}
	if !table.Add(&p.slot, p, addr) {
		t.Fatalf("a connection of %s was refused", addr)
	}
	return p
}

// evicted lists which of the connections were evicted.
func evicted(peers []*peer) (list []int) {
	for i, p := range peers {
		if p.evicted {
			list = append(list, i)
		}
	}
	return list
}

func TestAStrangerHasAShare(t *testing.T) {
	t.Parallel()
	table := conns.New(conns.Config{Limit: 100, PerAddress: 4})
	var strangers []*peer
	for range 7 {
		strangers = append(strangers, join(t, table, address(1)))
	}
	other := join(t, table, address(2))
	if got := fmt.Sprint(evicted(strangers)); got != "[0 1 2]" || other.evicted {
		t.Errorf("evicted %s of seven with a bound of four", got)
	}
	t.Run("with a credential it does not count", func(t *testing.T) {
		table.Serve(&strangers[6].slot)
		before := len(evicted(strangers))
		join(t, table, address(1))
		if after := len(evicted(strangers)); after != before {
			t.Error("one was evicted for a connection within the bound")
		}
	})
	t.Run("the addresses of an IPv6 network are one client", func(t *testing.T) {
		var six []*peer
		for i := range 5 {
			six = append(six, join(t, table, netip.MustParseAddr(fmt.Sprintf("2001:db8:1:2::%x", i))))
		}
		join(t, table, netip.MustParseAddr("2001:db8:1:3::1"))
		if got := fmt.Sprint(evicted(six)); got != "[0]" {
			t.Errorf("evicted %s of five", got)
		}
	})
	t.Run("an IPv4 address in IPv6 is the IPv4 address", func(t *testing.T) {
		mapped := netip.AddrFrom16(address(3).As16())
		peers := []*peer{join(t, table, address(3)), join(t, table, mapped), join(t, table, address(3)), join(t, table, mapped), join(t, table, address(3))}
		if got := fmt.Sprint(evicted(peers)); got != "[0]" {
			t.Errorf("evicted %s of five", got)
		}
	})
	t.Run("behind a reverse proxy there is no bound", func(t *testing.T) {
		table := conns.New(conns.Config{Limit: 100, PerAddress: 4, Exempt: []netip.Prefix{netip.MustParsePrefix("198.51.0.0/16")}})
		var peers []*peer
		for range 20 {
			peers = append(peers, join(t, table, address(1)))
		}
		if got := evicted(peers); got != nil {
			t.Errorf("evicted %v", got)
		}
	})
}

// What the service has not read yet waits for the service: a burst is not closed.
func TestABurstIsNotEvicted(t *testing.T) {
	t.Parallel()
	table := conns.New(conns.Config{Limit: 100, PerAddress: 4})
	var burst []*peer
	for range 16 {
		p := join(t, table, address(1))
		p.sent = true
		burst = append(burst, p)
	}
	if got := evicted(burst); got != nil {
		t.Errorf("evicted %v of a burst", got)
	}
	p := &peer{}
	if table.Add(&p.slot, p, address(1)) {
		t.Error("an address has more than four times its share")
	}
	burst[3].sent = false
	join(t, table, address(1))
	if got := fmt.Sprint(evicted(burst)); got != "[3]" {
		t.Errorf("evicted %s, want the one that is quiet", got)
	}
}

func TestAFullListenerMakesRoom(t *testing.T) {
	t.Parallel()
	table := conns.New(conns.Config{Limit: 5})
	var peers []*peer
	for i := range 5 {
		peers = append(peers, join(t, table, address(i)))
	}
	table.Serve(&peers[0].slot) // a tunnel
	table.Serve(&peers[1].slot) // a request with a credential, answered
	table.Wait(&peers[1].slot)
	table.Work(&peers[2].slot) // a request without one
	for n, want := range []string{"[3]", "[3 4]"} {
		join(t, table, address(10+n)).sent = true
		if got := fmt.Sprint(evicted(peers)); got != want {
			t.Errorf("evicted %s, want %s: the oldest without a credential first", got, want)
		}
		table.Remove(&peers[3+n].slot)
	}
	t.Run("then between two requests", func(t *testing.T) {
		table := conns.New(conns.Config{Limit: 2})
		a, b := join(t, table, address(1)), join(t, table, address(2))
		for _, p := range []*peer{a, b} {
			table.Serve(&p.slot)
		}
		table.Wait(&b.slot)
		table.Wait(&a.slot)
		join(t, table, address(3))
		if a.evicted || !b.evicted {
			t.Errorf("evicted %v and %v, want the one that waits longest", a.evicted, b.evicted)
		}
	})
	t.Run("what is served stays", func(t *testing.T) {
		asked := 0
		table := conns.New(conns.Config{Limit: 2, MakeRoom: func() bool { asked++; return asked > 1 }})
		a, b := join(t, table, address(1)), join(t, table, address(2))
		table.Serve(&a.slot)
		table.Work(&b.slot)
		c := &peer{}
		if table.Add(&c.slot, c, address(3)) || asked != 1 {
			t.Error("a third was admitted")
		}
		if !table.Add(&c.slot, c, address(3)) || table.Open() != 3 {
			t.Error("it was refused although there is room soon")
		}
		d := &peer{}
		table.Serve(&c.slot)
		if table.Add(&d.slot, d, address(4)) {
			t.Error("there are more than the bound and those that end")
		}
		if a.evicted || b.evicted {
			t.Error("one that is served was evicted")
		}
	})
}

func TestAnEvictedConnectionStaysEvicted(t *testing.T) {
	t.Parallel()
	table := conns.New(conns.Config{Limit: 1})
	a := join(t, table, address(1))
	b := join(t, table, address(1))
	if !a.evicted {
		t.Fatal("a is not evicted")
	}
	table.Serve(&a.slot) // its goroutine has not noticed yet
	table.Wait(&a.slot)
	table.Remove(&a.slot)
	table.Remove(&a.slot)
	table.Remove(&b.slot)
	if table.Open() != 0 {
		t.Errorf("%d are open after the last", table.Open())
	}
}

// Whatever happens in whatever order, the number of connections is right, no more are open
// than the bound and those that end, and only what waits is evicted.
func TestAnyOrder(t *testing.T) {
	t.Parallel()
	// No time passes while the table waits. The wrapper hides the deadline, which a bubble does not have.
	synctest.Test(t, func(t *testing.T) { rapid.Check(struct{ testing.TB }{t}, anyOrder) })
}

func anyOrder(t *rapid.T) {
	limit, each := rapid.IntRange(1, 12).Draw(t, "limit"), rapid.IntRange(0, 4).Draw(t, "each")
	table := conns.New(conns.Config{Limit: limit, PerAddress: each})
	type known struct {
		*peer
		served bool
	}
	var open []*known
	t.Repeat(map[string]func(*rapid.T){
		"add": func(t *rapid.T) {
			k := &known{peer: &peer{sent: rapid.Bool().Draw(t, "sent")}}
			before := map[*known]bool{}
			for _, o := range open {
				before[o] = o.evicted
			}
			if table.Add(&k.slot, k, address(rapid.IntRange(1, 3).Draw(t, "address"))) {
				open = append(open, k)
			}
			for o, was := range before {
				if o.evicted && !was && o.served {
					t.Fatal("one that is served was evicted")
				}
			}
		},
		"change": func(t *rapid.T) {
			if len(open) == 0 {
				t.Skip()
			}
			k := rapid.SampledFrom(open).Draw(t, "which")
			switch rapid.IntRange(0, 3).Draw(t, "how") {
			case 0:
				table.Serve(&k.slot)
				k.served = true
			case 1:
				table.Work(&k.slot)
				k.served = true
			case 2:
				table.Wait(&k.slot)
				k.served = false
			case 3:
				table.Trust(&k.slot)
			}
		},
		"remove": func(t *rapid.T) {
			if len(open) == 0 {
				t.Skip()
			}
			i := rapid.IntRange(0, len(open)-1).Draw(t, "which")
			table.Remove(&open[i].slot)
			open = append(open[:i], open[i+1:]...)
		},
		"": func(t *rapid.T) {
			alive := 0
			for _, o := range open {
				if !o.evicted {
					alive++
				}
			}
			if table.Open() != len(open) || alive > limit {
				t.Fatalf("%d open, %d counted, %d not evicted of at most %d", len(open), table.Open(), alive, limit)
			}
		},
	})
}
