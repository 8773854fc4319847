package httpapi_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"agentproxy/domain/catalog"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/fake"
)

// secretOf is what no answer may hold of a seller whose proxies are not given
// to agents.
const secretOf = "pass"

// odd is a chained seller whose credentials need care in a URL.
type odd struct {
	*fake.Provider
	only session.Protocol // empty means both
}

const oddUser, oddPassword = "cust-a@b:c/d+e_token-", "p%40ss /?#[]é"

func (o odd) Endpoint(a procurement.Access, t procurement.Target) (procurement.Endpoint, error) {
	e, err := o.Provider.Endpoint(a, t)
	e.User, e.Password = oddUser+t.Token, oddPassword
	if o.only != "" {
		e.Protocol = o.only
	}
	return e, err
}

// chained is a seller of proxies of its own.
func chained(name string) *fake.Provider {
	p := fake.NewProvider(name)
	p.Can(func(c *procurement.Capabilities) { c.ViaUpstream, c.Direct = true, true })
	return p
}

// product is a product of sellers, the first preferred.
func product(no string, typ session.Type, direct bool, sellers ...string) catalog.Product {
	p := fake.Products()[0]
	if typ == session.Static {
		p = fake.Products()[2]
	}
	p.No, p.Direct = no, direct
	for i, s := range sellers {
		p.Sources = append(p.Sources, procurement.Source{Provider: s, Preference: i})
	}
	return p
}

func body(no string) string {
	if strings.HasPrefix(no, "sta") {
		return strings.Replace(oneIP, "sta_sync", no, 1)
	}
	return strings.Replace(oneGB, "dyn_sync", no, 1)
}

