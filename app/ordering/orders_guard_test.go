package ordering_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/catalog"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/apptest"
	"agentproxy/test/fake"
)

// What was planned a moment ago is its sender's: the pass leaves it alone.
func TestAFreshOrderIsItsSendersAlone(t *testing.T) {
	t.Parallel()
	for op, ask := range map[fake.Op]func(w *apptest.World, agent, id string){
		fake.Quote: func(w *apptest.World, agent, _ string) { _, _ = w.Create(agent, apptest.RemoteStatic) },
		fake.Read: func(w *apptest.World, agent, id string) {
			_, _ = w.Sessions.Renew(context.Background(), sessions.Renew{AgentID: agent, SessionID: id})
		},
	} {
		t.Run(string(op), func(t *testing.T) {
			t.Parallel()
			w := apptest.New(t)
			agent := w.RegisterFunded(10)
			v := w.Buy(agent, apptest.RemoteStatic)
			calls := w.Seller.Calls(op)
			reached, on := pauseCall(w, op, fake.Step{})
			var wg sync.WaitGroup
			wg.Go(func() { ask(w, agent, v.ID) })
			reached()
			apptest.OK(t, w.Driver.DriveDue(t.Context()))
			apptest.Equal(t, "asked", w.Seller.Calls(op), calls+1)
			on()
			wg.Wait()
			w.ExpectReconciled()
		})
	}
}

// Who waits for its turn does not ask the seller before that has come.
func TestWhoWaitsForItsTurnDoesNotAsk(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	w.Seller.Can(func(c *procurement.Capabilities) { c.KeepsOrderKey = false })
	agent := w.RegisterFunded(10)
	w.Seller.Next(fake.Provision, fake.LoseAnswer())
	w.Buy(agent, apptest.RemoteStatic)
	waiting := w.Buy(agent, apptest.RemoteStatic)
	calls := w.Seller.Calls(fake.Quote)
	apptest.OK(t, w.Driver.DriveSession(t.Context(), waiting.ID))
	apptest.Equal(t, "asked", w.Seller.Calls(fake.Quote), calls)
	w.ExpectReconciled()
}

// A source's cost is that of a GB: it does not bound what all of an order costs.
func TestManyGigabytesMayCostMoreThanOne(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{Products: []catalog.Product{apptest.SharedProduct("dyn_priced", session.Dynamic,
		procurement.Source{Provider: "remote", SKU: "d", Cost: domain.Dollar / 10})}})
	w.Seller.SetQuote("d", procurement.Quote{Cost: 3 * domain.Dollar / 10})
	f := apptest.Form("dyn_priced")
	f.Bytes = apptest.Gigabytes("3")
	d, err := w.Sessions.Create(t.Context(), sessions.Create{AgentID: w.RegisterFunded(10), Form: f})
	apptest.OK(t, err)
	apptest.Equal(t, "the status", d.Outcome, ports.Created)
}

// A seller that has just accepted an order may not show it yet.
func TestAnAcceptedOrderThatIsNotShownYetIsNotLost(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.Register()
	w.Seller.SetAsync(1000)
	v := w.Buy(agent, apptest.RemoteStatic)
	w.Seller.Always(fake.Read, fake.Refuse(procurement.NotFound))
	w.Clock.Advance(procurement.ListingDelay - time.Second)
	apptest.OK(t, w.RunOrders())
	apptest.Equal(t, "at first", w.Read(agent, v.ID).Status, session.Creating)
	w.RunMinutes(30)
	apptest.Equal(t, "then", w.Read(agent, v.ID).Status, session.Creating)
	w.RunMinutes(int((procurement.LostAfter + procurement.RereadAfter) / time.Minute))
	apptest.Equal(t, "at last", w.Read(agent, v.ID).Status, session.Failed)
	apptest.Equal(t, "the balance", w.Balance(agent), apptest.Dollars("10"))
}

