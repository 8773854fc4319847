package proxycheap_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/upstream"
	"agentproxy/domain"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/contract"
	"agentproxy/test/fake/proxycheap"
	"agentproxy/test/fake/seller"
)

// newProvider returns a provider at a fake.
func newProvider(t *testing.T, s *proxycheap.Seller, edit func(*upstream.Spec)) ports.Static {
	t.Helper()
	spec := upstream.Spec{Name: "pc", Kind: "proxycheap", BaseURL: s.URL, PerSecond: 10_000, Options: map[string]string{},
		Secrets: map[string]string{"key": proxycheap.Key, "secret": proxycheap.Secret, "callback_secret": proxycheap.CallbackSecret}}
	if edit != nil {
		edit(&spec)
	}
	p, err := upstream.New(spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p.(ports.Static)
}

func inUnit(unit string) func(*upstream.Spec) {
	return func(s *upstream.Spec) { s.Options["balance_unit"] = unit }
}

// addresses returns an intent for three addresses in the United States for 90 days.
func addresses(key string) procurement.Intent {
	return procurement.Intent{Key: key, SessionID: "sess_1", Type: session.Static, SKU: proxycheap.Plan, Quantity: 3, Days: 90,
		Location: session.Location{Country: "US"}}
}

// orderLive orders three addresses and reads the order until they are delivered.
func orderLive(t *testing.T, p ports.Provider, key string) procurement.Delivery {
	t.Helper()
	d, err := p.Order(t.Context(), addresses(key))
	for range 10 {
		if err != nil {
			t.Fatal(err)
		}
		if d.State == procurement.Live {
			return d
		}
		d, err = p.Read(t.Context(), d.Ref)
	}
	t.Fatalf("it is still %s", d.State)
	return d
}

func TestKeepsThePromisesOfAProvider(t *testing.T) {
	t.Parallel()
	static := addresses("")
	for _, bare := range []bool{false, true} {
		t.Run(fmt.Sprintf("bare %v", bare), func(t *testing.T) {
			contract.Seller(t, func(t *testing.T) contract.Selling {
				s := proxycheap.New(t)
				s.Answers(proxycheap.Shape{Bare: bare, Polls: 1})
				return contract.Selling{Provider: newProvider(t, s, nil), Static: &static, Sold: s.Sales, Vanish: s.Vanish,
					LoseAnswer:  func() { s.Next("/execute", seller.DropAnswer) },
					LoseRequest: func() { s.Next("/execute", seller.DropRequest) }}
			})
		})
	}
}

func TestDeliversStepByStep(t *testing.T) {
	t.Parallel()
	for _, bare := range []bool{false, true} {
		s := proxycheap.New(t)
		s.Answers(proxycheap.Shape{Bare: bare})
		p := newProvider(t, s, func(s *upstream.Spec) { s.Options["isp"] = "e649eed7-ee2b-11ec-85c2-06902e647790" })
		d, err := p.Order(t.Context(), addresses("ord_1"))
		if err != nil || d.State != procurement.Pending || d.Cost != domain.MustMoney("30.51") {
			t.Fatalf("ordered: %+v, %v", d, err)
		}
		if d, err = p.Read(t.Context(), d.Ref); err != nil || d.State != procurement.Pending || len(d.IPs) != 0 { // INITIATING
			t.Fatalf("on its way: %+v, %v", d, err)
		}
		d, err = p.Read(t.Context(), d.Ref)
		if err != nil || d.State != procurement.Live || len(d.IPs) != 3 {
			t.Fatalf("read: %+v, %v", d, err)
		}
		ip, o := d.IPs[0], s.Orders()[0]
		if ip.Host != ip.Addr.String() || ip.HTTPPort != 10000 || ip.SOCKSPort != 10002 || ip.User == "" || ip.Password == "" || ip.Country != "US" || ip.ID != fmt.Sprint(o.Proxies[0].ID) {
			t.Errorf("the address is %+v", ip)
		}
		if o.Renews || o.Months != 3 || o.Plan != proxycheap.Plan || o.Country != "US" || o.ISP == "" || !o.Proxies[0].ExpiresAt.Equal(d.ExpiresAt) {
			t.Errorf("the seller has %+v", o)
		}
		if s.Spent() != domain.MustMoney("30.51") {
			t.Errorf("spent %s", s.Spent())
		}
		s.Deliver([]netip.Addr{netip.MustParseAddr("127.0.0.1")}, 3128, 0)
		if d = orderLive(t, p, "ord_2"); d.IPs[0].Host != "127.0.0.1" || d.IPs[0].HTTPPort != 3128 || d.IPs[0].SOCKSPort != 0 {
			t.Errorf("delivered elsewhere than expected: %+v", d.IPs[0])
		}
	}
}

func TestWhatCannotBeAskedForIsRefusedBeforehand(t *testing.T) {
	t.Parallel()
	s := proxycheap.New(t)
	p := newProvider(t, s, nil)
	for name, edit := range map[string]func(*procurement.Intent){
		"45 days":        func(in *procurement.Intent) { in.Days = 45 },
		"13 months":      func(in *procurement.Intent) { in.Days = 390 },
		"no country":     func(in *procurement.Intent) { in.Location.Country = "" },
		"a city":         func(in *procurement.Intent) { in.Location.City = "boston" },
		"no plan":        func(in *procurement.Intent) { in.SKU = "" },
		"a hostile plan": func(in *procurement.Intent) { in.SKU = "static-residential-ipv4/../../account/balance" },
		"none":           func(in *procurement.Intent) { in.Quantity = 0 },
	} {
		in := addresses("ord_1")
		edit(&in)
		_, err := p.Order(t.Context(), in)
		if procurement.ClassOf(err) != procurement.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	in := addresses("ord_1")
	in.Type = session.Dynamic
	_, err := p.Order(t.Context(), in)
	refusedAs(t, err, procurement.Unsupported)
	if s.Calls("") != 0 {
		t.Errorf("the seller was asked %d times", s.Calls(""))
	}
	_, err = upstream.New(upstream.Spec{Kind: "proxycheap", Secrets: map[string]string{"key": "k"}}, nil)
	if err == nil || !strings.Contains(err.Error(), "secrets.secret") {
		t.Errorf("a missing secret: %v", err)
	}
	_, err = upstream.New(upstream.Spec{Kind: "proxycheap", Secrets: map[string]string{"key": "k", "secret": "s"},
		Options: map[string]string{"balance_unit": "euros", "plan": "a/b"}, Locations: map[string]string{"US": "1"}}, nil)
	for _, fault := range []string{"balance_unit", "options.plan", "locations"} {
		if err == nil || !strings.Contains(err.Error(), fault) {
			t.Errorf("the fault of %s is not named: %v", fault, err)
		}
	}
}

func TestRefusalsGetTheirClass(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*proxycheap.Seller)
		unit   string
		class  procurement.Class
	}{
		"out of stock":          {func(s *proxycheap.Seller) { s.SetStock("US", 2) }, "", procurement.OutOfStock},
		"no money":              {func(s *proxycheap.Seller) { s.SetBalance(domain.Dollar) }, "", procurement.InsufficientFunds},
		"no money and no words": {func(s *proxycheap.Seller) { s.Answers(proxycheap.Shape{Mute: true}); s.SetBalance(domain.Dollar) }, "", procurement.InsufficientFunds},
		"no money, in cents": {func(s *proxycheap.Seller) {
			s.Answers(proxycheap.Shape{Mute: true, Cents: true})
			s.SetBalance(domain.Dollar)
		}, "cents", procurement.InsufficientFunds},
		"no right to the balance": {func(s *proxycheap.Seller) {
			s.Answers(proxycheap.Shape{Mute: true})
			s.SetBalance(domain.Dollar)
			s.Next("/account/balance", seller.Forbidden)
		}, "", procurement.Invalid},
		"another reason":       {func(s *proxycheap.Seller) { s.Next("/execute", seller.Refuse) }, "", procurement.Invalid},
		"the key is not known": {func(s *proxycheap.Seller) { s.Next("/execute", seller.Expired) }, "", procurement.Auth},
		"forbidden":            {func(s *proxycheap.Seller) { s.Next("/execute", seller.Forbidden) }, "", procurement.Auth},
		"too many calls":       {func(s *proxycheap.Seller) { s.Next("/execute", seller.RateLimited) }, "", procurement.RateLimited},
		"a redirect":           {func(s *proxycheap.Seller) { s.Next("/execute", seller.Redirect) }, "", procurement.Ambiguous},
		"done, and 502":        {func(s *proxycheap.Seller) { s.Next("/execute", seller.Failed) }, "", procurement.Ambiguous},
		"done, and no JSON":    {func(s *proxycheap.Seller) { s.Next("/execute", seller.Garbage) }, "", procurement.Ambiguous},
		"done, and cut off":    {func(s *proxycheap.Seller) { s.Next("/execute", seller.Cut) }, "", procurement.Ambiguous},
	} {
		t.Run(name, func(t *testing.T) {
			s := proxycheap.New(t)
			p := newProvider(t, s, inUnit(c.unit))
			c.change(s)
			_, err := p.Order(t.Context(), addresses("ord_1"))
			refusedAs(t, err, c.class)
			if n := s.Calls("/execute"); n != 1 {
				t.Errorf("%d orders were sent", n)
			}
		})
	}
}

