package embedded_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"go.uber.org/fx"

	"agentproxy/adapters/upstream/embedded"
	"agentproxy/domain/billing"
	"agentproxy/domain/catalog"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/test/contract"
)

var silent = slog.New(slog.DiscardHandler)

// addresses reads exits; each may have a place: 203.0.113.7@DE/berlin.
func addresses(texts ...string) []embedded.Exit {
	var list []embedded.Exit
	for _, s := range texts {
		ip, place, _ := strings.Cut(s, "@")
		country, city, _ := strings.Cut(place, "/")
		list = append(list, embedded.Exit{Addr: netip.MustParseAddr(ip), Place: session.Location{Country: country, City: city}})
	}
	return list
}

func any(netip.Addr) bool { return true }

// open returns a provider that does not try to bind its addresses.
func open(t testing.TB, texts ...string) *embedded.Provider {
	t.Helper()
	p, err := embedded.New(embedded.Config{Exits: addresses(texts...), Usable: any, Everywhere: true}, silent)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func product(t testing.TB, p *embedded.Provider, no string) catalog.Product {
	t.Helper()
	for _, found := range p.Products() {
		if found.No == no {
			return found
		}
	}
	t.Fatalf("no product %s", no)
	return catalog.Product{}
}

func ips(d procurement.Delivery) string {
	var out []string
	for _, ip := range d.IPs {
		out = append(out, ip.Addr.String())
	}
	return strings.Join(out, " ")
}

func TestContract(t *testing.T) {
	t.Parallel()
	for name, exits := range map[string]int{"loopback": 0, "a server's own addresses": 42} {
		build := func(t *testing.T) *embedded.Provider {
			cfg := embedded.Config{Everywhere: true}
			for ip := netip.MustParseAddr("203.0.113.1"); len(cfg.Exits) < exits; ip = ip.Next() {
				cfg.Exits, cfg.Usable = append(cfg.Exits, embedded.Exit{Addr: ip}), any
			}
			p, err := embedded.New(cfg, silent)
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		t.Run(name, func(t *testing.T) {
			contract.Local(t, func(t *testing.T) contract.LocalProvider { return build(t) })
			contract.Seller(t, func(t *testing.T) contract.Selling {
				return contract.Selling{Provider: build(t), Dynamic: &procurement.Intent{Bytes: 1e9},
					Static: &procurement.Intent{Quantity: 2, Days: 30, Taken: map[string]bool{}}}
			})
		})
	}
}

func TestCatalogueIsTheOneOfTheContract(t *testing.T) {
	t.Parallel()
	p := open(t, "203.0.113.1", "203.0.113.2")
	var lines []string
	for _, x := range p.Products() {
		line := fmt.Sprint(x.No, " ", x.Type, " ", x.Price, " async=", x.Async, " ", x.Available, " ", len(x.Countries))
		if x.Type == session.Static {
			line += fmt.Sprint(" ", x.Durations, " ", x.MinQuantity, "-", x.MaxQuantity)
		} else {
			line += fmt.Sprint(" ", x.MinBytes, "-", x.MaxBytes)
		}
		lines = append(lines, line)
	}
	want := []string{
		"dyn_global_1 dynamic 0.25 async=true true 249 100000000-1000000000000",
		"dyn_fast_1 dynamic 0.4 async=false true 249 100000000-1000000000000",
		"sta_isp_1 static 0 async=false true 249 [{30 1} {90 2.7}] 1-100",
		"sta_city_1 static 0 async=true true 249 [{30 1.5} {90 4}] 1-100",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("got\n%s", strings.Join(lines, "\n"))
	}
	if p.Name() != "embedded" || !p.Capabilities().InProcess {
		t.Errorf("it is called %s, local %v", p.Name(), p.Capabilities().InProcess)
	}
}

func TestHalves(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		claim           string
		exits           []string
		broken          string
		dynamic, static string // every exit of each half, sorted
	}{
		{"two addresses are one for each", []string{"203.0.113.1", "203.0.113.2"}, "", "203.0.113.1", "203.0.113.2"},
		{"a single one is dynamic", []string{"203.0.113.1"}, "", "203.0.113.1", ""},
		{"a repeated one counts once", []string{"203.0.113.1", "203.0.113.1", "::ffff:203.0.113.1"}, "", "203.0.113.1", ""},
		{"one that fails moves no other", []string{"203.0.113.1", "203.0.113.2", "203.0.113.3", "203.0.113.4"}, "203.0.113.1", "203.0.113.3", "203.0.113.2 203.0.113.4"},
		{"one that is added moves no other", []string{"203.0.113.1", "203.0.113.2", "203.0.113.3"}, "", "203.0.113.1 203.0.113.3", "203.0.113.2"},
		{"IPv6 is sold too", []string{"2001:db8::1", "203.0.113.2"}, "", "2001:db8::1", "203.0.113.2"},
	} {
		t.Run(c.claim, func(t *testing.T) {
			usable := func(ip netip.Addr) bool { return ip.String() != c.broken }
			p, err := embedded.New(embedded.Config{Exits: addresses(c.exits...), Usable: usable}, silent)
			if err != nil {
				t.Fatal(err)
			}
			dynamic, static := map[string]bool{}, []string{}
			for i := range 100 {
				exits, err := p.Order(t.Context(), procurement.Intent{SessionID: fmt.Sprint(i), Type: session.Dynamic, Quantity: 1})
				if err != nil {
					t.Fatal(err)
				}
				dynamic[ips(exits)] = true
			}
			n := len(strings.Fields(c.static))
			if exits, err := p.Order(t.Context(), procurement.Intent{Type: session.Static, Quantity: max(n, 1)}); err == nil {
				static = strings.Fields(ips(exits))
				slices.Sort(static)
			}
			if got := strings.Join(sorted(dynamic), " "); got != c.dynamic {
				t.Errorf("dynamic are %s, want %s", got, c.dynamic)
			}
			if got := strings.Join(static, " "); got != c.static {
				t.Errorf("static are %s, want %s", got, c.static)
			}
			if got := product(t, p, "sta_isp_1").Available; got != (n > 0) {
				t.Errorf("of %d static addresses, available is %v", n, got)
			}
			_, err = p.Order(t.Context(), procurement.Intent{Type: session.Static, Quantity: n + 1})
			if procurement.ClassOf(err) != procurement.OutOfStock {
				t.Errorf("%d of %d static addresses answer %v", n+1, n, err)
			}
		})
	}
}

func sorted(set map[string]bool) []string {
	var out []string
	for k := range set {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func TestRotation(t *testing.T) {
	t.Parallel()
	t.Run("of one address there is no other", func(t *testing.T) {
		p := open(t, "203.0.113.1")
		_, err := p.NewExit(procurement.Intent{}, session.Exit{IP: netip.MustParseAddr("203.0.113.1")})
		if procurement.ClassOf(err) != procurement.OutOfStock {
			t.Errorf("got %v", err)
		}
	})
	t.Run("of two it is the other", func(t *testing.T) {
		p := open(t, "203.0.113.1", "203.0.113.2", "203.0.113.3")
		for range 20 {
			next, err := p.NewExit(procurement.Intent{}, session.Exit{IP: netip.MustParseAddr("203.0.113.1")})
			if err != nil || next.IP.String() != "203.0.113.3" {
				t.Fatalf("got %v, %v", next, err)
			}
		}
	})
	t.Run("a session whose exit is gone is given any", func(t *testing.T) {
		p := open(t, "203.0.113.1")
		if next, err := p.NewExit(procurement.Intent{}, session.Exit{IP: netip.MustParseAddr("192.0.2.1")}); err != nil || !next.IP.IsValid() {
			t.Errorf("got %v, %v", next, err)
		}
	})
	t.Run("an address that a session owns is never given, should the halves have been swapped", func(t *testing.T) {
		p := open(t, "203.0.113.1", "203.0.113.2", "203.0.113.3")
		o := procurement.Intent{Type: session.Dynamic, Quantity: 1, Taken: map[string]bool{"203.0.113.1": true}}
		for i := range 20 {
			o.SessionID = fmt.Sprint(i)
			if exits, err := p.Order(t.Context(), o); err != nil || ips(exits) != "203.0.113.3" {
				t.Fatalf("got %v, %v", exits, err)
			}
		}
		if _, err := p.NewExit(o, session.Exit{IP: netip.MustParseAddr("203.0.113.3")}); procurement.ClassOf(err) != procurement.OutOfStock {
			t.Errorf("rotate: %v", err)
		}
	})
}

func TestSessionsSpreadOverTheExits(t *testing.T) {
	t.Parallel()
	var list []string
	for i := range 20 {
		list = append(list, fmt.Sprint("203.0.113.", i))
	}
	p := open(t, list...)
	count := map[string]int{}
	for i := range 2000 {
		exits, err := p.Order(t.Context(), procurement.Intent{SessionID: fmt.Sprintf("sess_%020d", i*7919), Type: session.Dynamic, Quantity: 1})
		if err != nil {
			t.Fatal(err)
		}
		count[ips(exits)]++
	}
	for ip, n := range count { // 200 expected
		if n < 120 || n > 280 {
			t.Errorf("%s has %d of 2000 sessions", ip, n)
		}
	}
	if len(count) != 10 {
		t.Errorf("%d exits are used, want 10", len(count))
	}
}

func TestLoopbackIsProbed(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	p, err := embedded.New(embedded.Config{Everywhere: true}, log) // which does not probe all of 127.0.0.0/8: that takes hours
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(out.String(), "\n") > 1 {
		t.Errorf("more than one line was logged:\n%s", out.String())
	}
	for _, typ := range []session.Type{session.Dynamic, session.Static} {
		exits, err := p.Order(t.Context(), procurement.Intent{SessionID: "sess_1", Type: typ, Quantity: 1})
		if err != nil {
			t.Fatal(err)
		}
		conn, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(exits.IPs[0].Addr, 0)))
		if err != nil {
			t.Errorf("what is sold cannot be bound: %v", err)
			continue
		}
		conn.Close()
	}
}

// A target outside would see the host's one address in place of each loopback address.
func TestWithoutDeclaredExitsNothingIsSold(t *testing.T) {
	t.Parallel()
	p, err := embedded.New(embedded.Config{Usable: any}, silent)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Products()) > 0 || len(p.Exits(session.Location{})) > 0 {
		t.Errorf("it sells %v from %v", p.Products(), p.Exits(session.Location{}))
	}
	for _, typ := range []session.Type{session.Dynamic, session.Static} {
		if d, err := p.Order(t.Context(), procurement.Intent{SessionID: "sess_1", Type: typ, Quantity: 1}); err == nil {
			t.Errorf("%s: got %v", typ, d.IPs)
		}
	}
	if exit, err := p.NewExit(procurement.Intent{SessionID: "sess_1", Type: session.Dynamic}, session.Exit{}); err == nil {
		t.Errorf("a rotation gets %v", exit)
	}
}

