package app_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"agentproxy/app/idempotency"
	"agentproxy/app/sessions"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/fake"
)

// A retry that is refused proves nothing about the order that it repeats.
func TestARefusedRepetitionProvesNothing(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]fake.Step{"bought": fake.LoseAnswer(), "not bought": fake.LoseRequest()} {
		for _, labelled := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w, second := pair(t)
				w.seller.Can(func(c *procurement.Capabilities) { c.Idempotent, c.KeepsOrderKey = true, labelled })
				agent := w.register()
				w.seller.Next(fake.Provision, first)
				d, err := w.createWith(agent, "sta_both", idempotency.Call{})
				ok(t, err)
				same(t, "the status", d.Outcome, ports.Pending)
				w.seller.Always(fake.Provision, fake.Refuse(procurement.RateLimited))
				w.clock.Advance(10 * time.Second)
				ok(t, w.work())
				if first.Work {
					w.reconciled()
					same(t, "the session", w.read(agent, d.View.ID).Provider, "remote")
					same(t, "sold by the second", len(second.Sales()), 0)
					return
				}
				same(t, "too early to tell", w.read(agent, d.View.ID).Status, session.Creating)
				w.reconciled()
				same(t, "the session", w.read(agent, d.View.ID).Provider, "second")
				same(t, "sold by the first", len(w.seller.Sales()), 0)
			})
		}
	}
}

// What stood in a seller's list before is not ours, whatever the seller can do.
func TestAForeignPurchaseIsNotAdopted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seller.Can(func(c *procurement.Capabilities) { c.Idempotent, c.KeepsOrderKey = true, false })
	agent := w.register()
	in := procurement.Intent{Key: "foreign", SessionID: "foreign", Type: session.Static, Quantity: 1, Days: 30, Location: session.Location{Country: "DE"}}
	_, err := w.seller.Order(t.Context(), in)
	ok(t, err)
	w.seller.Next(fake.Provision, fake.LoseRequest())
	v := w.buy(agent, remoteStatic)
	_, err = w.sessions.Terminate(t.Context(), agent, v.ID)
	ok(t, err)
	for range 6 {
		w.clock.Advance(time.Minute)
		ok(t, w.work())
	}
	same(t, "the order", w.order(v.ID).Status, procurement.Refused)
	same(t, "the foreign one", strings.Join(w.seller.Live(), " "), "foreign")
}

// A live order that is read as pending, and live again, is checked as before.
func TestALiveOrderThatIsPendingOnceMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.register()
	v := w.buy(agent, remoteStatic)
	to := func(s procurement.State) {
		w.seller.Change(v.ID, func(p *fake.Purchase) { p.Delivery.State = s })
		w.clock.Advance(time.Hour)
		ok(t, w.work())
	}
	w.seller.SetAsync(100)
	to(procurement.Pending)
	same(t, "the order", w.order(v.ID).State, procurement.Pending)
	w.seller.SetAsync(0)
	to(procurement.Live)
	w.seller.Change(v.ID, func(p *fake.Purchase) { p.Gone = true })
	w.clock.Advance(time.Hour)
	ok(t, w.work())
	w.clock.Advance(procurement.LostAfter)
	ok(t, w.work())
	same(t, "lost, the session", w.read(agent, v.ID).Reason, session.ProviderLost)
}

// Nothing is due for ever: an order without a next step has no time.
func TestADecidedOrderIsNotDue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.rich(10)
	v := w.buy(agent, remoteStatic)
	_, err := w.sessions.Terminate(t.Context(), agent, v.ID)
	ok(t, err)
	reached, on := w.paused(fake.Release, fake.Refuse(procurement.Temporary))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = w.driver.DriveSession(context.Background(), v.ID)
	}()
	reached()
	ok(t, w.driver.DriveSession(t.Context(), v.ID)) // the other driver closes it
	on()
	<-done
	if o := w.order(v.ID); o.ClosedAt.IsZero() || !o.NextAt.IsZero() {
		t.Errorf("the order is closed at %s and due at %s", o.ClosedAt, o.NextAt)
	}
}

