package sessions_test

import (
	"testing"

	"agentproxy/app/idempotency"
	"agentproxy/app/ledger"
	"agentproxy/app/sessions"
	"agentproxy/ports"
	"agentproxy/test/apptest"
)

func TestExisting(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.Register()
	old, newer := w.Buy(agent, apptest.Local), w.Buy(agent, apptest.Local)
	w.UseBytes(old.ID, "l", 1000)
	w.Report(agent, newer.ID, "block")
	f := apptest.Form(apptest.Local)
	f.ProvisioningMode = "existing"
	attach := func() (sessions.Done, error) {
		return w.Sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: f, Call: idempotency.Call{Key: "k", Path: "/sessions", Hash: []byte("h")}})
	}
	before := w.Dump()
	d, err := attach()
	apptest.OK(t, err)
	if d.Outcome != ports.Completed || d.View.ID != newer.ID || d.View.Verdict.HealthScore != 75 {
		t.Errorf("attached to %s of %d, health %+v", d.View.ID, d.Outcome, d.View.Verdict)
	}
	q, err := w.Sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: f, DryRun: true})
	apptest.OK(t, err)
	apptest.Equal(t, "the quote", *q.Quote, ledger.Quote{BalanceAfter: w.Balance(agent)})
	apptest.Equal(t, "the database", w.Dump(), before)
	_, err = w.Sessions.Terminate(t.Context(), agent, newer.ID)
	apptest.OK(t, err)
	d, err = attach()
	apptest.OK(t, err)
	apptest.Equal(t, "the session", d.View.ID, old.ID)
	f.ProductNo = apptest.LocalAsync
	waiting := w.Buy(agent, apptest.LocalAsync)
	d, err = attach()
	apptest.OK(t, err)
	apptest.Equal(t, "the session", d.View.ID, waiting.ID)
}

func TestDryRun(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.Register()
	fixed := w.Buy(agent, apptest.Static)
	call := idempotency.Call{Key: "k", Path: "/sessions", Hash: []byte("h")}
	before := w.Dump()
	for product, cost := range map[string]string{apptest.Local: "0.4", apptest.LocalAsync: "0.25", apptest.Static: "1", apptest.StaticAsync: "1.5", apptest.Remote: "0.5", apptest.RemoteStatic: "1"} {
		d, err := w.Sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: apptest.Form(product), Call: call, DryRun: true})
		apptest.OK(t, err)
		if d.Outcome != ports.Completed || d.View.ID != "" || *d.Quote != (ledger.Quote{Cost: apptest.Dollars(cost), BalanceAfter: apptest.Dollars("9") - apptest.Dollars(cost)}) {
			t.Errorf("%s: quoted %+v", product, d.Quote)
		}
	}
	d, err := w.Sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: fixed.ID, Days: "90", Call: call, DryRun: true})
	apptest.OK(t, err)
	apptest.Equal(t, "the quote of a renewal", *d.Quote, ledger.Quote{Cost: apptest.Dollars("2.7"), BalanceAfter: apptest.Dollars("6.3")})
	apptest.Equal(t, "the database", w.Dump(), before)
	apptest.Equal(t, "sold", len(w.Seller.Sales()), 0)
	t.Run("the key was not used up", func(t *testing.T) {
		_, err := w.Sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: apptest.Form(apptest.Local), Call: call})
		apptest.OK(t, err)
		d, err := w.Sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: apptest.Form(apptest.Static), Call: call, DryRun: true})
		apptest.OK(t, err)
		apptest.Equal(t, "replayed", d.Replayed, false)
	})
}
