package ordering_test

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentproxy/app/idempotency"
	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/catalog"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/apptest"
	"agentproxy/test/fake"
)

// What a seller changes of a live order is what the gateway uses next.
func TestALiveOrderIsKeptUpToDate(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	w.Seller.Can(func(c *procurement.Capabilities) { c.ViaUpstream = true })
	agent := w.RegisterFunded(100)
	f := apptest.Form(apptest.RemoteStatic)
	f.Quantity = new(2)
	d, err := w.Sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: f})
	apptest.OK(t, err)
	id := d.View.ID
	edit := func(change func(ips []procurement.IP) []procurement.IP) {
		w.Seller.Change(id, func(p *fake.Purchase) { p.Delivery.IPs = change(slices.Clone(p.Delivery.IPs)) })
		w.Clock.Advance(2 * time.Hour)
		apptest.OK(t, w.RunOrders())
	}
	edit(func(ips []procurement.IP) []procurement.IP {
		ips[1].Password = "changed"
		return ips
	})
	r, err := w.Traffic.Route(t.Context(), id)
	apptest.OK(t, err)
	if len(r.Upstreams) != 2 || r.Upstreams[1].Password != "changed" || r.Upstreams[0].Password != "pass" {
		t.Errorf("the route has %d upstream proxies", len(r.Upstreams))
	}
	t.Run("after a renewal too", func(t *testing.T) {
		_, err := w.Sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: id})
		apptest.OK(t, err)
		if r, err := w.Traffic.Route(t.Context(), id); err != nil || len(r.Upstreams) != 2 {
			t.Errorf("renewed, the route has %d upstream proxies, %v", len(r.Upstreams), err)
		}
		_, err = w.Sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: id})
		apptest.OK(t, err)
		apptest.Equal(t, "renewed at the seller", w.Seller.Of(id)[0].Renewals, 2)
	})
	t.Run("a list that is short by one takes no address away", func(t *testing.T) {
		before := w.Read(agent, id).Exits
		var left procurement.IP
		edit(func(ips []procurement.IP) []procurement.IP { left = ips[1]; return ips[:1] })
		if now := w.Read(agent, id); now.Status != session.Active || !slices.Equal(now.Exits, before) {
			t.Errorf("the session is %s with %v", now.Status, now.Exits)
		}
		edit(func(ips []procurement.IP) []procurement.IP { return append(ips, left) })
		if r, err := w.Traffic.Route(t.Context(), id); err != nil || len(r.Upstreams) != 2 {
			t.Errorf("whole again, the route has %d upstream proxies, %v", len(r.Upstreams), err)
		}
	})
	t.Run("the same addresses are no news", func(t *testing.T) {
		replaced := func() (n int) {
			list, err := w.Sessions.Events(t.Context(), agent, id, domain.Page{Number: 1, Size: 100})
			apptest.OK(t, err)
			for _, e := range list.Items {
				if e.Type == "replaced" {
					n++
				}
			}
			return n
		}
		edit(func(ips []procurement.IP) []procurement.IP { slices.Reverse(ips); return ips })
		apptest.Equal(t, "replaced", replaced(), 0)
	})
}

// Orders of traffic have no country in a list, so those of two countries wait for each other.
func TestTrafficTakesTurnsWhateverItsCountry(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	w.Seller.Can(func(c *procurement.Capabilities) { c.KeepsOrderKey = false })
	agent := w.RegisterFunded(100)
	in := func(country string) sessions.View {
		f := apptest.Form(apptest.Remote)
		f.Location.Country = country
		d, err := w.Sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: f})
		apptest.OK(t, err)
		return d.View
	}
	w.Seller.Next(fake.Provision, fake.LoseAnswer())
	first, second := in("DE"), in("FR")
	apptest.Equal(t, "the second", lastOrder(w, second.ID).Status, procurement.Planned)
	w.ExpectReconciled()
	for _, id := range []string{first.ID, second.ID} {
		apptest.Equal(t, id, w.Read(agent, id).Status, session.Active)
	}
}

