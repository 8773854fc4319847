package sessions_test

import (
	"errors"
	"testing"
	"time"

	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/domain/catalog"
	"agentproxy/domain/session"
	"agentproxy/test/apptest"
)

// paidSeller returns a world whose products of the seller cost the operator money.
func paidSeller(t *testing.T, change func(*catalog.Product)) *apptest.World {
	t.Helper()
	own := apptest.SellerProducts()
	for i := range own {
		own[i].OwnMoneyOnly = true
		if change != nil {
			change(&own[i])
		}
	}
	return apptest.Open(t, apptest.Options{RepeatUpdates: true, SellerProducts: own,
		FundedFrom: account.Funding(domain.Dollar)})
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
func credit(t *testing.T, w *apptest.World, agent string, amount domain.Money) {
	t.Helper()
	_, err := w.Wallet.Adjust(t.Context(), agent, amount, "for the test")
	apptest.OK(t, err)
}

func TestTrialCreditBuysNothingAtASeller(t *testing.T) {
	t.Parallel()
	w := paidSeller(t, nil)
	agent := w.Register()
	for _, product := range []string{apptest.Remote, apptest.RemoteAsync, apptest.RemoteStatic} {
		before := w.Dump()
		_, err := w.CreateWith(agent, product, apptest.Call("k"))
		trialRefused(t, err, 0)
		_, err = w.Sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: apptest.Form(product), DryRun: true})
		trialRefused(t, err, 0)
		apptest.Equal(t, "the database", w.Dump(), before)
	}
	apptest.Equal(t, "sold", len(w.Seller.Sales()), 0)

	credit(t, w, agent, 1) // 0.000001
	_, err := w.CreateWith(agent, apptest.Remote, apptest.Call("k"))
	trialRefused(t, err, 1)
	credit(t, w, agent, apptest.Dollars("0.499998"))
	_, err = w.CreateWith(agent, apptest.Remote, apptest.Call("k"))
	trialRefused(t, err, apptest.Dollars("0.499999"))
	credit(t, w, agent, 1)
	v := w.Buy(agent, apptest.Remote)
	apptest.Equal(t, "held", w.Read(agent, v.ID).Money.Held, billing.Funds{Own: apptest.Dollars("0.5")})

	// The trial buys what costs the operator nothing, and holds own money last.
	v = w.Buy(agent, apptest.Local)
	apptest.Equal(t, "held", w.Read(agent, v.ID).Money.Held, billing.Funds{Trial: apptest.Dollars("0.4")})
}

func TestTrialCreditRenewsNothingAtASeller(t *testing.T) {
	t.Parallel()
	w := paidSeller(t, nil)
	agent := w.Register()
	credit(t, w, agent, apptest.Dollars("1.5"))
	v := w.Buy(agent, apptest.RemoteStatic)
	before := w.Dump()
	for _, dry := range []bool{false, true} {
		_, err := w.Sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: v.ID, DryRun: dry})
		trialRefused(t, err, apptest.Dollars("0.5"))
	}
	apptest.Equal(t, "the database", w.Dump(), before)
	credit(t, w, agent, apptest.Dollars("0.5"))
	_, err := w.Sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: v.ID})
	apptest.OK(t, err)
	apptest.Equal(t, "the balance", w.Balance(agent), apptest.Dollars("10"))
}

// A product that is delivered by this host now does not make a renewal at the seller of an old
// session free.
func TestARenewalAtASellerThatIsNotSoldAnyMoreTakesOwnMoney(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.Register()
	v := w.Buy(agent, apptest.RemoteStatic)
	moved := apptest.SellerProducts()
	for i := range moved {
		moved[i].Sources = w.Embedded.Products()[0].Sources
	}
	apptest.OK(t, w.Catalog.Replace(moved))
	_, err := w.Sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: v.ID})
	trialRefused(t, err, 0)
}

