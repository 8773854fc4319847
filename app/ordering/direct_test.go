package ordering_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"agentproxy/app/catalogs"
	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/catalog"
	"agentproxy/domain/country"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/apptest"
	"agentproxy/test/fake"
)

// directWorld has a seller whose traffic is sold as it is.
func directWorld(t *testing.T) (*apptest.World, *fake.Provider, string) {
	t.Helper()
	seller := fake.NewProvider("direct")
	seller.Can(func(c *procurement.Capabilities) { c.ViaUpstream, c.Direct = true, true })
	p := apptest.SharedProduct("dyn_straight", session.Dynamic, procurement.Source{Provider: "direct"})
	p.Direct = true
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true, Providers: []ports.Provider{seller}, Products: []catalog.Product{p}})
	return w, seller, w.RegisterFunded(100)
}

// A direct session has the upstream's own address, and pays what the upstream
// counts.
func TestDirectSessions(t *testing.T) {
	t.Parallel()
	w, seller, agent := directWorld(t)
	v := w.Buy(agent, "dyn_straight")
	read := w.Read(agent, v.ID)
	if len(v.Direct) != 1 || v.Direct[0] != read.Direct[0] || v.Direct[0].HTTP.Host != "direct.test" || v.Direct[0].SOCKS5.Protocol != session.SOCKS5 {
		t.Fatalf("its address is %v", v.Direct)
	}
	if _, err := w.Traffic.Route(t.Context(), v.ID); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("the gateway has a route for it: %v", err)
	}
	used := func(bytes int64) sessions.View {
		seller.Change(v.ID, func(p *fake.Purchase) { p.Used = bytes })
		w.Clock.Advance(time.Minute)
		apptest.OK(t, w.RunOrders())
		return w.Read(agent, v.ID)
	}
	half := used(v.Bytes / 2)
	apptest.Equal(t, "used", half.Usage.Used(), v.Bytes/2)
	apptest.Equal(t, "charged", half.Cost.Charged, apptest.Dollars("0.25"))
	apptest.Equal(t, "reported less once", used(v.Bytes/4).Usage.Used(), v.Bytes/2)
	over := used(v.Bytes + 1000)
	if over.Status != session.Expired || over.Reason != session.TrafficExhausted || over.Cost.Charged != apptest.Dollars("0.5") || over.Cost.Held != 0 {
		t.Errorf("used up, it is %s, %+v", over.Status, over.Cost)
	}
	apptest.Equal(t, "used of what was sold", over.Usage.Used(), v.Bytes)
	if over.Direct != nil {
		t.Errorf("used up, its address is %v", over.Direct)
	}
	apptest.OK(t, w.RunOrders())
	apptest.Equal(t, "given up at the seller", len(seller.Live()), 0)
}

// A seller's counter that begins anew, as with a billing month, goes on from what was used before, up to what was
// bought, and the operator is warned.
func TestACounterThatBeginsAnewGoesOn(t *testing.T) {
	t.Parallel()
	w, seller, agent := directWorld(t)
	seller.SetClock(w.Clock.Now)
	var text bytes.Buffer
	var restarts []string
	w.Connect(0, w.Clock, nil, slog.New(slog.NewTextHandler(&text, nil)))
	w.Driver.CountExcess(nil, func(provider string) { restarts = append(restarts, provider) })
	v := w.Buy(agent, "dyn_straight")
	shows := func(thousandths int64, used int64, charged string) sessions.View {
		t.Helper()
		uses(seller, v.ID, v.Bytes*thousandths/1000)
		w.Clock.Advance(time.Minute)
		apptest.OK(t, w.RunOrders())
		got := w.Read(agent, v.ID)
		apptest.Equal(t, "used", got.Usage.Used(), v.Bytes*used/1000)
		apptest.Equal(t, "charged", got.Cost.Charged, apptest.Dollars(charged))
		return got
	}
	shows(450, 450, "0.225")
	shows(445, 450, "0.225") // an old reading
	shows(450, 450, "0.225")
	shows(5, 450, "0.225")
	apptest.Equal(t, "reports of one that fell once", len(restarts), 0)
	shows(445, 895, "0.4475")
	shows(450, 900, "0.45")
	if !slices.Equal(restarts, []string{"direct"}) || strings.Count(text.String(), "began anew") != 1 {
		t.Errorf("reported %v\n%s", restarts, &text)
	}
	shows(1, 900, "0.45")
	over := shows(300, 1000, "0.5")
	if over.Status != session.Expired || over.Cost.Held != 0 {
		t.Errorf("used up, it is %s, %+v", over.Status, over.Cost)
	}
}

