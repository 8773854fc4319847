package app_test

import (
	"testing"
	"time"

	"agentproxy/app/sessions"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/fake"
)

// until waits for something that another goroutine does.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it never came that %s", what)
		}
	}
}

// Two processes go on with one planned order. What the slower one is refused while
// it still asks for the price proves nothing about the order that the other one
// has sent meanwhile.
func TestARefusalBeforeAnOrderIsSentRefusesNoSentOrder(t *testing.T) {
	t.Parallel()
	w, second := pair(t)
	agent := w.register()
	price, order := make(chan struct{}), make(chan struct{})
	w.seller.Next(fake.Quote, fake.Step{Gate: price, Err: procurement.Refuse(procurement.Temporary, "")}, fake.Step{})
	w.seller.Next(fake.Provision, fake.Step{Gate: order})
	slow, fast := make(chan error, 1), make(chan error, 1)
	go func() { _, err := w.createWith(agent, "sta_both", key("k")); slow <- err }()
	until(t, "the slow one asks for the price", func() bool { return w.seller.Calls(fake.Quote) == 1 })
	id := w.texts(`SELECT id FROM sessions`)[0]
	go func() { fast <- w.driver.DriveSession(t.Context(), id) }()
	until(t, "the fast one has sent the order", func() bool { return w.seller.Calls(fake.Provision) == 1 })
	close(price)
	ok(t, <-slow)
	close(order)
	ok(t, <-fast)
	same(t, "the session", w.read(agent, id).Status, session.Active)
	same(t, "sold by the next source", len(second.Sales()), 0)
	w.reconciled()
}

// A repetition that is refused does not prove that the first time nothing was
// bought.
func TestARefusedRepetitionRefusesNoOrder(t *testing.T) {
	t.Parallel()
	for _, class := range []procurement.Class{procurement.RateLimited, procurement.Invalid, procurement.Auth, procurement.InsufficientFunds} {
		w := newWorld(t)
		w.seller.Can(func(c *procurement.Capabilities) { c.Idempotent = true })
		agent := w.register()
		w.seller.Next(fake.Provision, fake.LoseAnswer())
		d, err := w.create(agent, remote)
		ok(t, err)
		w.seller.Always(fake.Provision, fake.Refuse(class))
		w.reconciled()
		same(t, "the session", w.read(agent, d.View.ID).Status, session.Active)
		w.seller.Next(fake.Provision, fake.LoseRequest())
		d, err = w.create(agent, remote)
		ok(t, err)
		w.reconciled()
		same(t, "what was not bought", w.read(agent, d.View.ID).Status, session.Failed)
	}
}

// An order in preparation may be listed without its location. It is not adopted
// while an order for another location may be the same one.
func TestAListThatTellsNoPlaceProvesNoPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seller.Can(func(c *procurement.Capabilities) { c.KeepsOrderKey = false })
	agent := w.rich(100)
	lose := func(country string, step fake.Step) string {
		t.Helper()
		w.seller.Next(fake.Provision, step)
		f := form(remoteStatic)
		f.Location.Country = country
		d, err := w.sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: f})
		ok(t, err)
		same(t, "the status", d.Outcome, ports.Pending)
		return d.View.ID
	}
	german, french := lose("DE", fake.LoseRequest()), lose("FR", fake.LoseAnswer())
	place := w.seller.Of(french)[0].Delivery.Location
	w.seller.Change(french, func(p *fake.Purchase) { p.Delivery.Location = session.Location{} })
	w.clock.Advance(30 * time.Second)
	ok(t, w.work())
	same(t, "the one that was not bought", w.read(agent, german).Status, session.Creating)
	same(t, "the one that was", w.read(agent, french).Status, session.Creating)
	w.seller.Change(french, func(p *fake.Purchase) { p.Delivery.Location = place })
	w.reconciled()
	same(t, "the one that was not bought", w.read(agent, german).Status, session.Failed)
	same(t, "the one that was", w.read(agent, french).Status, session.Active)
}

// What is not live for a moment is looked after all the same.
func TestALiveOrderThatIsSaidToBeOnItsWayIsStillChecked(t *testing.T) {
	t.Parallel()
	for _, end := range []procurement.State{procurement.Live, procurement.Gone} {
		w := newWorld(t)
		agent := w.register()
		v := w.buy(agent, remoteStatic)
		state := func(s procurement.State) {
			w.seller.Change(v.ID, func(p *fake.Purchase) { p.Delivery.State = s })
			w.clock.Advance(2 * time.Hour)
			ok(t, w.work())
		}
		w.seller.SetAsync(1 << 20)
		state(procurement.Pending)
		state(end)
		state(procurement.Gone)
		w.clock.Advance(procurement.LostAfter)
		ok(t, w.work())
		if v := w.read(agent, v.ID); v.Status != session.Terminated || v.Reason != session.ProviderLost {
			t.Errorf("then %s, it is %s, %s", end, v.Status, v.Reason)
		}
	}
}

// A frozen order is the operator's, and no other order waits for it.
func TestAFrozenOrderKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seller.Can(func(c *procurement.Capabilities) { c.KeepsOrderKey = false })
	agent := w.rich(100)
	w.seller.Next(fake.Provision, fake.LoseAnswer())
	_, err := w.create(agent, remoteStatic)
	ok(t, err)
	w.seller.Always(fake.Find, fake.Refuse(procurement.Temporary))
	for range 200 {
		w.clock.Advance(10 * time.Minute)
		ok(t, w.work())
	}
	w.seller.Always(fake.Find, fake.Step{})
	d, err := w.create(agent, remoteStatic)
	ok(t, err)
	same(t, "the status", d.Outcome, ports.Created)
	same(t, "bought for it", len(w.seller.Of(d.View.ID)), 1)
}

// Two processes read an order that has just been delivered. The second one to
// record it does not end the checks that the first one began.
func TestAnOrderThatIsDeliveredTwiceIsStillChecked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seller.SetAsync(2)
	agent := w.register()
	d, err := w.create(agent, remoteStatic)
	ok(t, err)
	same(t, "the status", d.Outcome, ports.Pending)
	w.clock.Advance(time.Minute)
	answer := make(chan struct{})
	w.seller.Next(fake.Read, fake.Step{Gate: answer}, fake.Step{})
	late := make(chan error, 1)
	before := w.seller.Calls(fake.Read)
	go func() { late <- w.driver.DriveDue(t.Context()) }()
	until(t, "the slow one reads", func() bool { return w.seller.Calls(fake.Read) == before+1 })
	w.seller.SetAsync(0)
	w.seller.Change(d.View.ID, func(p *fake.Purchase) { p.Delivery.State = procurement.Live })
	ok(t, w.driver.DriveDue(t.Context()))
	same(t, "the session", w.read(agent, d.View.ID).Status, session.Active)
	close(answer)
	ok(t, <-late)
	w.seller.Change(d.View.ID, func(p *fake.Purchase) { p.Gone = true })
	w.clock.Advance(2 * time.Hour)
	ok(t, w.work())
	w.clock.Advance(procurement.LostAfter)
	ok(t, w.work())
	same(t, "the session", w.read(agent, d.View.ID).Reason, session.ProviderLost)
}
