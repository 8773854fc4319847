// Package contract has one suite per port, which tests the contract in its comments for
// every adapter of that port.
package contract

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// Selling is a provider at a fake seller, with the test's controls of that seller.
type Selling struct {
	Provider ports.Provider
	// Dynamic and Static are intents without a Key; nil if that type is not sold.
	Dynamic, Static *procurement.Intent
	// Sold returns the number of sales; nil if the seller does not record them.
	Sold func() int
	// LoseAnswer makes the seller execute the next order without an answer. LoseRequest
	// drops the next order before it arrives. Both are nil if no order can be lost.
	LoseAnswer, LoseRequest func()
	// Vanish removes an order at the seller; nil if that is not possible.
	Vanish func(ref string)
}

// Seller tests the contract of a ports.Provider. Open returns one at a seller with stock
// and funds for 40 orders of each type.
func Seller(t *testing.T, open func(t *testing.T) Selling) {
	for name, test := range map[string]func(t *testing.T, s Selling, in procurement.Intent){
		"an order is delivered as requested":                sellerDelivers,
		"reading changes nothing":                           sellerReads,
		"an order whose answer is lost is found, and alone": sellerLostAnswer,
		"an order whose request is lost is proven absent":   sellerLostRequest,
		"an order of a known key is answered as before":     sellerRepeats,
		"an order can be cancelled repeatedly":              sellerCancels,
		"what was ordered is listed until it is cancelled":  sellerLists,
		"a quote buys nothing":                              sellerQuotes,
		"an order that the seller removed is gone":          sellerVanishes,
		"a cancelled context buys nothing":                  sellerLeft,
		"many may order at once":                            sellerParallel,
		"a renewal moves the end of every address":          sellerRenews,
		"an access has a meter, and a switch that keeps it": sellerControls,
		"an endpoint is computed, and a token is an exit":   sellerEndpoint,
		"capabilities match the methods":                    sellerCapabilities,
	} {
		t.Run(name, func(t *testing.T) {
			for _, typ := range []session.Type{session.Dynamic, session.Static} {
				t.Run(string(typ), func(t *testing.T) {
					s := open(t)
					in := s.Dynamic
					if typ == session.Static {
						in = s.Static
					}
					if in == nil {
						t.Skip("the provider does not sell this type")
					}
					in.Type, in.Quantity = typ, max(in.Quantity, 1)
					test(t, s, sellerIntent(*in, 1))
				})
			}
		})
	}
}

// sellerIntent returns the n-th intent of its type.
func sellerIntent(in procurement.Intent, n int) procurement.Intent {
	in.Key, in.SessionID = fmt.Sprintf("ord_%024d", n), fmt.Sprintf("sess_%020d", n)
	return in
}

// sellerBuy orders, and reads the order until it is delivered.
func sellerBuy(t *testing.T, p ports.Provider, in procurement.Intent) procurement.Delivery {
	t.Helper()
	d, err := p.Order(t.Context(), in)
	if err != nil {
		t.Fatalf("order %s: %v", in.Key, err)
	}
	if d.Ref == "" {
		t.Fatalf("the order %s has no ref", in.Key)
	}
	if d.State == procurement.Pending && !p.Capabilities().Async {
		t.Errorf("a seller that is not Async delivers later")
	}
	return sellerLive(t, p, d)
}

func sellerLive(t *testing.T, p ports.Provider, d procurement.Delivery) procurement.Delivery {
	t.Helper()
	for range 50 {
		if d.State == procurement.Live {
			return d
		}
		read, err := p.Read(t.Context(), d.Ref)
		if err != nil {
			t.Fatalf("read %s: %v", d.Ref, err)
		}
		if read.Ref != d.Ref {
			t.Fatalf("read %s and got %s", d.Ref, read.Ref)
		}
		d = read
	}
	t.Fatalf("%s is still %s", d.Ref, d.State)
	return d
}

