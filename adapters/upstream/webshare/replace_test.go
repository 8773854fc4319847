package webshare_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/test/contract"
	"agentproxy/test/fake/seller"
	fake "agentproxy/test/fake/webshare"
)

const replacePath = "POST /v3/proxy/replace/"

// threeUS is three proxies in the United States.
var threeUS = procurement.Intent{Days: 30, Quantity: 3, Location: session.Location{Country: "US"}}

func TestReplacerContract(t *testing.T) {
	t.Parallel()
	t.Run("with free proxies in the plan", func(t *testing.T) {
		t.Parallel()
		contract.Replacer(t, func(t *testing.T) contract.Replacing {
			w := newWorld(t, 10, 12)
			r := w.replacing()
			r.Chooses, r.Asked, r.Losses, r.Refusals, r.Never = true, nil, nil, nil, nil
			r.Exhaust = func() {
				in := intent(99)
				in.Quantity = 9
				if _, err := r.Provider.Order(t.Context(), in); err != nil {
					t.Fatal(err)
				}
			}
			t.Cleanup(func() {
				if n := w.s.Calls(replacePath); n != 0 {
					t.Errorf("the seller was asked %d times", n)
				}
			})
			return r
		})
	})
	t.Run("by the seller", func(t *testing.T) {
		t.Parallel()
		contract.Replacer(t, func(t *testing.T) contract.Replacing {
			w := newWorld(t, 10, 3)
			w.c.Replace = true
			for n := range 4 {
				w.s.Spare(fake.ProxyAt(30+n, fmt.Sprint("203.0.113.", 30+n), 9030+n, []string{"DE", "US"}[n%2]))
			}
			return w.replacing()
		})
	})
}

// replacing returns the controls of a world.
func (w *world) replacing() contract.Replacing {
	p := w.open()
	next := func(f seller.Fault) func() { return func() { w.s.Next(replacePath, f) } }
	r := contract.Replacing{Provider: p, Intent: threeUS, Secrets: []string{fake.Key, "passw0rd"},
		Asked: func() int { return w.s.Calls(replacePath) },
		Never: func() { w.s.FailNext("proxies_removed_doesnt_match_added") },
		Settle: func() {
			for range 3 { // it is validated, processed, and then listed
				w.advance(10 * time.Minute)
				w.keep(p)
			}
		},
		Exhaust: func() {
			w.s.SetReplacements(0)
			w.advance(10 * time.Minute)
			w.keep(p)
		},
		Refusals: []contract.ReplacerFault{
			{Name: "the plan has none left", Next: func() { w.s.SetReplacements(0) }},
			{Name: "another one is under way", Next: func() {
				w.s.SetReplacements(10)
				w.s.Begin()
			}},
			{Name: "too many calls", Next: next(seller.RateLimited)}, {Name: "the key is refused", Next: next(seller.Forbidden)},
		}}
	for _, f := range []seller.Fault{seller.DropRequest, seller.Redirect, seller.DropAnswer, seller.Failed, seller.Garbage, seller.Cut, seller.Huge} {
		r.Losses = append(r.Losses, contract.ReplacerFault{Name: string(f), Next: next(f), Done: f != seller.DropRequest && f != seller.Redirect})
	}
	r.Losses = append(r.Losses, contract.ReplacerFault{Name: "a success of another shape", Next: w.s.AnswerOddly, Done: true})
	return r
}

func TestTheSellerIsAskedOnlyWhereTheOperatorAllowsIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 10, 1)
	w.s.Spare(fake.ProxyAt(30, "203.0.113.30", 9030, "US"))
	p := w.open()
	d, err := p.Order(t.Context(), intent(1))
	if err != nil {
		t.Fatal(err)
	}
	in := procurement.Replacement{Key: "rep_1", Addr: d.IPs[0].Addr}
	if q, err := p.QuoteReplacement(t.Context(), d.Ref, in); err != nil || q.Stock != procurement.StockNo {
		t.Errorf("the quote is %+v, %v", q, err)
	}
	if err := p.Replace(t.Context(), d.Ref, in); procurement.ClassOf(err) != procurement.OutOfStock || w.s.Calls(replacePath) != 0 {
		t.Errorf("replaced: %v, after %d calls", err, w.s.Calls(replacePath))
	}
}

