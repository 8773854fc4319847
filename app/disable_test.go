package app_test

import (
	"testing"
	"time"

	"agentproxy/app/sessions"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/domain/session"
)

func TestDisable(t *testing.T) {
	t.Parallel()
	w := open(t, setup{unruly: true})
	r := w.credentials()
	agent := r.Agent.ID
	_, err := w.wallet.Adjust(t.Context(), agent, dollars("90"), "for the test")
	ok(t, err)
	tok, err := w.token(r)
	ok(t, err)
	dynamic, fixed := w.buy(agent, local), w.buy(agent, static)
	waiting, far := w.buy(agent, localLater), w.buy(agent, remote)
	over := w.buy(agent, local)
	_, err = w.sessions.Terminate(t.Context(), agent, over.ID)
	ok(t, err)
	w.clock.Advance(10*24*time.Hour + time.Hour)
	w.use(dynamic.ID, "l", 400_000_000)

	ok(t, w.accounts.Disable(t.Context(), agent, "abuse"))
	t.Run("its key and its tokens are refused", func(t *testing.T) {
		_, err = w.accounts.AuthenticateKey(t.Context(), r.APIKey)
		refused(t, err, account.ErrDisabled)
		w.clock.Set(w.clock.Now().Add(-10*24*time.Hour - time.Hour))
		_, err = w.accounts.AuthenticateToken(t.Context(), tok.Text)
		refused(t, err, account.ErrDisabled)
		_, err = w.token(r)
		refused(t, err, account.ErrDisabled)
		r.APISecret = "sk_wrong"
		_, err = w.token(r)
		refused(t, err, account.ErrInvalidKey)
		w.clock.Advance(10*24*time.Hour + time.Hour)
	})
	t.Run("its live sessions end, the others stay as they were", func(t *testing.T) {
		for _, id := range []string{dynamic.ID, fixed.ID, waiting.ID, far.ID} {
			v := w.read(agent, id)
			if v.Status != session.Terminated || v.Reason != session.AccountDisabled || v.Money.Held.Total() != 0 {
				t.Errorf("%s %s: %s, holds %s", v.ProductNo, v.Status, v.Reason, v.Money.Held.Total())
			}
		}
		same(t, "the reason of the other", w.read(agent, over.ID).Reason, session.AgentRequest)
	})
	t.Run("a static session is refunded by whole days left, a dynamic one pays what it used", func(t *testing.T) {
		v := w.read(agent, fixed.ID)
		same(t, "refunded", v.Cost.Refunded, dollars("0.633333")) // 19 of 30 days of 1.00
		same(t, "charged", v.Cost.Charged, dollars("1"))
		same(t, "charged for traffic", w.read(agent, dynamic.ID).Cost.Charged, dollars("0.16"))
		same(t, "the balance", w.balance(agent), dollars("100")-dollars("0.16")-dollars("1")+dollars("0.633333"))
	})
	t.Run("what a seller delivered is given up", func(t *testing.T) {
		w.clock.Advance(time.Minute)
		ok(t, w.work())
		same(t, "sold and not released", len(w.seller.Live()), 0)
	})
	t.Run("whoever was let in before buys nothing", func(t *testing.T) {
		for _, product := range []string{local, localLater, static, remote} {
			_, err := w.create(agent, product)
			refused(t, err, account.ErrDisabled)
		}
	})
	t.Run("enabling revives no session", func(t *testing.T) {
		ok(t, w.accounts.Enable(t.Context(), agent))
		_, err = w.accounts.AuthenticateKey(t.Context(), r.APIKey)
		ok(t, err)
		same(t, "the session", w.read(agent, dynamic.ID).Status, session.Terminated)
		w.buy(agent, local)
	})
	t.Run("an unknown agent is not found", func(t *testing.T) {
		refused(t, w.accounts.Disable(t.Context(), "agt_none", ""), account.ErrNotFound)
		refused(t, w.accounts.Enable(t.Context(), "agt_none"), account.ErrNotFound)
	})
}

// A static session that was paid partly with trial credit is refunded own money
// first; trial credit that expired meanwhile is written off in the same unit.
func TestDisableAfterTheTrial(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.register() // 10.00 of trial credit
	_, err := w.wallet.Adjust(t.Context(), agent, dollars("5"), "for the test")
	ok(t, err)
	d, err := w.sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: session.CreateRequest{Type: "static",
		ProductNo: static, Quantity: new(12), Days: new(30), Location: session.Location{Country: "DE"}}})
	ok(t, err)
	w.clock.Advance(15 * 24 * time.Hour)
	ok(t, w.passes.ExpireTrials(t.Context()))
	ok(t, w.accounts.Disable(t.Context(), agent, "abuse"))
	v := w.read(agent, d.View.ID)
	same(t, "refunded", v.Money.Refunded, billing.Funds{Trial: dollars("4"), Own: dollars("2")})
	same(t, "the balance", w.balance(agent), dollars("5"))
	same(t, "the ledger", w.entries(agent), "trial_grant 10000000, adjustment 5000000, hold -12000000, charge 0 of 12000000, "+
		"refund 6000000, trial_expiry -4000000")
}