func TestDirectProducts(t *testing.T) {
	t.Parallel()
	both, socks := odd{chained("both"), ""}, odd{chained("socks"), session.SOCKS5}
	w := newWorld(t, options{more: []ports.Provider{both, socks}, sell: []catalog.Product{
		product("dyn_direct", session.Dynamic, true, "both"), product("dyn_socks", session.Dynamic, true, "socks"),
		product("sta_direct", session.Static, true, "both"), product("dyn_through", session.Dynamic, false, "both")}})
	a := w.register("Direct")

	t.Run("the catalogue shows it", func(t *testing.T) {
		want := map[string]string{
			"dyn_direct":  "direct",
			"sta_direct":  "direct",
			"dyn_through": "gateway",
			"dyn_sync":    "gateway",
		}
		for _, path := range []string{"/v1/products?page_size=100", "/v1/public/products?page_size=100"} {
			seen := 0
			for _, item := range w.do("GET", path, "", a.as).want(200).at("data.items").([]any) {
				p := item.(map[string]any)
				if delivery, ok := want[p["product_no"].(string)]; ok {
					seen++
					if p["delivery"] != delivery {
						t.Errorf("%s: %s is %v, want %s", path, p["product_no"], p["delivery"], delivery)
					}
				}
			}
			if seen != len(want) {
				t.Errorf("%s lists %d of %d", path, seen, len(want))
			}
		}
	})
	t.Run("the address is the upstream's, and a URL library reads the credential back", func(t *testing.T) {
		for _, protocol := range []string{"http", "socks5"} {
			r := w.do("POST", "/v1/sessions", strings.Replace(body("dyn_direct"), `}}`, `,"protocol":"`+protocol+`"}}`, 1), a.as).want(201)
			id := r.str("data.session_id")
			user := oddUser + procurement.Token(id, 0)
			for _, r := range []*answer{r, w.do("GET", "/v1/sessions/"+id, "", a.as).want(200)} {
				if r.str("data.proxy.host") != "both.test" || r.num("data.proxy.port") != 7000 || r.str("data.proxy.protocol") != protocol ||
					r.str("data.proxy.username") != user ||
					r.str("data.proxy.password") != oddPassword {
					t.Errorf("%s", r.body)
				}
				if r.str("data.proxy.full_url") != r.str("data.proxy."+protocol+"_url") {
					t.Errorf("full_url is %s", r.str("data.proxy.full_url"))
				}
				for _, scheme := range []string{"http", "socks5"} {
					u, err := url.Parse(r.str("data.proxy." + scheme + "_url"))
					if err != nil || u.Scheme != scheme || u.Host != "both.test:7000" || u.User.Username() != user ||
						u.Path != "" {
						t.Fatalf("%s_url: %v, %v", scheme, u, err)
					}
					if p, _ := u.User.Password(); p != oddPassword {
						t.Errorf("%s_url has the password %q", scheme, p)
					}
				}
			}
			rotated := w.do("POST", "/v1/sessions/"+id+"/rotate", "", a.as).want(200)
			if next := oddUser + procurement.Token(id, 1); rotated.str("data.new_proxy.username") != next ||
				rotated.str("data.proxy.username") != next {
				t.Errorf("rotated, the user is %s, want %s", rotated.str("data.new_proxy.username"), next)
			}
			w.do("DELETE", "/v1/sessions/"+id, "", a.as).want(200)
			if r := w.do("GET", "/v1/sessions/"+id, "", a.as); r.at("data.proxy") != nil ||
				strings.Contains(string(r.body), "both.test") {
				t.Errorf("ended: %s", r.body)
			}
		}
	})
	t.Run("a protocol that the upstream does not support has no URL", func(t *testing.T) {
		for _, protocol := range []string{"http", "socks5"} {
			r := w.do("POST", "/v1/sessions", strings.Replace(body("dyn_socks"), `}}`, `,"protocol":"`+protocol+`"}}`, 1), a.as).want(201)
			if r.at("data.proxy.http_url") != "" || r.str("data.proxy.protocol") != "socks5" || r.str("data.proxy.host") != "socks.test" ||
				r.str("data.proxy.full_url") != r.str("data.proxy.socks5_url") ||
				!strings.HasPrefix(r.str("data.proxy.full_url"), "socks5://") {
				t.Errorf("%s", r.body)
			}
		}
	})
	t.Run("each address of a static session has the upstream's own", func(t *testing.T) {
		two := strings.NewReplacer(`"quantity":1`, `"quantity":2`, `}}`, `,"protocol":"socks5"}}`).Replace(body("sta_direct"))
		r := w.do("POST", "/v1/sessions", two, a.as).want(201)
		ips := both.Of(r.str("data.session_id"))[0].Delivery.IPs
		for i, at := range []string{"data.ip_list.0.", "data.ip_list.1."} {
			host := ips[i].Host
			if r.str(at+"ip") != ips[i].Addr.String() || r.str(at+"host") != host || r.num(at+"port") != 8080 || r.str(at+"protocol") != "http" ||
				r.str(at+"full_url") != "http://user:pass@"+host+":8080" || r.at(at+"socks5_url") != "" ||
				r.str(at+"country") != "US" {
				t.Errorf("%s %s", at, r.body)
			}
		}
		if r.num("data.quantity") != 2 || text(r.at("data.proxy")) == "null" ||
			r.str("data.proxy.host") != ips[0].Host {
			t.Errorf("its proxy is %s", text(r.at("data.proxy")))
		}
	})
	t.Run("the list shows what the session shows", func(t *testing.T) {
		for _, item := range w.do("GET", "/v1/sessions?status=active&page_size=100", "", a.as).want(200).at("data.items").([]any) {
			s := item.(map[string]any)
			one := w.do("GET", "/v1/sessions/"+s["session_id"].(string), "", a.as).want(200)
			if text(s["proxy"]) != text(one.at("data.proxy")) || text(s["ip_list"]) != text(one.at("data.ip_list")) {
				t.Errorf("listed %s, read %s", text(s), one.body)
			}
		}
	})
}

