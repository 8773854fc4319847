package proxyseller_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/upstream"
	"agentproxy/domain"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/fake/proxyseller"
)

func TestDeliversAddresses(t *testing.T) {
	t.Parallel()
	s, p := openAddresses(t)
	s.SetProxy("127.0.0.1", 3128, 1080)
	d, err := p.Order(t.Context(), ispIntent("ord_1", 2))
	if err != nil || d.State != procurement.Pending || d.Cost != 4*domain.Dollar {
		t.Fatalf("ordered: %+v, %v", d, err)
	}
	if early, err := p.Read(t.Context(), d.Ref); err != nil || early.State != procurement.Pending || len(early.IPs) != 0 {
		t.Errorf("at first it is %+v, %v", early, err)
	}
	live := readLive(t, p, d.Ref)
	month := time.Now().UTC().AddDate(0, 1, 0)
	if end := time.Date(month.Year(), month.Month(), month.Day(), 0, 0, 0, 0, time.UTC); !live.ExpiresAt.Equal(end) {
		t.Errorf("it ends at %v, want the beginning of the day, %v", live.ExpiresAt, end)
	}
	if live.Location.Country != "US" || live.Quantity != 2 || live.SKU != "isp" {
		t.Errorf("it is %+v", live)
	}
	for _, ip := range live.IPs {
		if ip.User == "" || ip.Password == "" || ip.Host != "127.0.0.1" || ip.HTTPPort != 3128 || ip.SOCKSPort != 1080 || ip.Country != "US" {
			t.Errorf("an address is %+v", ip)
		}
	}
	if s.Orders() != 1 || s.Spent() != 4*domain.Dollar {
		t.Errorf("the seller has %d orders for %s", s.Orders(), s.Spent())
	}
}

func TestOrdersThreeMonthsAnywhere(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		claim  string
		change func(in *procurement.Intent)
		cost   domain.Money
		class  procurement.Class
	}{
		{"three months", func(in *procurement.Intent) { in.Days = 90 }, 5 * domain.Dollar, ""},
		{"a country by its code", func(in *procurement.Intent) { in.Location.Country = "DE" }, 2 * domain.Dollar, ""},
		{"a country by the operator's id", func(in *procurement.Intent) { in.Location.Country = "JP" }, 2 * domain.Dollar, ""},
		{"a city by the operator's id", func(in *procurement.Intent) { in.Location.City = "newyork" }, 2 * domain.Dollar, ""},
		{"a product without a name", func(in *procurement.Intent) { in.SKU = "" }, 2 * domain.Dollar, ""},
		{"another product", func(in *procurement.Intent) { in.SKU = "ipv4" }, 0, procurement.Invalid},
		{"a city that has no id", func(in *procurement.Intent) { in.Location.City = "boston" }, 0, procurement.Invalid},
		{"no country", func(in *procurement.Intent) { in.Location.Country = "" }, 0, procurement.Invalid},
		{"a country that does not exist", func(in *procurement.Intent) { in.Location.Country = "XX" }, 0, procurement.Invalid},
		{"a country that is not sold", func(in *procurement.Intent) { in.Location.Country = "BR" }, 0, procurement.Invalid},
		{"another term", func(in *procurement.Intent) { in.Days = 60 }, 0, procurement.Invalid},
		{"nothing", func(in *procurement.Intent) { in.Quantity = 0 }, 0, procurement.Invalid},
		{"traffic", func(in *procurement.Intent) { in.Type = session.Dynamic }, 0, procurement.Unsupported},
	} {
		t.Run(c.claim, func(t *testing.T) {
			s := proxyseller.New(t)
			spec := specOf(s, "isp")
			spec.Locations = map[string]string{"JP": proxyseller.CountryID("JPN"), "US/newyork": proxyseller.CountryID("USA")}
			p := open(t, spec)
			in := ispIntent("ord_1", 1)
			c.change(&in)
			q, err := p.Quote(t.Context(), in)
			if procurement.ClassOf(err) != c.class || q.Cost != c.cost {
				t.Errorf("quoted %+v, %v", q, err)
			}
			d, err := p.Order(t.Context(), in)
			if procurement.ClassOf(err) != c.class || d.Cost != c.cost || s.Spent() != c.cost {
				t.Errorf("ordered %+v, %v, spent %s", d, err, s.Spent())
			}
		})
	}
}

