package ordering_test

import (
	"testing"
	"time"

	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/test/apptest"
	"agentproxy/test/fake"
)

// An order that is accepted and never delivered holds its agent's money until the operator
// gives it up.
func TestTheOperatorGivesUpWhatIsNotDelivered(t *testing.T) {
	t.Parallel()
	for name, ended := range map[string]bool{"creating": false, "terminated": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := apptest.New(t)
			w.Seller.Can(func(c *procurement.Capabilities) { c.Cancels = false })
			w.Seller.SetAsync(1_000_000)
			agent := w.RegisterFunded(10)
			before := w.Balance(agent)
			v := w.Buy(agent, apptest.RemoteStatic)
			if ended {
				_, err := w.Sessions.Terminate(t.Context(), agent, v.ID)
				apptest.OK(t, err)
			}
			id := lastOrder(w, v.ID).ID
			_, err := w.Desk.Lost(t.Context(), id)
			apptest.ErrorIs(t, err, procurement.ErrDecided)
			for range 200 {
				w.Clock.Advance(time.Hour)
				apptest.OK(t, w.RunOrders())
			}
			apptest.Equal(t, "held after a week", w.Read(agent, v.ID).Cost.Held, apptest.Dollars("1"))
			o, err := w.Desk.Lost(t.Context(), id)
			apptest.OK(t, err)
			apptest.Equal(t, "the order", o.State, procurement.Gone)
			apptest.Equal(t, "the order is closed", o.ClosedAt.IsZero(), false)
			apptest.Equal(t, "the session", w.Read(agent, v.ID).Status.Over(), true)
			apptest.Equal(t, "the balance", w.Balance(agent), before)
			_, err = w.Desk.Lost(t.Context(), id)
			apptest.ErrorIs(t, err, procurement.ErrDecided)
		})
	}
}

// A seller that shows none of its orders ends no session by itself. The operator decides when
// it is for good.
func TestTheOperatorGivesUpWhatIsNotShown(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.RegisterFunded(10)
	a, b := w.Buy(agent, apptest.RemoteStatic), w.Buy(agent, apptest.RemoteStatic)
	before := w.Balance(agent)
	order := lastOrder(w, a.ID).ID
	_, err := w.Desk.Lost(t.Context(), order)
	apptest.ErrorIs(t, err, procurement.ErrDecided)
	for _, v := range []string{a.ID, b.ID} {
		w.Seller.Change(v, func(p *fake.Purchase) { p.Gone = true })
	}
	w.RunMinutes(600)
	apptest.Equal(t, "by itself", w.Read(agent, a.ID).Status, session.Active)
	_, err = w.Desk.Lost(t.Context(), order)
	apptest.OK(t, err)
	v := w.Read(agent, a.ID)
	apptest.Equal(t, "the session", v.Reason, session.ProviderLost)
	apptest.Equal(t, "refunded", w.Balance(agent), before+v.Cost.Refunded)
	if v.Cost.Refunded < apptest.Dollars("0.9") {
		t.Errorf("%s is refunded", v.Cost.Refunded)
	}
	apptest.Equal(t, "the other", w.Read(agent, b.ID).Status, session.Active)
}

// A direct session that has ended is settled by its last count once the operator decides that
// its seller, which shows several orders no more, does not have it.
func TestTheOperatorGivesUpAnEndedDirectSession(t *testing.T) {
	t.Parallel()
	w, seller, agent, v := lateWorld(t)
	other := w.Buy(agent, "dyn_straight")
	uses(seller, v.ID, v.Bytes/2)
	goOn(w, 2*time.Minute) // its usage is read
	order := w.Column(`SELECT id FROM upstream_orders ORDER BY seq`)[0]
	for _, id := range []string{v.ID, other.ID} {
		seller.Change(id, func(p *fake.Purchase) { p.Gone = true })
	}
	_, err := w.Sessions.Terminate(t.Context(), agent, v.ID)
	apptest.OK(t, err)
	goOn(w, 5*time.Hour)
	apptest.Equal(t, "held meanwhile", w.Read(agent, v.ID).Cost.Held, apptest.Dollars("0.25"))
	_, err = w.Desk.Lost(t.Context(), order)
	apptest.OK(t, err)
	now := w.Read(agent, v.ID)
	if now.Cost.Charged != apptest.Dollars("0.25") || now.Cost.Held != 0 {
		t.Errorf("settled it cost %+v", now.Cost)
	}
	apptest.Equal(t, "closed", w.Column(`SELECT COUNT(*) FROM upstream_orders WHERE closed_at > 0`)[0], "1")
	_, err = w.Desk.Lost(t.Context(), order)
	apptest.ErrorIs(t, err, procurement.ErrDecided)
}
