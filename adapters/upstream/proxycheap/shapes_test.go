package proxycheap_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/upstream"
	"agentproxy/domain/procurement"
	"agentproxy/ports"
	"agentproxy/test/fake/seller"
)

// play returns the provider of a scripted seller.
func play(t *testing.T, script seller.Script) ports.Provider {
	t.Helper()
	p, err := upstream.New(upstream.Spec{Name: "pc", Kind: "proxycheap", BaseURL: seller.Play(t, "", script), PerSecond: 10_000,
		Secrets: map[string]string{"key": "a", "secret": "b"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func refusedAs(t *testing.T, err error, class procurement.Class) {
	t.Helper()
	if procurement.ClassOf(err) != class {
		t.Errorf("the error is %v, want class %q", err, class)
	}
}

// proxyOf returns an address of the order 0198-a.
func proxyOf(id int, status, expires string) string {
	return fmt.Sprintf(`{"id":"%d","status":%q,"countryCode":"US","authentication":{"username":"u","password":"p"},
		"connection":{"publicIp":"203.0.113.%d","connectIp":"203.0.113.%d","httpPort":"10000","socks5Port":null},
		"metadata":{"orderId":"0198-a"},"createdAt":"2030-01-01T00:00:00Z","expiresAt":%q}`, id, status, id, id, expires)
}

func TestAnOrderWithoutItsIDMayHaveBeenMade(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{}`, `{"id":""}`, `{"id":"a/b"}`, `{"id":7}`, `[]`, `{"id":"0198-a","totalPrice":"free"}`, ``} {
		p := play(t, seller.Script{"POST /v2/order/static-residential-ipv4/execute": {"200 " + body}})
		_, err := p.Order(t.Context(), addresses("ord_1"))
		if procurement.ClassOf(err) != procurement.Ambiguous {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestAnOrderWithoutAddressesIsLookedUp(t *testing.T) {
	t.Parallel()
	empty := seller.Script{"GET /orders/0198-a/proxies": {`200 {"proxies":[]}`}}
	_, err := play(t, empty).Read(t.Context(), "0198-a")
	refusedAs(t, err, procurement.NotFound)
	empty["GET /orders/0198-a"] = []string{`200 {"id":"0198-a","periodInMoths":"3","bandwidth":"0","totalPrice":"30.51"}`}
	if d, err := play(t, empty).Read(t.Context(), "0198-a"); err != nil || d.State != procurement.Pending {
		t.Errorf("%s, %v", d.State, err)
	}
}

func TestRefusesUnknownShapes(t *testing.T) {
	t.Parallel()
	const soon, late = "2031-01-01T00:00:00Z", "2031-02-01T00:00:00Z"
	good := proxyOf(1, "ACTIVE", soon)
	for name, c := range map[string]struct {
		list  string
		state procurement.State // empty: Temporary
	}{
		"numbers as texts":      {`[` + good + `]`, procurement.Live},
		"SOCKS5 alone":          {`[` + strings.Replace(good, `"httpPort":"10000","socks5Port":null`, `"httpPort":null,"socks5Port":10002`, 1) + `]`, procurement.Live},
		"no order, or another":  {`[` + strings.Replace(good, `"orderId":"0198-a"`, `"orderId":{"id":1}`, 1) + `,` + strings.Replace(good, `,`+"\n\t\t"+`"metadata":{"orderId":"0198-a"}`, ``, 1) + `]`, procurement.Live},
		"one is on its way":     {`[` + good + `,` + proxyOf(2, "PENDING", late) + `]`, procurement.Pending},
		"one has ended":         {`[` + good + `,` + proxyOf(2, "EXPIRED", soon) + `]`, procurement.Live},
		"all have ended":        {`[` + proxyOf(1, "CANCELED", soon) + `]`, procurement.Gone},
		"an object without any": {`{"items":[]}`, ""},
		"null":                  {`{"proxies":null}`, ""},
		"no address":            {`[` + strings.Replace(good, `"publicIp":"203.0.113.1"`, `"publicIp":"gw.example"`, 1) + `]`, ""},
		"a name to connect to":  {`[` + strings.Replace(good, `"connectIp":"203.0.113.1"`, `"connectIp":"gw.example"`, 1) + `]`, ""},
		"no port":               {`[` + strings.Replace(good, `"httpPort":"10000"`, `"httpPort":null`, 1) + `]`, ""},
		"a port of 70000":       {`[` + strings.Replace(good, `"10000"`, `70000`, 1) + `]`, ""},
		"no end":                {`[` + proxyOf(1, "ACTIVE", "") + `]`, ""},
		"an end without a zone": {`[` + proxyOf(1, "ACTIVE", "2031-01-01 00:00:00") + `]`, ""},
		"an id of letters":      {`[` + strings.Replace(good, `"id":"1"`, `"id":"x"`, 1) + `]`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := play(t, seller.Script{"GET /orders/0198-a/proxies": {"200 " + c.list}}).Read(t.Context(), "0198-a")
			if c.state == "" {
				refusedAs(t, err, procurement.Temporary)
				return
			}
			if err != nil || d.State != c.state {
				t.Errorf("%s, %v", d.State, err)
			}
		})
	}
}

func TestAnOrderEndsWithItsFirstAddress(t *testing.T) {
	t.Parallel()
	list := `[` + proxyOf(1, "ACTIVE", "2031-01-01T01:00:00+01:00") + `,` + proxyOf(2, "ACTIVE", "2031-02-01T00:00:00Z") + `]`
	d, err := play(t, seller.Script{"GET /orders/0198-a/proxies": {"200 " + list}}).Read(t.Context(), "0198-a")
	if want := time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC); err != nil || !d.ExpiresAt.Equal(want) {
		t.Errorf("it ends at %v, %v", d.ExpiresAt, err)
	}
}

func TestARenewalThatMovesNothingIsNotBelieved(t *testing.T) {
	t.Parallel()
	p := play(t, seller.Script{"GET /orders/0198-a/proxies": {`200 [` + proxyOf(1, "ACTIVE", "2031-01-01T00:00:00Z") + `]`},
		"POST /proxies/1/extend-period": {"204 "}}).(ports.Static)
	done, err := p.Renew(t.Context(), "0198-a", month("ord_2"))
	if err != nil || len(done) != 1 || procurement.ClassOf(done[0].Err) != procurement.Ambiguous {
		t.Errorf("%+v, %v", done, err)
	}
}