func TestWhatCannotBeBound(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	none := func(netip.Addr) bool { return false }
	t.Run("one line counts those left out", func(t *testing.T) {
		out.Reset()
		few := func(ip netip.Addr) bool { return ip.As4()[2] == 0 && ip.As4()[3] < 12 }
		if _, err := embedded.New(embedded.Config{Everywhere: true, Usable: few}, log); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "left_out=1011 usable=10 first=127.0.0.12") {
			t.Errorf("logged:\n%s", got)
		}
	})
	t.Run("a host with the whole network is asked for its ends", func(t *testing.T) {
		asked := 0
		p, err := embedded.New(embedded.Config{Everywhere: true, Usable: func(netip.Addr) bool { asked++; return true }}, log)
		if err != nil || asked != 2 || !p.Has(netip.MustParseAddr("127.0.1.7")) {
			t.Errorf("%v, %d addresses tried", err, asked)
		}
	})
	t.Run("a host with one loopback address sells that, for dynamic sessions", func(t *testing.T) {
		p, err := embedded.New(embedded.Config{Everywhere: true, Usable: none}, log)
		if err != nil {
			t.Fatal(err)
		}
		exits, err := p.Order(t.Context(), procurement.Intent{SessionID: "sess_1", Type: session.Dynamic, Quantity: 1})
		if err != nil || ips(exits) != "127.0.0.1" {
			t.Errorf("got %v, %v", exits, err)
		}
	})
	t.Run("a list of strangers' addresses does not start", func(t *testing.T) {
		_, err := embedded.New(embedded.Config{Exits: addresses("192.0.2.1", "192.0.2.2"), Usable: none}, log)
		if err == nil || !strings.Contains(err.Error(), "AGENTPROXY_EXITS") || !strings.Contains(err.Error(), "192.0.2.1") {
			t.Errorf("error %v", err)
		}
	})
}