// A seller that delivers what another session owns, or too little, is paid
// nothing, and what it delivered is given up.
func TestADeliveryThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.register()
	own := w.buy(agent, remoteStatic)
	w.seller.SetAsync(1)
	v := w.buy(agent, remoteStatic)
	taken := w.seller.Of(own.ID)[0].Delivery.IPs
	w.seller.Change(v.ID, func(p *fake.Purchase) { p.Delivery.IPs = taken })
	w.reconciled()
	same(t, "the session", w.read(agent, v.ID).Status, session.Failed)
	same(t, "the owner", w.read(agent, own.ID).Status, session.Active)
	same(t, "the balance", w.balance(agent), dollars("9"))
}

// An address that another session has is not taken over; the seller is asked
// again when some time has passed, and not in every pass.
func TestAnAddressOfAnotherSessionIsNotTakenOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.register()
	own, v := w.buy(agent, remoteStatic), w.buy(agent, remoteStatic)
	taken := w.seller.Of(own.ID)[0].Delivery.IPs
	w.seller.Change(v.ID, func(p *fake.Purchase) { p.Delivery.IPs = taken })
	w.clock.Advance(time.Hour)
	reads := w.seller.Calls(fake.Read)
	for range 3 {
		ok(t, w.work())
		w.clock.Advance(time.Second)
	}
	same(t, "asked about both", w.seller.Calls(fake.Read), reads+2)
	same(t, "its address", w.read(agent, v.ID).Exits[0], v.Exits[0])
	w.seller.Change(own.ID, func(p *fake.Purchase) { p.Delivery.IPs = []procurement.IP{{Addr: fake.StaticExit(200)}} })
	w.pass(75)
	same(t, "when the other one has lost it", w.read(agent, v.ID).Exits[0].IP, taken[0].Addr)
}

// At sellers whose orders cannot be distinguished, an order waits for one like it,
// but not for one that waits for the operator.
func TestAnOrderDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	w, second := pair(t)
	w.seller.Can(func(c *procurement.Capabilities) { c.KeepsOrderKey = false })
	agent := w.rich(100)
	renewed, err := w.createWith(agent, "sta_both", idempotency.Call{})
	ok(t, err)
	w.seller.Next(fake.Provision, fake.LoseAnswer())
	lost, err := w.createWith(agent, "sta_both", idempotency.Call{})
	ok(t, err)
	_, err = w.seller.Order(t.Context(), procurement.Intent{Key: "foreign", SessionID: "foreign", SKU: "r", Type: session.Static, Quantity: 1,
		Days: 30, Location: session.Location{Country: "DE"}})
	ok(t, err) // now two are new, and which belongs to which is unknown
	before := w.balance(agent)
	waiting, err := w.createWith(agent, "sta_both", key("k"))
	ok(t, err)
	same(t, "the status", waiting.Outcome, ports.Pending)
	d, err := w.sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: renewed.View.ID})
	ok(t, err)
	same(t, "the status of the renewal", d.Outcome, ports.Pending)
	for range 19 {
		w.clock.Advance(time.Minute)
		ok(t, w.work())
	}
	same(t, "the order that waits", w.order(waiting.View.ID).Status, procurement.Planned)
	same(t, "the renewal that waits", w.order(renewed.View.ID).Status, procurement.Planned)
	w.clock.Advance(time.Minute)
	ok(t, w.work())
	same(t, "bought of the second", len(second.Of(waiting.View.ID)), 1)
	same(t, "the renewal", w.order(renewed.View.ID).Status, procurement.Refused)
	same(t, "the balance", w.balance(agent), before-dollars("1"))
	same(t, "the unknown one", w.order(lost.View.ID).Status, procurement.Unknown)
}
