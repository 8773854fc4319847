package app_test

import (
	"context"
	"slices"
	"testing"
	"time"

	procurementapp "agentproxy/app/procurement"
	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/catalog"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/fake"
)

// bothOf is a product of two sellers, "remote" first.
func bothOf(no string, typ session.Type, sources ...procurement.Source) catalog.Product {
	p := fake.Products()[0]
	if typ == session.Static {
		p = fake.Products()[2]
	}
	p.No, p.Sources = no, sources
	return p
}

// pair is a world with a second seller and two products of both.
func pair(t *testing.T) (*world, *fake.Provider) {
	t.Helper()
	second := fake.NewProvider("second")
	w := open(t, setup{more: []ports.Provider{second}, sell: []catalog.Product{
		bothOf("sta_both", session.Static, procurement.Source{Provider: "remote", SKU: "r"}, procurement.Source{Provider: "second", SKU: "s", Preference: 1}),
		bothOf("dyn_mixed", session.Dynamic, procurement.Source{Provider: "remote"}, procurement.Source{Provider: "embedded", Preference: 1}),
		bothOf("sta_placed", session.Static, procurement.Source{Provider: "remote", Countries: []string{"DE"}},
			procurement.Source{Provider: "second", Countries: []string{"FR", "US"}}),
		bothOf("sta_priced", session.Static, procurement.Source{Provider: "remote", SKU: "r", Costs: []procurement.Term{{Days: 30, Cost: domain.Dollar / 2}}}),
	}})
	second.SetClock(w.clock.Now)
	return w, second
}

// order is the newest upstream order of a session.
func (w *world) order(id string) procurement.Order {
	w.t.Helper()
	list, err := w.desk.List(context.Background(), procurementapp.ListOrders{Page: domain.Page{Number: 1, Size: 100}})
	ok(w.t, err)
	for _, o := range list.Items {
		if o.SessionID == id {
			return o
		}
	}
	w.t.Fatalf("no order for %s", id)
	return procurement.Order{}
}