func TestTheBalanceIsInDollars(t *testing.T) {
	t.Parallel()
	s := proxycheap.New(t)
	s.SetBalance(domain.MustMoney("12.34"))
	known := procurement.ProviderBalance{Amount: domain.MustMoney("12.34"), Known: true}
	p := newProvider(t, s, nil)
	if f, err := p.Balance(t.Context()); err != nil || f != known {
		t.Errorf("%+v, %v", f, err)
	}
	for range 6 { // more often than the circuit breaker takes
		s.Next("/account/balance", seller.Forbidden)
		if f, err := p.Balance(t.Context()); err != nil || f.Known {
			t.Errorf("without the right to read it: %+v, %v", f, err)
		}
	}
	if _, err := p.Quote(t.Context(), addresses("ord_1")); err != nil || !p.Ready() {
		t.Errorf("a key without that right stops the provider: %v", err)
	}
	s.Next("/account/balance", seller.Expired)
	if _, err := p.Balance(t.Context()); procurement.ClassOf(err) != procurement.Auth {
		t.Errorf("a wrong key: %v", err)
	}
	s.Answers(proxycheap.Shape{Cents: true})
	if f, err := newProvider(t, s, inUnit("cents")).Balance(t.Context()); err != nil || f != known {
		t.Errorf("in cents: %+v, %v", f, err)
	}
}

