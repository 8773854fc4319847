package app_test

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
	"agentproxy/test/fake"
)

// What was planned a moment ago is its sender's: the pass leaves it alone.
func TestAFreshOrderIsItsSendersAlone(t *testing.T) {
	t.Parallel()
	for op, ask := range map[fake.Op]func(w *world, agent, id string){
		fake.Quote: func(w *world, agent, _ string) { _, _ = w.create(agent, remoteStatic) },
		fake.Read: func(w *world, agent, id string) {
			_, _ = w.sessions.Renew(context.Background(), sessions.Renew{AgentID: agent, SessionID: id})
		},
	} {
		t.Run(string(op), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			agent := w.rich(10)
			v := w.buy(agent, remoteStatic)
			calls := w.seller.Calls(op)
			reached, on := w.paused(op, fake.Step{})
			var wg sync.WaitGroup
			wg.Go(func() { ask(w, agent, v.ID) })
			reached()
			ok(t, w.driver.DriveDue(t.Context()))
			same(t, "asked", w.seller.Calls(op), calls+1)
			on()
			wg.Wait()
			w.reconciled()
		})
	}
}

// Who waits for its turn does not ask the seller before that has come.
func TestWhoWaitsForItsTurnDoesNotAsk(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seller.Can(func(c *procurement.Capabilities) { c.KeepsOrderKey = false })
	agent := w.rich(10)
	w.seller.Next(fake.Provision, fake.LoseAnswer())
	w.buy(agent, remoteStatic)
	waiting := w.buy(agent, remoteStatic)
	calls := w.seller.Calls(fake.Quote)
	ok(t, w.driver.DriveSession(t.Context(), waiting.ID))
	same(t, "asked", w.seller.Calls(fake.Quote), calls)
	w.reconciled()
}

// A source's cost is that of a GB: it does not bound what all of an order costs.
func TestManyGigabytesMayCostMoreThanOne(t *testing.T) {
	t.Parallel()
	w := open(t, setup{sell: []catalog.Product{bothOf("dyn_priced", session.Dynamic,
		procurement.Source{Provider: "remote", SKU: "d", Cost: domain.Dollar / 10})}})
	w.seller.SetQuote("d", procurement.Quote{Cost: 3 * domain.Dollar / 10})
	f := form("dyn_priced")
	f.Bytes = gigabytes("3")
	d, err := w.sessions.Create(t.Context(), sessions.Create{AgentID: w.rich(10), Form: f})
	ok(t, err)
	same(t, "the status", d.Outcome, ports.Created)
}

// A seller that has just accepted an order may not show it yet.
func TestAnAcceptedOrderThatIsNotShownYetIsNotLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.register()
	w.seller.SetAsync(1000)
	v := w.buy(agent, remoteStatic)
	w.seller.Always(fake.Read, fake.Refuse(procurement.NotFound))
	w.clock.Advance(procurement.ListingDelay - time.Second)
	ok(t, w.work())
	same(t, "at first", w.read(agent, v.ID).Status, session.Creating)
	w.pass(30)
	same(t, "then", w.read(agent, v.ID).Status, session.Creating)
	w.pass(int((procurement.LostAfter + procurement.LookAgainAfter) / time.Minute))
	same(t, "at last", w.read(agent, v.ID).Status, session.Failed)
	same(t, "the balance", w.balance(agent), dollars("10"))
}

// Two processes read an order that the seller has taken back: it is closed once,
// and asked about no more.
func TestWhatIsTakenBackIsNotDueAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seller.SetAsync(1000)
	agent := w.register()
	v := w.buy(agent, remoteStatic)
	w.seller.Change(v.ID, func(p *fake.Purchase) { p.Gone = true })
	w.clock.Advance(procurement.ListingDelay)
	reached, on := w.paused(fake.Read, fake.Step{})
	late := make(chan error, 1)
	go func() { late <- w.driver.DriveDue(context.Background()) }()
	reached()
	ok(t, w.driver.DriveDue(t.Context()))
	same(t, "the session", w.read(agent, v.ID).Status, session.Failed)
	on()
	ok(t, <-late)
	if o := w.order(v.ID); o.ClosedAt.IsZero() || !o.NextAt.IsZero() {
		t.Errorf("the order is closed at %s and due at %s", o.ClosedAt, o.NextAt)
	}
	w.reconciled()
}

// What a seller cannot cancel is left to its end there, and the order shows it.
func TestWhatCannotBeGivenUpRunsToItsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seller.Can(func(c *procurement.Capabilities) { c.Cancels = false })
	agent := w.register()
	v := w.buy(agent, remoteStatic)
	_, err := w.sessions.Terminate(t.Context(), agent, v.ID)
	ok(t, err)
	ok(t, w.work())
	o := w.order(v.ID)
	same(t, "the reason", o.Reason, "it runs to its end at the provider")
	same(t, "its next time", o.NextAt, time.Time{})
	same(t, "asked", w.seller.Calls(fake.Release), 1)
}

// Of an order that is on its way once more no address is taken over.
func TestAnAddressThatIsOnItsWayIsNotTakenOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.register()
	v := w.buy(agent, remoteStatic)
	w.seller.SetAsync(1000)
	w.seller.Change(v.ID, func(p *fake.Purchase) {
		p.Delivery.State, p.Delivery.IPs = procurement.Pending, []procurement.IP{{Addr: fake.StaticExit(200)}}
	})
	w.clock.Advance(time.Hour)
	ok(t, w.work())
	same(t, "on its way", w.read(agent, v.ID).Exits[0], v.Exits[0])
	w.seller.SetAsync(0)
	w.clock.Advance(time.Hour)
	ok(t, w.work())
	same(t, "live again", w.read(agent, v.ID).Exits[0].IP, fake.StaticExit(200))
}

// An order that is found by what is new can turn out, when it is to be adopted, to
// be another one than was read: nothing is adopted unread.
func TestNothingIsAdoptedUnread(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seller.Can(func(c *procurement.Capabilities) { c.KeepsOrderKey = false })
	agent := w.rich(10)
	lose := func(country string, step fake.Step) string {
		w.seller.Next(fake.Provision, step)
		f := form(remoteStatic)
		f.Location.Country = country
		d, err := w.sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: f})
		ok(t, err)
		return d.View.ID
	}
	french, german := lose("FR", fake.LoseRequest()), lose("DE", fake.LoseAnswer())
	d, err := w.seller.Order(t.Context(), procurement.Intent{Key: "by hand", SessionID: french, Type: session.Static, Quantity: 1, Days: 30,
		Location: session.Location{Country: "DE"}})
	ok(t, err) // now two are new, and either may be the German one
	w.clock.Advance(10 * time.Second)
	w.store.before = func() {
		_, err := w.desk.Adopt(t.Context(), w.order(french).ID, d.Ref)
		ok(t, err)
	}
	ok(t, w.driver.DriveSession(t.Context(), german))
	w.pass(2)
	for _, id := range []string{french, german} {
		same(t, id, w.read(agent, id).Status, session.Active)
		same(t, "its order", w.order(id).Ref, w.seller.Of(id)[0].Delivery.Ref)
	}
}
