package proxyssx_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/upstream"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/contract"
	"agentproxy/test/fake/proxyssx"
	"agentproxy/test/fake/seller"
)

func specOf(base string) upstream.Spec {
	return upstream.Spec{Name: "psx", Kind: "proxyssx", BaseURL: base, PerSecond: 1e6, Timeout: 2 * time.Minute,
		Secrets: map[string]string{"api_key": proxyssx.APIKey}, Options: map[string]string{"username": "psx_acme"}}
}

func open(t testing.TB, s upstream.Spec) ports.Dynamic {
	t.Helper()
	p, err := upstream.New(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p.(ports.Dynamic)
}

// openFake returns a fake and a provider at it.
func openFake(t testing.TB) (*proxyssx.Server, ports.Dynamic) {
	s := proxyssx.New(t)
	return s, open(t, specOf(s.Base()))
}

func intent(n int) procurement.Intent {
	return procurement.Intent{Key: fmt.Sprintf("ord_%08d", n), SessionID: fmt.Sprintf("sess_%d", n), Type: session.Dynamic,
		Bytes: 1_500_000_000, Location: session.Location{Country: "US"}}
}

func TestPoolKeyContract(t *testing.T) {
	t.Parallel()
	contract.Seller(t, func(t *testing.T) contract.Selling {
		s, p := openFake(t)
		const order = "POST /v1/reseller/pool-keys"
		return contract.Selling{Provider: p, Dynamic: &procurement.Intent{Bytes: 1_500_000_000, Location: session.Location{Country: "US"}},
			Sold: s.Sales, Vanish: s.Vanish,
			LoseAnswer:  func() { s.Next(order, seller.DropAnswer) },
			LoseRequest: func() { s.Next(order, seller.DropRequest) }}
	})
}

func TestPoolKeyCapabilities(t *testing.T) {
	t.Parallel()
	_, p := openFake(t)
	want := procurement.Capabilities{ViaUpstream: true, Workers: true, Idempotent: true, KeepsOrderKey: true, Cancels: true, Direct: true, CapUnit: 1e9,
		CounterLag: 5 * time.Minute}
	if got := p.Capabilities(); got != want || p.Name() != "psx" {
		t.Errorf("%s can %+v", p.Name(), got)
	}
	if f, err := p.Balance(t.Context()); err != nil || f.Known {
		t.Errorf("the balance is %+v, %v", f, err)
	}
}

func TestTrafficIsRoundedUpToWholeGB(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ bytes, gb int64 }{
		{1, 1}, {1e8, 1}, {1e9, 1}, {1e9 + 1, 2}, {1_500_000_000, 2}, {1000 * 1e9, 1000},
		{0, 0}, {-1, 0}, {1000*1e9 + 1, 0},
	} {
		s, p := openFake(t)
		in := intent(1)
		in.Bytes = c.bytes
		d, err := p.Order(t.Context(), in)
		if c.gb == 0 {
			if procurement.ClassOf(err) != procurement.Invalid || s.Calls("POST") != 0 {
				t.Errorf("%d bytes: %v after %d calls", c.bytes, err, s.Calls("POST"))
			}
			continue
		}
		if err != nil || d.Access.CapBytes != c.gb*1e9 || *s.Keys()[0].TrafficCapGB != c.gb {
			t.Errorf("%d bytes: %d, %v", c.bytes, d.Access.CapBytes, err)
		}
	}
}

