package maintenance_test

import (
	"testing"
	"time"

	"agentproxy/app/ledger"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/test/apptest"
)

func TestExpireTrials(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	agent := w.RegisterFunded(5)
	w.Clock.Advance(14*session.Day - time.Microsecond)
	before := w.Dump()
	apptest.OK(t, w.Tasks.ExpireTrials(t.Context()))
	apptest.Equal(t, "the database before the date", w.Dump(), before)
	w.Clock.Advance(time.Microsecond)
	apptest.OK(t, w.Tasks.ExpireTrials(t.Context()))
	b, err := w.Wallet.Balance(t.Context(), agent)
	apptest.OK(t, err)
	if !b.Wallet.TrialExpired || b.Wallet.Balance() != apptest.Dollars("5") {
		t.Errorf("the wallet is %+v", b.Wallet)
	}
	before = w.Dump()
	apptest.OK(t, w.Tasks.ExpireTrials(t.Context()))
	apptest.Equal(t, "the database after a second run", w.Dump(), before)
}

func TestSettleChargesByTheHour(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	agent := w.Register()
	v := w.Buy(agent, apptest.Local)
	w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: "l", Want: 500_000_000})
	w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: "l", Up: 50_000_000, Want: 50_000_000})
	end := w.Clock.Now().Truncate(time.Hour).Add(time.Hour)
	w.Clock.Advance(end.Sub(w.Clock.Now()) - time.Microsecond)
	apptest.OK(t, w.Tasks.Settle(t.Context()))
	apptest.Equal(t, "charged before the hour", w.Read(agent, v.ID).Money.Charged.Total(), 0)
	w.Clock.Advance(time.Microsecond)
	apptest.OK(t, w.Tasks.Settle(t.Context()))
	apptest.Equal(t, "charged", w.Read(agent, v.ID).Money.Charged.Total(), apptest.Dollars("0.02"))
	before := w.Dump()
	apptest.OK(t, w.Tasks.Settle(t.Context()))
	apptest.Equal(t, "the database after a second run", w.Dump(), before)
}

func TestSettleWaitsForALease(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.Register()
	v := w.Buy(agent, apptest.Local)
	w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: "dead", Want: 10_000_000})
	_, err := w.Sessions.Terminate(t.Context(), agent, v.ID)
	apptest.OK(t, err)
	w.Clock.Advance(20 * time.Second)
	apptest.OK(t, w.Tasks.Settle(t.Context())) // the lease is still out
	if held := w.Read(agent, v.ID).Money.Held.Total(); held == 0 {
		t.Error("nothing is held while a lease is out")
	}
	w.Clock.Advance(ledger.SettleLate + 5*time.Second)
	lag, err := w.Tasks.SettleLag(t.Context())
	apptest.OK(t, err)
	apptest.Equal(t, "late by", lag, 5*time.Second)
	apptest.OK(t, w.Tasks.Reclaim(t.Context()))
	apptest.OK(t, w.Tasks.Settle(t.Context()))
	lag, err = w.Tasks.SettleLag(t.Context())
	apptest.OK(t, err)
	apptest.Equal(t, "late by, once settled", lag, 0)
	apptest.Equal(t, "the balance", w.Balance(agent), apptest.Dollars("10"))
}

// An item that fails delays no other, and is tried again after a minute.
func TestWhatFailsIsLeftOutForAMinute(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.RegisterFunded(100)
	ids := make([]string, 3)
	for i := range ids {
		ids[i] = w.Buy(agent, apptest.Static).ID
	}
	expired := func() (n int) {
		for _, id := range ids {
			if w.Read(agent, id).Status == session.Expired {
				n++
			}
		}
		return n
	}
	w.Clock.Advance(31 * session.Day)
	w.Store.FailUpdates(1, 2)
	apptest.ErrorIs(t, w.Tasks.ExpireSessions(t.Context()), apptest.ErrStore)
	apptest.Equal(t, "expired at once", expired(), 1)
	w.Clock.Advance(59 * time.Second)
	apptest.OK(t, w.Tasks.ExpireSessions(t.Context()))
	apptest.Equal(t, "expired within the minute", expired(), 1)
	w.Clock.Advance(time.Second)
	apptest.OK(t, w.Tasks.ExpireSessions(t.Context()))
	apptest.Equal(t, "expired after the minute", expired(), 3)
}
