package accounts_test

import (
	"testing"
	"time"

	"agentproxy/app/sessions"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/domain/session"
	"agentproxy/test/apptest"
)

func TestDisable(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	r := w.RegisterCredentials()
	agent := r.Agent.ID
	_, err := w.Wallet.Adjust(t.Context(), agent, apptest.Dollars("90"), "for the test")
	apptest.OK(t, err)
	tok, err := w.IssueToken(r)
	apptest.OK(t, err)
	dynamic, fixed := w.Buy(agent, apptest.Local), w.Buy(agent, apptest.Static)
	waiting, far := w.Buy(agent, apptest.LocalAsync), w.Buy(agent, apptest.Remote)
	over := w.Buy(agent, apptest.Local)
	_, err = w.Sessions.Terminate(t.Context(), agent, over.ID)
	apptest.OK(t, err)
	w.Clock.Advance(10*24*time.Hour + time.Hour)
	w.UseBytes(dynamic.ID, "l", 400_000_000)

	apptest.OK(t, w.Accounts.Disable(t.Context(), agent, "abuse"))
	t.Run("its key and its tokens are refused", func(t *testing.T) {
		_, err = w.Accounts.AuthenticateKey(t.Context(), r.APIKey, nil)
		apptest.ErrorIs(t, err, account.ErrDisabled)
		w.Clock.Set(w.Clock.Now().Add(-10*24*time.Hour - time.Hour))
		_, err = w.Accounts.AuthenticateToken(t.Context(), tok.Text)
		apptest.ErrorIs(t, err, account.ErrDisabled)
		_, err = w.IssueToken(r)
		apptest.ErrorIs(t, err, account.ErrDisabled)
		r.APISecret = "sk_wrong"
		_, err = w.IssueToken(r)
		apptest.ErrorIs(t, err, account.ErrInvalidKey)
		w.Clock.Advance(10*24*time.Hour + time.Hour)
	})
	t.Run("its live sessions end, the others stay as they were", func(t *testing.T) {
		for _, id := range []string{dynamic.ID, fixed.ID, waiting.ID, far.ID} {
			v := w.Read(agent, id)
			if v.Status != session.Terminated || v.Reason != session.AccountDisabled || v.Money.Held.Total() != 0 {
				t.Errorf("%s %s: %s, holds %s", v.ProductNo, v.Status, v.Reason, v.Money.Held.Total())
			}
		}
		apptest.Equal(t, "the reason of the other", w.Read(agent, over.ID).Reason, session.AgentRequest)
	})
	t.Run("a static session is refunded by whole days left, a dynamic one pays what it used", func(t *testing.T) {
		v := w.Read(agent, fixed.ID)
		apptest.Equal(t, "refunded", v.Cost.Refunded, apptest.Dollars("0.633333")) // 19 of 30 days of 1.00
		apptest.Equal(t, "charged", v.Cost.Charged, apptest.Dollars("1"))
		apptest.Equal(t, "charged for traffic", w.Read(agent, dynamic.ID).Cost.Charged, apptest.Dollars("0.16"))
		apptest.Equal(t, "the balance", w.Balance(agent), apptest.Dollars("100")-apptest.Dollars("0.16")-apptest.Dollars("1")+apptest.Dollars("0.633333"))
	})
	t.Run("what a seller delivered is given up", func(t *testing.T) {
		w.Clock.Advance(time.Minute)
		apptest.OK(t, w.RunOrders())
		apptest.Equal(t, "sold and not released", len(w.Seller.Live()), 0)
	})
	t.Run("a caller that was let in before buys nothing", func(t *testing.T) {
		for _, product := range []string{apptest.Local, apptest.LocalAsync, apptest.Static, apptest.Remote} {
			_, err := w.Create(agent, product)
			apptest.ErrorIs(t, err, account.ErrDisabled)
		}
	})
	t.Run("enabling revives no session", func(t *testing.T) {
		apptest.OK(t, w.Accounts.Enable(t.Context(), agent))
		_, err = w.Accounts.AuthenticateKey(t.Context(), r.APIKey, nil)
		apptest.OK(t, err)
		apptest.Equal(t, "the session", w.Read(agent, dynamic.ID).Status, session.Terminated)
		w.Buy(agent, apptest.Local)
	})
	t.Run("an unknown agent is not found", func(t *testing.T) {
		apptest.ErrorIs(t, w.Accounts.Disable(t.Context(), "agt_none", ""), account.ErrNotFound)
		apptest.ErrorIs(t, w.Accounts.Enable(t.Context(), "agt_none"), account.ErrNotFound)
	})
}

// A static session that was paid partly with trial credit is refunded own money
// first; trial credit that expired meanwhile is written off in the same unit.
func TestDisableAfterTheTrial(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.Register() // 10.00 of trial credit
	_, err := w.Wallet.Adjust(t.Context(), agent, apptest.Dollars("5"), "for the test")
	apptest.OK(t, err)
	d, err := w.Sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: session.CreateRequest{Type: "static",
		ProductNo: apptest.Static, Quantity: new(12), Days: new(30), Location: session.Location{Country: "DE"}}})
	apptest.OK(t, err)
	w.Clock.Advance(15 * 24 * time.Hour)
	apptest.OK(t, w.Tasks.ExpireTrials(t.Context()))
	apptest.OK(t, w.Accounts.Disable(t.Context(), agent, "abuse"))
	v := w.Read(agent, d.View.ID)
	apptest.Equal(t, "refunded", v.Money.Refunded, billing.Funds{Trial: apptest.Dollars("4"), Own: apptest.Dollars("2")})
	apptest.Equal(t, "the balance", w.Balance(agent), apptest.Dollars("5"))
	apptest.Equal(t, "the ledger", w.Entries(agent), "trial_grant 10000000, adjustment 5000000, hold -12000000, charge 0 of 12000000, "+
		"refund 6000000, trial_expiry -4000000")
}
