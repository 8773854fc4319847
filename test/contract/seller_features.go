package contract

import (
	"testing"

	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

func sellerRenews(t *testing.T, s Selling, in procurement.Intent) {
	p, ok := s.Provider.(ports.Static)
	if !ok || in.Type != session.Static {
		t.Skip("only static orders are renewed")
	}
	d := sellerBuy(t, p, in)
	again := sellerIntent(in, 2)
	again.SessionID = in.SessionID
	done, err := p.Renew(t.Context(), d.Ref, again)
	if !p.Capabilities().Renews {
		if procurement.ClassOf(err) != procurement.Unsupported {
			t.Errorf("renew: %v", err)
		}
		return
	}
	if p.Capabilities().InProcess {
		if err != nil {
			t.Errorf("renew: %v", err)
		}
		return
	}
	if err != nil || len(done) != len(d.IPs) {
		t.Fatalf("renewed %d of %d, %v", len(done), len(d.IPs), err)
	}
	for _, r := range done {
		if r.Err != nil || !r.ExpiresAt.After(d.ExpiresAt) {
			t.Errorf("%s ends at %v, before at %v: %v", r.Addr, r.ExpiresAt, d.ExpiresAt, r.Err)
		}
	}
	read, err := p.Read(t.Context(), d.Ref)
	if err != nil {
		t.Fatal(err)
	}
	read = sellerLive(t, p, read)
	was := map[string]bool{}
	for _, ip := range d.IPs {
		was[ip.Addr.String()] = true
	}
	for _, ip := range read.IPs {
		if !was[ip.Addr.String()] {
			t.Errorf("renewed, the order has another address: %s", ip.Addr)
		}
	}
	if !read.ExpiresAt.After(d.ExpiresAt) {
		t.Errorf("read, it ends at %v, before at %v", read.ExpiresAt, d.ExpiresAt)
	}
}

func sellerControls(t *testing.T, s Selling, in procurement.Intent) {
	p, ok := s.Provider.(ports.Dynamic)
	if !ok || in.Type != session.Dynamic {
		t.Skip("only dynamic orders have a meter")
	}
	d := sellerBuy(t, p, in)
	may := func(what string, err error) bool {
		if procurement.ClassOf(err) == procurement.Unsupported {
			return false
		}
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		return true
	}
	if u, err := p.Usage(t.Context(), d.Ref); may("usage", err) && (u.Bytes != 0 || u.Gone) {
		t.Errorf("unused, the usage is %+v", u)
	}
	for range 2 {
		if !may("disable", p.Disable(t.Context(), d.Ref)) {
			return
		}
		if u, err := p.Usage(t.Context(), d.Ref); err != nil || u.Bytes != 0 || u.Gone {
			t.Errorf("disabled, the usage is %+v, %v", u, err)
		}
	}
}

func sellerEndpoint(t *testing.T, s Selling, in procurement.Intent) {
	p, ok := s.Provider.(ports.Dynamic)
	if !ok || in.Type != session.Dynamic || !p.Capabilities().ViaUpstream {
		t.Skip("the gateway uses no proxy of the provider")
	}
	d := sellerBuy(t, p, in)
	target := procurement.Target{Location: in.Location, Token: "abcd1234"}
	first, err := p.Endpoint(d.Access, target)
	if err != nil || first.Host == "" || first.Port == 0 || first.Protocol == "" {
		t.Fatalf("the endpoint is %v:%d %s, %v", first.Host, first.Port, first.Protocol, err)
	}
	if again, err := p.Endpoint(d.Access, target); err != nil || again != first {
		t.Errorf("computed again it differs: %v", err)
	}
	target.Token, target.Turn = "abcd1235", 1
	if other, err := p.Endpoint(d.Access, target); err != nil || other == first {
		t.Errorf("another token is the same exit: %v", err)
	}
	target.Location.City = "x-session-y_z;w"
	if _, err := p.Endpoint(d.Access, target); procurement.ClassOf(err) != procurement.Invalid {
		t.Errorf("a city with separators: %v", err)
	}
	exit, err := p.NewExit(in, session.Exit{})
	if err != nil || exit.IP.IsValid() {
		t.Errorf("the next exit is %v, %v", exit, err)
	}
}

func sellerCapabilities(t *testing.T, s Selling, in procurement.Intent) {
	p, caps := s.Provider, s.Provider.Capabilities()
	_, dynamic := p.(ports.Dynamic)
	_, static := p.(ports.Static)
	if in.Type == session.Dynamic && !dynamic || in.Type == session.Static && !static {
		t.Errorf("it sells %s and cannot be asked for it", in.Type)
	}
	if !p.Ready() {
		t.Error("a new provider is not ready")
	}
	if caps.InProcess && (caps.Idempotent || caps.KeepsOrderKey || caps.Async || caps.Direct) {
		t.Errorf("what does no IO needs none of %+v", caps)
	}
	if _, err := p.Offers(t.Context()); err != nil {
		t.Errorf("offers: %v", err)
	}
	if _, err := p.Balance(t.Context()); err != nil {
		t.Errorf("balance: %v", err)
	}
}
