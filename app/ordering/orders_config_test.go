package ordering_test

import (
	"testing"
	"time"

	"agentproxy/app/catalogs"
	"agentproxy/app/idempotency"
	"agentproxy/app/sessions"
	"agentproxy/domain/catalog"
	"agentproxy/domain/country"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/apptest"
	"agentproxy/test/fake"
)

// useOnly wires the world anew, with the embedded provider and these alone.
func useOnly(w *apptest.World, products []catalog.Product, sellers ...ports.Provider) {
	w.T.Helper()
	c, err := catalogs.New(append([]ports.Provider{w.Embedded}, sellers...), append(w.Embedded.Products(), products...), country.Name)
	apptest.OK(w.T, err)
	w.Reconnect(c)
}

// While a provider is not configured its orders wait, and the money with them;
// when it is back they go on.
func TestAProviderThatIsNotConfiguredForAWhile(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.RegisterFunded(100)
	kept, renewed, ended := w.Buy(agent, apptest.RemoteStatic), w.Buy(agent, apptest.RemoteStatic), w.Buy(agent, apptest.RemoteStatic)
	w.Seller.Next(fake.Provision, fake.LoseAnswer())
	lost := w.Buy(agent, apptest.RemoteStatic)
	w.Seller.Next(fake.Extend, fake.LoseAnswer())
	_, err := w.Sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: renewed.ID})
	apptest.OK(t, err)
	w.Seller.SetAsync(2)
	slow := w.Buy(agent, apptest.RemoteStatic)
	calls := w.Seller.Calls(fake.Provision)
	before := w.Balance(agent)

	useOnly(w, nil)
	_, err = w.Sessions.Terminate(t.Context(), agent, ended.ID)
	apptest.OK(t, err)
	for range 30 {
		w.Clock.Advance(10 * time.Minute)
		apptest.OK(t, w.RunOrders())
	}
	for id, want := range map[string]session.Status{kept.ID: session.Active, renewed.ID: session.Active, lost.ID: session.Creating,
		slow.ID: session.Creating} {
		apptest.Equal(t, "without it "+id, w.Read(agent, id).Status, want)
	}
	apptest.Equal(t, "held for the purchase", w.Read(agent, lost.ID).Cost.Held, apptest.Dollars("1"))
	apptest.Equal(t, "held for the renewal", w.Read(agent, renewed.ID).Cost.Held, apptest.Dollars("1"))
	apptest.Equal(t, "the balance", w.Balance(agent), before)
	_, err = w.Sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: kept.ID})
	apptest.ErrorIs(t, err, catalog.ErrProductNotFound)
	if _, err := w.Traffic.Route(t.Context(), kept.ID); err == nil {
		t.Error("the gateway has a route to it")
	}
	_, err = w.Desk.Adopt(t.Context(), lastOrder(w, lost.ID).ID, "ref1")
	apptest.ErrorIs(t, err, ports.ErrProvider)

	w.Wire(apptest.Options{}, w.Clock, w.IDs)
	for range 3 {
		w.Clock.Advance(10 * time.Minute)
		apptest.OK(t, w.RunOrders())
	}
	w.ExpectReconciled()
	for _, id := range []string{kept.ID, renewed.ID, lost.ID, slow.ID} {
		apptest.Equal(t, "with it "+id, w.Read(agent, id).Status, session.Active)
	}
	apptest.Equal(t, "the renewal", w.Read(agent, renewed.ID).ExpiresAt, renewed.ExpiresAt.Add(30*session.Day))
	apptest.Equal(t, "bought meanwhile", w.Seller.Calls(fake.Provision), calls)
}

// What was not sent yet to a provider that is gone is bought of the next one,
// or given back.
func TestAProviderThatIsGoneBeforeItIsAsked(t *testing.T) {
	t.Parallel()
	for name, rest := range map[string][]ports.Provider{"another is left": {fake.NewProvider("second")}, "none is left": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _ := apptest.TwoSellers(t)
			agent := w.Register()
			w.Store.FailUpdates(2) // 1 holds: the process dies then
			d, err := w.CreateWith(agent, "sta_both", idempotency.Call{})
			apptest.OK(t, err)
			apptest.Equal(t, "the status", d.Outcome, ports.Pending)
			var sold []catalog.Product
			for _, p := range rest {
				sold = append(sold, apptest.SharedProduct("sta_both", session.Static, procurement.Source{Provider: p.Name()}))
			}
			useOnly(w, sold, rest...)
			w.Clock.Advance(time.Minute)
			apptest.OK(t, w.RunOrders())
			id := w.Column(`SELECT id FROM sessions`)[0]
			if v := w.Read(agent, id); rest != nil && (v.Status != session.Active || v.Provider != "second") || rest == nil && v.Status != session.Failed {
				t.Errorf("the session is %s at %s", v.Status, v.Provider)
			}
			if rest == nil {
				apptest.Equal(t, "the balance", w.Balance(agent), apptest.Dollars("10"))
			}
			apptest.Equal(t, "sold by the first", len(w.Seller.Sales()), 0)
		})
	}
}

