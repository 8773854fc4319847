package proxyssx_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/test/fake/proxyssx"
	"agentproxy/test/fake/seller"
	"agentproxy/test/fake/upstreamproxy"
)

func TestUsageSwitchAndEndOfAPoolKey(t *testing.T) {
	t.Parallel()
	s, p := openFake(t)
	d, err := p.Order(t.Context(), intent(1))
	if err != nil {
		t.Fatal(err)
	}
	s.SetUsed(d.Ref, 1_234_567_891)
	if u, err := p.Usage(t.Context(), d.Ref); err != nil || u.Bytes != 1_234_567_891 || u.Gone || u.AsOf.IsZero() {
		t.Errorf("the usage is %+v, %v", u, err)
	}
	for range 2 {
		if err := p.Disable(t.Context(), d.Ref); err != nil || s.Keys()[0].Enabled {
			t.Errorf("disabled, it is enabled: %v, %v", s.Keys()[0].Enabled, err)
		}
		if read, err := p.Read(t.Context(), d.Ref); err != nil || read.State != procurement.Live {
			t.Errorf("disabled, it is %s, %v", read.State, err)
		}
		if u, err := p.Usage(t.Context(), d.Ref); err != nil || u.Bytes != 1_234_567_891 {
			t.Errorf("disabled, the usage is %+v, %v", u, err)
		}
	}
	s.Next("DELETE", seller.DropAnswer)
	for range 2 {
		if err := p.Cancel(t.Context(), d.Ref); err != nil {
			t.Errorf("cancel: %v", err)
		}
	}
	if u, err := p.Usage(t.Context(), d.Ref); err != nil || !u.Gone {
		t.Errorf("gone, the usage is %+v, %v", u, err)
	}
	if err := p.Disable(t.Context(), d.Ref); procurement.ClassOf(err) != procurement.NotFound {
		t.Errorf("gone, disable: %v", err)
	}
	calls := s.Calls("")
	for _, ref := range []string{"", "..", "a/b", "a?b", "a b"} {
		if _, err := p.Read(t.Context(), ref); procurement.ClassOf(err) != procurement.NotFound {
			t.Errorf("read %q: %v", ref, err)
		}
		if err := p.Cancel(t.Context(), ref); err != nil {
			t.Errorf("cancel %q: %v", ref, err)
		}
	}
	if s.Calls("") != calls {
		t.Error("what is no id was sent")
	}
}

func TestAPoolKeyThatHasExpiredIsGone(t *testing.T) {
	t.Parallel()
	text := `{"id":"65a1","key":"pak_01","label":"ord_00000001","trafficCapGB":2,"isExpired":true}`
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }))
	defer api.Close()
	p := open(t, specOf(api.URL))
	if d, err := p.Read(t.Context(), "65a1"); err != nil || d.State != procurement.Gone {
		t.Errorf("it is %s, %v", d.State, err)
	}
	if d, err := p.Read(t.Context(), "65a2"); procurement.ClassOf(err) != procurement.Temporary {
		t.Errorf("another key was asked for: %s, %v", d.Ref, err)
	}
	text = strings.Replace(text, "pak_01", "pak_****", 1)
	if d, err := p.Read(t.Context(), "65a1"); procurement.ClassOf(err) != procurement.Temporary {
		t.Errorf("a masked key is %s, %v", d.State, err)
	}
}

func TestFindListsTheKeysOfOneOrder(t *testing.T) {
	t.Parallel()
	s, p := openFake(t)
	for n := range 3 {
		if _, err := p.Order(t.Context(), intent(n)); err != nil {
			t.Fatal(err)
		}
	}
	found, err := p.Find(t.Context(), intent(1))
	if err != nil || len(found) != 1 || found[0].Label != "ord_00000001" || found[0].Access.Password != s.Keys()[1].Key {
		t.Errorf("found %d, %v", len(found), err)
	}
	if found, err := p.Find(t.Context(), intent(9)); err != nil || len(found) != 0 {
		t.Errorf("of no order %d are found, %v", len(found), err)
	}
}

