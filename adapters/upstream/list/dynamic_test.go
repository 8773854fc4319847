package list_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/upstream/list"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/contract"
)

func TestDynamicContract(t *testing.T) {
	t.Parallel()
	contract.Seller(t, func(t *testing.T) contract.Selling {
		w := newWorld(t, hosts(50, " US miami"))
		return contract.Selling{Provider: w.dynamic(), Sold: w.sold,
			Dynamic: &procurement.Intent{Bytes: 1e9, Location: session.Location{Country: "US", City: "miami"}}}
	})
}

// exitOf returns the host of the line of a turn.
func exitOf(t *testing.T, p *list.Dynamic, d procurement.Delivery, country string, turn int) string {
	t.Helper()
	e, err := p.Endpoint(d.Access, procurement.Target{Location: session.Location{Country: country}, Token: "abcd1234", Turn: turn})
	if err != nil {
		t.Fatal(err)
	}
	return e.Host
}

func TestASessionRotatesThroughTheLinesOfItsPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, hosts(4, " US")+"203.0.113.1:1 DE\n203.0.113.2:1 US - - - 1\n203.0.113.3:1 US\n")
	w.exit("203.0.113.3", "") // it does not work
	p := w.dynamic()
	in := order(session.Dynamic, 1)
	in.Location.Country = "US"
	d := w.buy(p, in)
	var seen []string
	for turn := range 4 {
		seen = append(seen, exitOf(t, p, d, "US", turn))
	}
	all := slices.Clone(seen)
	slices.Sort(all)
	if got := slices.Compact(all); len(got) != 4 || slices.ContainsFunc(got, func(h string) bool { return !strings.HasPrefix(h, "198.51.") }) {
		t.Errorf("four turns are at %v", seen)
	}
	if exitOf(t, p, d, "US", 4) != seen[0] || exitOf(t, p, d, "US", 1) != seen[1] {
		t.Error("the turns do not repeat")
	}
	if _, err := p.NewExit(in, session.Exit{}); err != nil {
		t.Error(err)
	}
	if in.Location.Country = "DE"; exitOf(t, p, d, "DE", 3) != "203.0.113.1" {
		t.Error("another place")
	}
	if _, err := p.NewExit(in, session.Exit{}); procurement.ClassOf(err) != procurement.OutOfStock {
		t.Errorf("one line alone is no rotation: %v", err)
	}
	if _, err := p.Endpoint(d.Access, procurement.Target{Location: session.Location{Country: "GB"}, Token: "abcd1234"}); procurement.ClassOf(err) != procurement.OutOfStock {
		t.Errorf("a place without lines: %v", err)
	}
}

func TestSessionsAreSpreadAndBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "198.51.100.1:1 # sessions=2\n198.51.100.2:1 # sessions=2\n198.51.100.3:1 # sessions=1\n")
	p := w.dynamic()
	homes := map[string]int{}
	for n := range 5 {
		homes[exitOf(t, p, w.buy(p, order(session.Dynamic, n)), "", 0)]++
	}
	if homes["198.51.100.1"] != 2 || homes["198.51.100.2"] != 2 || homes["198.51.100.3"] != 1 {
		t.Errorf("the sessions are at %v", homes)
	}
	w.refused(p, order(session.Dynamic, 9), procurement.OutOfStock)
	if q, err := p.Quote(t.Context(), order(session.Dynamic, 9)); err != nil || q.Stock != procurement.StockNo {
		t.Errorf("the quote is %+v, %v", q, err)
	}
	if offers, err := p.Offers(t.Context()); err != nil || len(offers) != 1 || offers[0].Stock != procurement.StockNo {
		t.Errorf("the offers are %+v, %v", offers, err)
	}
	d, err := p.Read(t.Context(), "ord_3")
	if err != nil {
		t.Fatal(err)
	}
	if home := exitOf(t, p, d, "", 0); exitOf(t, p, d, "", 5) != home { // every other line is bounded
		t.Error("a session left its seat")
	}
	if err := p.Cancel(t.Context(), "ord_3"); err != nil {
		t.Fatal(err)
	}
	w.buy(p, order(session.Dynamic, 9))
	w.refused(p, order(session.Dynamic, 10), procurement.OutOfStock)
}

func TestASessionWhoseLineIsGoneGetsAnotherHome(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "198.51.100.1:1 # sessions=1\n")
	p := w.dynamic()
	w.buy(p, order(session.Dynamic, 1))
	w.write("198.51.100.2:1 # sessions=1\n")
	w.keep(p)
	if _, err := p.Read(t.Context(), "ord_1"); procurement.ClassOf(err) != procurement.Temporary {
		t.Errorf("it is moved at once: %v", err)
	}
	w.write("198.51.100.1:1 # sessions=1\n")
	w.advance(time.Hour)
	w.keep(p)
	if d, err := p.Read(t.Context(), "ord_1"); err != nil || exitOf(t, p, d, "", 0) != "198.51.100.1" {
		t.Errorf("the line is back: %+v, %v", d, err)
	}
	w.write("198.51.100.2:1 # sessions=1\n")
	w.keep(p)
	if _, err := p.Read(t.Context(), "ord_1"); procurement.ClassOf(err) != procurement.Temporary {
		t.Errorf("it is moved before an hour of its second absence: %v", err)
	}
	w.advance(time.Hour)
	w.keep(p)
	d, err := p.Read(t.Context(), "ord_1")
	if err != nil || exitOf(t, p, d, "", 0) != "198.51.100.2" {
		t.Fatalf("read: %+v, %v", d, err)
	}
	w.refused(p, order(session.Dynamic, 2), procurement.OutOfStock)
	w.write("198.51.100.3:1 DE\n")
	w.keep(p)
	in := order(session.Dynamic, 3)
	in.Location.Country = "DE"
	w.buy(p, in)
	w.write("198.51.100.4:1 FR\n")
	w.keep(p)
	if _, err := p.Read(t.Context(), "ord_3"); procurement.ClassOf(err) != procurement.Temporary {
		t.Errorf("without a line there: %v", err)
	}
}