// What a session was paid with is what its use is charged to.
func TestTheUseOfASessionIsChargedToWhatItHolds(t *testing.T) {
	t.Parallel()
	w := paidSeller(t, nil)
	agent := w.Register()
	credit(t, w, agent, apptest.Dollars("0.5"))
	v := w.Buy(agent, apptest.Remote)
	w.UseBytes(v.ID, "l", billing.GB/2)
	_, err := w.Sessions.Terminate(t.Context(), agent, v.ID)
	apptest.OK(t, err)
	s := w.Read(agent, v.ID)
	apptest.Equal(t, "charged", s.Money.Charged, billing.Funds{Own: apptest.Dollars("0.25")})
	info, err := w.Accounts.Info(t.Context(), agent)
	apptest.OK(t, err)
	apptest.Equal(t, "the wallet", info.Wallet.Available, billing.Funds{Trial: apptest.Dollars("10"), Own: apptest.Dollars("0.25")})
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
	agent := w.Register()
	tier := func(want account.Tier) {
		t.Helper()
		info, err := w.Accounts.Info(t.Context(), agent)
		apptest.OK(t, err)
		apptest.Equal(t, "the tier", info.Tier, want)
	}
	needs := func(product string, least account.Tier) {
		t.Helper()
		for _, dry := range []bool{true, false} {
			_, err := w.Sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: apptest.Form(product), DryRun: dry})
			e, is := errors.AsType[*domain.Error](err)
			if !is || !e.Is(account.ErrTierRequired) || e.Details["tier"] != string(least) || e.Retryable {
				t.Fatalf("%s: got %v, want TIER_REQUIRED for %s", product, err, least)
			}
		}
	}
	tier(account.TrialTier)
	needs(apptest.Remote, account.FundedTier)
	needs(apptest.RemoteStatic, account.VerifiedTier)

	free := w.Buy(agent, apptest.Local)
	_, err := w.Wallet.Adjust(t.Context(), agent, -apptest.Dollars("1"), "a correction downwards")
	apptest.OK(t, err)
	tier(account.TrialTier)
	isTrial := func(want bool) {
		t.Helper()
		r, err := w.Traffic.Route(t.Context(), free.ID)
		apptest.OK(t, err)
		apptest.Equal(t, "a trial at the gateway", r.Trial, want)
	}
	credit(t, w, agent, domain.Dollar-1)
	tier(account.TrialTier)
	isTrial(true)
	needs(apptest.Remote, account.FundedTier)
	_, err = w.Accounts.SetTier(t.Context(), agent, account.FundedTier, "")
	apptest.ErrorIs(t, err, domain.ErrInvalid)
	credit(t, w, agent, -domain.Dollar/2) // what is taken back changes no sum of what was credited
	credit(t, w, agent, 1)
	tier(account.FundedTier)
	isTrial(false)
	w.Buy(agent, apptest.Remote)
	needs(apptest.RemoteStatic, account.VerifiedTier)

	before := w.Dump()
	_, err = w.Accounts.SetTier(t.Context(), agent, account.VerifiedTier, "")
	apptest.ErrorIs(t, err, domain.ErrInvalid)
	apptest.Equal(t, "the database", w.Dump(), before)
	got, err := w.Accounts.SetTier(t.Context(), agent, account.VerifiedTier, "contract 12")
	apptest.OK(t, err)
	apptest.Equal(t, "set", got, account.VerifiedTier)
	tier(account.VerifiedTier)
	v := w.Buy(agent, apptest.RemoteStatic)

	_, err = w.Accounts.SetTier(t.Context(), agent, account.TrialTier, "")
	apptest.ErrorIs(t, err, domain.ErrInvalid)
	got, err = w.Accounts.SetTier(t.Context(), agent, account.FundedTier, "")
	apptest.OK(t, err)
	apptest.Equal(t, "put back", got, account.FundedTier)
	w.Clock.Advance(time.Hour)
	_, err = w.Sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: v.ID})
	apptest.ErrorIs(t, err, account.ErrTierRequired)
	_, err = w.Accounts.SetTier(t.Context(), "agt_none", account.VerifiedTier, "x")
	apptest.ErrorIs(t, err, account.ErrNotFound)
}