func TestAnOrderSendsItsKeyAndTheTier(t *testing.T) {
	t.Parallel()
	var got http.Header
	var body map[string]interface{}
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Clone()
		_ = json.NewDecoder(r.Body).Decode(&body)
		_, _ = io.WriteString(w, `{"id":"65a1","key":"pak_01","label":"ord_00000001","trafficCapGB":2,"createdAt":1700000000000}`)
	}))
	defer api.Close()
	s := specOf(api.URL)
	s.Options["tier"] = "safe"
	d, err := open(t, s).Order(t.Context(), intent(1))
	if err != nil || d.Ref != "65a1" || d.CreatedAt.Unix() != 1700000000 || d.Access != (procurement.Access{User: "psx_acme", Password: "pak_01", CapBytes: 2e9}) {
		t.Fatalf("delivered %s at %v, %v", d.Ref, d.CreatedAt, err)
	}
	for name, want := range map[string]string{"Idempotency-Key": "ord_00000001", "X-Request-Id": "ord_00000001", "X-Api-Key": proxyssx.APIKey} {
		if got.Get(name) != want {
			t.Errorf("%s is %q", name, got.Get(name))
		}
	}
	if fmt.Sprint(body) != "map[label:ord_00000001 qualityTier:safe trafficCapGB:2]" {
		t.Errorf("the body is %v", body)
	}
}

func TestAnOrderInDoubtIsSentAgainUnderItsKey(t *testing.T) {
	t.Parallel()
	for _, fault := range []seller.Fault{seller.DropAnswer, seller.Failed, seller.Garbage, seller.Cut, seller.Huge, seller.DropRequest, seller.Redirect} {
		t.Run(string(fault), func(t *testing.T) {
			s, p := openFake(t)
			s.Next("POST", fault)
			_, err := p.Order(t.Context(), intent(1))
			if procurement.ClassOf(err) != procurement.Ambiguous {
				t.Fatalf("the order is %v", err)
			}
			d, err := p.Order(t.Context(), intent(1))
			if found, err := p.Find(t.Context(), intent(1)); err != nil || len(found) != 1 || found[0].Access != d.Access {
				t.Errorf("found %d, %v", len(found), err)
			}
			if err != nil || s.Sales() != 1 || len(s.Keys()) != 1 {
				t.Errorf("%d sales, %d keys, %v", s.Sales(), len(s.Keys()), err)
			}
		})
	}
}

// http.Transport would repeat a request with an Idempotency-Key on a reused connection.
func TestTheRefusalOfARepetitionIsNotThatOfAnOrder(t *testing.T) {
	t.Parallel()
	s, p := openFake(t)
	for i, fault := range []seller.Fault{seller.DropAnswer, seller.DropRequest} {
		if _, err := p.Find(t.Context(), intent(0)); err != nil { // opens the connection
			t.Fatal(err)
		}
		before := s.Calls("POST")
		s.Next("POST /v1/reseller/pool-keys", fault)
		if _, err := p.Order(t.Context(), intent(i+1)); procurement.ClassOf(err) != procurement.Ambiguous {
			t.Errorf("%s: %v, want ambiguous", fault, err)
		}
		if n := s.Calls("POST") - before; n != 1 {
			t.Errorf("%s: the order was sent %d times", fault, n)
		}
	}
}

func TestACampaignOfFaultsSellsEveryIntentOnce(t *testing.T) {
	t.Parallel()
	s, p := openFake(t)
	s.Sometimes(7, 0.3, seller.Refuse, seller.RateLimited, seller.DropAnswer, seller.Failed, seller.Garbage, seller.Cut)
	const n = 60
	ordered := 0
	for i := range n {
		for {
			_, err := p.Order(t.Context(), intent(i))
			class := procurement.ClassOf(err)
			if err == nil {
				ordered++
				break
			}
			if class == procurement.Temporary { // the circuit breaker is open
				p = open(t, specOf(s.Base()))
			}
		}
	}
	if s.Sales() != n || len(s.Keys()) != n || ordered != n {
		t.Errorf("%d ordered, %d sold, %d keys, want %d", ordered, s.Sales(), len(s.Keys()), n)
	}
}

func TestClassesOfPoolKeyErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fault       seller.Fault
		order, read procurement.Class
	}{
		{seller.Refuse, procurement.Invalid, procurement.Invalid},
		{seller.Expired, procurement.Auth, procurement.Auth},
		{seller.Forbidden, procurement.Auth, procurement.Auth},
		{seller.RateLimited, procurement.RateLimited, procurement.RateLimited},
		{seller.NoFunds, procurement.InsufficientFunds, ""},
		{seller.Failed, procurement.Ambiguous, procurement.Temporary},
		{seller.Garbage, procurement.Ambiguous, procurement.Temporary},
		{seller.Redirect, procurement.Ambiguous, procurement.Temporary},
	} {
		t.Run(string(c.fault), func(t *testing.T) {
			s, p := openFake(t)
			s.Next("POST", c.fault)
			_, err := p.Order(t.Context(), intent(1))
			if procurement.ClassOf(err) != c.order {
				t.Errorf("order: %v", err)
			}
			d, err := p.Order(t.Context(), intent(2))
			if err != nil {
				t.Fatal(err)
			}
			s.Next("GET", c.fault, c.fault, c.fault)
			if _, err = p.Read(t.Context(), d.Ref); procurement.ClassOf(err) != c.read {
				t.Errorf("read: %v", err)
			}
		})
	}
	t.Run("when to come again", func(t *testing.T) {
		s, p := openFake(t)
		s.Next("POST", seller.RateLimited)
		_, err := p.Order(t.Context(), intent(1))
		if e, ok := err.(*procurement.Error); !ok || e.RetryAfter != time.Second {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a key with another body", func(t *testing.T) {
		s, p := openFake(t)
		s.Strict(true)
		in := intent(1)
		if _, err := p.Order(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		in.Bytes *= 10
		if _, err := p.Order(t.Context(), in); procurement.ClassOf(err) != procurement.Conflict {
			t.Errorf("got %v", err)
		}
	})
}

// An answer of an unknown shape is never a success, and never proves absence.
func TestUnknownShapesOfPoolKeysAreLoud(t *testing.T) {
	t.Parallel()
	const good = `"id":"65a1","key":"pak_01","label":"ord_00000001","trafficCapGB":2,"enabled":true,"trafficUsedMB":1`
	for _, body := range []string{`{}`, `[]`, `null`, `""`, `{"data":{` + good + `}}`, `{"id":"","key":"pak_01","label":"ord_00000001"}`,
		`{"id":"65a1","key":"pak_ab…yz","label":"ord_00000001"}`, `{"id":"65a1","key":"pak_01","label":"other"}`,
		`{"id":"../x","key":"pak_01","label":"ord_00000001"}`, `{"id":"65a1","key":"pak_01","label":"ord_00000001","trafficCapGB":-1}`} {
		t.Run(body, func(t *testing.T) {
			t.Parallel()
			api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }))
			defer api.Close()
			p := open(t, specOf(api.URL))
			if _, err := p.Order(t.Context(), intent(1)); procurement.ClassOf(err) != procurement.Ambiguous {
				t.Errorf("order: %v", err)
			}
			if strings.Contains(body, `"other"`) {
				return
			}
			if _, err := p.Read(t.Context(), "65a1"); procurement.ClassOf(err) != procurement.Temporary {
				t.Errorf("read: %v", err)
			}
			if found, err := p.Find(t.Context(), intent(1)); body != `[]` && procurement.ClassOf(err) != procurement.Temporary || len(found) > 0 {
				t.Errorf("found %d, %v", len(found), err)
			}
			p = open(t, specOf(api.URL)) // with a closed circuit breaker
			if err := p.Disable(t.Context(), "65a1"); procurement.ClassOf(err) != procurement.Temporary {
				t.Errorf("disable: %v", err)
			}
			p = open(t, specOf(api.URL))
			if _, err := p.Offers(t.Context()); procurement.ClassOf(err) != procurement.Temporary {
				t.Errorf("offers: %v", err)
			}
		})
	}
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "[{"+good+`},{"name":"x"}]`) }))
	defer api.Close()
	if found, err := open(t, specOf(api.URL)).Find(t.Context(), intent(2)); procurement.ClassOf(err) != procurement.Temporary || found != nil {
		t.Errorf("a list with a stranger proves absence: %v", err)
	}
}