// A seller that refuses before money moved costs nothing: the next one is tried.
func TestTheNextSourceIsTried(t *testing.T) {
	t.Parallel()
	for _, class := range []procurement.Class{procurement.OutOfStock, procurement.InsufficientFunds, procurement.Auth, procurement.RateLimited, procurement.Temporary,
		procurement.TimedOut, procurement.Invalid} {
		t.Run(string(class), func(t *testing.T) {
			t.Parallel()
			w, second := pair(t)
			agent := w.register()
			w.seller.Always(fake.Provision, fake.Refuse(class))
			d, err := w.createWith(agent, "sta_both", key("k"))
			ok(t, err)
			if d.Outcome != ports.Created || d.View.Provider != "second" || len(second.Of(d.View.ID)) != 1 {
				t.Errorf("created %d at %s", d.Outcome, d.View.Provider)
			}
			d, err = w.createWith(agent, "dyn_mixed", key("m"))
			ok(t, err)
			if d.Outcome != ports.Created || d.View.Provider != "embedded" || !d.View.Exits[0].IP.IsValid() {
				t.Errorf("created %d at %s", d.Outcome, d.View.Provider)
			}
			same(t, "sold by the first", len(w.seller.Sales()), 0)
		})
	}
	t.Run("when all refuse it fails, whole", func(t *testing.T) {
		t.Parallel()
		w, second := pair(t)
		agent := w.register()
		w.seller.Always(fake.Provision, fake.Refuse(procurement.Temporary))
		second.Always(fake.Provision, fake.Refuse(procurement.OutOfStock))
		_, err := w.createWith(agent, "sta_both", key("k"))
		refused(t, err, catalog.ErrOutOfStock)
		same(t, "the balance", w.balance(agent), dollars("10"))
	})
	t.Run("not when nobody knows what the first one did", func(t *testing.T) {
		t.Parallel()
		w, second := pair(t)
		agent := w.register()
		w.seller.Next(fake.Provision, fake.LoseAnswer())
		d, err := w.createWith(agent, "sta_both", key("k"))
		ok(t, err)
		same(t, "the status", d.Outcome, ports.Pending)
		w.reconciled()
		same(t, "sold by the second", len(second.Sales()), 0)
		same(t, "the session", w.read(agent, d.View.ID).Status, session.Active)
	})
	t.Run("one whose breaker is open, or that has nothing, is not asked", func(t *testing.T) {
		t.Parallel()
		w, second := pair(t)
		agent := w.register()
		w.seller.SetReady(false)
		d, err := w.createWith(agent, "sta_both", key("k"))
		ok(t, err)
		same(t, "bought of", d.View.Provider, "second")
		w.seller.SetReady(true)
		w.seller.SetOffers(procurement.Offer{SKU: "r", Type: session.Static, Stock: procurement.StockNo})
		ok(t, w.catalog.RefreshStock(t.Context()))
		d, err = w.createWith(agent, "sta_both", key("l"))
		ok(t, err)
		same(t, "bought of", d.View.Provider, "second")
		same(t, "calls of the first", w.seller.Calls(fake.Provision), 0)
		second.SetOffers(procurement.Offer{Type: session.Static, Stock: procurement.StockNo})
		ok(t, w.catalog.RefreshStock(t.Context()))
		_, err = w.createWith(agent, "sta_both", key("m"))
		refused(t, err, catalog.ErrOutOfStock)
		all := w.catalog.Products(catalog.Filter{}, domain.Page{Number: 1, Size: 100})
		for _, p := range all.Items {
			if p.No == "sta_both" && p.Available {
				t.Error("what nobody has is shown as available")
			}
		}
	})
	t.Run("the one that has the country delivers", func(t *testing.T) {
		t.Parallel()
		w, second := pair(t)
		agent := w.register()
		f := form("sta_placed")
		for country, provider := range map[string]string{"DE": "remote", "FR": "second"} {
			f.Location.Country = country
			d, err := w.sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: f})
			ok(t, err)
			same(t, country, d.View.Provider, provider)
		}
		same(t, "sold by the second", len(second.Sales()), 1)
	})
	t.Run("one that is dearer than it may be is not bought", func(t *testing.T) {
		t.Parallel()
		w, _ := pair(t)
		agent := w.register()
		w.seller.SetQuote("r", procurement.Quote{Cost: domain.Dollar/2 + 1})
		_, err := w.createWith(agent, "sta_priced", key("k"))
		refused(t, err, ports.ErrProvider)
		same(t, "sold", len(w.seller.Sales()), 0)
		w.seller.SetQuote("r", procurement.Quote{Cost: domain.Dollar / 2})
		_, err = w.createWith(agent, "sta_priced", key("k"))
		ok(t, err)
		w.seller.SetQuote("r", procurement.Quote{Cost: 5 * domain.Dollar})
		d, err := w.createWith(agent, "sta_both", key("l")) // whose cost the operator did not configure
		ok(t, err)
		same(t, "bought of", d.View.Provider, "remote")
	})
}

// Without the service's keys at the seller an order is the one that was not there
// before.
func TestNamelessOrders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seller.Can(func(c *procurement.Capabilities) { c.KeepsOrderKey = false })
	agent := w.rich(100)
	old := w.buy(agent, remoteStatic)
	w.seller.Next(fake.Provision, fake.LoseAnswer())
	lost, err := w.create(agent, remoteStatic)
	ok(t, err)
	same(t, "the status", lost.Outcome, ports.Pending)
	t.Run("one like it waits for its outcome", func(t *testing.T) {
		next, err := w.create(agent, remoteStatic)
		ok(t, err)
		same(t, "the status", next.Outcome, ports.Pending)
		same(t, "its order", w.order(next.View.ID).Status, procurement.Planned)
		same(t, "sent", w.seller.Calls(fake.Provision), 2)
		w.reconciled()
		for _, id := range []string{old.ID, lost.View.ID, next.View.ID} {
			if n := len(w.seller.Of(id)); n != 1 || w.read(agent, id).Status != session.Active {
				t.Errorf("%s was bought %d times and is %s", id, n, w.read(agent, id).Status)
			}
		}
	})
	t.Run("what is proven absent is given back", func(t *testing.T) {
		before := w.balance(agent)
		w.seller.Next(fake.Provision, fake.LoseRequest())
		d, err := w.create(agent, remoteStatic)
		ok(t, err)
		w.reconciled()
		same(t, "the session", w.read(agent, d.View.ID).Status, session.Failed)
		same(t, "the balance", w.balance(agent), before)
	})
}