func TestModule(t *testing.T) {
	t.Parallel()
	var p *embedded.Provider
	app := fx.New(fx.NopLogger, embedded.Module, fx.Supply(embedded.Config{}, silent), fx.Populate(&p))
	if app.Err() != nil || p.Name() != embedded.Name {
		t.Errorf("got %v", app.Err())
	}
}

func BenchmarkProvisionStatic(b *testing.B) {
	p, err := embedded.New(embedded.Config{Everywhere: true}, silent)
	if err != nil {
		b.Fatal(err)
	}
	o := procurement.Intent{SessionID: "sess_aaaaaaaaaaaaaaaaaaaa", Type: session.Static, Quantity: 5}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Order(b.Context(), o); err != nil {
			b.Fatal(err)
		}
	}
}

// Outside development mode only the declared places are sold, each by the half of the pool that has it.
func TestDeclaredPlaces(t *testing.T) {
	p, err := embedded.New(embedded.Config{Usable: any, Exits: addresses("203.0.113.1@DE/berlin", "203.0.113.2@US/newyork",
		"203.0.113.3@DE", "203.0.113.4@US/miami", "203.0.113.5", "203.0.113.6@US/newyork", "203.0.113.7@DE/berlin")}, silent)
	if err != nil {
		t.Fatal(err)
	}
	dynamic, static := product(t, p, "dyn_fast_1"), product(t, p, "sta_isp_1")
	for name, c := range map[string]struct {
		product catalog.Product
		want    []string
	}{
		"dynamic countries": {dynamic, []string{"DE"}}, "static countries": {static, []string{"US"}},
	} {
		if !slices.Equal(c.product.Countries, c.want) {
			t.Errorf("%s are %v, want %v", name, c.product.Countries, c.want)
		}
	}
	if problems := catalog.Check(p.Products()); problems != nil {
		t.Errorf("the catalogue has faults: %v", problems)
	}
	if !slices.Equal(static.Cities, []string{"miami", "newyork"}) || dynamic.SellsPlace(session.Location{Country: "US"}) ||
		static.SellsPlace(session.Location{Country: "US", City: "berlin"}) {
		t.Errorf("the places are %v of %+v", static.Cities, static.Sources)
	}
	for name, c := range map[string]struct {
		in   procurement.Intent
		want []string
	}{
		"a city":    {procurement.Intent{Type: session.Static, Quantity: 2, Location: session.Location{Country: "US", City: "newyork"}}, []string{"203.0.113.2", "203.0.113.6"}},
		"a country": {procurement.Intent{Type: session.Static, Quantity: 3, Location: session.Location{Country: "US"}}, []string{"203.0.113.2", "203.0.113.4", "203.0.113.6"}},
		"too many":  {procurement.Intent{Type: session.Static, Quantity: 3, Location: session.Location{Country: "US", City: "newyork"}}, nil},
		"elsewhere": {procurement.Intent{Type: session.Dynamic, Location: session.Location{Country: "US"}}, nil},
	} {
		c.in.SessionID = "sess_1"
		d, err := p.Order(t.Context(), c.in)
		got := strings.Fields(strings.ReplaceAll(ips(d), ",", " "))
		slices.Sort(got)
		if !slices.Equal(got, c.want) || (c.want == nil) != (procurement.ClassOf(err) == procurement.OutOfStock) {
			t.Errorf("%s: got %v, %v, want %v", name, got, err, c.want)
		}
	}
	in := procurement.Intent{Location: session.Location{Country: "DE", City: "berlin"}}
	exit, err := p.NewExit(in, session.Exit{IP: netip.MustParseAddr("203.0.113.1")})
	if err != nil || exit.IP != netip.MustParseAddr("203.0.113.7") {
		t.Errorf("the new exit is %v, %v", exit, err)
	}
}

