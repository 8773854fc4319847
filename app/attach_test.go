package app_test

import (
	"testing"

	"agentproxy/app/idempotency"
	"agentproxy/app/ledger"
	"agentproxy/app/sessions"
	"agentproxy/ports"
)

func TestExisting(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.register()
	old, newer := w.buy(agent, local), w.buy(agent, local)
	w.use(old.ID, "l", 1000)
	w.report(agent, newer.ID, "block")
	f := form(local)
	f.ProvisioningMode = "existing"
	attach := func() (sessions.Done, error) {
		return w.sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: f, Call: idempotency.Call{Key: "k", Path: "/sessions", Hash: []byte("h")}})
	}
	before := w.dump()
	d, err := attach()
	ok(t, err)
	if d.Outcome != ports.Completed || d.View.ID != newer.ID || d.View.Verdict.HealthScore != 75 {
		t.Errorf("attached to %s of %d, health %+v", d.View.ID, d.Outcome, d.View.Verdict)
	}
	q, err := w.sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: f, DryRun: true})
	ok(t, err)
	same(t, "the quote", *q.Quote, ledger.Quote{BalanceAfter: w.balance(agent)})
	same(t, "the database", w.dump(), before)
	_, err = w.sessions.Terminate(t.Context(), agent, newer.ID)
	ok(t, err)
	d, err = attach()
	ok(t, err)
	same(t, "the session", d.View.ID, old.ID)
	f.ProductNo = localLater
	waiting := w.buy(agent, localLater)
	d, err = attach()
	ok(t, err)
	same(t, "the session", d.View.ID, waiting.ID)
}

func TestDryRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.register()
	fixed := w.buy(agent, static)
	call := idempotency.Call{Key: "k", Path: "/sessions", Hash: []byte("h")}
	before := w.dump()
	for product, cost := range map[string]string{local: "0.4", localLater: "0.25", static: "1", staticLater: "1.5", remote: "0.5", remoteStatic: "1"} {
		d, err := w.sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: form(product), Call: call, DryRun: true})
		ok(t, err)
		if d.Outcome != ports.Completed || d.View.ID != "" || *d.Quote != (ledger.Quote{Cost: dollars(cost), BalanceAfter: dollars("9") - dollars(cost)}) {
			t.Errorf("%s: quoted %+v", product, d.Quote)
		}
	}
	d, err := w.sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: fixed.ID, Days: "90", Call: call, DryRun: true})
	ok(t, err)
	same(t, "the quote of a renewal", *d.Quote, ledger.Quote{Cost: dollars("2.7"), BalanceAfter: dollars("6.3")})
	same(t, "the database", w.dump(), before)
	same(t, "sold", len(w.seller.Sales()), 0)
	t.Run("the key was not used up", func(t *testing.T) {
		_, err := w.sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: form(local), Call: call})
		ok(t, err)
		d, err := w.sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: form(static), Call: call, DryRun: true})
		ok(t, err)
		same(t, "replayed", d.Replayed, false)
	})
}
