package app_test

import (
	"context"
	"testing"
	"time"

	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/session"
)

func TestTrialCredit(t *testing.T) {
	t.Parallel()
	split := func(trial, own string) billing.Funds { return billing.Funds{Trial: dollars(trial), Own: dollars(own)} }
	available := func(w *world, agent string) billing.Funds {
		b, err := w.wallet.Balance(context.Background(), agent)
		ok(w.t, err)
		return b.Wallet.Available
	}
	big := func(w *world, agent string) sessions.View { // holds 12.00
		f := form(local)
		f.Bytes = gigabytes("30")
		d, err := w.sessions.Create(context.Background(), sessions.Create{AgentID: agent, Form: f})
		ok(w.t, err)
		return d.View
	}
	t.Run("it is held and charged first, and goes back to where it came from", func(t *testing.T) {
		w := newWorld(t)
		agent := w.rich(5)
		v := big(w, agent)
		same(t, "held", v.Money.Held, split("10", "2"))
		same(t, "left", available(w, agent), split("0", "3"))
		w.use(v.ID, "l", 1_000_000_000)
		v, err := w.sessions.Terminate(t.Context(), agent, v.ID)
		ok(t, err)
		same(t, "charged", v.Money.Charged, split("0.4", "0"))
		same(t, "left", available(w, agent), split("9.6", "5"))
	})
	t.Run("what is held at its end stays usable, and is written off when it comes back", func(t *testing.T) {
		w := newWorld(t)
		agent := w.rich(5)
		v := big(w, agent)
		w.clock.Advance(14 * session.Day)
		ok(t, w.passes.ExpireTrials(t.Context()))
		w.use(v.ID, "l", 1_000_000_000)
		_, err := w.sessions.Terminate(t.Context(), agent, v.ID)
		ok(t, err)
		same(t, "left", available(w, agent), split("0", "5"))
		same(t, "the ledger", w.entries(agent), "trial_grant 10000000, adjustment 5000000, hold -12000000, charge 0 of 400000, "+
			"release 11600000, trial_expiry -9600000")
		ok(t, w.passes.ExpireTrials(t.Context()))
	})
	t.Run("what is left at its end is written off once", func(t *testing.T) {
		w := newWorld(t)
		agent := w.register()
		w.buy(agent, static)
		w.clock.Advance(14*session.Day - time.Microsecond)
		ok(t, w.passes.ExpireTrials(t.Context()))
		same(t, "left", available(w, agent), split("9", "0"))
		w.clock.Advance(time.Microsecond)
		parallel(4, func(int) {
			if err := w.passes.ExpireTrials(context.Background()); err != nil {
				t.Error(err)
			}
		})
		same(t, "left", available(w, agent), split("0", "0"))
		info, err := w.accounts.Info(t.Context(), agent)
		ok(t, err)
		same(t, "a trial", info.IsTrial, false)
		same(t, "the ledger", w.entries(agent), "trial_grant 10000000, hold -1000000, charge 0 of 1000000, trial_expiry -9000000")
	})
	t.Run("past its date it buys nothing, though no pass was there", func(t *testing.T) {
		w := open(t, setup{unruly: true})
		agent := w.register()
		_, err := w.wallet.Adjust(t.Context(), agent, dollars("2.5"), "topped up")
		ok(t, err)
		fixed := w.buy(agent, static)
		w.clock.Advance(14 * session.Day)
		before := w.dump()
		f := form(local)
		f.Bytes = gigabytes("7")
		for _, dry := range []bool{true, false} {
			_, err = w.sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: f, DryRun: dry})
			refused(t, err, billing.ErrInsufficientBalance)
			same(t, "available", err.(*domain.Error).Details["available"], any(dollars("2.5")))
		}
		same(t, "the database", w.dump(), before)
		v := w.buy(agent, local)
		same(t, "held", v.Money.Held, split("0", "0.4"))
		d, err := w.sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: fixed.ID})
		ok(t, err)
		same(t, "charged", d.View.Money.Charged, split("1", "1"))
		ok(t, w.passes.ExpireTrials(t.Context()))
		same(t, "left", available(w, agent), split("0", "1.1"))
	})
}