func TestALineIsUsedUntilItFailsAgainAndAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, hosts(2, ""))
	p := w.dynamic()
	d := w.buy(p, order(session.Dynamic, 1))
	home := exitOf(t, p, d, "", 0)
	w.exit(home, "")
	for n := range 3 {
		if got := exitOf(t, p, d, "", 0); got != home {
			t.Fatalf("after %d failures the exit is %s", n, got)
		}
		w.advance(10 * time.Minute)
		w.keep(p)
	}
	if got := exitOf(t, p, d, "", 0); got == home {
		t.Error("after three failures the line is used still")
	}
	w.exit(home, home)
	w.advance(10 * time.Minute)
	w.keep(p)
	if got := exitOf(t, p, d, "", 0); got != home {
		t.Error("a line that works again is not used")
	}
}

func TestAListThatCannotBeLoadedAtAStartServesTheHomeLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "http://bob:secret@198.51.100.1:81\n")
	d := w.buy(w.dynamic(), order(session.Dynamic, 1))
	c := w.config("dynamic")
	c.File, c.URL = "", "http://127.0.0.1:1/list"
	p := open[*list.Dynamic](t, c)
	if p.Ready() != true {
		t.Error("it is not ready before it was tried")
	}
	w.keep(p)
	e, err := p.Endpoint(d.Access, procurement.Target{Token: "abcd1234", Turn: 3})
	if err != nil || e.Host != "198.51.100.1" || e.Port != 81 || e.User != "bob" || e.Password != "secret" || p.Ready() {
		t.Errorf("the endpoint is %s:%d %s, %v; ready %v", e.Host, e.Port, e.User, err, p.Ready())
	}
	if _, err := p.Order(t.Context(), order(session.Dynamic, 2)); procurement.ClassOf(err) != procurement.Temporary {
		t.Errorf("an order meanwhile: %v", err)
	}
}

// A rotation stays with the network that was sold, dear or cheap.
func TestARotationKeepsTheNetwork(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "198.51.100.1:1 US - mobile\n198.51.100.2:1 US - mobile\n198.51.100.3:1 US - datacenter\n"+
		"198.51.100.4:1 US - datacenter\n")
	p := w.dynamic()
	for n, sku := range []string{"datacenter", "mobile"} {
		in := order(session.Dynamic, n)
		in.SKU, in.Location.Country = sku, "US"
		d := w.buy(p, in)
		used := map[string]bool{}
		for turn := range 6 {
			exit := exitOf(t, p, d, "US", turn)
			used[exit] = true
			if mobile := exit < "198.51.100.3"; mobile != (sku == "mobile") {
				t.Errorf("sold %s, turn %d is carried by %s", sku, turn, exit)
			}
		}
		if len(used) != 2 {
			t.Errorf("%s rotates through %v", sku, used)
		}
	}
}

// An order gets a line alone whose exit passes, and the exits of its turns are those of their lines.
func TestAnOrderGetsLinesThatPass(t *testing.T) {
	t.Parallel()
	for _, typ := range []session.Type{session.Dynamic, session.Static} {
		w := newWorld(t, hosts(6, " US"))
		in := order(typ, 1)
		var p ports.ExitLister = w.dynamic()
		if typ == session.Static {
			p, in.Quantity = w.static(), 2
		}
		all, err := p.Available(t.Context(), in)
		if err != nil || len(all) != 6 {
			t.Fatalf("available are %v: %v", all, err)
		}
		in.Passes = func(a netip.Addr) bool { return a == all[3] || a == all[4] }
		if again, _ := p.Available(t.Context(), in); len(again) != 6 {
			t.Errorf("available are %v", again)
		}
		d := w.buy(p, in)
		if typ == session.Static {
			if got := []netip.Addr{d.IPs[0].Addr, d.IPs[1].Addr}; !slices.Contains(got, all[3]) || !slices.Contains(got, all[4]) {
				t.Errorf("sold %v of %v", got, all)
			}
			in.Key = "ord_more"
			w.refused(p, in, procurement.OutOfStock)
			if left, _ := p.Available(t.Context(), in); len(left) != 4 {
				t.Errorf("left are %v", left)
			}
			continue
		}
		turns := p.InTurn(d.Access, in.Location)
		if len(turns) != 6 || turns[0] != all[3] && turns[0] != all[4] {
			t.Errorf("the turns are %v", turns)
		}
		for i, a := range turns {
			line, _ := w.probe(t.Context(), list.Line{Host: exitOf(t, p.(*list.Dynamic), d, "", i)})
			if line.Exit != a {
				t.Errorf("turn %d is %v, not %v", i, line.Exit, a)
			}
		}
	}
}
