package ledger_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"agentproxy/app/ledger"
	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/ports"
	"agentproxy/test/apptest"
)

func TestBalance(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	agent := w.RegisterFunded(5)
	v := w.Buy(agent, apptest.Local)
	w.Buy(agent, apptest.LocalAsync)
	w.Buy(agent, apptest.Static)
	w.UseBytes(v.ID, "l", 500_000_000) // not booked before the hour ends
	for _, when := range []string{"before", "after"} {
		b, err := w.Wallet.Balance(t.Context(), agent)
		apptest.OK(t, err)
		if b.Wallet.Balance() != apptest.Dollars("13.35") || b.Held != apptest.Dollars("0.45") || b.Spent != apptest.Dollars("1.2") || !b.IsTrial {
			t.Errorf("%s the booking: %s, held %s, spent %s", when, b.Wallet.Balance(), b.Held, b.Spent)
		}
		c := w.Read(agent, v.ID).Cost
		apptest.Equal(t, "the cost", c, sessions.Cost{Charged: apptest.Dollars("0.2"), Held: apptest.Dollars("0.2")})
		w.Clock.Advance(time.Hour)
		apptest.OK(t, w.Tasks.Settle(t.Context()))
	}
	_, err := w.Wallet.Balance(t.Context(), "agt_none")
	apptest.ErrorIs(t, err, account.ErrNotFound)
}

func TestTransactions(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.RegisterFunded(5)
	w.Buy(agent, apptest.Static)
	list, err := w.Wallet.Transactions(t.Context(), agent, ports.LedgerFilter{Type: ""}, domain.Page{Number: 1, Size: 2})
	apptest.OK(t, err)
	if list.Total != 4 || len(list.Items) != 2 || list.Items[0].Type != billing.ChargeEntry || list.Items[0].Charged() != apptest.Dollars("1") ||
		list.Items[0].Amount() != 0 || list.Items[1].BalanceAfter != apptest.Dollars("14") {
		t.Errorf("listed %+v", list)
	}
	list, err = w.Wallet.Transactions(t.Context(), agent, ports.LedgerFilter{Type: billing.Adjustment}, domain.Page{Number: 1, Size: 20})
	apptest.OK(t, err)
	if list.Total != 1 || list.Items[0].Amount() != apptest.Dollars("5") || list.Items[0].Description != "for the test" {
		t.Errorf("listed %+v", list)
	}
	_, err = w.Wallet.Transactions(t.Context(), agent, ports.LedgerFilter{Type: "gift"}, domain.Page{Number: 1, Size: 20})
	apptest.ErrorIs(t, err, domain.ErrInvalid)
}

func TestBudget(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	agent := w.Register()
	v := w.Buy(agent, apptest.Local)
	money := func(text string) **domain.Money { m := apptest.Dollars(text); p := &m; return &p }
	var none *domain.Money
	b, err := w.Wallet.SetBudget(t.Context(), ledger.SetBudget{AgentID: agent, Daily: money("1"), Thresholds: &[]int{90, 50, 90}})
	apptest.OK(t, err)
	if *b.Daily != apptest.Dollars("1") || b.Total != nil || !slices.Equal(b.Thresholds, []int{50, 90}) || b.Paused ||
		b.SpentToday != apptest.Dollars("0.4") || b.SpentTotal != apptest.Dollars("0.4") {
		t.Errorf("set to %+v", b)
	}
	paused := true
	b, err = w.Wallet.SetBudget(t.Context(), ledger.SetBudget{AgentID: agent, Total: money("9"), Paused: &paused})
	apptest.OK(t, err)
	if *b.Daily != apptest.Dollars("1") || *b.Total != apptest.Dollars("9") || !b.Paused || len(b.Thresholds) != 2 {
		t.Errorf("what was not given has changed: %+v", b)
	}
	b, err = w.Wallet.SetBudget(t.Context(), ledger.SetBudget{AgentID: agent, Daily: &none, Total: &none})
	apptest.OK(t, err)
	if b.Daily != nil || b.Total != nil {
		t.Errorf("the limits are not lifted: %+v", b)
	}
	t.Run("a release gives back, on its day", func(t *testing.T) {
		w.UseBytes(v.ID, "l", 500_000_000)
		_, err := w.Sessions.Terminate(t.Context(), agent, v.ID)
		apptest.OK(t, err)
		got, err := w.Wallet.Budget(t.Context(), agent)
		apptest.OK(t, err)
		if got.SpentToday != apptest.Dollars("0.2") || got.SpentTotal != apptest.Dollars("0.2") || !got.Paused {
			t.Errorf("the budget is %+v", got)
		}
		w.Clock.Advance(12 * time.Hour)
		got, err = w.Wallet.Budget(t.Context(), agent)
		apptest.OK(t, err)
		if got.SpentToday != 0 || got.SpentTotal != apptest.Dollars("0.2") {
			t.Errorf("the day after: %+v", got)
		}
	})
	t.Run("what cannot be is refused and changes nothing", func(t *testing.T) {
		before := w.Dump()
		for _, in := range []ledger.SetBudget{{Daily: money("-1")}, {Total: money("-0.000001")}, {Thresholds: &[]int{0}}, {Thresholds: &[]int{101}}} {
			in.AgentID = agent
			_, err := w.Wallet.SetBudget(t.Context(), in)
			apptest.ErrorIs(t, err, domain.ErrInvalid)
		}
		apptest.Equal(t, "the database", w.Dump(), before)
		_, err := w.Wallet.SetBudget(t.Context(), ledger.SetBudget{AgentID: "agt_none"})
		apptest.ErrorIs(t, err, account.ErrNotFound)
	})
}

