package app_test

import (
	"testing"
	"time"

	"agentproxy/app/sessions"
	"agentproxy/domain/billing"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/fake"
)

// spentToday is what counts against an agent's budget of the last day on which
// something was bought.
func (w *world) spentToday(agent string) string {
	w.t.Helper()
	return w.texts(`SELECT CAST(spent_today AS TEXT) FROM wallets WHERE agent_id = ?`, agent)[0]
}

// Trial credit that a renewal held comes back as trial credit: what is past its
// date is written off.
func TestARefusedRenewalGivesTrialCreditBack(t *testing.T) {
	t.Parallel()
	for name, expired := range map[string]bool{"in time": false, "after the trial": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			agent := w.register()
			v := w.buy(agent, remoteStatic)
			w.clock.Advance(14*session.Day - 5*time.Minute)
			if !expired {
				w.clock.Advance(-time.Hour)
			}
			w.seller.Next(fake.Extend, fake.LoseRequest())
			d, err := w.sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: v.ID, Call: key("k")})
			ok(t, err)
			same(t, "the status", d.Outcome, ports.Pending)
			same(t, "held", d.View.Money.Held, billing.Funds{Trial: dollars("1")})
			w.clock.Advance(20 * time.Minute)
			ok(t, w.passes.ExpireTrials(t.Context()))
			w.reconciled()
			same(t, "held after all", w.read(agent, v.ID).Money.Held, billing.Funds{})
			entries := "trial_grant 10000000, hold -1000000, charge 0 of 1000000, hold -1000000, "
			if expired {
				same(t, "the balance", w.balance(agent), 0)
				same(t, "the ledger", w.entries(agent), entries+"trial_expiry -8000000, release 1000000, trial_expiry -1000000")
				return
			}
			same(t, "the balance", w.balance(agent), dollars("9"))
			same(t, "the ledger", w.entries(agent), entries+"release 1000000")
		})
	}
}

// The budget of the day that a renewal was held on is free again when it is
// refused, and no other day's.
func TestARefusedRenewalFreesTheBudgetOfItsDay(t *testing.T) {
	t.Parallel()
	t.Run("on the same day", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		agent := w.rich(10)
		v := w.buy(agent, remoteStatic)
		w.clock.Advance(session.Day)
		w.seller.Next(fake.Extend, fake.Refuse(procurement.Temporary))
		_, err := w.sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: v.ID})
		if err == nil {
			t.Fatal("renewed")
		}
		same(t, "spent today", w.spentToday(agent), "0")
	})
	t.Run("on the next day", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		agent := w.rich(10)
		v := w.buy(agent, remoteStatic)
		w.clock.Advance(session.Day - 12*time.Hour - 10*time.Minute) // ten to midnight
		w.seller.Next(fake.Extend, fake.LoseRequest())
		_, err := w.sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: v.ID})
		ok(t, err)
		w.clock.Advance(12 * time.Minute)
		w.buy(agent, static)
		same(t, "spent today", w.spentToday(agent), "1000000")
		w.clock.Advance(10 * time.Minute)
		w.reconciled()
		same(t, "held", w.read(agent, v.ID).Cost.Held, 0)
		same(t, "spent today after all", w.spentToday(agent), "1000000")
	})
}

// However often a seller refuses, the next renewal is one of its own.
func TestAHundredAndTwentyRefusedRenewals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.rich(10)
	v := w.buy(agent, remoteStatic)
	w.seller.Always(fake.Extend, fake.Refuse(procurement.OutOfStock))
	for i := range 120 {
		if _, err := w.sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: v.ID}); err == nil {
			t.Fatalf("the %d. is renewed", i)
		}
	}
	w.seller.Always(fake.Extend, fake.Step{})
	d, err := w.sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: v.ID})
	ok(t, err)
	same(t, "the status", d.Outcome, ports.Completed)
	same(t, "the end", d.View.ExpiresAt, v.ExpiresAt.Add(30*session.Day))
}
