package ledger_test

import (
	"testing"
	"time"

	"agentproxy/app/ledger"
	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/session"
	"agentproxy/test/apptest"
)

// The cost of traffic is summed in the hour and on the day of the traffic, before it is charged as well
// as after, whenever that is.
func TestCostIsSummedWithItsTraffic(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.RegisterFunded(10)
	w.Clock.Set(time.Date(2026, 5, 15, 23, 30, 0, 0, time.UTC))
	v := w.Buy(agent, apptest.Local)
	w.UseBytes(v.ID, "l", 500_000_000)
	days := func(when string) {
		t.Helper()
		r, err := ledger.ParseRange("day", "2026-05-15", "2026-05-17", w.Clock.Now())
		apptest.OK(t, err)
		got, err := w.Stats.Series(t.Context(), agent, r)
		apptest.OK(t, err)
		if got[0].Up+got[0].Down != 500_000_000 || got[0].Charged != apptest.Dollars("0.2") || got[1].Charged != 0 {
			t.Errorf("%s: %+v", when, got)
		}
		report, err := w.Wallet.UsageReport(t.Context(), agent, "day", domain.Page{})
		apptest.OK(t, err)
		if report.Totals.Charged != 0 || report.Totals.Up+report.Totals.Down != 0 {
			t.Errorf("%s the report of the next day: %+v", when, report.Totals)
		}
		report, err = w.Wallet.UsageReport(t.Context(), agent, "week", domain.Page{})
		apptest.OK(t, err)
		apptest.Equal(t, when+" the week's charge", report.Totals.Charged, apptest.Dollars("0.2"))
	}
	w.Clock.Set(time.Date(2026, 5, 16, 0, 10, 0, 0, time.UTC))
	days("before the settlement")
	apptest.OK(t, w.Tasks.Settle(t.Context()))
	apptest.Equal(t, "charged", w.Read(agent, v.ID).Cost.Charged, apptest.Dollars("0.2"))
	days("after it")
}

// Trial credit past its date is not shown as spendable before a task writes it off.
func TestExpiredTrialCreditIsNotShown(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.Register()
	w.Clock.Advance(14*session.Day - time.Microsecond)
	apptest.Equal(t, "the balance at its last moment", w.Balance(agent), apptest.Dollars("10"))
	w.Clock.Advance(time.Microsecond)
	apptest.Equal(t, "the balance at its date", w.Balance(agent), 0)
	o, err := w.Stats.Overview(t.Context(), agent)
	apptest.OK(t, err)
	apptest.Equal(t, "the overview", o.Balance, 0)
	_, err = w.Sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: apptest.Form(apptest.Local)})
	if err == nil {
		t.Error("it was spent")
	}
	apptest.Equal(t, "the written-off balance", w.Balance(agent), 0)
}