func TestRefusesBeforeMoneyMoves(t *testing.T) {
	t.Parallel()
	s, p := openAddresses(t)
	s.SetBalance(domain.Dollar)
	if _, err := p.Quote(t.Context(), ispIntent("ord_1", 1)); procurement.ClassOf(err) != procurement.InsufficientFunds {
		t.Errorf("quoted without money: %v", err)
	}
	if _, err := p.Order(t.Context(), ispIntent("ord_1", 1)); procurement.ClassOf(err) != procurement.InsufficientFunds {
		t.Errorf("ordered without money: %v", err)
	}
	s.SetBalance(100 * domain.Dollar)
	s.SetStock("USA", 1)
	if _, err := p.Quote(t.Context(), ispIntent("ord_1", 2)); procurement.ClassOf(err) != procurement.OutOfStock {
		t.Errorf("quoted without stock: %v", err)
	}
	if s.Spent() != 0 {
		t.Errorf("%s were spent", s.Spent())
	}
}

func TestNeverLetsAnythingRenewItself(t *testing.T) {
	t.Parallel()
	s, p := openAddresses(t)
	d, err := p.Order(t.Context(), ispIntent("ord_1", 3))
	if err != nil {
		t.Fatal(err)
	}
	if s.SelfRenewing() != 3 {
		t.Fatal("the fake leaves it off by itself")
	}
	readLive(t, p, d.Ref)
	if n := s.SelfRenewing(); n != 0 {
		t.Errorf("delivered, %d addresses renew themselves", n)
	}
	readLive(t, p, d.Ref)
	if n := s.Calls("/autoprolong/"); n != 1 {
		t.Errorf("it was switched off %d times", n)
	}
	if _, err := p.Renew(t.Context(), d.Ref, ispIntent("ord_2", 3)); err != nil || s.SelfRenewing() != 0 {
		t.Errorf("renewed, %d addresses renew themselves, %v", s.SelfRenewing(), err)
	}
	t.Run("nor what is given up before it is there", func(t *testing.T) {
		s, p := openAddresses(t)
		d, err := p.Order(t.Context(), ispIntent("ord_1", 2))
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Cancel(t.Context(), d.Ref); procurement.ClassOf(err) != procurement.Temporary {
			t.Errorf("on its way: %v", err)
		}
		if err := p.Cancel(t.Context(), d.Ref); procurement.ClassOf(err) != procurement.Unsupported || s.SelfRenewing() != 0 {
			t.Errorf("given up, %d addresses renew themselves, %v", s.SelfRenewing(), err)
		}
		if err := p.Cancel(t.Context(), "9_9"); err != nil {
			t.Errorf("what is not there: %v", err)
		}
	})
	t.Run("or does not deliver them", func(t *testing.T) {
		s, p := openAddresses(t)
		d, err := p.Order(t.Context(), ispIntent("ord_1", 1))
		if err != nil {
			t.Fatal(err)
		}
		s.SetDelay(0)
		_, _ = p.Read(t.Context(), d.Ref)
		s.Refuse("/autoprolong/", 99, "no")
		if _, err := p.Read(t.Context(), d.Ref); procurement.ClassOf(err) != procurement.Invalid {
			t.Errorf("read: %v", err)
		}
	})
}

func TestKeepsAddressesToTheirEnd(t *testing.T) {
	t.Parallel()
	s, p := openAddresses(t)
	d, err := p.Order(t.Context(), ispIntent("ord_1", 2))
	if err != nil {
		t.Fatal(err)
	}
	before := readLive(t, p, d.Ref)
	s.Age(100 * time.Hour)
	s.NearEnd(d.Ref)
	if read, err := p.Read(t.Context(), d.Ref); err != nil || read.State != procurement.Live || len(read.IPs) != 2 {
		t.Errorf("about to end, it is %s with %d addresses, %v", read.State, len(read.IPs), err)
	}
	if done, err := p.Renew(t.Context(), d.Ref, ispIntent("ord_2", 2)); err != nil || !done[0].ExpiresAt.After(before.ExpiresAt) {
		t.Errorf("renewed %+v, %v", done, err)
	}
}