func sellerSold(t *testing.T, s Selling, want int) {
	t.Helper()
	if s.Sold == nil {
		return
	}
	if n := s.Sold(); n != want {
		t.Errorf("the seller sold %d, want %d", n, want)
	}
}

func sellerDelivers(t *testing.T, s Selling, in procurement.Intent) {
	caps := s.Provider.Capabilities()
	seen, refs := map[string]bool{}, map[string]bool{}
	for n := range 3 {
		d := sellerBuy(t, s.Provider, sellerIntent(in, n))
		if refs[d.Ref] {
			t.Fatalf("two orders have the ref %s", d.Ref)
		}
		refs[d.Ref] = true
		if in.Type == session.Dynamic {
			if caps.Direct && (d.Access.User == "" || d.Access.Password == "" || seen[d.Access.User+d.Access.Password]) {
				t.Error("an access of its own has no credential of its own")
			}
			seen[d.Access.User+d.Access.Password] = true
			if caps.CapUnit > 0 && (d.Access.CapBytes < in.Bytes || d.Access.CapBytes > in.Bytes+caps.CapUnit) {
				t.Errorf("%d bytes were sold, the cap is %d", in.Bytes, d.Access.CapBytes)
			}
			continue
		}
		if len(d.IPs) != in.Quantity {
			t.Fatalf("%d addresses were delivered, want %d", len(d.IPs), in.Quantity)
		}
		for _, ip := range d.IPs {
			if !ip.Addr.IsValid() || seen[ip.Addr.String()] {
				t.Errorf("the address %s is invalid or sold twice", ip.Addr)
			}
			seen[ip.Addr.String()] = true
			for _, proto := range []session.Protocol{session.HTTP, session.SOCKS5} {
				if e, ok := ip.Endpoint(proto); caps.ViaUpstream && (!ok || e.Host == "" || e.Port == 0) {
					t.Errorf("%s cannot be reached", ip.Addr)
				}
			}
		}
		if caps.ViaUpstream && !d.ExpiresAt.After(time.Now()) {
			t.Errorf("the order ends at %v", d.ExpiresAt)
		}
		if in.Taken != nil {
			in.Taken = mapWith(in.Taken, d)
		}
	}
	sellerSold(t, s, 3)
}

// mapWith returns Taken after a delivery.
func mapWith(taken map[string]bool, d procurement.Delivery) map[string]bool {
	out := map[string]bool{}
	for ip := range taken {
		out[ip] = true
	}
	for _, ip := range d.IPs {
		out[ip.Addr.String()] = true
	}
	return out
}

func sellerReads(t *testing.T, s Selling, in procurement.Intent) {
	if s.Provider.Capabilities().InProcess {
		t.Skip("the provider keeps nothing and does no IO")
	}
	d := sellerBuy(t, s.Provider, in)
	for range 3 {
		again, err := s.Provider.Read(t.Context(), d.Ref)
		if err != nil || again.State != procurement.Live || again.Access != d.Access || !slices.Equal(again.IPs, d.IPs) {
			t.Errorf("read again: %s %d addresses, %v", again.State, len(again.IPs), err)
		}
	}
	if _, err := s.Provider.Read(t.Context(), "000000000000000000000000"); procurement.ClassOf(err) != procurement.NotFound {
		t.Errorf("an order that is not there: %v", err)
	}
	sellerSold(t, s, 1)
}

func sellerCancels(t *testing.T, s Selling, in procurement.Intent) {
	d := sellerBuy(t, s.Provider, in)
	for n := range 3 {
		err := s.Provider.Cancel(t.Context(), d.Ref)
		want := procurement.Class("")
		if !s.Provider.Capabilities().CanCancel(in.Type) && !s.Provider.Capabilities().InProcess {
			want = procurement.Unsupported
		}
		if got := procurement.ClassOf(err); got != want {
			t.Errorf("cancel %d: %v", n, err)
		}
		if err != nil || s.Provider.Capabilities().InProcess {
			return
		}
	}
	if gone, err := s.Provider.Read(t.Context(), d.Ref); procurement.ClassOf(err) != procurement.NotFound && (err != nil || gone.State != procurement.Gone) {
		t.Errorf("cancelled, it is %s, %v", gone.State, err)
	}
}