func TestOffersAndQuotes(t *testing.T) {
	t.Parallel()
	s := proxycheap.New(t)
	p := newProvider(t, s, nil)
	offers, err := p.Offers(t.Context())
	if err != nil || len(offers) != 4 || offers[0].Days[0] != 30 || offers[0].Days[11] != 360 || offers[0].SKU != proxycheap.Service+"/basic" {
		t.Fatalf("offers %+v, %v", offers, err)
	}
	in := addresses("ord_1")
	in.SKU = offers[2].SKU // with the service
	if q, err := p.Quote(t.Context(), in); err != nil || q.Cost != domain.MustMoney("30.51") || q.Stock != procurement.StockUnknown {
		t.Errorf("quote %+v, %v", q, err)
	}
	in.Location.Country = "FR"
	if q, err := p.Quote(t.Context(), in); err != nil || q.Stock != procurement.StockNo {
		t.Errorf("a country that is not sold: %+v, %v", q, err)
	}
}

func TestAStrangeAnswerProvesNothing(t *testing.T) {
	t.Parallel()
	s := proxycheap.New(t)
	p := newProvider(t, s, nil)
	d := orderLive(t, p, "ord_1")
	s.SetStatus(d.Ref, "SUSPENDED")
	_, err := p.Read(t.Context(), d.Ref)
	refusedAs(t, err, procurement.Temporary)
	if found, err := p.Find(t.Context(), addresses("ord_2")); err != nil || len(found) != 1 || found[0].State != procurement.Pending {
		t.Errorf("it is listed as %+v, %v", found, err)
	}
	for _, over := range []string{proxycheap.Expired, proxycheap.Canceled} {
		s.SetStatus(d.Ref, over)
		if d, err := p.Read(t.Context(), d.Ref); err != nil || d.State != procurement.Gone {
			t.Errorf("%s: %s, %v", over, d.State, err)
		}
	}
	s.Deliver(nil, 0, 0)
	s.SetStatus(d.Ref, proxycheap.Active)
	_, err = p.Read(t.Context(), d.Ref)
	refusedAs(t, err, procurement.Temporary) // no port
}

func TestAddressesWithoutAnOrderAreLeftOut(t *testing.T) {
	t.Parallel()
	s := proxycheap.New(t)
	p := newProvider(t, s, nil)
	d := orderLive(t, p, "ord_1")
	s.Answers(proxycheap.Shape{Numbers: true})
	if found, err := p.Find(t.Context(), addresses("ord_2")); err != nil || len(found) != 1 || found[0].Ref != "662154" {
		t.Errorf("numbered: %+v, %v", found, err)
	}
	s.Answers(proxycheap.Shape{Anonymous: true})
	if found, err := p.Find(t.Context(), addresses("ord_2")); err != nil || len(found) != 0 {
		t.Errorf("anonymous: %+v, %v", found, err)
	}
	if read, err := p.Read(t.Context(), d.Ref); err != nil || len(read.IPs) != 3 {
		t.Errorf("by its id: %+v, %v", read, err)
	}
	// Neither the list nor the balance shows whether the order was made.
	s.Next("/account/balance", seller.Forbidden)
	_, err := p.Find(t.Context(), addresses("ord_2"))
	refusedAs(t, err, procurement.Temporary)
	elsewhere := addresses("ord_2")
	elsewhere.Location.Country = "DE"
	s.Next("/account/balance", seller.Forbidden)
	if found, err := p.Find(t.Context(), elsewhere); err != nil || len(found) != 0 {
		t.Errorf("in another country: %+v, %v", found, err)
	}
}

