package app_test

import (
	"math"
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
)

func TestBalance(t *testing.T) {
	t.Parallel()
	w := open(t, setup{unruly: true})
	agent := w.rich(5)
	v := w.buy(agent, local)
	w.buy(agent, localLater)
	w.buy(agent, static)
	w.use(v.ID, "l", 500_000_000) // not booked before the hour ends
	for _, when := range []string{"before", "after"} {
		b, err := w.wallet.Balance(t.Context(), agent)
		ok(t, err)
		if b.Wallet.Balance() != dollars("13.35") || b.Held != dollars("0.45") || b.Spent != dollars("1.2") || !b.IsTrial {
			t.Errorf("%s the booking: %s, held %s, spent %s", when, b.Wallet.Balance(), b.Held, b.Spent)
		}
		c := w.read(agent, v.ID).Cost
		same(t, "the cost", c, sessions.Cost{Charged: dollars("0.2"), Held: dollars("0.2")})
		w.clock.Advance(time.Hour)
		ok(t, w.passes.Settle(t.Context()))
	}
	_, err := w.wallet.Balance(t.Context(), "agt_none")
	refused(t, err, account.ErrNotFound)
}

func TestTransactions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.rich(5)
	w.buy(agent, static)
	list, err := w.wallet.Transactions(t.Context(), agent, "", domain.Page{Number: 1, Size: 2})
	ok(t, err)
	if list.Total != 4 || len(list.Items) != 2 || list.Items[0].Type != billing.ChargeEntry || list.Items[0].Charged() != dollars("1") ||
		list.Items[0].Amount() != 0 || list.Items[1].BalanceAfter != dollars("14") {
		t.Errorf("listed %+v", list)
	}
	list, err = w.wallet.Transactions(t.Context(), agent, billing.Adjustment, domain.Page{Number: 1, Size: 20})
	ok(t, err)
	if list.Total != 1 || list.Items[0].Amount() != dollars("5") || list.Items[0].Description != "for the test" {
		t.Errorf("listed %+v", list)
	}
	_, err = w.wallet.Transactions(t.Context(), agent, "gift", domain.Page{Number: 1, Size: 20})
	refused(t, err, domain.ErrInvalid)
}

func TestBudget(t *testing.T) {
	t.Parallel()
	w := open(t, setup{unruly: true})
	agent := w.register()
	v := w.buy(agent, local)
	money := func(text string) **domain.Money { m := dollars(text); p := &m; return &p }
	var none *domain.Money
	b, err := w.wallet.SetBudget(t.Context(), ledger.SetBudget{AgentID: agent, Daily: money("1"), Thresholds: &[]int{90, 50, 90}})
	ok(t, err)
	if *b.Daily != dollars("1") || b.Total != nil || !slices.Equal(b.Thresholds, []int{50, 90}) || b.Paused ||
		b.SpentToday != dollars("0.4") || b.SpentTotal != dollars("0.4") {
		t.Errorf("set to %+v", b)
	}
	paused := true
	b, err = w.wallet.SetBudget(t.Context(), ledger.SetBudget{AgentID: agent, Total: money("9"), Paused: &paused})
	ok(t, err)
	if *b.Daily != dollars("1") || *b.Total != dollars("9") || !b.Paused || len(b.Thresholds) != 2 {
		t.Errorf("what was not given has changed: %+v", b)
	}
	b, err = w.wallet.SetBudget(t.Context(), ledger.SetBudget{AgentID: agent, Daily: &none, Total: &none})
	ok(t, err)
	if b.Daily != nil || b.Total != nil {
		t.Errorf("the limits are not lifted: %+v", b)
	}
	t.Run("a release gives back, on its day", func(t *testing.T) {
		w.use(v.ID, "l", 500_000_000)
		_, err := w.sessions.Terminate(t.Context(), agent, v.ID)
		ok(t, err)
		got, err := w.wallet.Budget(t.Context(), agent)
		ok(t, err)
		if got.SpentToday != dollars("0.2") || got.SpentTotal != dollars("0.2") || !got.Paused {
			t.Errorf("the budget is %+v", got)
		}
		w.clock.Advance(12 * time.Hour)
		got, err = w.wallet.Budget(t.Context(), agent)
		ok(t, err)
		if got.SpentToday != 0 || got.SpentTotal != dollars("0.2") {
			t.Errorf("the day after: %+v", got)
		}
	})
	t.Run("what cannot be is refused and changes nothing", func(t *testing.T) {
		before := w.dump()
		for _, in := range []ledger.SetBudget{{Daily: money("-1")}, {Total: money("-0.000001")}, {Thresholds: &[]int{0}}, {Thresholds: &[]int{101}}} {
			in.AgentID = agent
			_, err := w.wallet.SetBudget(t.Context(), in)
			refused(t, err, domain.ErrInvalid)
		}
		same(t, "the database", w.dump(), before)
		_, err := w.wallet.SetBudget(t.Context(), ledger.SetBudget{AgentID: "agt_none"})
		refused(t, err, account.ErrNotFound)
	})
}