// An agent never sees how the gateway reaches an upstream.
func TestNoUpstreamCredentialIsAnswered(t *testing.T) {
	t.Parallel()
	seller := chained("hidden")
	w := newWorld(t, options{more: []ports.Provider{seller}, sell: []catalog.Product{
		product("dyn_hidden", session.Dynamic, false, "hidden"), product("sta_hidden", session.Static, false, "hidden")}})
	a := w.register("Curious")
	var answers []*answer
	add := func(method, path, body string) *answer {
		r := w.do(method, path, body, a.as)
		if r.status > 299 {
			t.Errorf("%s %s: %s", method, path, r.body)
		}
		answers = append(answers, r)
		return r
	}
	moving := "/v1/sessions/" + add("POST", "/v1/sessions", body("dyn_hidden")).str("data.session_id")
	fixed := "/v1/sessions/" + add("POST", "/v1/sessions", body("sta_hidden")).str("data.session_id")
	add("POST", moving+"/rotate", "")
	add("POST", fixed+"/renew", "")
	for _, path := range []string{moving, fixed, moving + "/usage", fixed + "/usage", moving + "/events", fixed + "/events", moving + "/health",
		"/v1/sessions", "/v1/products", "/v1/billing/transactions", "/v1/stats/overview", "/v1/billing/usage-report?period=day"} {
		add("GET", path, "")
	}
	seller.Next(fake.Provision, fake.Step{Err: procurement.Refuse(procurement.Auth, "the key "+secretOf+"ref9 at hidden.test is wrong")})
	failed := w.do("POST", "/v1/sessions", body("dyn_hidden"), a.as).refused(502, "PROVIDER_ERROR")
	answers = append(answers, failed)
	gone := "/v1/sessions/" + failed.str("error.details.session_id")
	add("GET", gone, "")
	add("GET", gone+"/events", "")
	add("DELETE", moving, "")
	add("GET", moving, "")
	for _, r := range answers {
		for _, secret := range []string{secretOf + "ref", "userref", "hidden.test", `"pass"`, `"ref1"`, "ord_"} {
			if strings.Contains(string(r.body), secret) {
				t.Errorf("%s %s answers %s: %s", r.method, r.path, secret, r.body)
			}
		}
	}
	for _, p := range []string{moving, fixed} {
		if r := w.do("GET", p, "", a.as).want(200); r.str("data.status") == "active" &&
			r.str("data.proxy.host") != "proxy.test" {
			t.Errorf("the proxy is %s", text(r.at("data.proxy")))
		}
	}
}

// A renewal at a seller answers what is known of it.
func TestRenewAtASeller(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{more: []ports.Provider{fake.NewProvider("plain")}})
	w.provider.SetInProcess(false)
	w.provider.SetClock(w.clock.Now)
	a := w.register("Renewals")
	s := w.do("POST", "/v1/sessions", oneIP, a.as).want(201)
	at := "/v1/sessions/" + s.str("data.session_id")
	end := s.str("data.expires_at")
	later := func(n int) string {
		e, err := time.Parse("2006-01-02T15:04:05.000Z", end)
		w.must(err)
		return e.Add(time.Duration(n) * 30 * session.Day).Format("2006-01-02T15:04:05.000Z")
	}
	replay := func(k string, status int, want string) {
		t.Helper()
		r := w.do("POST", at+"/renew", "", a.as, key(k)).want(status)
		if r.header.Get("Idempotency-Replayed") != "true" || r.str("data.expires_at") != want {
			t.Errorf("replayed: %v %s", r.header, r.body)
		}
	}
	t.Run("confirmed is 200 with the later end", func(t *testing.T) {
		r := w.do("POST", at+"/renew", "", a.as, key("one")).want(200)
		if r.str("data.expires_at") != later(1) || r.num("data.cost.charged") != 2 || r.num("data.cost.held") != 0 ||
			r.header.Get("Location") != "" {
			t.Errorf("%v %s", r.header, r.body)
		}
		replay("one", 200, later(1))
	})
	t.Run("unknown is 202 with the end as it was, and 200 or 202 for ever when it is replayed", func(t *testing.T) {
		w.provider.Next(fake.Extend, fake.LoseAnswer())
		r := w.do("POST", at+"/renew", "", a.as, key("two")).want(202)
		if r.str("data.expires_at") != later(1) || r.num("data.cost.held") != 1 || r.str("data.status") != "active" ||
			r.header.Get("Location") != at {
			t.Errorf("%v %s", r.header, r.body)
		}
		replay("two", 202, later(1))
		w.do("POST", at+"/renew", "", a.as, key("three")).refused(409, "SESSION_NOT_READY")
		w.clock.Advance(time.Minute)
		w.must(w.driver.DriveDue(t.Context()))
		if r := w.do("GET", at, "", a.as).want(200); r.str("data.expires_at") != later(2) ||
			r.num("data.cost.held") != 0 {
			t.Errorf("%s", r.body)
		}
		replay("two", 202, later(2))
		replay("one", 200, later(2))
	})
	t.Run("a refusal has its reason, and keeps no key", func(t *testing.T) {
		for class, want := range map[procurement.Class]struct {
			status int
			code   string
		}{procurement.Temporary: {502, "PROVIDER_ERROR"}, procurement.TimedOut: {504, "PROVIDER_TIMEOUT"}, procurement.OutOfStock: {409, "PRODUCT_OUT_OF_STOCK"}} {
			w.provider.Next(fake.Extend, fake.Refuse(class))
			if r := w.do("POST", at+"/renew", "", a.as, key("four")).refused(want.status, want.code); r.at(
				"error.retryable",
			) != true {
				t.Errorf("%s", r.body)
			}
		}
		r := w.do("POST", at+"/renew", "", a.as, key("four")).want(200)
		if r.header.Get("Idempotency-Replayed") != "" || r.str("data.expires_at") != later(3) {
			t.Errorf("%v %s", r.header, r.body)
		}
	})
}

