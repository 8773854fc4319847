package app_test

import (
	"testing"
	"time"

	"agentproxy/adapters/upstream/country"
	catalogapp "agentproxy/app/catalog"
	"agentproxy/app/idempotency"
	"agentproxy/app/sessions"
	"agentproxy/domain/catalog"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/fake"
)

// onlyWith wires the world anew, with the embedded provider and these alone.
func (w *world) onlyWith(products []catalog.Product, sellers ...ports.Provider) {
	w.t.Helper()
	c, err := catalogapp.New(append([]ports.Provider{w.embedded}, sellers...), append(w.embedded.Products(), products...), country.Name)
	ok(w.t, err)
	w.reconnect(c)
}

// While a provider is not configured its orders wait, and the money with them;
// when it is back they go on.
func TestAProviderThatIsNotConfiguredForAWhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.rich(100)
	kept, renewed, ended := w.buy(agent, remoteStatic), w.buy(agent, remoteStatic), w.buy(agent, remoteStatic)
	w.seller.Next(fake.Provision, fake.LoseAnswer())
	lost := w.buy(agent, remoteStatic)
	w.seller.Next(fake.Extend, fake.LoseAnswer())
	_, err := w.sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: renewed.ID})
	ok(t, err)
	w.seller.SetAsync(2)
	slow := w.buy(agent, remoteStatic)
	calls := w.seller.Calls(fake.Provision)
	before := w.balance(agent)

	w.onlyWith(nil)
	_, err = w.sessions.Terminate(t.Context(), agent, ended.ID)
	ok(t, err)
	for range 30 {
		w.clock.Advance(10 * time.Minute)
		ok(t, w.work())
	}
	for id, want := range map[string]session.Status{kept.ID: session.Active, renewed.ID: session.Active, lost.ID: session.Creating,
		slow.ID: session.Creating} {
		same(t, "without it "+id, w.read(agent, id).Status, want)
	}
	same(t, "held for the purchase", w.read(agent, lost.ID).Cost.Held, dollars("1"))
	same(t, "held for the renewal", w.read(agent, renewed.ID).Cost.Held, dollars("1"))
	same(t, "the balance", w.balance(agent), before)
	_, err = w.sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: kept.ID})
	refused(t, err, catalog.ErrProductNotFound)
	if _, err := w.traffic.Route(t.Context(), kept.ID); err == nil {
		t.Error("the gateway has a route to it")
	}
	_, err = w.desk.Adopt(t.Context(), w.order(lost.ID).ID, "ref1")
	refused(t, err, ports.ErrProvider)

	w.wire(setup{}, w.clock, w.ids)
	for range 3 {
		w.clock.Advance(10 * time.Minute)
		ok(t, w.work())
	}
	w.reconciled()
	for _, id := range []string{kept.ID, renewed.ID, lost.ID, slow.ID} {
		same(t, "with it "+id, w.read(agent, id).Status, session.Active)
	}
	same(t, "the renewal", w.read(agent, renewed.ID).ExpiresAt, renewed.ExpiresAt.Add(30*session.Day))
	same(t, "bought meanwhile", w.seller.Calls(fake.Provision), calls)
}

// What was not sent yet to a provider that is gone is bought of the next one,
// or given back.
func TestAProviderThatIsGoneBeforeItIsAsked(t *testing.T) {
	t.Parallel()
	for name, rest := range map[string][]ports.Provider{"another is left": {fake.NewProvider("second")}, "none is left": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _ := pair(t)
			agent := w.register()
			w.store.failUpdates(2) // 1 holds: the process dies then
			d, err := w.createWith(agent, "sta_both", idempotency.Call{})
			ok(t, err)
			same(t, "the status", d.Outcome, ports.Pending)
			var sold []catalog.Product
			for _, p := range rest {
				sold = append(sold, bothOf("sta_both", session.Static, procurement.Source{Provider: p.Name()}))
			}
			w.onlyWith(sold, rest...)
			w.clock.Advance(time.Minute)
			ok(t, w.work())
			id := w.texts(`SELECT id FROM sessions`)[0]
			if v := w.read(agent, id); rest != nil && (v.Status != session.Active || v.Provider != "second") || rest == nil && v.Status != session.Failed {
				t.Errorf("the session is %s at %s", v.Status, v.Provider)
			}
			if rest == nil {
				same(t, "the balance", w.balance(agent), dollars("10"))
			}
			same(t, "sold by the first", len(w.seller.Sales()), 0)
		})
	}
}

// The operator may release what a provider that is gone for ever was sent.
func TestReleaseWithoutTheProvider(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.register()
	w.seller.Next(fake.Provision, fake.LoseRequest())
	v := w.buy(agent, remoteStatic)
	w.onlyWith(nil)
	o, err := w.desk.Release(t.Context(), w.order(v.ID).ID)
	ok(t, err)
	same(t, "the order", o.Status, procurement.Refused)
	same(t, "the session", w.read(agent, v.ID).Status, session.Failed)
	same(t, "the balance", w.balance(agent), dollars("10"))
}

// A session whose product is not sold any more is delivered, or refunded, and
// keeps what it was sold.
func TestAProductThatIsNotSoldAnyMore(t *testing.T) {
	t.Parallel()
	drop := func(w *world) { ok(w.t, w.catalog.Replace(w.embedded.Products()[:1])) }
	for name, c := range map[string]struct {
		step fake.Step
		want session.Status
	}{
		"delivered": {fake.Step{}, session.Active}, "refused": {fake.Refuse(procurement.OutOfStock), session.Failed},
		"lost": {fake.LoseAnswer(), session.Active}, "absent": {fake.LoseRequest(), session.Failed},
	} {
		t.Run("while it is created: "+name, func(t *testing.T) {
			w, second := pair(t)
			agent := w.register()
			reached, on := w.paused(fake.Provision, c.step)
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _ = w.createWith(agent, "sta_both", key("k"))
			}()
			reached()
			drop(w)
			on()
			<-done
			w.clock.Advance(2 * time.Minute)
			w.reconciled()
			id := w.texts(`SELECT id FROM sessions`)[0]
			same(t, "the session", w.read(agent, id).Status, c.want)
			same(t, "sold by the second", len(second.Sales()), 0)
			same(t, "the balance", w.balance(agent), dollars("10")-w.read(agent, id).Cost.Charged)
		})
	}
	t.Run("while the job of the embedded provider waits", func(t *testing.T) {
		w := newWorld(t)
		agent := w.register()
		v := w.buy(agent, staticLater)
		drop(w)
		ok(t, w.work())
		same(t, "the session", w.read(agent, v.ID).Status, session.Failed)
		same(t, "the balance", w.balance(agent), dollars("10"))
	})
	t.Run("while it is used", func(t *testing.T) {
		w := newWorld(t)
		w.seller.Can(func(c *procurement.Capabilities) { c.ViaUpstream = true })
		agent := w.rich(10)
		moving, fixed := w.buy(agent, remote), w.buy(agent, remoteStatic)
		drop(w)
		d, err := w.sessions.Rotate(t.Context(), sessions.Rotate{AgentID: agent, SessionID: moving.ID})
		ok(t, err)
		same(t, "rotations", d.View.Rotation.Count, 1)
		_, err = w.sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: fixed.ID})
		refused(t, err, catalog.ErrProductNotFound)
		for _, id := range []string{moving.ID, fixed.ID} {
			if r, err := w.traffic.Route(t.Context(), id); err != nil || len(r.Hops) != 1 {
				t.Errorf("the route is %+v, %v", r, err)
			}
		}
		w.clock.Advance(2 * time.Hour)
		w.reconciled()
	})
}
