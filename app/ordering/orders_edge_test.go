package ordering_test

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
	"agentproxy/test/apptest"
	"agentproxy/test/fake"
)

// A retry that is refused proves nothing about the order that it repeats.
func TestARefusedRepetitionProvesNothing(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]fake.Step{"bought": fake.LoseAnswer(), "not bought": fake.LoseRequest()} {
		for _, labelled := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w, second := apptest.TwoSellers(t)
				w.Seller.Can(func(c *procurement.Capabilities) { c.Idempotent, c.KeepsOrderKey = true, labelled })
				agent := w.Register()
				w.Seller.Next(fake.Provision, first)
				d, err := w.CreateWith(agent, "sta_both", idempotency.Call{})
				apptest.OK(t, err)
				apptest.Equal(t, "the status", d.Outcome, ports.Pending)
				w.Seller.Always(fake.Provision, fake.Refuse(procurement.RateLimited))
				w.Clock.Advance(10 * time.Second)
				apptest.OK(t, w.RunOrders())
				if first.Work {
					w.ExpectReconciled()
					apptest.Equal(t, "the session", w.Read(agent, d.View.ID).Provider, "remote")
					apptest.Equal(t, "sold by the second", len(second.Sales()), 0)
					return
				}
				apptest.Equal(t, "too early to decide", w.Read(agent, d.View.ID).Status, session.Creating)
				w.ExpectReconciled()
				apptest.Equal(t, "the session", w.Read(agent, d.View.ID).Provider, "second")
				apptest.Equal(t, "sold by the first", len(w.Seller.Sales()), 0)
			})
		}
	}
}

// What stood in a seller's list before is not ours, whatever the seller can do.
func TestAForeignPurchaseIsNotAdopted(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	w.Seller.Can(func(c *procurement.Capabilities) { c.Idempotent, c.KeepsOrderKey = true, false })
	agent := w.Register()
	in := procurement.Intent{Key: "foreign", SessionID: "foreign", Type: session.Static, Quantity: 1, Days: 30, Location: session.Location{Country: "DE"}}
	_, err := w.Seller.Order(t.Context(), in)
	apptest.OK(t, err)
	w.Seller.Next(fake.Provision, fake.LoseRequest())
	v := w.Buy(agent, apptest.RemoteStatic)
	_, err = w.Sessions.Terminate(t.Context(), agent, v.ID)
	apptest.OK(t, err)
	w.RunMinutes(int(2 * procurement.ListingDelay / time.Minute))
	apptest.Equal(t, "the order", lastOrder(w, v.ID).Status, procurement.Refused)
	apptest.Equal(t, "the foreign one", strings.Join(w.Seller.Live(), " "), "foreign")
}

// A live order that is read as pending, and live again, is checked as before.
func TestALiveOrderThatIsPendingOnceMore(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.Register()
	v := w.Buy(agent, apptest.RemoteStatic)
	to := func(s procurement.State) {
		w.Seller.Change(v.ID, func(p *fake.Purchase) { p.Delivery.State = s })
		w.Clock.Advance(time.Hour)
		apptest.OK(t, w.RunOrders())
	}
	w.Seller.SetAsync(100)
	to(procurement.Pending)
	apptest.Equal(t, "the order", lastOrder(w, v.ID).State, procurement.Pending)
	w.Seller.SetAsync(0)
	to(procurement.Live)
	w.Seller.Change(v.ID, func(p *fake.Purchase) { p.Gone = true })
	w.Clock.Advance(time.Hour)
	apptest.OK(t, w.RunOrders())
	w.Clock.Advance(procurement.LostAfter)
	apptest.OK(t, w.RunOrders())
	apptest.Equal(t, "lost, the session", w.Read(agent, v.ID).Reason, session.ProviderLost)
}

// Nothing is due for ever: an order without a next step has no time.
func TestADecidedOrderIsNotDue(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.RegisterFunded(10)
	v := w.Buy(agent, apptest.RemoteStatic)
	_, err := w.Sessions.Terminate(t.Context(), agent, v.ID)
	apptest.OK(t, err)
	reached, on := pauseCall(w, fake.Release, fake.Refuse(procurement.Temporary))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = w.Driver.DriveSession(context.Background(), v.ID)
	}()
	reached()
	apptest.OK(t, w.Other.DriveSession(t.Context(), v.ID)) // another process closes it
	on()
	<-done
	if o := lastOrder(w, v.ID); o.ClosedAt.IsZero() || !o.NextAt.IsZero() {
		t.Errorf("the order is closed at %s and due at %s", o.ClosedAt, o.NextAt)
	}
}