// The operator may release what a provider that is gone for ever was sent.
func TestReleaseWithoutTheProvider(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.Register()
	w.Seller.Next(fake.Provision, fake.LoseRequest())
	v := w.Buy(agent, apptest.RemoteStatic)
	useOnly(w, nil)
	o, err := w.Desk.Release(t.Context(), lastOrder(w, v.ID).ID)
	apptest.OK(t, err)
	apptest.Equal(t, "the order", o.Status, procurement.Refused)
	apptest.Equal(t, "the session", w.Read(agent, v.ID).Status, session.Failed)
	apptest.Equal(t, "the balance", w.Balance(agent), apptest.Dollars("10"))
}

// A session whose product is not sold any more is delivered, or refunded, and
// keeps what it was sold.
func TestAProductThatIsNotSoldAnyMore(t *testing.T) {
	t.Parallel()
	drop := func(w *apptest.World) { apptest.OK(w.T, w.Catalog.Replace(w.Embedded.Products()[:1])) }
	for name, c := range map[string]struct {
		step fake.Step
		want session.Status
	}{
		"delivered": {fake.Step{}, session.Active}, "refused": {fake.Refuse(procurement.OutOfStock), session.Failed},
		"lost": {fake.LoseAnswer(), session.Active}, "absent": {fake.LoseRequest(), session.Failed},
	} {
		t.Run("while it is created: "+name, func(t *testing.T) {
			w, second := apptest.TwoSellers(t)
			agent := w.Register()
			reached, on := pauseCall(w, fake.Provision, c.step)
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _ = w.CreateWith(agent, "sta_both", apptest.Call("k"))
			}()
			reached()
			drop(w)
			on()
			<-done
			w.Clock.Advance(2 * time.Minute)
			w.ExpectReconciled()
			id := w.Column(`SELECT id FROM sessions`)[0]
			apptest.Equal(t, "the session", w.Read(agent, id).Status, c.want)
			apptest.Equal(t, "sold by the second", len(second.Sales()), 0)
			apptest.Equal(t, "the balance", w.Balance(agent), apptest.Dollars("10")-w.Read(agent, id).Cost.Charged)
		})
	}
	t.Run("while the job of the embedded provider waits", func(t *testing.T) {
		w := apptest.New(t)
		agent := w.Register()
		v := w.Buy(agent, apptest.StaticAsync)
		drop(w)
		apptest.OK(t, w.RunOrders())
		apptest.Equal(t, "the session", w.Read(agent, v.ID).Status, session.Failed)
		apptest.Equal(t, "the balance", w.Balance(agent), apptest.Dollars("10"))
	})
	t.Run("while it is used", func(t *testing.T) {
		w := apptest.New(t)
		w.Seller.Can(func(c *procurement.Capabilities) { c.ViaUpstream = true })
		agent := w.RegisterFunded(10)
		moving, fixed := w.Buy(agent, apptest.Remote), w.Buy(agent, apptest.RemoteStatic)
		drop(w)
		d, err := w.Sessions.Rotate(t.Context(), sessions.Rotate{AgentID: agent, SessionID: moving.ID})
		apptest.OK(t, err)
		apptest.Equal(t, "rotations", d.View.Rotation.Count, 1)
		_, err = w.Sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: fixed.ID})
		apptest.ErrorIs(t, err, catalog.ErrProductNotFound)
		for _, id := range []string{moving.ID, fixed.ID} {
			if r, err := w.Traffic.Route(t.Context(), id); err != nil || len(r.Upstreams) != 1 {
				t.Errorf("the route is %+v, %v", r, err)
			}
		}
		w.Clock.Advance(2 * time.Hour)
		w.ExpectReconciled()
	})
}
