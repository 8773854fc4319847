package ordering_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"agentproxy/app/ordering"
	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/catalog"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/apptest"
	"agentproxy/test/fake"
)

// lastOrder is the newest upstream order of a session.
func lastOrder(w *apptest.World, id string) procurement.Order {
	w.T.Helper()
	list, err := w.Desk.List(context.Background(), ordering.ListOrders{Page: domain.Page{Number: 1, Size: 100}})
	apptest.OK(w.T, err)
	for _, o := range list.Items {
		if o.SessionID == id {
			return o
		}
	}
	w.T.Fatalf("no order for %s", id)
	return procurement.Order{}
}

// A seller that refuses before money moved costs nothing: the next one is tried.
func TestTheNextSourceIsTried(t *testing.T) {
	t.Parallel()
	for _, class := range []procurement.Class{procurement.OutOfStock, procurement.InsufficientFunds, procurement.Auth, procurement.RateLimited, procurement.Temporary,
		procurement.TimedOut, procurement.Invalid} {
		t.Run(string(class), func(t *testing.T) {
			t.Parallel()
			w, second := apptest.TwoSellers(t)
			agent := w.Register()
			w.Seller.Always(fake.Provision, fake.Refuse(class))
			d, err := w.CreateWith(agent, "sta_both", apptest.Call("k"))
			apptest.OK(t, err)
			if d.Outcome != ports.Created || d.View.Provider != "second" || len(second.Of(d.View.ID)) != 1 {
				t.Errorf("created %d at %s", d.Outcome, d.View.Provider)
			}
			d, err = w.CreateWith(agent, "dyn_mixed", apptest.Call("m"))
			apptest.OK(t, err)
			if d.Outcome != ports.Created || d.View.Provider != "embedded" || !d.View.Exits[0].IP.IsValid() {
				t.Errorf("created %d at %s", d.Outcome, d.View.Provider)
			}
			apptest.Equal(t, "sold by the first", len(w.Seller.Sales()), 0)
		})
	}
	t.Run("when all refuse it fails, whole", func(t *testing.T) {
		t.Parallel()
		w, second := apptest.TwoSellers(t)
		agent := w.Register()
		w.Seller.Always(fake.Provision, fake.Refuse(procurement.Temporary))
		second.Always(fake.Provision, fake.Refuse(procurement.OutOfStock))
		_, err := w.CreateWith(agent, "sta_both", apptest.Call("k"))
		apptest.ErrorIs(t, err, catalog.ErrOutOfStock)
		apptest.Equal(t, "the balance", w.Balance(agent), apptest.Dollars("10"))
	})
	t.Run("not while the outcome of the first is unknown", func(t *testing.T) {
		t.Parallel()
		w, second := apptest.TwoSellers(t)
		agent := w.Register()
		w.Seller.Next(fake.Provision, fake.LoseAnswer())
		d, err := w.CreateWith(agent, "sta_both", apptest.Call("k"))
		apptest.OK(t, err)
		apptest.Equal(t, "the status", d.Outcome, ports.Pending)
		w.ExpectReconciled()
		apptest.Equal(t, "sold by the second", len(second.Sales()), 0)
		apptest.Equal(t, "the session", w.Read(agent, d.View.ID).Status, session.Active)
	})
	t.Run("one whose breaker is open, or that has nothing, is not asked", func(t *testing.T) {
		t.Parallel()
		w, second := apptest.TwoSellers(t)
		agent := w.Register()
		w.Seller.SetReady(false)
		d, err := w.CreateWith(agent, "sta_both", apptest.Call("k"))
		apptest.OK(t, err)
		apptest.Equal(t, "bought of", d.View.Provider, "second")
		w.Seller.SetReady(true)
		w.Seller.SetOffers(procurement.Offer{SKU: "r", Type: session.Static, Stock: procurement.StockNo})
		apptest.OK(t, w.Catalog.RefreshStock(t.Context()))
		d, err = w.CreateWith(agent, "sta_both", apptest.Call("l"))
		apptest.OK(t, err)
		apptest.Equal(t, "bought of", d.View.Provider, "second")
		apptest.Equal(t, "calls of the first", w.Seller.Calls(fake.Provision), 0)
		second.SetOffers(procurement.Offer{Type: session.Static, Stock: procurement.StockNo})
		apptest.OK(t, w.Catalog.RefreshStock(t.Context()))
		_, err = w.CreateWith(agent, "sta_both", apptest.Call("m"))
		apptest.ErrorIs(t, err, catalog.ErrOutOfStock)
		all := w.Catalog.Products(catalog.Filter{}, domain.Page{Number: 1, Size: 100})
		for _, p := range all.Items {
			if p.No == "sta_both" && p.Available {
				t.Error("what is out of stock is shown as available")
			}
		}
	})
	t.Run("the one that has the country delivers", func(t *testing.T) {
		t.Parallel()
		w, second := apptest.TwoSellers(t)
		agent := w.Register()
		f := apptest.Form("sta_placed")
		for country, provider := range map[string]string{"DE": "remote", "FR": "second"} {
			f.Location.Country = country
			d, err := w.Sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: f})
			apptest.OK(t, err)
			apptest.Equal(t, country, d.View.Provider, provider)
		}
		apptest.Equal(t, "sold by the second", len(second.Sales()), 1)
	})
	t.Run("one that is dearer than it may be is not bought", func(t *testing.T) {
		t.Parallel()
		w, _ := apptest.TwoSellers(t)
		agent := w.Register()
		w.Seller.SetQuote("r", procurement.Quote{Cost: domain.Dollar/2 + 1})
		_, err := w.CreateWith(agent, "sta_priced", apptest.Call("k"))
		apptest.ErrorIs(t, err, ports.ErrProvider)
		apptest.Equal(t, "sold", len(w.Seller.Sales()), 0)
		w.Seller.SetQuote("r", procurement.Quote{Cost: domain.Dollar / 2})
		_, err = w.CreateWith(agent, "sta_priced", apptest.Call("k"))
		apptest.OK(t, err)
		w.Seller.SetQuote("r", procurement.Quote{Cost: 5 * domain.Dollar})
		d, err := w.CreateWith(agent, "sta_both", apptest.Call("l")) // whose cost the operator did not configure
		apptest.OK(t, err)
		apptest.Equal(t, "bought of", d.View.Provider, "second")
	})
}