func TestAdjust(t *testing.T) {
	t.Parallel()
	w := open(t, setup{unruly: true})
	agent := w.register()
	e, err := w.wallet.Adjust(t.Context(), agent, dollars("-1.5"), "a correction")
	ok(t, err)
	if e.Amount() != dollars("-1.5") || e.BalanceAfter != dollars("8.5") || e.Type != billing.Adjustment || e.Description != "a correction" {
		t.Errorf("booked %+v", e)
	}
	before := w.dump()
	for _, amount := range []domain.Money{dollars("-8.500001"), math.MinInt64} {
		_, err = w.wallet.Adjust(t.Context(), agent, amount, "too much")
		refused(t, err, billing.ErrInsufficientBalance)
	}
	_, err = w.wallet.Adjust(t.Context(), agent, 0, "nothing")
	refused(t, err, domain.ErrInvalid)
	for _, reason := range []string{"", strings.Repeat("x", ledger.MaxReason+1)} {
		_, err = w.wallet.Adjust(t.Context(), agent, 1, reason)
		refused(t, err, domain.ErrInvalid)
	}
	_, err = w.wallet.Adjust(t.Context(), "agt_none", 1, "nobody")
	refused(t, err, account.ErrNotFound)
	same(t, "the database", w.dump(), before)
	_, err = w.wallet.Adjust(t.Context(), agent, dollars("-8.5"), "all")
	ok(t, err)
	same(t, "the balance", w.balance(agent), 0)
}

func TestUsageReport(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.register()
	old, v := w.buy(agent, local), w.buy(agent, local)
	w.use(old.ID, "l", 300_000_000)
	w.clock.Advance(5 * session.Day)
	ok(t, w.passes.Settle(t.Context()))
	w.use(v.ID, "l", 500_000_000)
	w.buy(agent, static)
	for period, want := range map[string]struct {
		days, items int
		used        int64
		charged     string
	}{"": {1, 3, 500_000_000, "1.32"}, "day": {1, 3, 500_000_000, "1.32"}, "week": {7, 3, 800_000_000, "1.32"}, "month": {30, 3, 800_000_000, "1.32"}} {
		r, err := w.wallet.UsageReport(t.Context(), agent, period)
		ok(t, err)
		if r.To.Sub(r.From) != time.Duration(want.days)*session.Day || !r.To.Equal(billing.Day(w.clock.Now()).Add(session.Day)) ||
			len(r.Items) != want.items || r.Totals.Up+r.Totals.Down != want.used || r.Totals.Charged != dollars(want.charged) {
			t.Errorf("%s: %s to %s, %d items, %+v", r.Period, r.From, r.To, len(r.Items), r.Totals)
		}
	}
	_, err := w.wallet.UsageReport(t.Context(), agent, "year")
	refused(t, err, domain.ErrInvalid)
}

func TestOverview(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.rich(90)
	o, err := w.stats.Overview(t.Context(), agent)
	ok(t, err)
	if o != (ledger.Overview{Balance: dollars("100"), SuccessRate: 1}) {
		t.Errorf("of nothing: %+v", o)
	}
	v, fixed := w.buy(agent, local), w.buy(agent, static)
	w.buy(agent, localLater)
	over := w.buy(agent, local)
	w.use(v.ID, "l", 500_000_000)
	w.use(over.ID, "l", 100_000_000)
	_, err = w.sessions.Terminate(t.Context(), agent, over.ID)
	ok(t, err)
	_, err = w.sessions.Rotate(t.Context(), sessions.Rotate{AgentID: agent, SessionID: v.ID})
	ok(t, err)
	w.report(agent, v.ID, "success")
	w.report(agent, fixed.ID, "block")
	w.report(agent, v.ID, "custom")
	w.renew(traffic.Ask{SessionID: v.ID, Lease: "open", Want: 1000})
	o, err = w.stats.Overview(t.Context(), agent)
	ok(t, err)
	want := ledger.Overview{Balance: dollars("98.31"), Held: dollars("0.45"), TotalSpent: dollars("1.24"), Active: 2, Creating: 1, Total: 4,
		UsedBytes: 600_000_000, EventsReported: 3, SuccessRate: 0.5, Rotations: 1}
	same(t, "the overview", o, want)
}
