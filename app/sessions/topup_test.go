package sessions_test

import (
	"testing"
	"time"

	"agentproxy/app/idempotency"
	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/session"
	"agentproxy/test/apptest"
)

// addTraffic asks for more traffic of a session.
func addTraffic(w *apptest.World, agent, id, gb string) (sessions.Done, error) {
	return w.Sessions.TopUp(w.T.Context(), sessions.TopUp{AgentID: agent, SessionID: id, Bytes: apptest.Gigabytes(gb)})
}

func TestTopUp(t *testing.T) {
	t.Parallel()
	t.Run("what was bought before keeps its price, and the rest comes back", func(t *testing.T) {
		t.Parallel()
		w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
		agent := w.Register()
		v := w.BuySmall(agent)
		w.Reprice(apptest.Local, apptest.Dollars("0.8"))
		d, err := addTraffic(w, agent, v.ID, "0.1")
		apptest.OK(t, err)
		apptest.Equal(t, "held", d.View.Cost.Held, apptest.Dollars("0.12"))
		apptest.Equal(t, "the limit", d.View.Usage.Limit, 200_000_000)
		apptest.Equal(t, "the exit", d.View.Exits[0], v.Exits[0])
		w.UseBytes(v.ID, "a", 150_000_000)
		apptest.Equal(t, "the cost", w.Read(agent, v.ID).Cost, sessions.Cost{Charged: apptest.Dollars("0.08"), Held: apptest.Dollars("0.04")})
		_, err = w.Sessions.Terminate(t.Context(), agent, v.ID)
		apptest.OK(t, err)
		apptest.Equal(t, "the ledger", w.Entries(agent),
			"trial_grant 10000000, hold -40000, hold -80000, charge 0 of 80000, release 40000")
	})
	t.Run("what is released lessens the spending of the day on which it was held", func(t *testing.T) {
		t.Parallel()
		w := apptest.New(t)
		agent := w.Register()
		v := w.BuySmall(agent)
		w.Clock.Advance(24 * time.Hour)
		_, err := addTraffic(w, agent, v.ID, "0.1")
		apptest.OK(t, err)
		w.UseBytes(v.ID, "a", 150_000_000)
		spent := func() domain.Money {
			b, err := w.Wallet.Budget(t.Context(), agent)
			apptest.OK(t, err)
			return b.SpentToday
		}
		apptest.Equal(t, "spent", spent(), apptest.Dollars("0.04"))
		_, err = w.Sessions.Terminate(t.Context(), agent, v.ID)
		apptest.OK(t, err)
		apptest.Equal(t, "spent after the release", spent(), apptest.Dollars("0.02"))
	})
	t.Run("one key is one addition, in any order", func(t *testing.T) {
		t.Parallel()
		w := apptest.New(t)
		agent := w.Register()
		v := w.BuySmall(agent)
		call := idempotency.Call{Key: "k", Path: "/v1/sessions/" + v.ID + "/traffic", Hash: []byte("body")}
		var fresh [8]bool
		apptest.Concurrently(len(fresh), func(i int) {
			d, err := w.Sessions.TopUp(t.Context(), sessions.TopUp{AgentID: agent, SessionID: v.ID, Bytes: apptest.Gigabytes("0.1"), Call: call})
			if err != nil || d.View.Bytes != 200_000_000 {
				t.Errorf("%d bytes, %v", d.View.Bytes, err)
			}
			fresh[i] = !d.Replayed
		})
		n := 0
		for _, f := range fresh {
			if f {
				n++
			}
		}
		apptest.Equal(t, "additions", n, 1)
		apptest.Equal(t, "the ledger", w.Entries(agent), "trial_grant 10000000, hold -40000, hold -40000")
	})
}

