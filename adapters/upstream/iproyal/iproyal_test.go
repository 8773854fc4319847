package iproyal_test

import (
	"bytes"
	"fmt"
	"log/slog"
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
	"agentproxy/test/fake/iproyal"
	"agentproxy/test/fake/seller"
)

// newProvider returns a provider at a fake.
func newProvider(t *testing.T, s *iproyal.Seller, edit func(*upstream.Spec)) ports.Provider {
	t.Helper()
	spec := upstream.Spec{Name: "ipr", Kind: "iproyal", BaseURL: s.URL, PerSecond: 10_000,
		Secrets: map[string]string{"key": iproyal.Key, "residential_key": iproyal.ResidentialKey}}
	if edit != nil {
		edit(&spec)
	}
	p, err := upstream.New(spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func without(secret string) func(*upstream.Spec) {
	return func(s *upstream.Spec) { delete(s.Secrets, secret) }
}

// addresses returns an intent for two addresses in Germany for 30 days.
func addresses(key string) procurement.Intent {
	return procurement.Intent{Key: key, SessionID: "sess_1", Type: session.Static, SKU: iproyal.SKU, Quantity: 2, Days: 30,
		Location: session.Location{Country: "DE"}}
}

// traffic returns an intent for 1.5 GB.
func traffic(key string) procurement.Intent {
	return procurement.Intent{Key: key, SessionID: "sess_1", Type: session.Dynamic, SKU: "residential", Bytes: 1_500_000_000,
		Location: session.Location{Country: "DE"}}
}

func refusedAs(t *testing.T, err error, class procurement.Class) {
	t.Helper()
	if procurement.ClassOf(err) != class {
		t.Errorf("the error is %v, want class %q", err, class)
	}
}

func TestKeepsThePromisesOfAProvider(t *testing.T) {
	t.Parallel()
	static, dynamic := addresses(""), traffic("")
	selling := func(t *testing.T, edit func(*upstream.Spec)) contract.Selling {
		s := iproyal.New(t)
		return contract.Selling{Provider: newProvider(t, s, edit), Sold: s.Sales, Vanish: s.Vanish,
			LoseAnswer: func() {
				s.Next("POST /v1/reseller/orders", seller.DropAnswer)
				s.Next("POST /v1/residential-subusers", seller.DropAnswer)
			},
			LoseRequest: func() {
				s.Next("POST /v1/reseller/orders", seller.DropRequest)
				s.Next("POST /v1/residential-subusers", seller.DropRequest)
			}}
	}
	t.Run("addresses", func(t *testing.T) {
		contract.Seller(t, func(t *testing.T) contract.Selling {
			s := selling(t, without("residential_key"))
			s.Static = &static
			return s
		})
	})
	t.Run("traffic", func(t *testing.T) {
		contract.Seller(t, func(t *testing.T) contract.Selling {
			s := selling(t, without("key"))
			s.Dynamic = &dynamic
			return s
		})
	})
	t.Run("traffic of a seller of both", func(t *testing.T) {
		contract.Seller(t, func(t *testing.T) contract.Selling {
			s := selling(t, nil)
			s.Dynamic = &dynamic
			return s
		})
	})
}

func TestNeedsAKeyAndTheOneOfItsType(t *testing.T) {
	t.Parallel()
	s := iproyal.New(t)
	_, err := upstream.New(upstream.Spec{Name: "ipr", Kind: "iproyal", Options: map[string]string{"gateway": "nowhere", "answers": "["},
		Locations: map[string]string{"US": "the states"}}, nil)
	for _, fault := range []string{"residential_key", "options.gateway", "options.answers", "locations.US"} {
		if err == nil || !strings.Contains(err.Error(), fault) {
			t.Errorf("the fault of %s is not named: %v", fault, err)
		}
	}
	static, dynamic := newProvider(t, s, without("residential_key")), newProvider(t, s, without("key"))
	_, err = static.Order(t.Context(), traffic("ord_1"))
	refusedAs(t, err, procurement.Unsupported)
	_, err = static.Find(t.Context(), traffic("ord_1"))
	refusedAs(t, err, procurement.Unsupported)
	_, err = dynamic.Order(t.Context(), addresses("ord_1"))
	refusedAs(t, err, procurement.Unsupported)
	_, err = dynamic.Quote(t.Context(), addresses("ord_1"))
	refusedAs(t, err, procurement.Unsupported)
	if _, err := static.(ports.Dynamic).Endpoint(procurement.Access{}, procurement.Target{}); procurement.ClassOf(err) != procurement.Unsupported {
		t.Errorf("an endpoint without a residential key: %v", err)
	}
	if s.Sales() != 0 {
		t.Errorf("sold %d", s.Sales())
	}
}

func TestDeliversInEveryShapeItMayAnswerIn(t *testing.T) {
	t.Parallel()
	for n, shape := range []iproyal.Shape{
		{}, {Polls: 3, Wrapped: true}, {NullCounts: true, TextBalance: true}, {OldestFirst: true, Wrapped: true, Polls: 1},
	} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			s := iproyal.New(t)
			s.Answers(shape)
			p := newProvider(t, s, nil)
			in := addresses("ord_1")
			in.Days, in.Location.City = 90, ""
			d, err := p.Order(t.Context(), in)
			if err != nil || d.State != procurement.Pending || len(d.IPs) != 0 {
				t.Fatalf("ordered: %+v, %v", d, err)
			}
			for range shape.Polls {
				if d, err = p.Read(t.Context(), d.Ref); err != nil || d.State != procurement.Pending || len(d.IPs) != 0 {
					t.Fatalf("on its way: %+v, %v", d, err)
				}
			}
			d, err = p.Read(t.Context(), d.Ref)
			if err != nil || d.State != procurement.Live || len(d.IPs) != 2 {
				t.Fatalf("read: %+v, %v", d, err)
			}
			ip := d.IPs[0]
			if ip.Host != ip.Addr.String() || ip.HTTPPort != 12323 || ip.SOCKSPort != 12324 || ip.User == "" || ip.Password == "" || ip.Country != "DE" {
				t.Errorf("the address is %+v", ip)
			}
			o := s.Orders()[0]
			if o.AutoExtend || o.Quantity != 2 || o.PlanID != 24 || o.LocationID != iproyal.Germany || !o.ExpiresAt.Equal(d.ExpiresAt) {
				t.Errorf("the seller has %+v, which ends at %v here", o, d.ExpiresAt)
			}
			if f, err := p.Balance(t.Context()); err != nil || !f.Known || f.Amount != 10_000*domain.Dollar-s.Spent() {
				t.Errorf("the balance is %+v, %v", f, err)
			}
			q, err := p.Quote(t.Context(), in)
			if err != nil || q.Cost != domain.MustMoney("12.96") {
				t.Errorf("the quote is %+v, %v", q, err)
			}
			if stock := map[bool]procurement.Stock{true: procurement.StockUnknown, false: procurement.StockYes}[shape.NullCounts]; q.Stock != stock {
				t.Errorf("the stock is %s, want %s", q.Stock, stock)
			}
		})
	}
}

