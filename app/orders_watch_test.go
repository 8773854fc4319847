package app_test

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
	"agentproxy/test/fake"
)

// What a seller changes of a live order is what the gateway uses next.
func TestALiveOrderIsKeptUpToDate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seller.Can(func(c *procurement.Capabilities) { c.ViaUpstream = true })
	agent := w.rich(100)
	f := form(remoteStatic)
	f.Quantity = new(2)
	d, err := w.sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: f})
	ok(t, err)
	id := d.View.ID
	edit := func(change func(ips []procurement.IP) []procurement.IP) {
		w.seller.Change(id, func(p *fake.Purchase) { p.Delivery.IPs = change(slices.Clone(p.Delivery.IPs)) })
		w.clock.Advance(2 * time.Hour)
		ok(t, w.work())
	}
	edit(func(ips []procurement.IP) []procurement.IP {
		ips[1].Password = "changed"
		return ips
	})
	r, err := w.traffic.Route(t.Context(), id)
	ok(t, err)
	if len(r.Hops) != 2 || r.Hops[1].Password != "changed" || r.Hops[0].Password != "pass" {
		t.Errorf("the route has %d hops", len(r.Hops))
	}
	t.Run("after a renewal too", func(t *testing.T) {
		_, err := w.sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: id})
		ok(t, err)
		if r, err := w.traffic.Route(t.Context(), id); err != nil || len(r.Hops) != 2 {
			t.Errorf("renewed, the route has %d hops, %v", len(r.Hops), err)
		}
		_, err = w.sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: id})
		ok(t, err)
		same(t, "renewed at the seller", w.seller.Of(id)[0].Renewals, 2)
	})
	t.Run("a list that is short by one takes no address away", func(t *testing.T) {
		before := w.read(agent, id).Exits
		var left procurement.IP
		edit(func(ips []procurement.IP) []procurement.IP { left = ips[1]; return ips[:1] })
		if now := w.read(agent, id); now.Status != session.Active || !slices.Equal(now.Exits, before) {
			t.Errorf("the session is %s with %v", now.Status, now.Exits)
		}
		edit(func(ips []procurement.IP) []procurement.IP { return append(ips, left) })
		if r, err := w.traffic.Route(t.Context(), id); err != nil || len(r.Hops) != 2 {
			t.Errorf("whole again, the route has %d hops, %v", len(r.Hops), err)
		}
	})
	t.Run("the same addresses are no news", func(t *testing.T) {
		replaced := func() (n int) {
			list, err := w.sessions.Events(t.Context(), agent, id, domain.Page{Number: 1, Size: 100})
			ok(t, err)
			for _, e := range list.Items {
				if e.Type == "replaced" {
					n++
				}
			}
			return n
		}
		edit(func(ips []procurement.IP) []procurement.IP { slices.Reverse(ips); return ips })
		same(t, "replaced", replaced(), 0)
	})
}

// Orders of traffic have no country in a list, so those of two countries wait for each other.
func TestTrafficTakesTurnsWhateverItsCountry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seller.Can(func(c *procurement.Capabilities) { c.KeepsOrderKey = false })
	agent := w.rich(100)
	in := func(country string) sessions.View {
		f := form(remote)
		f.Location.Country = country
		d, err := w.sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: f})
		ok(t, err)
		return d.View
	}
	w.seller.Next(fake.Provision, fake.LoseAnswer())
	first, second := in("DE"), in("FR")
	same(t, "the second", w.order(second.ID).Status, procurement.Planned)
	w.reconciled()
	for _, id := range []string{first.ID, second.ID} {
		same(t, id, w.read(agent, id).Status, session.Active)
	}
}

// A source that has none is passed over, a local one that has no address left too.
func TestSourcesThatHaveNone(t *testing.T) {
	t.Parallel()
	second := fake.NewProvider("second")
	w := open(t, setup{exits: 2, more: []ports.Provider{second}, sell: []catalog.Product{
		bothOf("sta_three", session.Static, procurement.Source{Provider: "remote", SKU: "r"}, procurement.Source{Provider: "embedded", Preference: 1},
			procurement.Source{Provider: "second", Preference: 2})}})
	second.SetClock(w.clock.Now)
	agent := w.rich(100)
	w.seller.SetQuote("r", procurement.Quote{Stock: procurement.StockNo})
	for range 4 {
		if _, err := w.create(agent, static); err != nil {
			break // the embedded provider has no address left
		}
	}
	d, err := w.createWith(agent, "sta_three", idempotency.Call{})
	ok(t, err)
	same(t, "bought of", d.View.Provider, "second")
	same(t, "asked of the first", w.seller.Calls(fake.Provision), 0)
	second.Always(fake.Provision, fake.Refuse(procurement.TimedOut))
	_, err = w.createWith(agent, "sta_three", idempotency.Call{})
	refused(t, err, ports.ErrTimeout)
}

// What waits for the operator is logged once, and the metrics count each call.
func TestWhatTheOperatorHears(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var mu sync.Mutex
	var text bytes.Buffer
	calls := map[string]int{}
	count := func(provider, operation string, result procurement.Class) {
		mu.Lock()
		defer mu.Unlock()
		calls[provider+" "+operation+" "+string(result)]++
	}
	w.connect(0, w.clock, count, slog.New(slog.NewTextHandler(&text, nil)))
	agent := w.rich(10)
	w.seller.Next(fake.Provision, fake.LoseAnswer())
	w.seller.Always(fake.Find, fake.Refuse(procurement.Auth))
	lost := w.buy(agent, remoteStatic)
	w.seller.SetAsync(1000)
	slow := w.buy(agent, remoteStatic)
	for range 300 {
		w.clock.Advance(5 * time.Minute)
		ok(t, w.work())
	}
	for _, id := range []string{lost.ID, slow.ID} {
		if o := w.order(id); o.FrozenAt.IsZero() {
			t.Errorf("%s is not frozen", o.ID)
		}
		n := 0
		for line := range strings.Lines(text.String()) {
			if strings.Contains(line, "level=ERROR") && strings.Contains(line, id) {
				n++
			}
		}
		same(t, "told of "+id, n, 1)
	}
	for _, call := range []string{"remote order ambiguous", "remote order ", "remote find auth", "remote quote ", "remote read "} {
		if calls[call] == 0 {
			t.Errorf("no call %q was counted: %v", call, calls)
		}
	}
	t.Run("an order that is adopted for a session that ended is given up at once", func(t *testing.T) {
		_, err := w.sessions.Terminate(t.Context(), agent, lost.ID)
		ok(t, err)
		_, err = w.desk.Adopt(t.Context(), w.order(lost.ID).ID, w.seller.Of(lost.ID)[0].Delivery.Ref)
		ok(t, err)
		same(t, "released", w.seller.Of(lost.ID)[0].Released, true)
	})
	t.Run("the ref of another session is not taken", func(t *testing.T) {
		w.seller.SetAsync(0)
		w.seller.Next(fake.Provision, fake.LoseAnswer())
		third := w.buy(agent, remoteStatic)
		if _, err := w.desk.Adopt(t.Context(), w.order(third.ID).ID, w.seller.Of(slow.ID)[0].Delivery.Ref); err == nil {
			t.Error("adopted")
		}
		same(t, "its order", w.order(third.ID).Status, procurement.Unknown)
	})
}