// Two processes read an order that the seller has taken back: it is closed once,
// and asked about no more.
func TestWhatIsTakenBackIsNotDueAgain(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	w.Seller.SetAsync(1000)
	agent := w.Register()
	v := w.Buy(agent, apptest.RemoteStatic)
	w.Seller.Change(v.ID, func(p *fake.Purchase) { p.Delivery.State = procurement.Gone })
	w.Clock.Advance(procurement.ListingDelay)
	reached, on := pauseCall(w, fake.Read, fake.Step{})
	late := make(chan error, 1)
	go func() { late <- w.Driver.DriveDue(context.Background()) }()
	reached()
	apptest.OK(t, w.Other.DriveDue(t.Context()))
	apptest.Equal(t, "the session", w.Read(agent, v.ID).Status, session.Failed)
	on()
	apptest.OK(t, <-late)
	if o := lastOrder(w, v.ID); o.ClosedAt.IsZero() || !o.NextAt.IsZero() {
		t.Errorf("the order is closed at %s and due at %s", o.ClosedAt, o.NextAt)
	}
	w.ExpectReconciled()
}

// What a seller cannot cancel is left to its end there, and the order shows it.
func TestWhatCannotBeGivenUpRunsToItsEnd(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	w.Seller.Can(func(c *procurement.Capabilities) { c.Cancels = false })
	agent := w.Register()
	v := w.Buy(agent, apptest.RemoteStatic)
	_, err := w.Sessions.Terminate(t.Context(), agent, v.ID)
	apptest.OK(t, err)
	apptest.OK(t, w.RunOrders())
	o := lastOrder(w, v.ID)
	apptest.Equal(t, "the reason", o.Reason, "it runs to its end at the provider")
	apptest.Equal(t, "its next time", o.NextAt, time.Time{})
	apptest.Equal(t, "asked", w.Seller.Calls(fake.Release), 1)
}

// Of an order that is on its way once more no address is taken over.
func TestAnAddressThatIsOnItsWayIsNotTakenOver(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.Register()
	v := w.Buy(agent, apptest.RemoteStatic)
	w.Seller.SetAsync(1000)
	w.Seller.Change(v.ID, func(p *fake.Purchase) {
		p.Delivery.State, p.Delivery.IPs = procurement.Pending, []procurement.IP{{Addr: fake.StaticExit(200)}}
	})
	w.Clock.Advance(time.Hour)
	apptest.OK(t, w.RunOrders())
	apptest.Equal(t, "on its way", w.Read(agent, v.ID).Exits[0], v.Exits[0])
	w.Seller.SetAsync(0)
	w.Clock.Advance(time.Hour)
	apptest.OK(t, w.RunOrders())
	apptest.Equal(t, "live again", w.Read(agent, v.ID).Exits[0].IP, fake.StaticExit(200))
}

// An order that is found by what is new can turn out, when it is to be adopted, to
// be another one than was read: nothing is adopted unread.
func TestNothingIsAdoptedUnread(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	w.Seller.Can(func(c *procurement.Capabilities) { c.KeepsOrderKey = false })
	agent := w.RegisterFunded(10)
	lose := func(country string, step fake.Step) string {
		w.Seller.Next(fake.Provision, step)
		f := apptest.Form(apptest.RemoteStatic)
		f.Location.Country = country
		d, err := w.Sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: f})
		apptest.OK(t, err)
		return d.View.ID
	}
	french, german := lose("FR", fake.LoseRequest()), lose("DE", fake.LoseAnswer())
	d, err := w.Seller.Order(t.Context(), procurement.Intent{Key: "by hand", SessionID: french, Type: session.Static, Quantity: 1, Days: 30,
		Location: session.Location{Country: "DE"}})
	apptest.OK(t, err) // now two are new, and either may be the German one
	w.Clock.Advance(10 * time.Second)
	w.Store.Before = func() {
		_, err := w.Desk.Adopt(t.Context(), lastOrder(w, french).ID, d.Ref)
		apptest.OK(t, err)
	}
	apptest.OK(t, w.Driver.DriveSession(t.Context(), german))
	w.RunMinutes(2)
	for _, id := range []string{french, german} {
		apptest.Equal(t, id, w.Read(agent, id).Status, session.Active)
		apptest.Equal(t, "its order", lastOrder(w, id).Ref, w.Seller.Of(id)[0].Delivery.Ref)
	}
}
