package ordering_test

import (
	"testing"
	"time"

	"agentproxy/app/sessions"
	"agentproxy/domain/billing"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/apptest"
	"agentproxy/test/fake"
)

// spentToday is what counts against an agent's budget of the last day on which
// something was bought.
func spentToday(w *apptest.World, agent string) string {
	w.T.Helper()
	return w.Column(`SELECT CAST(spent_today AS TEXT) FROM wallets WHERE agent_id = ?`, agent)[0]
}

// Trial credit that a renewal held comes back as trial credit: what is past its
// date is written off.
func TestARefusedRenewalGivesTrialCreditBack(t *testing.T) {
	t.Parallel()
	for name, expired := range map[string]bool{"in time": false, "after the trial": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := apptest.New(t)
			agent := w.Register()
			v := w.Buy(agent, apptest.RemoteStatic)
			w.Clock.Advance(14*session.Day - 5*time.Minute)
			if !expired {
				w.Clock.Advance(-time.Hour)
			}
			w.Seller.Next(fake.Extend, fake.LoseRequest())
			d, err := w.Sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: v.ID, Call: apptest.Call("k")})
			apptest.OK(t, err)
			apptest.Equal(t, "the status", d.Outcome, ports.Pending)
			apptest.Equal(t, "held", d.View.Money.Held, billing.Funds{Trial: apptest.Dollars("1")})
			w.Clock.Advance(20 * time.Minute)
			apptest.OK(t, w.Tasks.ExpireTrials(t.Context()))
			w.ExpectReconciled()
			apptest.Equal(t, "held after all", w.Read(agent, v.ID).Money.Held, billing.Funds{})
			entries := "trial_grant 10000000, hold -1000000, charge 0 of 1000000, hold -1000000, "
			if expired {
				apptest.Equal(t, "the balance", w.Balance(agent), 0)
				apptest.Equal(t, "the ledger", w.Entries(agent), entries+"trial_expiry -8000000, release 1000000, trial_expiry -1000000")
				return
			}
			apptest.Equal(t, "the balance", w.Balance(agent), apptest.Dollars("9"))
			apptest.Equal(t, "the ledger", w.Entries(agent), entries+"release 1000000")
		})
	}
}

// The budget of the day that a renewal was held on is free again when it is
// refused, and no other day's.
func TestARefusedRenewalFreesTheBudgetOfItsDay(t *testing.T) {
	t.Parallel()
	t.Run("on the same day", func(t *testing.T) {
		t.Parallel()
		w := apptest.New(t)
		agent := w.RegisterFunded(10)
		v := w.Buy(agent, apptest.RemoteStatic)
		w.Clock.Advance(session.Day)
		w.Seller.Next(fake.Extend, fake.Refuse(procurement.Temporary))
		_, err := w.Sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: v.ID})
		if err == nil {
			t.Fatal("renewed")
		}
		apptest.Equal(t, "spent today", spentToday(w, agent), "0")
	})
	t.Run("on the next day", func(t *testing.T) {
		t.Parallel()
		w := apptest.New(t)
		agent := w.RegisterFunded(10)
		v := w.Buy(agent, apptest.RemoteStatic)
		w.Clock.Advance(session.Day - 12*time.Hour - 10*time.Minute) // ten to midnight
		w.Seller.Next(fake.Extend, fake.LoseRequest())
		_, err := w.Sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: v.ID})
		apptest.OK(t, err)
		w.Clock.Advance(12 * time.Minute)
		w.Buy(agent, apptest.Static)
		apptest.Equal(t, "spent today", spentToday(w, agent), "1000000")
		w.Clock.Advance(10 * time.Minute)
		w.ExpectReconciled()
		apptest.Equal(t, "held", w.Read(agent, v.ID).Cost.Held, 0)
		apptest.Equal(t, "spent today after all", spentToday(w, agent), "1000000")
	})
}

// However often a seller refuses, the next renewal is one of its own.
func TestAHundredAndTwentyRefusedRenewals(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.RegisterFunded(10)
	v := w.Buy(agent, apptest.RemoteStatic)
	w.Seller.Always(fake.Extend, fake.Refuse(procurement.OutOfStock))
	for i := range 120 {
		if _, err := w.Sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: v.ID}); err == nil {
			t.Fatalf("the %d. is renewed", i)
		}
	}
	w.Seller.Always(fake.Extend, fake.Step{})
	d, err := w.Sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: v.ID})
	apptest.OK(t, err)
	apptest.Equal(t, "the status", d.Outcome, ports.Completed)
	apptest.Equal(t, "the end", d.View.ExpiresAt, v.ExpiresAt.Add(30*session.Day))
}