func TestStockOfPoolKeys(t *testing.T) {
	t.Parallel()
	s := proxyssx.New(t)
	s.Stock("FR", 5, 0)
	s.Stock("JP", 0, 0)
	for _, c := range []struct{ network, tier, offers string }{
		{"", "", "any DE yes 31, any FR yes 5, any GB yes 19, any JP no 0, any US yes 160"},
		{"mbl", "", "mbl DE no 0, mbl FR yes 5, mbl GB yes 12, mbl JP no 0, mbl US yes 40"},
		{"peer", "", "peer DE yes 31, peer FR no 0, peer GB yes 7, peer JP no 0, peer US yes 120"},
		{"best", "safe", "best DE no 0, best FR yes 5, best GB yes 12, best JP no 0, best US yes 40"},
	} {
		spec := specOf(s.Base())
		spec.Options["network"], spec.Options["tier"] = c.network, c.tier
		p := open(t, spec)
		offers, err := p.Offers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for _, o := range offers {
			lines = append(lines, fmt.Sprint(o.SKU, " ", o.Location.Country, " ", o.Stock, " ", o.Count))
		}
		if got := strings.Join(lines, ", "); got != c.offers {
			t.Errorf("%s: %s", c.network, got)
		}
	}
	p := open(t, specOf(s.Base()))
	for country, want := range map[string]procurement.Stock{"US": procurement.StockYes, "JP": procurement.StockNo, "IT": procurement.StockNo, "": procurement.StockYes} {
		in := intent(1)
		in.Location.Country = country
		if q, err := p.Quote(t.Context(), in); err != nil || q.Stock != want || q.Cost != 0 {
			t.Errorf("%s: %+v, %v", country, q, err)
		}
	}
	in := intent(1)
	in.Location.City = "nyc"
	_, quote := p.Quote(t.Context(), in)
	_, order := p.Order(t.Context(), in)
	if procurement.ClassOf(quote) != procurement.Invalid || procurement.ClassOf(order) != procurement.Invalid || s.Sales() != 0 {
		t.Errorf("a city: %v, %v", quote, order)
	}
}

func TestAPoolKeyOpensTheGateway(t *testing.T) {
	t.Parallel()
	gate := upstreamproxy.New(t, "proxies.sx", "psx_acme", "pak_main")
	s := proxyssx.New(t)
	s.Attach(gate, "psx_acme")
	spec := specOf(s.Base())
	spec.Options["host"], spec.Options["port"] = "127.0.0.1", strconv.Itoa(int(gate.Addr().Port()))
	p := open(t, spec)
	d, err := p.Order(t.Context(), intent(1))
	if err != nil {
		t.Fatal(err)
	}
	status := func() int {
		e, err := p.Endpoint(d.Access, procurement.Target{Location: session.Location{Country: "US"}, Token: "abcd1234"})
		if err != nil || !e.Trusted {
			t.Fatal(err)
		}
		to := &url.URL{Scheme: "http", Host: e.Host + ":" + strconv.Itoa(int(e.Port)), User: url.UserPassword(e.User, e.Password)}
		tr := &http.Transport{Proxy: http.ProxyURL(to), DisableKeepAlives: true}
		defer tr.CloseIdleConnections()
		res, err := (&http.Client{Transport: tr, Timeout: 2 * time.Minute}).Get(gate.Echo)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		return res.StatusCode
	}
	if got := status(); got != 200 {
		t.Fatalf("the gateway answers %d", got)
	}
	if u, err := p.Usage(t.Context(), d.Ref); err != nil || u.Bytes == 0 {
		t.Errorf("the usage is %+v, %v", u, err)
	}
	if seen := gate.Sessions()[0]; seen.Password != d.Access.Password || seen.Session != "abcd1234" || seen.Country != "US" || !seen.Idle {
		t.Errorf("seen %+v", seen)
	}
	if err := p.Cancel(t.Context(), d.Ref); err != nil {
		t.Fatal(err)
	}
	if got := status(); got != 407 {
		t.Errorf("cancelled, the gateway answers %d", got)
	}
	if _, err := p.Endpoint(procurement.Access{}, procurement.Target{}); procurement.ClassOf(err) != procurement.Invalid {
		t.Errorf("without a pool key: %v", err)
	}
}