func TestSourcesOfAProduct(t *testing.T) {
	t.Parallel()
	first, second := fake.NewProvider("first"), fake.NewProvider("second")
	placed := product("sta_placed", session.Static, false, "first", "second")
	placed.Sources[0].Countries, placed.Sources[0].Cities = []string{"DE"}, []string{"BER"}
	placed.Sources[1].Countries, placed.Sources[1].Cities = []string{"US"}, []string{"NYC"}
	placed.Countries, placed.Cities = []string{"DE", "US"}, []string{"BER", "NYC"}
	w := newWorld(t, options{more: []ports.Provider{first, second}, sell: []catalog.Product{
		product("dyn_both", session.Dynamic, false, "first", "second"), placed}})
	a := w.register("Sources")
	t.Run("one that refuses is not shown", func(t *testing.T) {
		first.Next(fake.Provision, fake.Refuse(procurement.InsufficientFunds))
		r := w.do("POST", "/v1/sessions", body("dyn_both"), a.as).want(201)
		if r.at("data.failure") != nil || len(second.Of(r.str("data.session_id"))) != 1 || len(first.Sales()) != 0 {
			t.Errorf("%s", r.body)
		}
	})
	t.Run("the refusal is the last one's", func(t *testing.T) {
		for class, want := range map[procurement.Class]struct {
			status int
			code   string
		}{procurement.Temporary: {502, "PROVIDER_ERROR"}, procurement.TimedOut: {504, "PROVIDER_TIMEOUT"}, procurement.OutOfStock: {409, "PRODUCT_OUT_OF_STOCK"}} {
			first.Next(fake.Provision, fake.Refuse(procurement.RateLimited))
			second.Next(fake.Provision, fake.Refuse(class))
			w.do("POST", "/v1/sessions", body("dyn_both"), a.as).refused(want.status, want.code)
		}
	})
	t.Run("a place without exits is refused with the nearest", func(t *testing.T) {
		for _, c := range []struct{ country, city, field, nearest string }{
			{"FR", "", "config.country", `[]`},
			{"DE", "NYC", "config.city", `["BER"]`},
			{"US", "BRE", "config.city", `["NYC"]`},
		} {
			b := strings.Replace(body("sta_placed"), `"country":"US"`, `"country":"`+c.country+`","city":"`+c.city+`"`, 1)
			if c.city == "" {
				b = strings.Replace(b, `,"city":""`, "", 1)
			}
			r := w.do("POST", "/v1/sessions", b, a.as).refused(400, "INVALID_REQUEST")
			if r.str("error.details.fields.0.field") != c.field || text(r.at("error.details.nearest")) != c.nearest {
				t.Errorf("%s/%s: %s", c.country, c.city, r.body)
			}
		}
		if first.Calls(fake.Provision)+second.Calls(fake.Provision) != 8 {
			t.Error("a seller was asked for a place that it does not have")
		}
	})
}