// TestALostOrderWithoutANameIsNeverAbsent loses an order whose addresses name no order.
func TestALostOrderWithoutANameIsNeverAbsent(t *testing.T) {
	t.Parallel()
	s := proxycheap.New(t)
	s.Answers(proxycheap.Shape{Anonymous: true, Polls: 1})
	p := newProvider(t, s, nil)
	orderLive(t, p, "ord_1")
	before, err := p.Balance(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sent := time.Now()
	o := procurement.Order{ID: "ord_2", Kind: procurement.Purchase, Intent: addresses("ord_2"), Status: procurement.Unknown,
		SentAt: sent, Before: procurement.Snapshot{Funds: before}}
	decide := func() procurement.Verdict {
		t.Helper()
		found, err := p.Find(t.Context(), o.Intent)
		if err != nil {
			t.Fatal(err)
		}
		funds, err := p.Balance(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		v, _ := procurement.Decide(o, false, procurement.Evidence{Found: found, Funds: funds}, sent.Add(procurement.ListingDelay))
		return v
	}
	if v := decide(); v != procurement.Absent {
		t.Errorf("before anything is bought: %s", v)
	}
	s.Next("/execute", seller.DropAnswer)
	if _, err := p.Order(t.Context(), o.Intent); procurement.ClassOf(err) != procurement.Ambiguous {
		t.Fatal(err)
	}
	if v := decide(); v != procurement.Wait {
		t.Errorf("bought: %s", v)
	}
}

// A list with a part of an order's addresses does not prove the order absent.
func TestFewerAddressesMayBeTheOrder(t *testing.T) {
	t.Parallel()
	s := proxycheap.New(t)
	p := newProvider(t, s, nil)
	if _, err := p.Order(t.Context(), addresses("ord_1")); err != nil {
		t.Fatal(err)
	}
	more, less := addresses("ord_2"), addresses("ord_3")
	more.Quantity, less.Quantity = 5, 2
	for _, c := range []struct {
		in       procurement.Intent
		quantity int
	}{{more, 0}, {addresses("ord_4"), 3}, {less, 3}} {
		if found, err := p.Find(t.Context(), c.in); err != nil || len(found) != 1 || found[0].Quantity != c.quantity || found[0].Location.Country != "US" {
			t.Errorf("for %d: %+v, %v", c.in.Quantity, found, err)
		}
	}
}

func TestSecretsStayInside(t *testing.T) {
	t.Parallel()
	s := proxycheap.New(t)
	var text bytes.Buffer
	spec := upstream.Spec{Name: "pc", Kind: "proxycheap", BaseURL: s.URL, PerSecond: 10_000,
		Secrets: map[string]string{"key": proxycheap.Key, "secret": proxycheap.Secret, "callback_secret": proxycheap.CallbackSecret}}
	p, err := upstream.New(spec, slog.New(slog.NewTextHandler(&text, nil)))
	if err != nil {
		t.Fatal(err)
	}
	d := orderLive(t, p, "ord_0")
	for n, fault := range []seller.Fault{seller.Refuse, seller.Expired, seller.DropAnswer, seller.Failed, seller.Garbage, seller.RateLimited} {
		s.Next("/execute", fault)
		s.Next("/orders/", fault)
		_, err := p.Order(t.Context(), addresses(fmt.Sprintf("ord_%d", n+1)))
		fmt.Fprintln(&text, err)
		_, err = p.Read(t.Context(), d.Ref)
		fmt.Fprintln(&text, err)
	}
	_, err = p.(ports.Callbacks).Callback(http.Header{}, nil, time.Now())
	fmt.Fprintln(&text, err, spec.LogValue(), d.IPs[0])
	for _, secret := range []string{proxycheap.Key, proxycheap.Secret, proxycheap.CallbackSecret, d.IPs[0].Password} {
		if strings.Contains(text.String(), secret) {
			t.Errorf("the secret %s is shown", secret)
		}
	}
}
