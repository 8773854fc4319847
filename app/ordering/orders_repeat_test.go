package ordering_test

import (
	"testing"
	"time"

	"agentproxy/app/sessions"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/apptest"
	"agentproxy/test/fake"
)

// until waits for something that another goroutine does.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !done(); time.Sleep(time.Millisecond) {
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
	w, second := apptest.TwoSellers(t)
	agent := w.Register()
	price, order := make(chan struct{}), make(chan struct{})
	w.Seller.Next(fake.Quote, fake.Step{Gate: price, Err: procurement.Refuse(procurement.Temporary, "")}, fake.Step{})
	w.Seller.Next(fake.Provision, fake.Step{Gate: order})
	slow, fast := make(chan error, 1), make(chan error, 1)
	go func() { _, err := w.CreateWith(agent, "sta_both", apptest.Call("k")); slow <- err }()
	until(t, "the slow one asks for the price", func() bool { return w.Seller.Calls(fake.Quote) == 1 })
	id := w.Column(`SELECT id FROM sessions`)[0]
	go func() { fast <- w.Other.DriveSession(t.Context(), id) }()
	until(t, "the fast one has sent the order", func() bool { return w.Seller.Calls(fake.Provision) == 1 })
	close(price)
	apptest.OK(t, <-slow)
	close(order)
	apptest.OK(t, <-fast)
	apptest.Equal(t, "the session", w.Read(agent, id).Status, session.Active)
	apptest.Equal(t, "sold by the next source", len(second.Sales()), 0)
	w.ExpectReconciled()
}

// A repetition that is refused does not prove that the first time nothing was
// bought.
func TestARefusedRepetitionRefusesNoOrder(t *testing.T) {
	t.Parallel()
	for _, class := range []procurement.Class{procurement.RateLimited, procurement.Invalid, procurement.Auth, procurement.InsufficientFunds} {
		w := apptest.New(t)
		w.Seller.Can(func(c *procurement.Capabilities) { c.Idempotent = true })
		agent := w.Register()
		w.Seller.Next(fake.Provision, fake.LoseAnswer())
		d, err := w.Create(agent, apptest.Remote)
		apptest.OK(t, err)
		w.Seller.Always(fake.Provision, fake.Refuse(class))
		w.ExpectReconciled()
		apptest.Equal(t, "the session", w.Read(agent, d.View.ID).Status, session.Active)
		w.Seller.Next(fake.Provision, fake.LoseRequest())
		d, err = w.Create(agent, apptest.Remote)
		apptest.OK(t, err)
		w.ExpectReconciled()
		apptest.Equal(t, "what was not bought", w.Read(agent, d.View.ID).Status, session.Failed)
	}
}

// An order in preparation may be listed without its location. It is not adopted
// while an order for another location may be the same one.
func TestAListWithoutAPlaceProvesNoPlace(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	w.Seller.Can(func(c *procurement.Capabilities) { c.KeepsOrderKey = false })
	agent := w.RegisterFunded(100)
	lose := func(country string, step fake.Step) string {
		t.Helper()
		w.Seller.Next(fake.Provision, step)
		f := apptest.Form(apptest.RemoteStatic)
		f.Location.Country = country
		d, err := w.Sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: f})
		apptest.OK(t, err)
		apptest.Equal(t, "the status", d.Outcome, ports.Pending)
		return d.View.ID
	}
	german, french := lose("DE", fake.LoseRequest()), lose("FR", fake.LoseAnswer())
	place := w.Seller.Of(french)[0].Delivery.Location
	w.Seller.Change(french, func(p *fake.Purchase) { p.Delivery.Location = session.Location{} })
	w.Clock.Advance(30 * time.Second)
	apptest.OK(t, w.RunOrders())
	apptest.Equal(t, "the one that was not bought", w.Read(agent, german).Status, session.Creating)
	apptest.Equal(t, "the one that was", w.Read(agent, french).Status, session.Creating)
	w.Seller.Change(french, func(p *fake.Purchase) { p.Delivery.Location = place })
	w.ExpectReconciled()
	apptest.Equal(t, "the one that was not bought", w.Read(agent, german).Status, session.Failed)
	apptest.Equal(t, "the one that was", w.Read(agent, french).Status, session.Active)
}

