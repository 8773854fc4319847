package sessions_test

import (
	"errors"
	"sync/atomic"
	"testing"

	"agentproxy/app/accounts"
	"agentproxy/app/sessions"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/test/apptest"
)

// Callers that share a key buy exactly what its budget allows, and once more what came back.
func TestCallersBuyExactlyWhatABudgetAllows(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{SessionLimit: 100, Exits: 100})
	id := w.RegisterFunded(60)
	_, text, err := w.Accounts.Keys.Create(t.Context(), accounts.Caller{AgentID: id, Scopes: account.Scopes}, accounts.NewKey{Name: "child",
		Limits: account.Limits{Budget: account.KeyBudget{Total: new(apptest.Dollars("10"))}}})
	apptest.OK(t, err)
	c, err := w.Accounts.AuthenticateKey(t.Context(), text, nil)
	apptest.OK(t, err)
	ids := make(chan string, 100)
	spendAll := func() int64 {
		var bought atomic.Int64
		apptest.Concurrently(64, func(int) {
			for {
				d, err := w.Sessions.Create(t.Context(), sessions.Create{AgentID: id, By: c.Spender(), Form: apptest.Form(apptest.Local)})
				if err != nil {
					apptest.ErrorIs(t, err, billing.ErrBudgetExceeded)
					return
				}
				bought.Add(1)
				ids <- d.View.ID
			}
		})
		return bought.Load()
	}
	apptest.Equal(t, "bought for 10.00 at 0.40", spendAll(), 25)
	for range 5 {
		_, err := w.Sessions.Terminate(t.Context(), id, <-ids)
		apptest.OK(t, err)
	}
	apptest.Equal(t, "bought after five ended", spendAll(), 5)
	_, err = w.Sessions.Create(t.Context(), sessions.Create{AgentID: id, By: c.Spender(), Form: apptest.Form(apptest.Local), DryRun: true})
	if !errors.Is(err, billing.ErrBudgetExceeded) {
		t.Errorf("a quote beyond the budget: %v", err)
	}
}