// Whether a session goes through the gateway is decided when it is delivered. No
// change of the catalogue changes it.
func TestDirectStaysDirect(t *testing.T) {
	t.Parallel()
	seller := fake.NewProvider("direct")
	seller.Can(func(c *procurement.Capabilities) { c.ViaUpstream, c.Direct = true, true })
	sells := func(direct bool) []catalog.Product {
		p := apptest.SharedProduct("dyn_straight", session.Dynamic, procurement.Source{Provider: "direct"})
		p.Direct = direct
		return []catalog.Product{p}
	}
	w := apptest.Open(t, apptest.Options{Providers: []ports.Provider{seller}, Products: sells(true)})
	agent := w.RegisterFunded(100)
	straight := w.Buy(agent, "dyn_straight")
	apptest.OK(t, w.Catalog.Replace(sells(false)))
	through := w.Buy(agent, "dyn_straight")
	check := func(when string) {
		t.Helper()
		if v := w.Read(agent, straight.ID); len(v.Direct) != 1 || v.Direct[0] != straight.Direct[0] {
			t.Errorf("%s: the address of the direct one is %v", when, v.Direct)
		}
		if v := w.Read(agent, through.ID); v.Direct != nil {
			t.Errorf("%s: the address of the other one is %v", when, v.Direct)
		}
		_, err := w.Traffic.Route(t.Context(), straight.ID)
		apptest.ErrorIs(t, err, session.ErrNotFound)
		if r, err := w.Traffic.Route(t.Context(), through.ID); err != nil || len(r.Upstreams) != 1 {
			t.Errorf("%s: the route of the other one is %v, %v", when, r, err)
		}
	}
	check("direct at first, and not any more")
	apptest.OK(t, w.Catalog.Replace(sells(true)))
	check("direct again")
	apptest.OK(t, w.Catalog.Replace(w.Embedded.Products()))
	check("not sold any more")
	w.Clock.Advance(time.Minute)
	seller.Change(straight.ID, func(p *fake.Purchase) { p.Used = straight.Bytes / 2 })
	seller.Change(through.ID, func(p *fake.Purchase) { p.Used = through.Bytes / 2 })
	apptest.OK(t, w.RunOrders())
	w.Clock.Advance(2 * time.Hour)
	apptest.OK(t, w.RunOrders())
	check("read again at the seller")
	apptest.Equal(t, "used of the direct one", w.Read(agent, straight.ID).Usage.Used(), straight.Bytes/2)
	apptest.Equal(t, "used of the other one", w.Read(agent, through.ID).Usage.Used(), 0)

	useOnly(w, nil)
	v := w.Read(agent, straight.ID)
	if v.Direct == nil || len(v.Direct) != 0 {
		t.Errorf("without its provider its address is %v", v.Direct)
	}
	if _, err := w.Traffic.Route(t.Context(), straight.ID); err == nil {
		t.Error("without its provider the gateway has a route to it")
	}
	list, err := w.Sessions.List(context.Background(), sessions.List{AgentID: agent, Page: domain.Page{Number: 1, Size: 20}})
	if err != nil || len(list.Items) != 2 {
		t.Errorf("the list has %d, %v", len(list.Items), err)
	}
}