// TestMalformedAddressesAreRefused changes one field of a delivered order at a time. None
// of the orders is delivered.
func TestMalformedAddressesAreRefused(t *testing.T) {
	t.Parallel()
	const good = `{"id":"a1","order_number":"7_7","base_order_number":"7_7","ip":"192.0.2.1","ip_only":"192.0.2.1","port_socks":1080,` +
		`"port_http":3128,"login":"u","password":"p","country_alpha3":"USA","status_type":"ACTIVE","date_end":"26.07.2033","auto_renew":"N"}`
	list := func(item string) string { return `{"status":"success","data":{"items":[` + item + `]},"errors":[]}` }
	for _, c := range []struct{ claim, old, new string }{
		{"a number as id", `"id":"a1"`, `"id":1`},
		{"no id", `"id":"a1"`, `"id":""`},
		{"no address", `"ip_only":"192.0.2.1"`, `"ip_only":"modem"`},
		{"no host", `"ip":"192.0.2.1"`, `"ip":""`},
		{"no port", `"port_socks":1080,"port_http":3128`, `"port_socks":0,"port_http":0`},
		{"a port that is none", `1080`, `108000`},
		{"no login", `"login":"u"`, `"login":""`},
		{"no password", `"password":"p"`, `"password":""`},
		{"a new status", `ACTIVE`, `FROZEN`},
		{"an American date", `26.07.2033`, `07/26/2033`},
		{"no date", `26.07.2033`, ``},
	} {
		t.Run(c.claim, func(t *testing.T) {
			s, p := openAddresses(t)
			s.Answer("/proxy/list", list(good))
			if d, err := p.Read(t.Context(), "7_7"); err != nil || d.State != procurement.Live {
				t.Fatalf("as it is documented: %+v, %v", d, err)
			}
			for range 3 {
				s.Answer("/proxy/list", list(strings.Replace(good, c.old, c.new, 1)))
			}
			if d, err := p.Read(t.Context(), "7_7"); procurement.ClassOf(err) != procurement.Temporary {
				t.Errorf("got %+v, %v", d, err)
			}
		})
	}
	t.Run("an order of another number is another order", func(t *testing.T) {
		s, p := openAddresses(t)
		s.Answer("/proxy/list", list(good))
		s.Answer("/proxy/list", list(good))
		if d, err := p.Read(t.Context(), "8_8"); procurement.ClassOf(err) != procurement.NotFound {
			t.Errorf("got %+v, %v", d, err)
		}
	})
	t.Run("a list without items is no empty list", func(t *testing.T) {
		s, p := openAddresses(t)
		s.Answer("/proxy/list", `{"status":"success","data":{},"errors":[]}`)
		if found, err := p.Find(t.Context(), ispIntent("ord_1", 1)); procurement.ClassOf(err) != procurement.Temporary {
			t.Errorf("got %+v, %v", found, err)
		}
	})
}

func TestDoubtsStrangeBills(t *testing.T) {
	t.Parallel()
	for claim, data := range map[string]string{
		"no order": `{"total":2,"listBaseOrderNumbers":["7_7"]}`, "no number": `{"orderId":"a","total":2,"listBaseOrderNumbers":[]}`,
		"two numbers": `{"orderId":"a","total":2,"listBaseOrderNumbers":["7_7","8_8"]}`, "no total": `{"orderId":"a","listBaseOrderNumbers":["7_7"]}`,
		"a number as order": `{"orderId":1,"total":2,"listBaseOrderNumbers":["7_7"]}`, "a total in words": `{"orderId":"a","total":"two","listBaseOrderNumbers":["7_7"]}`,
		"a negative total": `{"orderId":"a","total":-2,"listBaseOrderNumbers":["7_7"]}`,
	} {
		t.Run(claim, func(t *testing.T) {
			s, p := openAddresses(t)
			s.Answer("/order/make", `{"status":"success","data":`+data+`,"errors":[]}`)
			if d, err := p.Order(t.Context(), ispIntent("ord_1", 1)); procurement.ClassOf(err) != procurement.Ambiguous {
				t.Errorf("got %+v, %v", d, err)
			}
		})
	}
	for claim, data := range map[string]string{
		"another currency": `{"total":2,"quantity":1,"currency":"EUR"}`, "another quantity": `{"total":2,"quantity":2,"currency":"USD"}`,
		"no total in a quote": `{"quantity":1,"currency":"USD"}`,
	} {
		t.Run(claim, func(t *testing.T) {
			s, p := openAddresses(t)
			s.Answer("/order/calc", `{"status":"success","data":`+data+`,"errors":[]}`)
			if q, err := p.Quote(t.Context(), ispIntent("ord_1", 1)); procurement.ClassOf(err) != procurement.Temporary {
				t.Errorf("got %+v, %v", q, err)
			}
		})
	}
	t.Run("binary fractions are rounded", func(t *testing.T) {
		s, p := openAddresses(t)
		s.Answer("/balance/get", `{"status":"success","data":{"summ":35.099999999999994},"errors":[]}`)
		if f, err := p.Balance(t.Context()); err != nil || !f.Known || f.Amount != domain.MustMoney("35.1") {
			t.Errorf("got %+v, %v", f, err)
		}
	})
}