func TestStandInDeliversAtThePlaceOfTheTest(t *testing.T) {
	t.Parallel()
	s := iproyal.New(t)
	s.Answers(iproyal.Shape{})
	s.Deliver([]netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2")}, 0, 1080)
	p := newProvider(t, s, nil)
	d, err := p.Order(t.Context(), addresses("ord_1"))
	if err != nil {
		t.Fatal(err)
	}
	d, err = p.Read(t.Context(), d.Ref)
	if err != nil || len(d.IPs) != 2 || d.IPs[1].Host != "127.0.0.2" || d.IPs[1].HTTPPort != 0 || d.IPs[1].SOCKSPort != 1080 {
		t.Errorf("delivered %+v, %v", d.IPs, err)
	}
}

func TestPlacesAreNeverWidened(t *testing.T) {
	t.Parallel()
	s := iproyal.New(t)
	p := newProvider(t, s, func(s *upstream.Spec) { s.Locations = map[string]string{"US/la": "12", "FR": "2", "ES": "99"} })
	at := func(country, city string) error {
		in := addresses("ord_" + country + city)
		in.Location = session.Location{Country: country, City: city}
		_, err := p.Order(t.Context(), in)
		return err
	}
	for _, c := range []struct {
		country, city string
		location      int64
	}{{"US", "", iproyal.UnitedStates}, {"US", "newyork", iproyal.NewYork}, {"US", "New-York", iproyal.NewYork},
		{"US", "la", iproyal.LosAngeles}, {"GB", "london", iproyal.London}, {"FR", "", iproyal.Germany}} {
		if err := at(c.country, c.city); err != nil {
			t.Errorf("%s/%s: %v", c.country, c.city, err)
		}
		orders := s.Orders()
		if got := orders[len(orders)-1].LocationID; got != c.location {
			t.Errorf("%s/%s is location %d, want %d", c.country, c.city, got, c.location)
		}
	}
	sold := s.Sales()
	for _, c := range [][2]string{{"IT", ""}, {"US", "boston"}, {"DE", "berlin"}, {"ES", ""}, {"", ""}, {"", "newyork"}} {
		refusedAs(t, at(c[0], c[1]), procurement.Invalid)
	}
	if s.Sales() != sold {
		t.Error("a place that is not sold was bought")
	}
}

func TestRefusalsGetTheirClass(t *testing.T) {
	t.Parallel()
	in := addresses("ord_1")
	for name, c := range map[string]struct {
		change func(*iproyal.Seller)
		class  procurement.Class
		calls  int // of POST /orders
	}{
		"the catalogue shows none": {func(s *iproyal.Seller) { s.SetStock(iproyal.Germany, 0) }, procurement.OutOfStock, 0},
		"too few are left":         {func(s *iproyal.Seller) { s.SetStock(iproyal.Germany, 1) }, procurement.OutOfStock, 0},
		"it runs out meanwhile":    {func(s *iproyal.Seller) { s.Next("POST /v1/reseller/orders", seller.OutOfStock) }, procurement.OutOfStock, 1},
		"no words, no count, and too few": {func(s *iproyal.Seller) {
			s.Answers(iproyal.Shape{NullCounts: true, Mute: true})
			s.SetStock(iproyal.Germany, 1)
		}, procurement.Invalid, 1},
		"no money":               {func(s *iproyal.Seller) { s.SetBalance(domain.Dollar) }, procurement.InsufficientFunds, 1},
		"no money, and no words": {func(s *iproyal.Seller) { s.Answers(iproyal.Shape{Mute: true}); s.SetBalance(domain.Dollar) }, procurement.InsufficientFunds, 1},
		"another reason, and no words": {func(s *iproyal.Seller) {
			s.Answers(iproyal.Shape{Mute: true})
			s.Next("POST /v1/reseller/orders", seller.NoFunds)
		}, procurement.Invalid, 1},
		"the key is not known": {func(s *iproyal.Seller) { s.Next("POST /v1/reseller/orders", seller.Expired) }, procurement.Auth, 1},
		"too many calls":       {func(s *iproyal.Seller) { s.Next("POST /v1/reseller/orders", seller.RateLimited) }, procurement.RateLimited, 1},
		"a redirect":           {func(s *iproyal.Seller) { s.Next("POST /v1/reseller/orders", seller.Redirect) }, procurement.Ambiguous, 1},
		"done, and 502":        {func(s *iproyal.Seller) { s.Next("POST /v1/reseller/orders", seller.Failed) }, procurement.Ambiguous, 1},
		"done, and no JSON":    {func(s *iproyal.Seller) { s.Next("POST /v1/reseller/orders", seller.Garbage) }, procurement.Ambiguous, 1},
		"done, and cut off":    {func(s *iproyal.Seller) { s.Next("POST /v1/reseller/orders", seller.Cut) }, procurement.Ambiguous, 1},
		"done, and endless":    {func(s *iproyal.Seller) { s.Next("POST /v1/reseller/orders", seller.Huge) }, procurement.Ambiguous, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := iproyal.New(t)
			p := newProvider(t, s, nil)
			c.change(s)
			_, err := p.Order(t.Context(), in)
			refusedAs(t, err, c.class)
			if n := s.Calls("POST /v1/reseller/orders"); n != c.calls {
				t.Errorf("%d orders were sent, want %d", n, c.calls)
			}
		})
	}
}