func TestTheSellerReplacesOneProxyAtATime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 10, 2)
	w.c.Replace = true
	w.s.Spare(fake.ProxyAt(30, "203.0.113.30", 9030, "US"), fake.ProxyAt(31, "203.0.113.31", 9031, "US"))
	w.s.Hold(true)
	p := w.open()
	in := intent(1)
	in.Quantity = 2
	d, err := p.Order(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	replace := func(n int, want procurement.Class) {
		t.Helper()
		err := p.Replace(t.Context(), d.Ref, procurement.Replacement{Key: fmt.Sprint("rep_", n), Addr: d.IPs[n].Addr})
		if procurement.ClassOf(err) != want {
			t.Errorf("replace %d: %v, want %q", n, err, want)
		}
	}
	replace(0, "")
	replace(0, "")
	replace(1, procurement.Temporary)
	if n := w.s.Calls(replacePath); n != 1 {
		t.Errorf("the seller was asked %d times", n)
	}
	err = w.open().Replace(t.Context(), d.Ref, procurement.Replacement{Key: "rep_9", Addr: d.IPs[1].Addr})
	if procurement.ClassOf(err) != procurement.Temporary {
		t.Errorf("at another replica: %v", err)
	}
	w.s.Hold(false)
	replace(1, procurement.Temporary) // the first is processed
	replace(1, "")                    // and completed
	for range 3 {
		w.advance(10 * time.Minute)
		w.keep(p)
	}
	d, err = p.Read(t.Context(), d.Ref)
	if got := fmt.Sprint(d.IPs); err != nil || !strings.Contains(got, "203.0.113.30") || !strings.Contains(got, "203.0.113.31") {
		t.Errorf("the order has %s, %v", got, err)
	}
}

func TestTheSellerIsAskedForTheCountryOfTheOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 10, 1)
	w.c.Replace = true
	w.s.Spare(fake.ProxyAt(30, "203.0.113.30", 9030, "DE"), fake.ProxyAt(31, "203.0.113.31", 9031, "US"))
	p := w.open()
	in := intent(1)
	in.Location.Country = ""
	d, err := p.Order(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	city := procurement.Replacement{Addr: d.IPs[0].Addr, Location: session.Location{Country: "US", City: "miami"}}
	if err := p.Replace(t.Context(), d.Ref, city); procurement.ClassOf(err) != procurement.Unsupported {
		t.Errorf("in a city: %v", err)
	}
	if err := p.Replace(t.Context(), d.Ref, procurement.Replacement{Addr: d.IPs[0].Addr}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		w.advance(10 * time.Minute)
		w.keep(p)
	}
	if d, err = p.Read(t.Context(), d.Ref); err != nil || d.IPs[0].Addr != netip.MustParseAddr("203.0.113.31") {
		t.Errorf("the order has %v, %v", d.IPs, err)
	}
}

func TestARequestThatIsLostIsSentAgainAfterAnHour(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, 1)
	w.c.Replace = true
	w.s.Spare(fake.ProxyAt(30, "203.0.113.30", 9030, "US"))
	p := w.open()
	if _, err := p.Order(t.Context(), intent(1)); err != nil {
		t.Fatal(err)
	}
	w.kill(address(0))
	w.s.Next(replacePath, seller.DropRequest)
	calls := func(minutes, want int) {
		t.Helper()
		for range minutes / 5 {
			w.advance(5 * time.Minute)
			if err := p.Maintain(t.Context()); err != nil && procurement.ClassOf(err) != procurement.Ambiguous {
				t.Fatal(err)
			}
		}
		if n := w.s.Calls(replacePath); n != want {
			t.Errorf("after %d minutes more %d requests", minutes, n)
		}
	}
	calls(30, 1)
	calls(25, 1)
	calls(45, 2)
	calls(20, 2)
	if d, err := p.Read(t.Context(), "ord_1"); err != nil || d.IPs[0].Addr.String() != "203.0.113.30" {
		t.Errorf("read: %v, %v", d.IPs, err)
	}
}