func TestPoolKeysLogNoSecret(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	l := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	status, pad := 400, 0
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		fmt.Fprintf(w, "%s key %s and pak_00112233445566778899aabb", strings.Repeat("x", pad), r.Header.Get("X-Api-Key"))
	}))
	defer api.Close()
	spec := specOf(api.URL)
	provider, err := upstream.New(spec, l)
	if err != nil {
		t.Fatal(err)
	}
	p := provider.(ports.Dynamic)
	l.Info("made", "spec", spec)
	var told strings.Builder
	for _, status = range []int{200, 400, 403, 409, 429, 302} {
		for pad = range 200 { // so that a reason may be cut in the middle of a secret
			_, err := p.Order(t.Context(), intent(1))
			fmt.Fprintln(&told, err)
			if procurement.ClassOf(err) == procurement.Temporary { // the circuit breaker is open
				provider, _ = upstream.New(spec, l)
				p = provider.(ports.Dynamic)
			}
		}
	}
	_, err = p.Read(t.Context(), "65a1")
	fmt.Fprintln(&told, err)
	d, err := p.Order(t.Context(), procurement.Intent{Key: "short"})
	fmt.Fprintln(&told, d, err)
	text := told.String() + log.String()
	for _, secret := range []string{proxyssx.APIKey[:8], "pak_0"} {
		if i := strings.Index(text, secret); i >= 0 {
			t.Errorf("%s is revealed: %s", secret, text[max(0, i-100):i+40])
		}
	}
	if !strings.Contains(text, "[hidden]") {
		t.Error("no reason was given at all")
	}
}

func TestPoolKeysAreNotMadeOfFaultySettings(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*upstream.Spec){
		"secrets.api_key is missing":            func(s *upstream.Spec) { delete(s.Secrets, "api_key") },
		"options.username is missing":           func(s *upstream.Spec) { delete(s.Options, "username") },
		"options.username holds":                func(s *upstream.Spec) { s.Options["username"] = "psx-acme" },
		"options.network does not exist":        func(s *upstream.Spec) { s.Options["network"] = "dc" },
		"options.tier must be":                  func(s *upstream.Spec) { s.Options["tier"] = "gold" },
		"options.tier safe has no peers":        func(s *upstream.Spec) { s.Options["tier"], s.Options["network"] = "safe", "peer" },
		"options.port must be":                  func(s *upstream.Spec) { s.Options["port"] = "0" },
		"options.zone does not exist":           func(s *upstream.Spec) { s.Options["zone"] = "z" },
		"does not begin with a country code":    func(s *upstream.Spec) { s.Locations = map[string]string{"XX": "x"} },
		"cannot be written in the gateway's gr": func(s *upstream.Spec) { s.Locations = map[string]string{"US": "us-sid-x"} },
	} {
		s := specOf("http://127.0.0.1:1")
		change(&s)
		if _, err := upstream.New(s, nil); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), proxyssx.APIKey) {
			t.Errorf("want %s, got %v", want, err)
		}
	}
	p := open(t, specOf("http://127.0.0.1:1"))
	for _, key := range []string{"", "short", "with space1", strings.Repeat("k", 129)} {
		in := intent(1)
		in.Key = key
		if _, err := p.Order(context.Background(), in); procurement.ClassOf(err) != procurement.Invalid {
			t.Errorf("the key %q: %v", key, err)
		}
	}
	if _, err := p.Order(t.Context(), procurement.Intent{Key: "ord_00000001", Type: session.Static, Bytes: 1e9}); procurement.ClassOf(err) != procurement.Unsupported {
		t.Errorf("static: %v", err)
	}
	if _, err := p.Order(t.Context(), intent(1)); procurement.ClassOf(err) != procurement.Temporary {
		t.Errorf("the provider is away: %v", err)
	}
}