func sellerLists(t *testing.T, s Selling, in procurement.Intent) {
	p, ok := s.Provider.(ports.Lister)
	if !ok {
		t.Skip("the provider lists nothing")
	}
	listed := func() map[string]procurement.Delivery {
		t.Helper()
		list, err := p.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		byRef := map[string]procurement.Delivery{}
		for _, d := range list {
			if _, twice := byRef[d.Ref]; twice || d.Ref == "" || d.State == procurement.Gone {
				t.Errorf("%q is listed as %s, before: %v", d.Ref, d.State, twice)
			}
			byRef[d.Ref] = d
		}
		return byRef
	}
	if n := len(listed()); n != 0 {
		t.Errorf("before any order %d are listed", n)
	}
	if p.Capabilities().InProcess {
		return // the store keeps its orders
	}
	var refs []string
	for n := range 3 {
		d := sellerBuy(t, p, sellerIntent(in, n))
		refs = append(refs, d.Ref)
	}
	all := listed()
	for n, ref := range refs {
		d, found := all[ref]
		if want := sellerIntent(in, n).Key; !found || p.Capabilities().Labels(in.Type) && d.Label != want {
			t.Errorf("the order %s is listed: %v, with the label %q", ref, found, d.Label)
		}
	}
	if len(all) != len(refs) {
		t.Errorf("%d are listed, want %d", len(all), len(refs))
	}
	if s.LoseAnswer != nil {
		lost := sellerIntent(in, 8)
		s.LoseAnswer()
		_, _ = p.Order(t.Context(), lost)
		for range 50 { // where addresses alone are listed, it shows once it is delivered
			if all = listed(); len(all) == len(refs)+1 {
				break
			}
		}
		if len(all) != len(refs)+1 {
			t.Errorf("with one whose answer was lost %d are listed, want %d", len(all), len(refs)+1)
		}
	}
	if p.Cancel(t.Context(), refs[0]) == nil {
		if _, found := listed()[refs[0]]; found {
			t.Error("a cancelled order is listed")
		}
	}
}

func sellerQuotes(t *testing.T, s Selling, in procurement.Intent) {
	for range 3 {
		q, err := s.Provider.Quote(t.Context(), in)
		if err != nil || q.Cost < 0 || q.Stock == procurement.StockNo {
			t.Errorf("the quote is %+v, %v", q, err)
		}
	}
	sellerSold(t, s, 0)
}

func sellerVanishes(t *testing.T, s Selling, in procurement.Intent) {
	if s.Vanish == nil {
		t.Skip("the seller removes nothing by itself")
	}
	d := sellerBuy(t, s.Provider, in)
	s.Vanish(d.Ref)
	if gone, err := s.Provider.Read(t.Context(), d.Ref); procurement.ClassOf(err) != procurement.NotFound && (err != nil || gone.State != procurement.Gone) {
		t.Errorf("it is %s, %v", gone.State, err)
	}
}

func sellerLeft(t *testing.T, s Selling, in procurement.Intent) {
	if s.Provider.Capabilities().InProcess {
		t.Skip("the provider keeps nothing and does no IO")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Provider.Order(ctx, in); err == nil {
		t.Error("bought with a cancelled context")
	}
	sellerSold(t, s, 0)
}

// sellerParallel is for the race detector as well.
func sellerParallel(t *testing.T, s Selling, in procurement.Intent) {
	const n = 8
	var wg sync.WaitGroup
	refs := make([]string, n)
	for i := range n {
		wg.Go(func() {
			d, err := s.Provider.Order(t.Context(), sellerIntent(in, i))
			if refs[i] = d.Ref; err != nil {
				t.Errorf("order %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	slices.Sort(refs)
	if got := len(slices.Compact(refs)); got != n {
		t.Errorf("%d orders have %d refs", n, got)
	}
	sellerSold(t, s, n)
}