// A seller that delivers what another session owns, or too little, is paid
// nothing, and what it delivered is given up.
func TestADeliveryThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.Register()
	own := w.Buy(agent, apptest.RemoteStatic)
	w.Seller.SetAsync(1)
	v := w.Buy(agent, apptest.RemoteStatic)
	taken := w.Seller.Of(own.ID)[0].Delivery.IPs
	w.Seller.Change(v.ID, func(p *fake.Purchase) { p.Delivery.IPs = taken })
	w.ExpectReconciled()
	apptest.Equal(t, "the session", w.Read(agent, v.ID).Status, session.Failed)
	apptest.Equal(t, "the owner", w.Read(agent, own.ID).Status, session.Active)
	apptest.Equal(t, "the balance", w.Balance(agent), apptest.Dollars("9"))
}

// An address that another session has is not taken over; the seller is asked
// again when some time has passed, and not in every pass.
func TestAnAddressOfAnotherSessionIsNotTakenOver(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.Register()
	own, v := w.Buy(agent, apptest.RemoteStatic), w.Buy(agent, apptest.RemoteStatic)
	taken := w.Seller.Of(own.ID)[0].Delivery.IPs
	w.Seller.Change(v.ID, func(p *fake.Purchase) { p.Delivery.IPs = taken })
	w.Clock.Advance(time.Hour)
	reads := w.Seller.Calls(fake.Read)
	for range 3 {
		apptest.OK(t, w.RunOrders())
		w.Clock.Advance(time.Second)
	}
	apptest.Equal(t, "asked about both", w.Seller.Calls(fake.Read), reads+2)
	apptest.Equal(t, "its address", w.Read(agent, v.ID).Exits[0], v.Exits[0])
	w.Seller.Change(own.ID, func(p *fake.Purchase) { p.Delivery.IPs = []procurement.IP{{Addr: fake.StaticExit(200)}} })
	w.RunMinutes(75)
	apptest.Equal(t, "when the other one has lost it", w.Read(agent, v.ID).Exits[0].IP, taken[0].Addr)
}

// At sellers whose orders cannot be distinguished, an order waits for one like it,
// but not for one that waits for the operator.
func TestAnOrderDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	w, second := apptest.TwoSellers(t)
	w.Seller.Can(func(c *procurement.Capabilities) { c.KeepsOrderKey = false })
	agent := w.RegisterFunded(100)
	renewed, err := w.CreateWith(agent, "sta_both", idempotency.Call{})
	apptest.OK(t, err)
	w.Seller.Next(fake.Provision, fake.LoseAnswer())
	lost, err := w.CreateWith(agent, "sta_both", idempotency.Call{})
	apptest.OK(t, err)
	_, err = w.Seller.Order(t.Context(), procurement.Intent{Key: "foreign", SessionID: "foreign", SKU: "r", Type: session.Static, Quantity: 1,
		Days: 30, Location: session.Location{Country: "DE"}})
	apptest.OK(t, err) // now two are new, and which belongs to which is unknown
	before := w.Balance(agent)
	waiting, err := w.CreateWith(agent, "sta_both", apptest.Call("k"))
	apptest.OK(t, err)
	apptest.Equal(t, "the status", waiting.Outcome, ports.Pending)
	d, err := w.Sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: renewed.View.ID})
	apptest.OK(t, err)
	apptest.Equal(t, "the status of the renewal", d.Outcome, ports.Pending)
	for range 19 {
		w.Clock.Advance(time.Minute)
		apptest.OK(t, w.RunOrders())
	}
	apptest.Equal(t, "the order that waits", lastOrder(w, waiting.View.ID).Status, procurement.Planned)
	apptest.Equal(t, "the renewal that waits", lastOrder(w, renewed.View.ID).Status, procurement.Planned)
	w.Clock.Advance(time.Minute)
	apptest.OK(t, w.RunOrders())
	apptest.Equal(t, "bought of the second", len(second.Of(waiting.View.ID)), 1)
	apptest.Equal(t, "the renewal", lastOrder(w, renewed.View.ID).Status, procurement.Refused)
	apptest.Equal(t, "the balance", w.Balance(agent), before-apptest.Dollars("1"))
	apptest.Equal(t, "the unknown one", lastOrder(w, lost.View.ID).Status, procurement.Unknown)
}