// A source that has none is passed over, a local one that has no address left too.
func TestSourcesThatHaveNone(t *testing.T) {
	t.Parallel()
	second := fake.NewProvider("second")
	w := apptest.Open(t, apptest.Options{Exits: 2, Providers: []ports.Provider{second}, Products: []catalog.Product{
		apptest.SharedProduct("sta_three", session.Static, procurement.Source{Provider: "remote", SKU: "r"}, procurement.Source{Provider: "embedded", Preference: 1},
			procurement.Source{Provider: "second", Preference: 2})}})
	second.SetClock(w.Clock.Now)
	agent := w.RegisterFunded(100)
	w.Seller.SetQuote("r", procurement.Quote{Stock: procurement.StockNo})
	for range 4 {
		if _, err := w.Create(agent, apptest.Static); err != nil {
			break // the embedded provider has no address left
		}
	}
	d, err := w.CreateWith(agent, "sta_three", idempotency.Call{})
	apptest.OK(t, err)
	apptest.Equal(t, "bought of", d.View.Provider, "second")
	apptest.Equal(t, "asked of the first", w.Seller.Calls(fake.Provision), 0)
	second.Always(fake.Provision, fake.Refuse(procurement.TimedOut))
	_, err = w.CreateWith(agent, "sta_three", idempotency.Call{})
	apptest.ErrorIs(t, err, ports.ErrTimeout)
}

// What waits for the operator is logged once, and the metrics count each call.
func TestTheOperatorIsAlerted(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	var mu sync.Mutex
	var text bytes.Buffer
	calls := map[string]int{}
	count := func(provider, operation string, result procurement.Class) {
		mu.Lock()
		defer mu.Unlock()
		calls[provider+" "+operation+" "+string(result)]++
	}
	w.Connect(0, w.Clock, count, slog.New(slog.NewTextHandler(&text, nil)))
	agent := w.RegisterFunded(10)
	w.Seller.Next(fake.Provision, fake.LoseAnswer())
	w.Seller.Always(fake.Find, fake.Refuse(procurement.Auth))
	lost := w.Buy(agent, apptest.RemoteStatic)
	w.Seller.SetAsync(1000)
	slow := w.Buy(agent, apptest.RemoteStatic)
	for range 300 {
		w.Clock.Advance(5 * time.Minute)
		apptest.OK(t, w.RunOrders())
	}
	for _, id := range []string{lost.ID, slow.ID} {
		if o := lastOrder(w, id); o.FrozenAt.IsZero() {
			t.Errorf("%s is not frozen", o.ID)
		}
		n := 0
		for line := range strings.Lines(text.String()) {
			if strings.Contains(line, "level=ERROR") && strings.Contains(line, id) {
				n++
			}
		}
		apptest.Equal(t, "logged "+id, n, 1)
	}
	for _, call := range []string{"remote order ambiguous", "remote order ", "remote find auth", "remote quote ", "remote read "} {
		if calls[call] == 0 {
			t.Errorf("no call %q was counted: %v", call, calls)
		}
	}
	t.Run("an order that is adopted for a session that ended is given up at once", func(t *testing.T) {
		_, err := w.Sessions.Terminate(t.Context(), agent, lost.ID)
		apptest.OK(t, err)
		_, err = w.Desk.Adopt(t.Context(), lastOrder(w, lost.ID).ID, w.Seller.Of(lost.ID)[0].Delivery.Ref)
		apptest.OK(t, err)
		apptest.Equal(t, "released", w.Seller.Of(lost.ID)[0].Released, true)
	})
	t.Run("the ref of another session is not taken", func(t *testing.T) {
		w.Seller.SetAsync(0)
		w.Seller.Next(fake.Provision, fake.LoseAnswer())
		third := w.Buy(agent, apptest.RemoteStatic)
		if _, err := w.Desk.Adopt(t.Context(), lastOrder(w, third.ID).ID, w.Seller.Of(slow.ID)[0].Delivery.Ref); err == nil {
			t.Error("adopted")
		}
		apptest.Equal(t, "its order", lastOrder(w, third.ID).Status, procurement.Unknown)
	})
}