func TestListsItsCountries(t *testing.T) {
	t.Parallel()
	names := map[string]string{"US": "United States", "JP": "Japan"}
	for claim, set := range map[string]func(s *proxyseller.Server, p ports.Static){
		"ids that are codes":   func(*proxyseller.Server, ports.Static) {},
		"ids that are numbers": func(s *proxyseller.Server, _ ports.Static) { s.NumberCountries() },
		"no items": func(s *proxyseller.Server, _ ports.Static) {
			s.Answer("/reference/list", `{"status":"success","data":{"country":[{"id":7,"name":"United States","alpha3":"USA"},`+
				`{"id":"jpn","name":"Japan"},{"id":9,"name":"Elsewhere"},{"id":"MIX","name":"Mix"}],"period":[]},"errors":[]}`)
		},
	} {
		t.Run(claim, func(t *testing.T) {
			s, p := openAddresses(t)
			s.SetStock("DEU", 0)
			set(s, p)
			offers, err := p.Offers(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range offers {
				if o.SKU != "isp" || o.Type != session.Static || len(o.Days) != 2 || o.Stock != procurement.StockUnknown ||
					names[o.Location.Country] != o.Name {
					t.Errorf("it offers %+v", o)
				}
			}
			if len(offers) != 2 {
				t.Errorf("it offers %+v", offers)
			}
		})
	}
}

// TestEveryPurchaseHasItsRequestID inspects the requests.
func TestEveryPurchaseHasItsRequestID(t *testing.T) {
	t.Parallel()
	var spent []string
	record := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			id := r.Header.Get("X-Request-Id")
			if r.Header.Get("Idempotency-Key")+r.Header.Get("X-Idempotency-Key") != "" {
				t.Error("a header lets net/http send a request twice")
			}
			if id != "" {
				spent = append(spent, r.URL.Path[strings.LastIndex(r.URL.Path, proxyseller.Key)+len(proxyseller.Key):]+" "+id)
			}
			next.ServeHTTP(w, r)
		})
	}
	s, p := openAddresses(t)
	s.Config.Handler = record(s.Config.Handler)
	d, err := p.Order(t.Context(), ispIntent("ord_1", 1))
	if err != nil {
		t.Fatal(err)
	}
	readLive(t, p, d.Ref)
	if _, err := p.Renew(t.Context(), d.Ref, ispIntent("ord_2", 1)); err != nil {
		t.Fatal(err)
	}
	s, r := openTraffic(t)
	s.Config.Handler = record(s.Config.Handler)
	if _, err := r.Order(t.Context(), gigabyte("ord_3")); err != nil {
		t.Fatal(err)
	}
	want := "[/order/make ord_1 /prolong/make/isp ord_2 /residentsubuser/create ord_3]"
	if fmt.Sprint(spent) != want {
		t.Errorf("got %v, want %s", spent, want)
	}
}

func TestConfiguration(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		claim  string
		change func(s *upstream.Spec)
		want   []string
	}{
		{"nothing", func(s *upstream.Spec) { s.Secrets, s.Options = nil, nil }, []string{"secrets.key is missing"}},
		{"no purpose", func(s *upstream.Spec) { s.Options["purpose"] = " " }, []string{"options.purpose is missing"}},
		{"a section that is not sold", func(s *upstream.Spec) { s.Options["section"] = "mobile" }, []string{"options.section", "mobile"}},
		{"a gateway for addresses", func(s *upstream.Spec) { s.Options["host"], s.Options["port"] = "h", "1" }, []string{"options.host is", "options.port is"}},
		{"a gateway that is none", func(s *upstream.Spec) {
			s.Options["section"], s.Options["host"], s.Options["port"] = "resident", "a:b", "0"
		}, []string{"options.host must", "options.port must"}},
		{"a place that is none", func(s *upstream.Spec) { s.Locations = map[string]string{"USA": "1", "US": ""} }, []string{"locations.USA", "locations.US must"}},
		{"an option that does not exist", func(s *upstream.Spec) { s.Options["zone"] = "1" }, []string{"options.zone does not exist"}},
	} {
		t.Run(c.claim, func(t *testing.T) {
			spec := upstream.Spec{Name: "ps", Kind: "proxyseller", Secrets: map[string]string{"key": "k3y"}, Options: map[string]string{"purpose": "x"}}
			c.change(&spec)
			_, err := upstream.New(spec, nil)
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "k3y") {
					t.Errorf("got %v, want %q", err, want)
				}
			}
		})
	}
}
