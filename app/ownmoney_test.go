package app_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/domain/catalog"
	"agentproxy/domain/session"
)

// paidSeller returns a world whose products of the seller cost the operator money.
func paidSeller(t *testing.T, change func(*catalog.Product)) *world {
	t.Helper()
	own := products()
	for i := range own {
		own[i].OwnMoneyOnly = true
		if change != nil {
			change(&own[i])
		}
	}
	return open(t, setup{unruly: true, reprice: own})
}

// trialRefused demands the refusal of a purchase that trial credit may not pay.
func trialRefused(t *testing.T, err error, available domain.Money) {
	t.Helper()
	e, is := errors.AsType[*domain.Error](err)
	if !is || !e.Is(billing.ErrInsufficientBalance) || e.Details["trial_credit"] != false || e.Details["available"] != available {
		t.Fatalf("got %v, want INSUFFICIENT_BALANCE with trial_credit false and %s available", err, available)
	}
}

// credit gives an agent own money, without changing what it has of the trial.
func (w *world) credit(agent string, amount domain.Money) {
	w.t.Helper()
	_, err := w.wallet.Adjust(context.Background(), agent, amount, "for the test")
	ok(w.t, err)
}

func TestTrialCreditBuysNothingAtASeller(t *testing.T) {
	t.Parallel()
	w := paidSeller(t, nil)
	agent := w.register()
	for _, product := range []string{remote, remoteLater, remoteStatic} {
		before := w.dump()
		_, err := w.createWith(agent, product, key("k"))
		trialRefused(t, err, 0)
		_, err = w.sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: form(product), DryRun: true})
		trialRefused(t, err, 0)
		same(t, "the database", w.dump(), before)
	}
	same(t, "sold", len(w.seller.Sales()), 0)

	w.credit(agent, 1) // 0.000001
	_, err := w.createWith(agent, remote, key("k"))
	trialRefused(t, err, 1)
	w.credit(agent, dollars("0.499998"))
	_, err = w.createWith(agent, remote, key("k"))
	trialRefused(t, err, dollars("0.499999"))
	w.credit(agent, 1)
	v := w.buy(agent, remote)
	same(t, "held", w.read(agent, v.ID).Money.Held, billing.Funds{Own: dollars("0.5")})

	// The trial buys what costs the operator nothing, and holds own money last.
	v = w.buy(agent, local)
	same(t, "held", w.read(agent, v.ID).Money.Held, billing.Funds{Trial: dollars("0.4")})
}

func TestTrialCreditRenewsNothingAtASeller(t *testing.T) {
	t.Parallel()
	w := paidSeller(t, nil)
	agent := w.register()
	w.credit(agent, dollars("1.5"))
	v := w.buy(agent, remoteStatic)
	before := w.dump()
	for _, dry := range []bool{false, true} {
		_, err := w.sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: v.ID, DryRun: dry})
		trialRefused(t, err, dollars("0.5"))
	}
	same(t, "the database", w.dump(), before)
	w.credit(agent, dollars("0.5"))
	_, err := w.sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: v.ID})
	ok(t, err)
	same(t, "the balance", w.balance(agent), dollars("10"))
}

// A product that is delivered by this host now does not make a renewal at the seller of an old
// session free.
func TestARenewalAtASellerThatIsNotSoldAnyMoreTakesOwnMoney(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.register()
	v := w.buy(agent, remoteStatic)
	moved := products()
	for i := range moved {
		moved[i].Sources = w.embedded.Products()[0].Sources
	}
	ok(t, w.catalog.Replace(moved))
	_, err := w.sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: v.ID})
	trialRefused(t, err, 0)
}

// What a session was paid with is what its use is charged to.
func TestTheUseOfASessionIsChargedToWhatItHolds(t *testing.T) {
	t.Parallel()
	w := paidSeller(t, nil)
	agent := w.register()
	w.credit(agent, dollars("0.5"))
	v := w.buy(agent, remote)
	w.useAll(v.ID, billing.GB/2)
	_, err := w.sessions.Terminate(t.Context(), agent, v.ID)
	ok(t, err)
	s := w.read(agent, v.ID)
	same(t, "charged", s.Money.Charged, billing.Funds{Own: dollars("0.25")})
	info, err := w.accounts.Info(t.Context(), agent)
	ok(t, err)
	same(t, "the wallet", info.Wallet.Available, billing.Funds{Trial: dollars("10"), Own: dollars("0.25")})
}

func TestTierOfAnAccount(t *testing.T) {
	t.Parallel()
	w := paidSeller(t, func(p *catalog.Product) {
		if p.Type == session.Static {
			p.MinTier = account.VerifiedTier
		} else {
			p.MinTier = account.FundedTier
		}
		p.OwnMoneyOnly = false
	})
	agent := w.register()
	tier := func(want account.Tier) {
		t.Helper()
		info, err := w.accounts.Info(t.Context(), agent)
		ok(t, err)
		same(t, "the tier", info.Tier, want)
	}
	needs := func(product string, least account.Tier) {
		t.Helper()
		for _, dry := range []bool{true, false} {
			_, err := w.sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: form(product), DryRun: dry})
			e, is := errors.AsType[*domain.Error](err)
			if !is || !e.Is(account.ErrTierRequired) || e.Details["tier"] != string(least) || e.Retryable {
				t.Fatalf("%s: got %v, want TIER_REQUIRED for %s", product, err, least)
			}
		}
	}
	tier(account.TrialTier)
	needs(remote, account.FundedTier)
	needs(remoteStatic, account.VerifiedTier)

	_, err := w.wallet.Adjust(t.Context(), agent, -dollars("1"), "a correction downwards")
	ok(t, err)
	tier(account.TrialTier)
	w.credit(agent, 1)
	tier(account.FundedTier)
	w.buy(agent, remote)
	needs(remoteStatic, account.VerifiedTier)

	before := w.dump()
	_, err = w.accounts.SetTier(t.Context(), agent, account.VerifiedTier, "")
	refused(t, err, domain.ErrInvalid)
	same(t, "the database", w.dump(), before)
	got, err := w.accounts.SetTier(t.Context(), agent, account.VerifiedTier, "contract 12")
	ok(t, err)
	same(t, "set", got, account.VerifiedTier)
	tier(account.VerifiedTier)
	v := w.buy(agent, remoteStatic)

	_, err = w.accounts.SetTier(t.Context(), agent, account.TrialTier, "")
	refused(t, err, domain.ErrInvalid)
	got, err = w.accounts.SetTier(t.Context(), agent, account.FundedTier, "")
	ok(t, err)
	same(t, "put back", got, account.FundedTier)
	w.clock.Advance(time.Hour)
	_, err = w.sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: v.ID})
	refused(t, err, account.ErrTierRequired)
	_, err = w.accounts.SetTier(t.Context(), "agt_none", account.VerifiedTier, "x")
	refused(t, err, account.ErrNotFound)
}