// Without the service's keys at the seller an order is the one that was not there
// before.
func TestNamelessOrders(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	w.Seller.Can(func(c *procurement.Capabilities) { c.KeepsOrderKey = false })
	agent := w.RegisterFunded(100)
	old := w.Buy(agent, apptest.RemoteStatic)
	w.Seller.Next(fake.Provision, fake.LoseAnswer())
	lost, err := w.Create(agent, apptest.RemoteStatic)
	apptest.OK(t, err)
	apptest.Equal(t, "the status", lost.Outcome, ports.Pending)
	t.Run("one like it waits for its outcome", func(t *testing.T) {
		next, err := w.Create(agent, apptest.RemoteStatic)
		apptest.OK(t, err)
		apptest.Equal(t, "the status", next.Outcome, ports.Pending)
		apptest.Equal(t, "its order", lastOrder(w, next.View.ID).Status, procurement.Planned)
		apptest.Equal(t, "sent", w.Seller.Calls(fake.Provision), 2)
		w.ExpectReconciled()
		for _, id := range []string{old.ID, lost.View.ID, next.View.ID} {
			if n := len(w.Seller.Of(id)); n != 1 || w.Read(agent, id).Status != session.Active {
				t.Errorf("%s was bought %d times and is %s", id, n, w.Read(agent, id).Status)
			}
		}
	})
	t.Run("what is proven absent is given back", func(t *testing.T) {
		before := w.Balance(agent)
		w.Seller.Next(fake.Provision, fake.LoseRequest())
		d, err := w.Create(agent, apptest.RemoteStatic)
		apptest.OK(t, err)
		w.ExpectReconciled()
		apptest.Equal(t, "the session", w.Read(agent, d.View.ID).Status, session.Failed)
		apptest.Equal(t, "the balance", w.Balance(agent), before)
	})
}