// A documented idempotency key allows to send again, and nothing else does.
func TestRepeatableOrders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seller.Can(func(c *procurement.Capabilities) { c.Idempotent = true })
	agent := w.rich(100)
	for _, step := range []fake.Step{fake.LoseAnswer(), fake.LoseRequest()} {
		w.seller.Next(fake.Provision, step, step)
		d, err := w.create(agent, remote)
		ok(t, err)
		same(t, "the status", d.Outcome, ports.Pending)
		w.reconciled()
		same(t, "the session", w.read(agent, d.View.ID).Status, session.Active)
		same(t, "bought", len(w.seller.Of(d.View.ID)), 1)
	}
	t.Run("a refusal of the repetition tells nothing about the first", func(t *testing.T) {
		for _, class := range []procurement.Class{procurement.RateLimited, procurement.Temporary, procurement.Auth, procurement.Invalid, procurement.InsufficientFunds} {
			w.seller.Next(fake.Provision, fake.LoseAnswer(), fake.Refuse(class))
			d, err := w.create(agent, remote)
			ok(t, err)
			w.reconciled()
			same(t, string(class), w.read(agent, d.View.ID).Status, session.Active)
			same(t, "bought", len(w.seller.Of(d.View.ID)), 1)
		}
	})
	t.Run("what is refused again and again and is not there is given back", func(t *testing.T) {
		sold, before := len(w.seller.Sales()), w.balance(agent)
		w.seller.Next(fake.Provision, fake.LoseRequest())
		w.seller.Always(fake.Provision, fake.Refuse(procurement.Auth))
		d, err := w.create(agent, remote)
		ok(t, err)
		w.reconciled()
		same(t, "the session", w.read(agent, d.View.ID).Status, session.Failed)
		same(t, "the balance", w.balance(agent), before)
		same(t, "sold", len(w.seller.Sales()), sold)
		w.seller.Always(fake.Provision, fake.Step{})
	})
	t.Run("not for a session that nobody wants any more", func(t *testing.T) {
		sold := len(w.seller.Sales())
		w.seller.Next(fake.Provision, fake.LoseRequest())
		d, err := w.create(agent, remote)
		ok(t, err)
		_, err = w.sessions.Terminate(t.Context(), agent, d.View.ID)
		ok(t, err)
		w.reconciled()
		same(t, "sold", len(w.seller.Sales()), sold)
	})
}

// What stays unknown for a day is the operator's to decide.
func TestFrozenOrders(t *testing.T) {
	t.Parallel()
	freeze := func(t *testing.T) (*world, string, sessions.View) {
		w := newWorld(t)
		agent := w.register()
		w.seller.Next(fake.Provision, fake.LoseAnswer())
		w.seller.Always(fake.Find, fake.Refuse(procurement.Temporary))
		d, err := w.createWith(agent, remoteStatic, key("k"))
		ok(t, err)
		for range 200 {
			w.clock.Advance(10 * time.Minute)
			ok(t, w.work())
		}
		o := w.order(d.View.ID)
		if o.Status != procurement.Unknown || o.FrozenAt.IsZero() || !o.NextAt.IsZero() {
			t.Fatalf("after a day the order is %+v", o)
		}
		open, frozen, err := w.desk.Tally(t.Context())
		ok(t, err)
		same(t, "open", open, 1)
		same(t, "frozen", frozen, 1)
		same(t, "held", w.read(agent, d.View.ID).Cost.Held, dollars("1"))
		same(t, "sent", w.seller.Calls(fake.Provision), 1)
		calls := w.seller.Calls(fake.Find)
		w.clock.Advance(time.Hour)
		ok(t, w.work())
		same(t, "asked once it is frozen", w.seller.Calls(fake.Find), calls)
		w.seller.Always(fake.Find, fake.Step{})
		return w, agent, d.View
	}
	t.Run("adopted", func(t *testing.T) {
		w, agent, v := freeze(t)
		o := w.order(v.ID)
		_, err := w.desk.Adopt(t.Context(), o.ID, "nothing")
		refused(t, err, ports.ErrProvider)
		_, err = w.desk.Adopt(t.Context(), "ord_none", "ref1")
		refused(t, err, procurement.ErrOrderNotFound)
		o, err = w.desk.Adopt(t.Context(), o.ID, w.seller.Of(v.ID)[0].Delivery.Ref)
		ok(t, err)
		same(t, "the order", o.Status, procurement.Confirmed)
		same(t, "the session", w.read(agent, v.ID).Status, session.Active)
		_, err = w.desk.Release(t.Context(), o.ID)
		refused(t, err, procurement.ErrDecided)
		w.reconciled()
	})
	t.Run("released", func(t *testing.T) {
		w, agent, v := freeze(t)
		w.seller.Change(v.ID, func(p *fake.Purchase) { p.Released = true })
		o, err := w.desk.Release(t.Context(), w.order(v.ID).ID)
		ok(t, err)
		same(t, "the order", o.Status, procurement.Refused)
		same(t, "the session", w.read(agent, v.ID).Status, session.Failed)
		same(t, "the balance", w.balance(agent), dollars("10"))
		_, err = w.desk.Adopt(t.Context(), o.ID, "ref1")
		refused(t, err, procurement.ErrDecided)
		w.reconciled()
	})
}