// What a provider counts is booked for a session that is used, by the hour.
func TestTheUsageOfADirectSession(t *testing.T) {
	t.Parallel()
	w, seller, agent := directWorld(t)
	used := func(v sessions.View, bytes int64) {
		seller.Change(v.ID, func(p *fake.Purchase) { p.Used = bytes })
		w.Clock.Advance(time.Minute)
		apptest.OK(t, w.RunOrders())
	}
	t.Run("it is settled after its hour, once", func(t *testing.T) {
		v := w.Buy(agent, "dyn_straight")
		for i := range 3 {
			used(v, int64(i+1)*1000)
		}
		apptest.Equal(t, "settlements", w.Column(`SELECT CAST(COUNT(*) AS TEXT) FROM sessions WHERE settle_at > 0`)[0], "1")
		apptest.Equal(t, "counted", w.Column(`SELECT CAST(SUM(down) AS TEXT) FROM usage_hours WHERE session_id = ?`, v.ID)[0], "3000")
	})
	t.Run("a place that the provider has no word for is no address", func(t *testing.T) {
		f := apptest.Form("dyn_straight")
		f.Location.City = "San-Jose"
		d, err := w.Sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: f})
		apptest.OK(t, err)
		if d.View.Direct == nil || len(d.View.Direct) != 0 {
			t.Errorf("its address is %v", d.View.Direct)
		}
	})
}

// A session of a provider that is not configured and took no orders is read all
// the same.
func TestASessionOfALocalProviderThatIsGone(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.Register()
	v := w.Buy(agent, apptest.Local)
	c, err := catalogs.New([]ports.Provider{w.Seller}, w.Seller.Products(), country.Name)
	apptest.OK(t, err)
	w.Reconnect(c)
	if v := w.Read(agent, v.ID); v.Direct != nil {
		t.Errorf("its address is %v", v.Direct)
	}
}

// oneProxy is a seller that has one protocol, whatever it is asked for, or has
// no word for the other one.
type oneProxy struct {
	*fake.Provider
	speaks session.Protocol
	other  error
}

func (p *oneProxy) Endpoint(a procurement.Access, t procurement.Target) (procurement.Endpoint, error) {
	if t.Protocol != p.speaks && p.other != nil {
		return procurement.Endpoint{}, p.other
	}
	t.Protocol = p.speaks
	return p.Provider.Endpoint(a, t)
}

// An agent gets no proxy that the provider does not have.
func TestTheProxiesOfADirectSession(t *testing.T) {
	t.Parallel()
	p := &oneProxy{Provider: fake.NewProvider("one")}
	p.Can(func(c *procurement.Capabilities) { c.ViaUpstream, c.Direct = true, true })
	product := apptest.SharedProduct("dyn_one", session.Dynamic, procurement.Source{Provider: "one"})
	product.Direct = true
	w := apptest.Open(t, apptest.Options{Providers: []ports.Provider{p}, Products: []catalog.Product{product}})
	agent := w.RegisterFunded(10)
	p.speaks = session.HTTP
	v := w.Buy(agent, "dyn_one")
	for _, speaks := range []session.Protocol{session.HTTP, session.SOCKS5} {
		p.speaks = speaks
		d := w.Read(agent, v.ID).Direct
		if len(d) != 1 || (d[0].HTTP.Host != "") != (speaks == session.HTTP) || (d[0].SOCKS5.Host != "") != (speaks == session.SOCKS5) {
			t.Errorf("of one that supports %s: %v", speaks, d)
		}
	}
	p.other = procurement.Refuse(procurement.Invalid, "")
	for _, p.speaks = range []session.Protocol{session.HTTP, session.SOCKS5} {
		if d := w.Read(agent, v.ID).Direct; d == nil || len(d) != 0 {
			t.Errorf("of one that has no other than %s: %v", p.speaks, d)
		}
	}
}