func TestAdjust(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	agent := w.Register()
	e, err := w.Wallet.Adjust(t.Context(), agent, apptest.Dollars("-1.5"), "a correction")
	apptest.OK(t, err)
	if e.Amount() != apptest.Dollars("-1.5") || e.BalanceAfter != apptest.Dollars("8.5") || e.Type != billing.Adjustment || e.Description != "a correction" {
		t.Errorf("booked %+v", e)
	}
	before := w.Dump()
	for _, amount := range []domain.Money{apptest.Dollars("-8.500001"), -ledger.MaxAdjustment} {
		_, err = w.Wallet.Adjust(t.Context(), agent, amount, "too much")
		apptest.ErrorIs(t, err, billing.ErrInsufficientBalance)
	}
	_, err = w.Wallet.Adjust(t.Context(), agent, 0, "nothing")
	apptest.ErrorIs(t, err, domain.ErrInvalid)
	for _, reason := range []string{"", strings.Repeat("x", ledger.MaxReason+1)} {
		_, err = w.Wallet.Adjust(t.Context(), agent, 1, reason)
		apptest.ErrorIs(t, err, domain.ErrInvalid)
	}
	_, err = w.Wallet.Adjust(t.Context(), "agt_none", 1, "unknown")
	apptest.ErrorIs(t, err, account.ErrNotFound)
	apptest.Equal(t, "the database", w.Dump(), before)
	_, err = w.Wallet.Adjust(t.Context(), agent, apptest.Dollars("-8.5"), "all")
	apptest.OK(t, err)
	apptest.Equal(t, "the balance", w.Balance(agent), 0)
}

func TestUsageReport(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.Register()
	old, v := w.Buy(agent, apptest.Local), w.Buy(agent, apptest.Local)
	w.UseBytes(old.ID, "l", 300_000_000)
	w.Clock.Advance(5 * session.Day)
	apptest.OK(t, w.Tasks.Settle(t.Context()))
	w.UseBytes(v.ID, "l", 500_000_000)
	w.Buy(agent, apptest.Static)
	for period, want := range map[string]struct {
		days, items int
		used        int64
		charged     string
	}{"": {1, 2, 500_000_000, "1.2"}, "day": {1, 2, 500_000_000, "1.2"}, "week": {7, 3, 800_000_000, "1.32"}, "month": {30, 3, 800_000_000, "1.32"}} {
		r, err := w.Wallet.UsageReport(t.Context(), agent, period, domain.Page{})
		apptest.OK(t, err)
		if r.To.Sub(r.From) != time.Duration(want.days)*session.Day || !r.To.Equal(billing.Day(w.Clock.Now()).Add(session.Day)) ||
			len(r.Sessions.Items) != want.items || r.Sessions.Total != want.items || r.Totals.Up+r.Totals.Down != want.used || r.Totals.Charged != apptest.Dollars(want.charged) {
			t.Errorf("%s: %s to %s, %d items, %+v", r.Period, r.From, r.To, len(r.Sessions.Items), r.Totals)
		}
		whole := r.Sessions.Items
		for page := (domain.Page{Number: 1, Size: 1}); len(whole) > 0; page.After = r.Sessions.Next {
			r2, err := w.Wallet.UsageReport(t.Context(), agent, period, page)
			apptest.OK(t, err)
			apptest.Equal(t, period+": the totals beside a page", r2.Totals, r.Totals)
			apptest.Equal(t, period+": a page", r2.Sessions.Items[0], whole[0])
			whole, r = whole[1:], r2
			if page.After > 0 && (r2.Sessions.Next == 0) != (len(whole) == 0) {
				t.Errorf("%s: after %d more sessions are announced: %d", period, len(whole), r2.Sessions.Next)
			}
		}
	}
	_, err := w.Wallet.UsageReport(t.Context(), agent, "year", domain.Page{})
	apptest.ErrorIs(t, err, domain.ErrInvalid)
}

func TestOverview(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.RegisterFunded(90)
	o, err := w.Stats.Overview(t.Context(), agent)
	apptest.OK(t, err)
	if o != (ledger.Overview{Balance: apptest.Dollars("100"), SuccessRate: 1}) {
		t.Errorf("of nothing: %+v", o)
	}
	v, fixed := w.Buy(agent, apptest.Local), w.Buy(agent, apptest.Static)
	w.Buy(agent, apptest.LocalAsync)
	over := w.Buy(agent, apptest.Local)
	w.UseBytes(v.ID, "l", 500_000_000)
	w.UseBytes(over.ID, "l", 100_000_000)
	_, err = w.Sessions.Terminate(t.Context(), agent, over.ID)
	apptest.OK(t, err)
	_, err = w.Sessions.Rotate(t.Context(), sessions.Rotate{AgentID: agent, SessionID: v.ID})
	apptest.OK(t, err)
	w.Report(agent, v.ID, "success")
	w.Report(agent, fixed.ID, "block")
	w.Report(agent, v.ID, "custom")
	w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: "open", Want: 1000})
	o, err = w.Stats.Overview(t.Context(), agent)
	apptest.OK(t, err)
	want := ledger.Overview{Balance: apptest.Dollars("98.31"), Held: apptest.Dollars("0.45"), TotalSpent: apptest.Dollars("1.24"), Active: 2, Creating: 1, Total: 4,
		UsedBytes: 600_000_000, EventsReported: 3, SuccessRate: 0.5, Rotations: 1}
	apptest.Equal(t, "the overview", o, want)
}
