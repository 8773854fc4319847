package iproyal_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/upstream"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/fake/seller"
)

// play returns the provider of a scripted seller.
func play(t *testing.T, script seller.Script) ports.Provider {
	t.Helper()
	p, err := upstream.New(upstream.Spec{Name: "ipr", Kind: "iproyal", BaseURL: seller.Play(t, "/v1/reseller", script), PerSecond: 10_000,
		Secrets: map[string]string{"key": "a", "residential_key": "b"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// catalogueOf returns the answer of GET /products with one place, in stock or not.
func catalogueOf(empty bool) string {
	return fmt.Sprintf(`200 {"data":[{"id":9,"name":"ISP","plans":[{"id":22,"name":"30 Days","price":2.4,"min_quantity":null,"max_quantity":null}],
		"locations":[{"id":2,"name":"Germany","out_of_stock":%v,"available_proxies_count":null,"child_locations":[]}],"questions":[]}]}`, empty)
}

// orderOf returns the answer for an order of two addresses.
func orderOf(status, expires, proxies string) string {
	return fmt.Sprintf(`200 {"id":421,"status":%q,"expire_date":%q,"location":"Germany","quantity":2,"proxy_data":%s}`, status, expires, proxies)
}

const (
	twoProxies = `{"ports":{"socks5":12324,"http|https":12323},"proxies":[{"ip":"203.0.113.1","username":"u","password":"p"},{"ip":"203.0.113.2","username":"u","password":"p"}]}`
	oneProxy   = `{"ports":{"socks5":12324,"http|https":12323},"proxies":[{"ip":"203.0.113.1","username":"u","password":"p"}]}`
)

func TestAnOrderWithoutItsNumberMayHaveBeenMade(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{}`, `{"data":{}}`, `{"id":null}`, `{"id":"x7"}`, `{"id":-1}`, `[]`, `"ok"`, ``, `{"success":true}`} {
		p := play(t, seller.Script{"GET /products": {catalogueOf(false)}, "POST /orders": {"201 " + body}})
		_, err := p.Order(t.Context(), addresses("ord_1"))
		if procurement.ClassOf(err) != procurement.Ambiguous {
			t.Errorf("%s: %v", body, err)
		}
	}
	// An order with a number was made, whatever its other fields are.
	p := play(t, seller.Script{"GET /products": {catalogueOf(false)}, "POST /orders": {`200 {"data":{"id":421,"status":"queued"}}`}})
	if d, err := p.Order(t.Context(), addresses("ord_1")); err != nil || d.Ref != "421" || d.State != procurement.Pending {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestRefusesUnknownShapes(t *testing.T) {
	t.Parallel()
	const end = "2031-04-20 10:25:12"
	for name, c := range map[string]struct {
		answer string
		state  procurement.State // empty: Temporary
	}{
		"two of two":           {orderOf("confirmed", end, twoProxies), procurement.Live},
		"one of two":           {orderOf("confirmed", end, oneProxy), procurement.Pending},
		"no addresses":         {orderOf("confirmed", end, `[]`), procurement.Pending},
		"nothing of them":      {orderOf("confirmed", end, `null`), procurement.Pending},
		"lists while waiting":  {orderOf("in-progress", end, `{"ports":[],"proxies":[]}`), procurement.Pending},
		"texts":                {orderOf("confirmed", end, `{"ports":{"socks5":1},"proxies":["203.0.113.1:1:u:p","203.0.113.2:1:u:p"]}`), ""},
		"no ports":             {orderOf("confirmed", end, strings.Replace(twoProxies, `"socks5":12324,"http|https":12323`, `"http":1`, 1)), ""},
		"a name for an IP":     {orderOf("confirmed", end, strings.Replace(twoProxies, "203.0.113.1", "proxy.example", 1)), ""},
		"no password":          {orderOf("confirmed", end, strings.ReplaceAll(twoProxies, `"p"`, `""`)), ""},
		"another form of date": {orderOf("confirmed", "20/04/2031", twoProxies), ""},
		"no end":               {orderOf("confirmed", "", twoProxies), ""},
		"another order":        {strings.Replace(orderOf("confirmed", end, twoProxies), "421", "422", 1), ""},
		"nothing":              {"200 {}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := play(t, seller.Script{"GET /orders/421": {c.answer}}).Read(t.Context(), "421")
			if c.state == "" {
				refusedAs(t, err, procurement.Temporary)
				return
			}
			if err != nil || d.State != c.state {
				t.Errorf("%s, %v", d.State, err)
			}
		})
	}
	for name, body := range map[string]string{"an object": `{"amount":1}`, "a text": `"12 USD"`, "null": `null`} {
		t.Run("a balance that is "+name, func(t *testing.T) {
			t.Parallel()
			_, err := play(t, seller.Script{"GET /balance": {"200 " + body}}).Balance(t.Context())
			refusedAs(t, err, procurement.Temporary)
		})
	}
	for name, body := range map[string]string{"without data": `{}`, "of what has no number": `{"data":[{"status":"confirmed"}]}`} {
		t.Run("a list "+name, func(t *testing.T) {
			t.Parallel()
			_, err := play(t, seller.Script{"GET /products": {catalogueOf(false)}, "GET /orders": {"200 " + body}}).Find(t.Context(), addresses("ord_1"))
			refusedAs(t, err, procurement.Temporary)
		})
	}
}

func TestAMuteRefusalIsLookedInto(t *testing.T) {
	t.Parallel()
	p := play(t, seller.Script{"GET /products": {catalogueOf(false), catalogueOf(true)}, "GET /balance": {"200 100"},
		"POST /orders": {`422 {"message":"The given data was invalid."}`}, "GET /orders/calculate-pricing": {`200 {"price":"4.80"}`}})
	_, err := p.Order(t.Context(), addresses("ord_1"))
	refusedAs(t, err, procurement.OutOfStock)
}

func TestARenewalThatMovesNothingIsNotBelieved(t *testing.T) {
	t.Parallel()
	old := orderOf("confirmed", "2031-04-20 10:25:12", twoProxies)
	p := play(t, seller.Script{"GET /products": {catalogueOf(false)}, "GET /orders/421": {old}, "POST /orders/421/extend": {old}}).(ports.Static)
	_, err := p.Renew(t.Context(), "421", addresses("ord_2"))
	refusedAs(t, err, procurement.Ambiguous)
}

func TestTheHistoryProvesARenewal(t *testing.T) {
	t.Parallel()
	withHistory := func(answer, history string) string {
		return strings.Replace(answer, `"quantity"`, `"extended_history":`+history+`,"quantity"`, 1)
	}
	const early, late = "2031-04-20 10:25:12", "2031-05-20 10:25:12"
	for name, c := range map[string]struct {
		before, after string
		class         procurement.Class
	}{
		"it is in the history": {withHistory(orderOf("confirmed", early, twoProxies), `[]`), withHistory(orderOf("confirmed", late, twoProxies), `[{}]`), ""},
		"it is not":            {withHistory(orderOf("confirmed", early, twoProxies), `[{}]`), withHistory(orderOf("confirmed", late, twoProxies), `[{}]`), procurement.Ambiguous},
		"there is no history":  {orderOf("confirmed", early, twoProxies), orderOf("confirmed", late, twoProxies), ""},
		"its addresses are not listed at the moment": {withHistory(orderOf("confirmed", early, twoProxies), `[]`),
			withHistory(orderOf("in-progress", late, `[]`), `[{}]`), ""},
		"the end has not moved":                          {withHistory(orderOf("confirmed", early, twoProxies), `[]`), withHistory(orderOf("confirmed", early, twoProxies), `[{}]`), procurement.Ambiguous},
		"nor, without history, are its addresses listed": {orderOf("confirmed", early, twoProxies), orderOf("in-progress", late, `[]`), procurement.Ambiguous},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := play(t, seller.Script{"GET /products": {catalogueOf(false)}, "GET /orders/421": {c.before, c.after},
				"POST /orders/421/extend": {c.after}}).(ports.Static)
			done, err := p.Renew(t.Context(), "421", addresses("ord_2"))
			if procurement.ClassOf(err) != c.class {
				t.Fatalf("renewed %+v, %v", done, err)
			}
			if err == nil && (len(done) != 2 || done[1].ExpiresAt.Month() != time.May) {
				t.Errorf("renewed %+v", done)
			}
		})
	}
}

func TestTheSOCKS5PortIsPreferred(t *testing.T) {
	t.Parallel()
	for proxies, want := range map[string]session.Protocol{twoProxies: session.SOCKS5,
		strings.Replace(twoProxies, `"socks5":12324,`, ``, 1): session.HTTP} {
		d, err := play(t, seller.Script{"GET /orders/421": {orderOf("confirmed", "2031-04-20 10:25:12", proxies)}}).Read(t.Context(), "421")
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := d.IPs[0].Endpoint(""); !ok || e.Protocol != want {
			t.Errorf("it is reached by %s, want %s", e.Protocol, want)
		}
		if e, ok := d.IPs[0].Endpoint(session.HTTP); !ok || e.Protocol != session.HTTP {
			t.Errorf("asked for HTTP, it is reached by %s", e.Protocol)
		}
	}
}

func TestASubUserThatIsNotOursIsNotBelieved(t *testing.T) {
	t.Parallel()
	const other = `200 {"hash":"01A","username":"acct_ord_1","password":"x","traffic_available":1.5,"traffic_used":0}`
	p := play(t, seller.Script{"POST /v1/residential-subusers": {other}, "GET /v1/residential-subusers/01A": {other},
		"POST /v1/residential-subusers/01A/take-traffic": {other}}).(ports.Dynamic)
	_, err := p.Order(t.Context(), traffic("ord_1"))
	refusedAs(t, err, procurement.Ambiguous)
	refusedAs(t, p.Disable(t.Context(), "01A"), procurement.Conflict) // taken, and it has not less
	for _, body := range []string{`{"hash":"01A"}`, `{"hash":"","username":"ord_1","traffic_available":1,"traffic_used":0}`,
		`{"hash":"01A","username":"ord_1","traffic_available":null,"traffic_used":0}`} {
		p := play(t, seller.Script{"POST /v1/residential-subusers": {"200 " + body}})
		_, err := p.Order(t.Context(), traffic("ord_1"))
		refusedAs(t, err, procurement.Ambiguous)
	}
}

// A refusal may quote the request.
func TestASellerThatRepeatsARequestShowsNoPassword(t *testing.T) {
	t.Parallel()
	for _, status := range []int{422, 400, 500, 503} {
		var sent struct{ Password string }
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if r.Method == http.MethodPost {
				_ = json.Unmarshal(body, &sent)
			}
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(map[string]string{"message": "refused: " + string(body), "error": "not " + sent.Password})
		}))
		p, err := upstream.New(upstream.Spec{Name: "ipr", Kind: "iproyal", BaseURL: server.URL, PerSecond: 10_000,
			Secrets: map[string]string{"residential_key": "b-key"}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Order(t.Context(), traffic("ord_1"))
		server.Close()
		if err == nil || sent.Password == "" || strings.Contains(err.Error(), sent.Password) {
			t.Errorf("%d: %v", status, err)
		}
		if class := procurement.ClassOf(err); status >= 500 && class != procurement.Ambiguous || status < 500 && class != procurement.Invalid {
			t.Errorf("%d: %v", status, err)
		}
	}
}
