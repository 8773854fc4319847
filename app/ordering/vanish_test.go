package ordering_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"agentproxy/app/reconcile"
	"agentproxy/app/sessions"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/test/apptest"
	"agentproxy/test/fake"
)

// Many that vanish at once are a fault of the seller's list: nothing ends for it, however
// long it lasts, and one error is logged.
func TestASellerThatShowsNothingEndsNothing(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	var text bytes.Buffer
	watch := reconcile.NewWatch(w.Store, slog.New(slog.NewTextHandler(&text, nil)))
	agent := w.RegisterFunded(100)
	var bought []sessions.View
	for range 3 {
		bought = append(bought, w.Buy(agent, apptest.RemoteStatic), w.Buy(agent, apptest.Remote))
	}
	hide := func(gone bool) {
		for _, v := range bought {
			w.Seller.Change(v.ID, func(p *fake.Purchase) { p.Gone = gone })
		}
	}
	alarms := func(of string) int { return strings.Count(text.String(), of) }
	hide(true)
	for range 10 {
		w.Clock.Advance(time.Hour)
		apptest.OK(t, w.RunOrders())
		apptest.OK(t, watch.Run(t.Context()))
	}
	for _, v := range bought {
		apptest.Equal(t, v.ID, w.Read(agent, v.ID).Status, session.Active)
	}
	apptest.Equal(t, "given up at the seller", w.Seller.Calls(fake.Release), 0)
	apptest.Equal(t, "logged", alarms("the provider does not show many of its orders"), 1)
	hide(false)
	w.Clock.Advance(procurement.RereadAfter)
	apptest.OK(t, w.RunOrders())
	apptest.OK(t, watch.Run(t.Context()))
	apptest.OK(t, watch.Run(t.Context()))
	apptest.Equal(t, "missing after it shows them again", owed(w, "remote").Missing, 0)
	apptest.Equal(t, "logged that they are back", alarms("the provider shows its orders again"), 1)

	t.Run("one alone is lost after a second look", func(t *testing.T) {
		w.Seller.Change(bought[0].ID, func(p *fake.Purchase) { p.Gone = true })
		w.Clock.Advance(time.Hour)
		apptest.OK(t, w.RunOrders())
		w.Clock.Advance(procurement.LostAfter)
		apptest.OK(t, w.RunOrders())
		apptest.OK(t, w.RunOrders())
		apptest.Equal(t, "the session", w.Read(agent, bought[0].ID).Reason, session.ProviderLost)
		apptest.Equal(t, "the others", w.Read(agent, bought[1].ID).Status, session.Active)
		apptest.Equal(t, "given up at the seller", w.Seller.Calls(fake.Release), 1)
	})
}

// What is on its way to a session is not given up either when the seller shows nothing.
func TestASellerThatShowsNothingFailsNothing(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	w.Seller.SetAsync(1000)
	agent := w.RegisterFunded(100)
	one, two := w.Buy(agent, apptest.RemoteStatic), w.Buy(agent, apptest.RemoteStatic)
	for _, v := range []sessions.View{one, two} {
		w.Seller.Change(v.ID, func(p *fake.Purchase) { p.Gone = true })
	}
	w.RunMinutes(6 * 60)
	for _, v := range []sessions.View{one, two} {
		apptest.Equal(t, v.ID, w.Read(agent, v.ID).Status, session.Creating)
		w.Seller.Change(v.ID, func(p *fake.Purchase) { p.Gone = false })
	}
	w.Seller.SetAsync(0)
	w.Seller.Change(one.ID, func(p *fake.Purchase) { p.Delivery.State = procurement.Live })
	w.Seller.Change(two.ID, func(p *fake.Purchase) { p.Delivery.State = procurement.Live })
	w.RunMinutes(20)
	for _, v := range []sessions.View{one, two} {
		apptest.Equal(t, v.ID, w.Read(agent, v.ID).Status, session.Active)
		apptest.Equal(t, v.ID+" is missing", lastOrder(w, v.ID).LostAt.IsZero(), true)
	}
}

// A seller that lists an order some seconds after it sold it does not cancel it before that, though it
// answers as if it had: it is cancelled again once it is listed.
func TestAnOrderThatIsNotListedYetIsCancelledAgain(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.RegisterFunded(100)
	v := w.Buy(agent, apptest.Remote)
	list := func(shown bool) {
		w.Seller.Change(v.ID, func(p *fake.Purchase) { p.Gone = !shown })
	}
	list(false)
	_, err := w.Sessions.Terminate(t.Context(), agent, v.ID)
	apptest.OK(t, err)
	apptest.OK(t, w.RunOrders())
	apptest.Equal(t, "cancelled before it is listed", w.Seller.Of(v.ID)[0].Released, false)
	list(true)
	w.Clock.Advance(10 * time.Second)
	apptest.OK(t, w.RunOrders())
	apptest.Equal(t, "cancelled once it is listed", w.Seller.Of(v.ID)[0].Released, true)
	calls := w.Seller.Calls(fake.Release)
	w.Clock.Advance(time.Hour)
	apptest.OK(t, w.RunOrders())
	apptest.Equal(t, "cancelled again after that", w.Seller.Calls(fake.Release), calls)

	t.Run("and not for ever, if it never is", func(t *testing.T) {
		v = w.Buy(agent, apptest.Remote)
		list(false)
		_, err := w.Sessions.Terminate(t.Context(), agent, v.ID)
		apptest.OK(t, err)
		apptest.OK(t, w.RunOrders())
		w.Clock.Advance(procurement.ListingDelay)
		apptest.OK(t, w.RunOrders())
		calls := w.Seller.Calls(fake.Release)
		w.Clock.Advance(time.Hour)
		apptest.OK(t, w.RunOrders())
		apptest.Equal(t, "cancelled again after the delay", w.Seller.Calls(fake.Release), calls)
	})
}
