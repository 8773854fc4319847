package list_test

import (
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"agentproxy/adapters/upstream/list"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/contract"
)

// miami is the place of the lines of the contract's list.
var miami = session.Location{Country: "US", City: "miami"}

func TestReplacerContract(t *testing.T) {
	t.Parallel()
	contract.Replacer(t, func(t *testing.T) contract.Replacing {
		w := newWorld(t, "203.0.113.9:1:user:secret DE\n"+hosts(12, " US miami"))
		p := w.static()
		return contract.Replacing{Provider: p, Chooses: true, Secrets: []string{"secret"},
			Intent: procurement.Intent{Days: 30, Quantity: 3, Location: miami},
			Exhaust: func() {
				in := order(session.Static, 99)
				in.Quantity, in.Location = 9, miami
				w.buy(p, in)
			}}
	})
}

// give returns the replacement of an address.
func give(addr netip.Addr) procurement.Replacement {
	return procurement.Replacement{Key: "rep_1", Addr: addr, Fault: procurement.Listed}
}

func TestAReplacementIsOfTheSamePlaceKindAndTerm(t *testing.T) {
	t.Parallel()
	soon := time.Now().UTC().AddDate(0, 0, 20).Format(time.DateOnly)
	w := newWorld(t, "198.51.100.1:1 US miami isp\n198.51.100.2:1 DE - isp\n198.51.100.3:1 US boston isp\n"+
		"198.51.100.4:1 US miami mobile\n198.51.100.5:1 US miami isp "+soon+"\n198.51.100.1:2 US miami isp\n")
	p := w.static()
	in := order(session.Static, 1)
	in.SKU, in.Location = "isp", miami
	d := w.buy(p, in)
	old := d.IPs[0].Addr
	for claim, ask := range map[string]procurement.Replacement{
		"the order's place": give(old), "the place that is asked for": {Addr: old, Location: miami},
	} {
		if err := p.Replace(t.Context(), d.Ref, ask); procurement.ClassOf(err) != procurement.OutOfStock {
			t.Errorf("%s: another place, kind, end, or the same exit: %v", claim, err)
		}
	}
	w.write("198.51.100.1:1 US miami isp\n198.51.100.6:1 US miami isp\n")
	w.keep(p)
	if err := p.Replace(t.Context(), d.Ref, give(old)); err != nil {
		t.Fatal(err)
	}
	got, err := p.Read(t.Context(), d.Ref)
	if err != nil || got.IPs[0].Addr.String() != "198.51.100.6" || !got.ExpiresAt.Equal(d.ExpiresAt) || got.SKU != "isp" {
		t.Errorf("replaced: %+v, %v", got, err)
	}
	if _, err := p.Renew(t.Context(), d.Ref, order(session.Static, 2)); err != nil {
		t.Errorf("renew: %v", err)
	}
}

func TestWhatIsGivenBackIsFreeAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, hosts(2, ""))
	p := w.static()
	d := w.buy(p, order(session.Static, 1))
	old := d.IPs[0].Addr
	if err := p.Replace(t.Context(), d.Ref, give(old)); err != nil {
		t.Fatal(err)
	}
	avoiding := order(session.Static, 2)
	avoiding.Avoid = map[string]bool{old.String(): true}
	w.refused(p, avoiding, procurement.OutOfStock) // the one that gave it back
	if q, err := p.Quote(t.Context(), avoiding); err != nil || q.Stock != procurement.StockNo {
		t.Errorf("the quote of what it gave back is %+v, %v", q, err)
	}
	other := order(session.Static, 3)
	if q, err := p.Quote(t.Context(), other); err != nil || q.Stock != procurement.StockYes {
		t.Errorf("the quote of another is %+v, %v", q, err)
	}
	if got := w.buy(p, other).IPs[0].Addr; got != old {
		t.Errorf("another order got %s, want %s", got, old)
	}
}

func TestALineThatIsGoneOrHasMovedIsReplacedByItsAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "198.51.100.1:1\n198.51.100.2:1\n198.51.100.3:1\n")
	p := w.static()
	in := order(session.Static, 1)
	in.Quantity = 2
	d := w.buy(p, in)
	w.write("198.51.100.2:1\n198.51.100.3:1\n") // the line of 198.51.100.1 is gone
	w.exit("198.51.100.2", "203.0.113.2")       // and the other has moved
	w.advance(15 * time.Minute)
	w.keep(p)
	if err := p.Replace(t.Context(), d.Ref, give(netip.MustParseAddr("198.51.100.1"))); err != nil {
		t.Fatal(err)
	}
	got, err := p.Read(t.Context(), d.Ref)
	if err != nil || fmt.Sprint(got.IPs) != "[203.0.113.2 198.51.100.3]" && fmt.Sprint(got.IPs) != "[198.51.100.3 203.0.113.2]" {
		t.Errorf("replaced: %v, %v", got.IPs, err)
	}
}

func TestReplicasReplaceAnAddressOnce(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, stores func() ports.Store) {
		w := newWorld(t, hosts(40, ""))
		var all []*list.Static
		for range 4 {
			w.store = stores()
			all = append(all, w.static())
		}
		in := order(session.Static, 1)
		in.Quantity = 2
		d := w.buy(all[0], in)
		var wg sync.WaitGroup
		for n := range 100 {
			wg.Go(func() {
				if err := all[n%4].Replace(t.Context(), d.Ref, give(d.IPs[0].Addr)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		got, err := all[1].Read(t.Context(), d.Ref)
		if err != nil || len(got.IPs) != 2 {
			t.Fatalf("read: %v, %v", got.IPs, err)
		}
		rest := order(session.Static, 2)
		rest.Quantity = 38 // all others, the one that was given back among them
		w.buy(all[2], rest)
		w.refused(all[3], order(session.Static, 3), procurement.OutOfStock)
	})
}

func TestARefusedReplacementOfANewListProvesThatNothingHappened(t *testing.T) {
	t.Parallel()
	w := newWorld(t, hosts(2, ""))
	w.store = nil
	p := w.static()
	err := p.Replace(t.Context(), "ord_1", give(netip.MustParseAddr("198.51.100.1")))
	if procurement.ClassOf(err) != procurement.Temporary {
		t.Errorf("without a store: %v", err)
	}
	if _, err := p.QuoteReplacement(t.Context(), "ord_1", give(netip.MustParseAddr("198.51.100.1"))); err == nil {
		t.Error("quoted without a store")
	}
}
