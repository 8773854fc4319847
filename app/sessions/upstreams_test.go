package sessions_test

import (
	"strings"
	"testing"

	"agentproxy/app/idempotency"
	"agentproxy/app/sessions"
	"agentproxy/domain/procurement"
	"agentproxy/ports"
	"agentproxy/test/apptest"
	"agentproxy/test/fake"
)

// The gateway is given the upstream's proxy, and the agent never.
func TestUpstreams(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	w.Seller.Can(func(c *procurement.Capabilities) { c.ViaUpstream = true })
	agent := w.RegisterFunded(100)
	moving, fixed := w.Buy(agent, apptest.Remote), w.Buy(agent, apptest.RemoteStatic)
	if moving.Exits[0].IP.IsValid() {
		t.Errorf("the exit of an upstream is %s", moving.Exits[0].IP)
	}
	route := func(id string) procurement.Endpoint {
		t.Helper()
		r, err := w.Traffic.Route(t.Context(), id)
		apptest.OK(t, err)
		if len(r.Upstreams) != 1 || len(r.Exits) != 1 {
			t.Fatalf("the route has %d upstream proxies and %d exits", len(r.Upstreams), len(r.Exits))
		}
		return r.Upstreams[0]
	}
	first := route(moving.ID)
	if first.Host != "remote.test" || first.Password != w.Seller.Of(moving.ID)[0].Delivery.Access.Password || !strings.HasSuffix(first.User, procurement.Token(moving.ID, 0)) {
		t.Errorf("the hop is %s %s", first.Host, first.User)
	}
	d, err := w.Sessions.Rotate(t.Context(), sessions.Rotate{AgentID: agent, SessionID: moving.ID})
	apptest.OK(t, err)
	second := route(moving.ID)
	if d.View.Rotation.Count != 1 || second == first || second.Host != first.Host {
		t.Errorf("rotated, the hop is %s %s", second.Host, second.User)
	}
	ip := w.Seller.Of(fixed.ID)[0].Delivery.IPs[0]
	if hop := route(fixed.ID); hop.Host != ip.Host || hop.Port != ip.HTTPPort || hop.User != ip.User || hop.Trusted {
		t.Errorf("the hop of an address is %s", hop.Host)
	}
	for _, o := range w.Column(`SELECT CAST(goods AS TEXT) FROM upstream_orders`) {
		if strings.Contains(o, "pass") {
			t.Error("a credential is stored as it is")
		}
	}
}

// The gateway gets the route of what was bought in the end, not of what was refused.
func TestUpstreamsOfTheNextSource(t *testing.T) {
	t.Parallel()
	w, second := apptest.TwoSellers(t)
	second.Can(func(c *procurement.Capabilities) { c.ViaUpstream = true })
	w.Seller.Next(fake.Provision, fake.Refuse(procurement.OutOfStock))
	d, err := w.CreateWith(w.Register(), "sta_both", idempotency.Call{})
	apptest.OK(t, err)
	r, err := w.Traffic.Route(t.Context(), d.View.ID)
	apptest.OK(t, err)
	if len(r.Upstreams) != 1 || r.Upstreams[0].Host != second.Of(d.View.ID)[0].Delivery.IPs[0].Host {
		t.Errorf("the route has %d upstream proxies", len(r.Upstreams))
	}
}

// Without the upstream's proxy there is no route: this host's own address is not
// what was sold.
func TestNoHopIsNoRoute(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	w.Seller.Can(func(c *procurement.Capabilities) { c.ViaUpstream = true })
	agent := w.RegisterFunded(100)
	t.Run("an address without a proxy", func(t *testing.T) {
		v := w.Buy(agent, apptest.RemoteStatic)
		w.Seller.Change(v.ID, func(p *fake.Purchase) { p.Delivery.IPs = []procurement.IP{{Addr: p.Delivery.IPs[0].Addr}} })
		w.RunMinutes(61)
		_, err := w.Traffic.Route(t.Context(), v.ID)
		apptest.ErrorIs(t, err, ports.ErrProvider)
	})
	t.Run("a place that the provider has no word for", func(t *testing.T) {
		f := apptest.Form(apptest.Remote)
		f.Location.City = "San-Jose"
		d, err := w.Sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: f})
		apptest.OK(t, err)
		if r, err := w.Traffic.Route(t.Context(), d.View.ID); err == nil {
			t.Errorf("the route has %d upstream proxies", len(r.Upstreams))
		}
	})
	t.Run("a provider that delivered nothing", func(t *testing.T) {
		v := w.Buy(agent, apptest.Remote)
		w.Exec(`UPDATE upstream_orders SET session_id = 'none' WHERE session_id = ?`, v.ID)
		_, err := w.Traffic.Route(t.Context(), v.ID)
		apptest.ErrorIs(t, err, ports.ErrProvider)
		w.Exec(`UPDATE upstream_orders SET session_id = ? WHERE session_id = 'none'`, v.ID) // for the audit
	})
}