// A seller that delivers later keeps the session creating until then.
func TestSlowDelivery(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seller.SetAsync(3)
	agent := w.rich(100)
	v := w.buy(agent, remoteStatic)
	same(t, "at first", v.Status, session.Creating)
	ended := w.buy(agent, remoteStatic)
	_, err := w.sessions.Terminate(t.Context(), agent, ended.ID)
	ok(t, err)
	w.reconciled()
	same(t, "then", w.read(agent, v.ID).Status, session.Active)
	t.Run("what the seller takes back before is not charged", func(t *testing.T) {
		v := w.buy(agent, remoteStatic)
		w.seller.Change(v.ID, func(p *fake.Purchase) { p.Delivery.State = procurement.Gone })
		before := w.balance(agent)
		calls := w.seller.Calls(fake.Release)
		w.reconciled()
		same(t, "the session", w.read(agent, v.ID).Status, session.Failed)
		same(t, "given up at the seller", w.seller.Calls(fake.Release), calls+1)
		same(t, "the balance", w.balance(agent), before+dollars("1"))
	})
}

// A resource that disappears at the seller ends the session, and the unused part
// is refunded.
func TestLostSessions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.rich(100)
	fixed, moving, kept := w.buy(agent, remoteStatic), w.buy(agent, remote), w.buy(agent, remoteStatic)
	before := w.balance(agent)
	w.clock.Advance(10*session.Day + time.Hour)
	ok(t, w.work())
	for _, id := range []string{fixed.ID, moving.ID} { // one after the other: both at once would be the seller's fault
		w.seller.Change(id, func(p *fake.Purchase) { p.Gone = true })
		w.clock.Advance(time.Hour)
		ok(t, w.work())
		w.clock.Advance(procurement.LostAfter - time.Second)
		ok(t, w.work())
		same(t, "gone for a while", w.read(agent, id).Status, session.Active)
		w.clock.Advance(procurement.LookAgainAfter)
		ok(t, w.work())
		ok(t, w.work()) // it is given up there too
		same(t, "the order is closed", w.order(id).ClosedAt.IsZero(), false)
		if v := w.read(agent, id); v.Status != session.Terminated || v.Reason != session.ProviderLost {
			t.Errorf("%s is %s, %s", id, v.Status, v.Reason)
		}
	}
	same(t, "the other", w.read(agent, kept.ID).Status, session.Active)
	// 19 whole days of 30 are left of 1.00, and 0.50 was held for traffic.
	same(t, "given back", w.balance(agent)-before, dollars("0.633333")+dollars("0.5"))
	t.Run("one that comes back is not lost", func(t *testing.T) {
		w.seller.Change(kept.ID, func(p *fake.Purchase) { p.Gone = true })
		w.clock.Advance(time.Hour)
		ok(t, w.work())
		w.seller.Change(kept.ID, func(p *fake.Purchase) { p.Gone = false })
		w.clock.Advance(procurement.LostAfter)
		ok(t, w.work())
		w.seller.Change(kept.ID, func(p *fake.Purchase) { p.Gone = true })
		w.clock.Advance(time.Hour)
		ok(t, w.work())
		same(t, "the session", w.read(agent, kept.ID).Status, session.Active)
		w.seller.Change(kept.ID, func(p *fake.Purchase) { p.Gone = false })
	})
	t.Run("an address that the seller exchanges is taken over", func(t *testing.T) {
		w.seller.Change(kept.ID, func(p *fake.Purchase) {
			ips := slices.Clone(p.Delivery.IPs)
			ips[0].Addr = fake.StaticExit(200)
			p.Delivery.IPs = ips
		})
		w.clock.Advance(2 * time.Hour)
		ok(t, w.work())
		same(t, "its address", w.read(agent, kept.ID).Exits[0].IP, fake.StaticExit(200))
	})
}