// A documented idempotency key allows to send again, and nothing else does.
func TestRepeatableOrders(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	w.Seller.Can(func(c *procurement.Capabilities) { c.Idempotent = true })
	agent := w.RegisterFunded(100)
	for _, step := range []fake.Step{fake.LoseAnswer(), fake.LoseRequest()} {
		w.Seller.Next(fake.Provision, step, step)
		d, err := w.Create(agent, apptest.Remote)
		apptest.OK(t, err)
		apptest.Equal(t, "the status", d.Outcome, ports.Pending)
		w.ExpectReconciled()
		apptest.Equal(t, "the session", w.Read(agent, d.View.ID).Status, session.Active)
		apptest.Equal(t, "bought", len(w.Seller.Of(d.View.ID)), 1)
	}
	t.Run("a refusal of the repetition proves nothing about the first", func(t *testing.T) {
		for _, class := range []procurement.Class{procurement.RateLimited, procurement.Temporary, procurement.Auth, procurement.Invalid, procurement.InsufficientFunds} {
			w.Seller.Next(fake.Provision, fake.LoseAnswer(), fake.Refuse(class))
			d, err := w.Create(agent, apptest.Remote)
			apptest.OK(t, err)
			w.ExpectReconciled()
			apptest.Equal(t, string(class), w.Read(agent, d.View.ID).Status, session.Active)
			apptest.Equal(t, "bought", len(w.Seller.Of(d.View.ID)), 1)
		}
	})
	t.Run("what is refused again and again and is not there is given back", func(t *testing.T) {
		sold, before := len(w.Seller.Sales()), w.Balance(agent)
		w.Seller.Next(fake.Provision, fake.LoseRequest())
		w.Seller.Always(fake.Provision, fake.Refuse(procurement.Auth))
		d, err := w.Create(agent, apptest.Remote)
		apptest.OK(t, err)
		w.ExpectReconciled()
		apptest.Equal(t, "the session", w.Read(agent, d.View.ID).Status, session.Failed)
		apptest.Equal(t, "the balance", w.Balance(agent), before)
		apptest.Equal(t, "sold", len(w.Seller.Sales()), sold)
		w.Seller.Always(fake.Provision, fake.Step{})
	})
	t.Run("not for a session that was terminated", func(t *testing.T) {
		sold := len(w.Seller.Sales())
		w.Seller.Next(fake.Provision, fake.LoseRequest())
		d, err := w.Create(agent, apptest.Remote)
		apptest.OK(t, err)
		_, err = w.Sessions.Terminate(t.Context(), agent, d.View.ID)
		apptest.OK(t, err)
		w.ExpectReconciled()
		apptest.Equal(t, "sold", len(w.Seller.Sales()), sold)
	})
}

// What stays unknown for a day is the operator's to decide.
func TestFrozenOrders(t *testing.T) {
	t.Parallel()
	freeze := func(t *testing.T) (*apptest.World, string, sessions.View) {
		w := apptest.New(t)
		agent := w.Register()
		w.Seller.Next(fake.Provision, fake.LoseAnswer())
		w.Seller.Always(fake.Find, fake.Refuse(procurement.Temporary))
		d, err := w.CreateWith(agent, apptest.RemoteStatic, apptest.Call("k"))
		apptest.OK(t, err)
		for range 200 {
			w.Clock.Advance(10 * time.Minute)
			apptest.OK(t, w.RunOrders())
		}
		o := lastOrder(w, d.View.ID)
		if o.Status != procurement.Unknown || o.FrozenAt.IsZero() || !o.NextAt.IsZero() {
			t.Fatalf("after a day the order is %+v", o)
		}
		open, frozen, err := w.Desk.Tally(t.Context())
		apptest.OK(t, err)
		apptest.Equal(t, "open", open, 1)
		apptest.Equal(t, "frozen", frozen, 1)
		apptest.Equal(t, "held", w.Read(agent, d.View.ID).Cost.Held, apptest.Dollars("1"))
		apptest.Equal(t, "sent", w.Seller.Calls(fake.Provision), 1)
		calls := w.Seller.Calls(fake.Find)
		w.Clock.Advance(time.Hour)
		apptest.OK(t, w.RunOrders())
		apptest.Equal(t, "asked once it is frozen", w.Seller.Calls(fake.Find), calls)
		w.Seller.Always(fake.Find, fake.Step{})
		return w, agent, d.View
	}
	t.Run("adopted", func(t *testing.T) {
		w, agent, v := freeze(t)
		o := lastOrder(w, v.ID)
		_, err := w.Desk.Adopt(t.Context(), o.ID, "nothing")
		apptest.ErrorIs(t, err, ports.ErrProvider)
		_, err = w.Desk.Adopt(t.Context(), "ord_none", "ref1")
		apptest.ErrorIs(t, err, procurement.ErrOrderNotFound)
		o, err = w.Desk.Adopt(t.Context(), o.ID, w.Seller.Of(v.ID)[0].Delivery.Ref)
		apptest.OK(t, err)
		apptest.Equal(t, "the order", o.Status, procurement.Confirmed)
		apptest.Equal(t, "the session", w.Read(agent, v.ID).Status, session.Active)
		_, err = w.Desk.Release(t.Context(), o.ID)
		apptest.ErrorIs(t, err, procurement.ErrDecided)
		w.ExpectReconciled()
	})
	t.Run("released", func(t *testing.T) {
		w, agent, v := freeze(t)
		w.Seller.Change(v.ID, func(p *fake.Purchase) { p.Released = true })
		o, err := w.Desk.Release(t.Context(), lastOrder(w, v.ID).ID)
		apptest.OK(t, err)
		apptest.Equal(t, "the order", o.Status, procurement.Refused)
		apptest.Equal(t, "the session", w.Read(agent, v.ID).Status, session.Failed)
		apptest.Equal(t, "the balance", w.Balance(agent), apptest.Dollars("10"))
		_, err = w.Desk.Adopt(t.Context(), o.ID, "ref1")
		apptest.ErrorIs(t, err, procurement.ErrDecided)
		w.ExpectReconciled()
	})
}

