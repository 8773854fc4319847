package accounts_test

import (
	"context"
	"testing"
	"time"

	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/session"
	"agentproxy/test/apptest"
)

func TestTrialCredit(t *testing.T) {
	t.Parallel()
	split := func(trial, own string) billing.Funds {
		return billing.Funds{Trial: apptest.Dollars(trial), Own: apptest.Dollars(own)}
	}
	available := func(w *apptest.World, agent string) billing.Funds {
		b, err := w.Wallet.Balance(context.Background(), agent)
		apptest.OK(w.T, err)
		return b.Wallet.Available
	}
	big := func(w *apptest.World, agent string) sessions.View { // holds 12.00
		f := apptest.Form(apptest.Local)
		f.Bytes = apptest.Gigabytes("30")
		d, err := w.Sessions.Create(context.Background(), sessions.Create{AgentID: agent, Form: f})
		apptest.OK(w.T, err)
		return d.View
	}
	t.Run("it is held and charged first, and goes back to where it came from", func(t *testing.T) {
		w := apptest.New(t)
		agent := w.RegisterFunded(5)
		v := big(w, agent)
		apptest.Equal(t, "held", v.Money.Held, split("10", "2"))
		apptest.Equal(t, "left", available(w, agent), split("0", "3"))
		w.UseBytes(v.ID, "l", 1_000_000_000)
		v, err := w.Sessions.Terminate(t.Context(), agent, v.ID)
		apptest.OK(t, err)
		apptest.Equal(t, "charged", v.Money.Charged, split("0.4", "0"))
		apptest.Equal(t, "left", available(w, agent), split("9.6", "5"))
	})
	t.Run("what is held at its end stays usable, and is written off when it comes back", func(t *testing.T) {
		w := apptest.New(t)
		agent := w.RegisterFunded(5)
		v := big(w, agent)
		w.Clock.Advance(14 * session.Day)
		apptest.OK(t, w.Tasks.ExpireTrials(t.Context()))
		w.UseBytes(v.ID, "l", 1_000_000_000)
		_, err := w.Sessions.Terminate(t.Context(), agent, v.ID)
		apptest.OK(t, err)
		apptest.Equal(t, "left", available(w, agent), split("0", "5"))
		apptest.Equal(t, "the ledger", w.Entries(agent), "trial_grant 10000000, adjustment 5000000, hold -12000000, charge 0 of 400000, "+
			"release 11600000, trial_expiry -9600000")
		apptest.OK(t, w.Tasks.ExpireTrials(t.Context()))
	})
	t.Run("what is left at its end is written off once", func(t *testing.T) {
		w := apptest.New(t)
		agent := w.Register()
		w.Buy(agent, apptest.Static)
		w.Clock.Advance(14*session.Day - time.Microsecond)
		apptest.OK(t, w.Tasks.ExpireTrials(t.Context()))
		apptest.Equal(t, "left", available(w, agent), split("9", "0"))
		w.Clock.Advance(time.Microsecond)
		apptest.Concurrently(4, func(int) {
			if err := w.Tasks.ExpireTrials(context.Background()); err != nil {
				t.Error(err)
			}
		})
		apptest.Equal(t, "left", available(w, agent), split("0", "0"))
		info, err := w.Accounts.Info(t.Context(), agent)
		apptest.OK(t, err)
		apptest.Equal(t, "a trial", info.IsTrial, false)
		apptest.Equal(t, "the ledger", w.Entries(agent), "trial_grant 10000000, hold -1000000, charge 0 of 1000000, trial_expiry -9000000")
	})
	t.Run("past its date it buys nothing, though no pass was there", func(t *testing.T) {
		w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
		agent := w.Register()
		_, err := w.Wallet.Adjust(t.Context(), agent, apptest.Dollars("2.5"), "topped up")
		apptest.OK(t, err)
		fixed := w.Buy(agent, apptest.Static)
		w.Clock.Advance(14 * session.Day)
		before := w.Dump()
		f := apptest.Form(apptest.Local)
		f.Bytes = apptest.Gigabytes("7")
		for _, dry := range []bool{true, false} {
			_, err = w.Sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: f, DryRun: dry})
			apptest.ErrorIs(t, err, billing.ErrInsufficientBalance)
			apptest.Equal(t, "available", err.(*domain.Error).Details["available"], any(apptest.Dollars("2.5")))
		}
		apptest.Equal(t, "the database", w.Dump(), before)
		v := w.Buy(agent, apptest.Local)
		apptest.Equal(t, "held", v.Money.Held, split("0", "0.4"))
		d, err := w.Sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: fixed.ID})
		apptest.OK(t, err)
		apptest.Equal(t, "charged", d.View.Money.Charged, split("1", "1"))
		apptest.OK(t, w.Tasks.ExpireTrials(t.Context()))
		apptest.Equal(t, "left", available(w, agent), split("0", "1.1"))
	})
}