func TestTopUpRefusals(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent, other := w.RegisterFunded(500), w.Register()
	small, ended, later := w.BuySmall(agent), w.BuySmall(agent), w.Buy(agent, apptest.LocalAsync)
	_, err := w.Sessions.Terminate(t.Context(), agent, ended.ID)
	apptest.OK(t, err)
	static, remote := w.Buy(agent, apptest.Static), w.Buy(agent, apptest.Remote)
	poor := w.BuySmall(other)
	before := w.Dump()
	gb, cent, none := apptest.Gigabytes, new(apptest.Dollars("0.01")), new(domain.Money)
	for what, c := range map[string]struct {
		in   sessions.TopUp
		want error
	}{
		"another agent's":       {sessions.TopUp{AgentID: other, SessionID: small.ID, Bytes: gb("1")}, session.ErrNotFound},
		"no amount":             {sessions.TopUp{AgentID: agent, SessionID: small.ID}, domain.ErrInvalid},
		"nothing":               {sessions.TopUp{AgentID: agent, SessionID: small.ID, Bytes: gb("0")}, domain.ErrInvalid},
		"less than is sold":     {sessions.TopUp{AgentID: agent, SessionID: small.ID, Bytes: gb("0.001")}, domain.ErrInvalid},
		"a fraction of a MB":    {sessions.TopUp{AgentID: agent, SessionID: small.ID, Bytes: gb("1.0001")}, domain.ErrInvalid},
		"a cost of nothing":     {sessions.TopUp{AgentID: agent, SessionID: small.ID, Bytes: gb("1"), MaxCost: none}, domain.ErrInvalid},
		"above the cost":        {sessions.TopUp{AgentID: agent, SessionID: small.ID, Bytes: gb("1"), MaxCost: cent}, sessions.ErrPriceMismatch},
		"an ended one":          {sessions.TopUp{AgentID: agent, SessionID: ended.ID, Bytes: gb("1")}, session.ErrOver},
		"one that is created":   {sessions.TopUp{AgentID: agent, SessionID: later.ID, Bytes: gb("1")}, session.ErrNotReady},
		"a static one":          {sessions.TopUp{AgentID: agent, SessionID: static.ID, Bytes: gb("1")}, session.ErrNotMetered},
		"one of a seller's cap": {sessions.TopUp{AgentID: agent, SessionID: remote.ID, Bytes: gb("1")}, domain.ErrInvalid},
		"more than there is":    {sessions.TopUp{AgentID: other, SessionID: poor.ID, Bytes: gb("900")}, billing.ErrInsufficientBalance},
	} {
		for _, c.in.DryRun = range []bool{false, true} {
			if _, err := w.Sessions.TopUp(t.Context(), c.in); err == nil {
				t.Errorf("%s: taken", what)
			} else {
				apptest.ErrorIs(t, err, c.want)
			}
		}
	}
	d, err := w.Sessions.TopUp(t.Context(), sessions.TopUp{AgentID: agent, SessionID: small.ID, Bytes: gb("1"), DryRun: true})
	apptest.OK(t, err)
	apptest.Equal(t, "the quote", d.Quote.Cost, apptest.Dollars("0.4"))
	apptest.Equal(t, "the database", w.Dump(), before)

	w.SetBudget(agent, "1000", "1000", true)
	_, err = addTraffic(w, agent, small.ID, "1")
	apptest.ErrorIs(t, err, billing.ErrBudgetExceeded)
	w.SetBudget(agent, "1000", "1000", false)
	for _, in := range []*session.AutoTopUp{{}, {BelowPercent: 100, Bytes: billing.GB, MaxPerDay: 1}, {BelowPercent: 1, Bytes: 1, MaxPerDay: 1},
		{BelowPercent: 1, Bytes: billing.GB}, {BelowPercent: 1, Bytes: session.TrafficStep, MaxPerDay: 1}} {
		_, err := w.Sessions.Change(t.Context(), sessions.Change{AgentID: agent, SessionID: small.ID, AutoTopUp: &in})
		apptest.ErrorIs(t, err, domain.ErrInvalid)
	}
	good := &session.AutoTopUp{BelowPercent: 1, Bytes: billing.GB, MaxPerDay: 1}
	for _, id := range []string{static.ID, remote.ID} {
		_, err := w.Sessions.Change(t.Context(), sessions.Change{AgentID: agent, SessionID: id, AutoTopUp: &good})
		apptest.ErrorIs(t, err, domain.ErrInvalid)
	}
	for _, product := range []string{apptest.Static, apptest.Remote} {
		f := apptest.Form(product)
		f.AutoTopUp = good
		_, err := w.Sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: f})
		apptest.ErrorIs(t, err, domain.ErrInvalid)
	}
}