// A seller that delivers later keeps the session creating until then.
func TestSlowDelivery(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	w.Seller.SetAsync(3)
	agent := w.RegisterFunded(100)
	v := w.Buy(agent, apptest.RemoteStatic)
	apptest.Equal(t, "at first", v.Status, session.Creating)
	ended := w.Buy(agent, apptest.RemoteStatic)
	_, err := w.Sessions.Terminate(t.Context(), agent, ended.ID)
	apptest.OK(t, err)
	w.ExpectReconciled()
	apptest.Equal(t, "then", w.Read(agent, v.ID).Status, session.Active)
	t.Run("what the seller takes back before is not charged", func(t *testing.T) {
		v := w.Buy(agent, apptest.RemoteStatic)
		w.Seller.Change(v.ID, func(p *fake.Purchase) { p.Delivery.State = procurement.Gone })
		before := w.Balance(agent)
		calls := w.Seller.Calls(fake.Release)
		w.ExpectReconciled()
		apptest.Equal(t, "the session", w.Read(agent, v.ID).Status, session.Failed)
		apptest.Equal(t, "given up at the seller", w.Seller.Calls(fake.Release), calls+1)
		apptest.Equal(t, "the balance", w.Balance(agent), before+apptest.Dollars("1"))
	})
}

// A resource that disappears at the seller ends the session, and the unused part
// is refunded.
func TestLostSessions(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.RegisterFunded(100)
	fixed, moving, kept := w.Buy(agent, apptest.RemoteStatic), w.Buy(agent, apptest.Remote), w.Buy(agent, apptest.RemoteStatic)
	before := w.Balance(agent)
	w.Clock.Advance(10*session.Day + time.Hour)
	apptest.OK(t, w.RunOrders())
	for _, id := range []string{fixed.ID, moving.ID} { // one after the other: both at once would be the seller's fault
		w.Seller.Change(id, func(p *fake.Purchase) { p.Gone = true })
		w.Clock.Advance(time.Hour)
		apptest.OK(t, w.RunOrders())
		w.Clock.Advance(procurement.LostAfter - time.Second)
		apptest.OK(t, w.RunOrders())
		apptest.Equal(t, "gone for a while", w.Read(agent, id).Status, session.Active)
		w.Clock.Advance(procurement.RereadAfter)
		apptest.OK(t, w.RunOrders())
		apptest.OK(t, w.RunOrders()) // it is given up there too
		apptest.Equal(t, "the order is closed", !lastOrder(w, id).ClosedAt.IsZero(), true)
		if v := w.Read(agent, id); v.Status != session.Terminated || v.Reason != session.ProviderLost {
			t.Errorf("%s is %s, %s", id, v.Status, v.Reason)
		}
	}
	apptest.Equal(t, "the other", w.Read(agent, kept.ID).Status, session.Active)
	// 19 whole days of 30 are left of 1.00, and 0.50 was held for traffic.
	apptest.Equal(t, "given back", w.Balance(agent)-before, apptest.Dollars("0.633333")+apptest.Dollars("0.5"))
	t.Run("one that comes back is not lost", func(t *testing.T) {
		w.Seller.Change(kept.ID, func(p *fake.Purchase) { p.Gone = true })
		w.Clock.Advance(time.Hour)
		apptest.OK(t, w.RunOrders())
		w.Seller.Change(kept.ID, func(p *fake.Purchase) { p.Gone = false })
		w.Clock.Advance(procurement.LostAfter)
		apptest.OK(t, w.RunOrders())
		w.Seller.Change(kept.ID, func(p *fake.Purchase) { p.Gone = true })
		w.Clock.Advance(time.Hour)
		apptest.OK(t, w.RunOrders())
		apptest.Equal(t, "the session", w.Read(agent, kept.ID).Status, session.Active)
		w.Seller.Change(kept.ID, func(p *fake.Purchase) { p.Gone = false })
	})
	t.Run("an address that the seller exchanges is taken over", func(t *testing.T) {
		w.Seller.Change(kept.ID, func(p *fake.Purchase) {
			ips := slices.Clone(p.Delivery.IPs)
			ips[0].Addr = fake.StaticExit(200)
			p.Delivery.IPs = ips
		})
		w.Clock.Advance(2 * time.Hour)
		apptest.OK(t, w.RunOrders())
		apptest.Equal(t, "its address", w.Read(agent, kept.ID).Exits[0].IP, fake.StaticExit(200))
	})
}