func TestOrdersWithAQuestionNeedTheAnswer(t *testing.T) {
	t.Parallel()
	s := iproyal.New(t)
	in := addresses("ord_1")
	in.SKU = iproyal.QuestionSKU
	_, err := newProvider(t, s, nil).Order(t.Context(), in)
	refusedAs(t, err, procurement.Invalid)
	if s.Calls("POST") != 0 {
		t.Error("an order was sent without the answer")
	}
	p := newProvider(t, s, func(s *upstream.Spec) { s.Options = map[string]string{"answers": `{"12":"scraping"}`} })
	if _, err := p.Order(t.Context(), in); err != nil || s.Sales() != 1 {
		t.Errorf("answered: %v, sold %d", err, s.Sales())
	}
}

func TestFindsEveryOrderOfAPlaceTheNewestFirst(t *testing.T) {
	t.Parallel()
	for _, oldest := range []bool{false, true} {
		s := iproyal.New(t)
		s.Answers(iproyal.Shape{OldestFirst: oldest})
		p := newProvider(t, s, nil)
		elsewhere := addresses("ord_us")
		elsewhere.Location.Country = "US"
		if _, err := p.Order(t.Context(), elsewhere); err != nil {
			t.Fatal(err)
		}
		var refs []string
		for n := range 105 {
			in := addresses(fmt.Sprintf("ord_%d", n))
			in.Quantity = 1
			d, err := p.Order(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			refs = append(refs, d.Ref)
		}
		found, err := p.Find(t.Context(), addresses("ord_x"))
		if err != nil || len(found) != 105 || found[0].Ref != refs[104] || found[104].Ref != refs[0] {
			t.Fatalf("oldest first %v: found %d, %v", oldest, len(found), err)
		}
		if d := found[0]; d.SKU != iproyal.SKU || d.Location.Country != "DE" || d.Quantity != 1 || d.Label != "" {
			t.Errorf("listed as %+v", d)
		}
	}
}

func TestAnUnknownStatusIsAnError(t *testing.T) {
	t.Parallel()
	s := iproyal.New(t)
	p := newProvider(t, s, nil)
	d, err := p.Order(t.Context(), addresses("ord_1"))
	if err != nil {
		t.Fatal(err)
	}
	s.SetStatus(d.Ref, "on-hold")
	_, err = p.Read(t.Context(), d.Ref)
	refusedAs(t, err, procurement.Temporary)
	if !strings.Contains(fmt.Sprint(err), "on-hold") {
		t.Errorf("the status is not named: %v", err)
	}
	if found, err := p.Find(t.Context(), addresses("ord_1")); err != nil || len(found) != 1 || found[0].State != procurement.Pending {
		t.Errorf("it is listed as %+v, %v", found, err)
	}
	for _, over := range []string{"refunded", "expired"} {
		s.SetStatus(d.Ref, over)
		if d, err := p.Read(t.Context(), d.Ref); err != nil || d.State != procurement.Gone {
			t.Errorf("%s: %s, %v", over, d.State, err)
		}
	}
}

func TestRenewsOnce(t *testing.T) {
	t.Parallel()
	s := iproyal.New(t)
	p := newProvider(t, s, nil).(ports.Static)
	d, err := p.Order(t.Context(), addresses("ord_1"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Renew(t.Context(), d.Ref, addresses("ord_2"))
	refusedAs(t, err, procurement.Invalid) // it is not delivered yet
	for d.State != procurement.Live {
		if d, err = p.Read(t.Context(), d.Ref); err != nil {
			t.Fatal(err)
		}
	}
	s.SetBalance(domain.Dollar)
	_, err = p.Renew(t.Context(), d.Ref, addresses("ord_3"))
	refusedAs(t, err, procurement.InsufficientFunds)
	s.SetBalance(100 * domain.Dollar)
	s.Next("/extend", seller.DropAnswer)
	_, err = p.Renew(t.Context(), d.Ref, addresses("ord_4"))
	refusedAs(t, err, procurement.Ambiguous)
	read, err := p.Read(t.Context(), d.Ref)
	if err != nil || !read.ExpiresAt.Equal(d.ExpiresAt.AddDate(0, 0, 30)) || s.Orders()[0].Extended != 1 {
		t.Errorf("read, it ends at %v: %v", read.ExpiresAt, err)
	}
	long := addresses("ord_5")
	long.Days = 90
	done, err := p.Renew(t.Context(), d.Ref, long)
	if err != nil || len(done) != 2 || !done[1].ExpiresAt.Equal(read.ExpiresAt.AddDate(0, 0, 90)) || done[0].Addr != d.IPs[0].Addr {
		t.Errorf("renewed %+v, %v", done, err)
	}
	_, err = p.Renew(t.Context(), "77", addresses("ord_6"))
	refusedAs(t, err, procurement.NotFound)
	refusedAs(t, p.Cancel(t.Context(), d.Ref), procurement.Unsupported)
}

func TestOffersWhatTheCatalogueHas(t *testing.T) {
	t.Parallel()
	s := iproyal.New(t)
	s.SetStock(iproyal.NewYork, 0)
	offers, err := newProvider(t, s, nil).Offers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]procurement.Offer{}
	for _, o := range offers {
		seen[o.SKU+" "+o.Location.Country+"/"+o.Location.City] = o
	}
	de, ny := seen["9 DE/"], seen["9 US/newyork"]
	if de.Stock != procurement.StockYes || de.Count != 1000 || de.Cost != domain.MustMoney("2.40") || len(de.Days) != 3 || de.Days[0] != 30 {
		t.Errorf("Germany is offered as %+v", de)
	}
	if ny.Stock != procurement.StockNo || ny.Type != session.Static {
		t.Errorf("New York is offered as %+v", ny)
	}
	if seen["residential /"].Type != session.Dynamic {
		t.Errorf("traffic is not offered")
	}
}

func TestSecretsStayInside(t *testing.T) {
	t.Parallel()
	s := iproyal.New(t)
	var text bytes.Buffer
	p, err := upstream.New(upstream.Spec{Name: "ipr", Kind: "iproyal", BaseURL: s.URL, PerSecond: 10_000,
		Secrets: map[string]string{"key": iproyal.Key, "residential_key": iproyal.ResidentialKey}},
		slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug})))
	if err != nil {
		t.Fatal(err)
	}
	sub, err := p.Order(t.Context(), traffic("ord_1"))
	if err != nil {
		t.Fatal(err)
	}
	s.SetTraffic(0)
	for n, fault := range []seller.Fault{seller.Refuse, seller.Expired, seller.DropAnswer, seller.Failed, seller.Garbage, seller.NoFunds, seller.RateLimited} {
		s.Next("/v1/reseller/orders", fault)
		s.Next("/v1/residential-subusers", fault)
		for _, in := range []procurement.Intent{addresses(fmt.Sprintf("ord_a%d", n)), traffic(fmt.Sprintf("ord_b%d", n))} {
			if _, err := p.Order(t.Context(), in); err != nil {
				text.WriteString(err.Error() + "\n")
			}
		}
	}
	fmt.Fprintf(&text, "%v %+v", sub.Access, procurement.Endpoint{Host: "h", User: "u"})
	secrets := []string{iproyal.Key, iproyal.ResidentialKey, sub.Access.Password}
	for _, u := range s.SubUsers() {
		secrets = append(secrets, u.Password)
	}
	for _, secret := range secrets {
		if strings.Contains(text.String(), secret) {
			t.Errorf("the secret %s is shown", secret)
		}
	}
	if !strings.Contains(text.String(), "level=WARN") {
		t.Error("nothing was logged")
	}
}

func TestALateSellerIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := iproyal.New(t)
	s.Late = time.Second
	p := newProvider(t, s, func(s *upstream.Spec) { s.Timeout = 50 * time.Millisecond })
	for n := range 6 {
		s.Next("POST /v1/residential-subusers", seller.Delay)
		_, err := p.Order(t.Context(), traffic(fmt.Sprintf("ord_%d", n)))
		if class := procurement.ClassOf(err); class != procurement.Ambiguous && class != procurement.Temporary {
			t.Errorf("late: %v", err)
		}
	}
	if p.Ready() {
		t.Error("after six calls without an answer it is still asked")
	}
}