// What is not live for a moment is looked after all the same.
func TestALiveOrderThatIsReportedAsPendingIsStillChecked(t *testing.T) {
	t.Parallel()
	for _, end := range []procurement.State{procurement.Live, procurement.Gone} {
		w := apptest.New(t)
		agent := w.Register()
		v := w.Buy(agent, apptest.RemoteStatic)
		state := func(s procurement.State) {
			w.Seller.Change(v.ID, func(p *fake.Purchase) { p.Delivery.State = s })
			w.Clock.Advance(2 * time.Hour)
			apptest.OK(t, w.RunOrders())
		}
		w.Seller.SetAsync(1 << 20)
		state(procurement.Pending)
		state(end)
		state(procurement.Gone)
		w.Clock.Advance(procurement.LostAfter)
		apptest.OK(t, w.RunOrders())
		if v := w.Read(agent, v.ID); v.Status != session.Terminated || v.Reason != session.ProviderLost {
			t.Errorf("then %s, it is %s, %s", end, v.Status, v.Reason)
		}
	}
}

// A frozen order is the operator's, and no other order waits for it.
func TestAFrozenOrderDelaysNoOther(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	w.Seller.Can(func(c *procurement.Capabilities) { c.KeepsOrderKey = false })
	agent := w.RegisterFunded(100)
	w.Seller.Next(fake.Provision, fake.LoseAnswer())
	_, err := w.Create(agent, apptest.RemoteStatic)
	apptest.OK(t, err)
	w.Seller.Always(fake.Find, fake.Refuse(procurement.Temporary))
	for range 200 {
		w.Clock.Advance(10 * time.Minute)
		apptest.OK(t, w.RunOrders())
	}
	w.Seller.Always(fake.Find, fake.Step{})
	d, err := w.Create(agent, apptest.RemoteStatic)
	apptest.OK(t, err)
	apptest.Equal(t, "the status", d.Outcome, ports.Created)
	apptest.Equal(t, "bought for it", len(w.Seller.Of(d.View.ID)), 1)
}

// Two processes read an order that has just been delivered. The second one to
// record it does not end the checks that the first one began.
func TestAnOrderThatIsDeliveredTwiceIsStillChecked(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	w.Seller.SetAsync(2)
	agent := w.Register()
	d, err := w.Create(agent, apptest.RemoteStatic)
	apptest.OK(t, err)
	apptest.Equal(t, "the status", d.Outcome, ports.Pending)
	w.Clock.Advance(time.Minute)
	answer := make(chan struct{})
	w.Seller.Next(fake.Read, fake.Step{Gate: answer}, fake.Step{})
	late := make(chan error, 1)
	before := w.Seller.Calls(fake.Read)
	go func() { late <- w.Driver.DriveDue(t.Context()) }()
	until(t, "the slow one reads", func() bool { return w.Seller.Calls(fake.Read) == before+1 })
	w.Seller.SetAsync(0)
	w.Seller.Change(d.View.ID, func(p *fake.Purchase) { p.Delivery.State = procurement.Live })
	apptest.OK(t, w.Other.DriveDue(t.Context()))
	apptest.Equal(t, "the session", w.Read(agent, d.View.ID).Status, session.Active)
	close(answer)
	apptest.OK(t, <-late)
	w.Seller.Change(d.View.ID, func(p *fake.Purchase) { p.Gone = true })
	w.Clock.Advance(2 * time.Hour)
	apptest.OK(t, w.RunOrders())
	w.Clock.Advance(procurement.LostAfter)
	apptest.OK(t, w.RunOrders())
	apptest.Equal(t, "the session", w.Read(agent, d.View.ID).Reason, session.ProviderLost)
}