// Without a declared place products list no country, and none can be asked for.
func TestWithoutDeclaredPlaces(t *testing.T) {
	p, err := embedded.New(embedded.Config{Usable: any, Exits: addresses("203.0.113.1", "203.0.113.2")}, silent)
	if err != nil {
		t.Fatal(err)
	}
	if problems := catalog.Check(p.Products()); problems != nil {
		t.Errorf("the catalogue has faults: %v", problems)
	}
	for _, product := range p.Products() {
		terms := product.Terms()
		if len(product.Countries) != 0 || product.SellsPlace(session.Location{City: "berlin"}) {
			t.Errorf("%s has the places %v", product.No, product.Sources)
		}
		spec := session.Spec{Type: product.Type, Quantity: 1, Bytes: billing.GB, Days: 30}
		if got, err := terms.Check(spec); err != nil || got.Location != (session.Location{}) {
			t.Errorf("%s without a country: %+v, %v", product.No, got.Location, err)
		}
		spec.Location.Country = "DE"
		if _, err := terms.Check(spec); err == nil {
			t.Errorf("%s is sold in a country that is not declared", product.No)
		}
	}
	if d, err := p.Order(t.Context(), procurement.Intent{SessionID: "sess_1", Type: session.Static, Quantity: 1}); err != nil || len(d.IPs) != 1 {
		t.Errorf("got %+v, %v", d, err)
	}
}
