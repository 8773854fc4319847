package operator_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentproxy/app/operator"
	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/catalog"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
	. "agentproxy/test/apptest"
	"agentproxy/test/fake"
)

var keys = []ports.MarginKey{ports.ByProvider, ports.ByProduct, ports.ByAgent, ports.ByDay}

func (d desk) margin(by ports.MarginKey) operator.MarginReport {
	d.T.Helper()
	now := d.Clock.Now()
	r, err := operator.NewMoney(d.store, d.Clock, d.Catalog).Margin(d.T.Context(), now.AddDate(0, -6, 0), now.Add(time.Second), by)
	OK(d.T, err)
	return r
}

// lines returns the lines of a report by their keys.
func lines(r operator.MarginReport) map[string]billing.Margin {
	m := map[string]billing.Margin{}
	for _, l := range r.Lines {
		m[l.Key] = l.Margin
	}
	return m
}

// TestTheMarginIsWhatTheLedgerAndTheOrdersHave goes through every way in which money of a session moves.
func TestTheMarginIsWhatTheLedgerAndTheOrdersHave(t *testing.T) {
	t.Parallel()
	d := open(t)
	d.Seller.SetQuote("", procurement.Quote{Cost: Dollars("0.30"), Stock: procurement.StockYes})
	start := d.Clock.Now().Truncate(session.Day)
	own, trial := d.Register(), d.Register()
	for _, amount := range []domain.Money{-10 * domain.Dollar, 40 * domain.Dollar} { // no trial credit, and then own money
		_, err := d.Wallet.Adjust(t.Context(), own, amount, "for the test")
		OK(t, err)
	}

	traffic := d.Buy(own, Remote) // half of it is used, the rest released
	d.UseBytes(traffic.ID, "l1", billing.GB/2)
	_, err := d.Sessions.Terminate(t.Context(), own, traffic.ID)
	OK(t, err)
	static := d.Buy(own, RemoteStatic) // ended by the operator after a day, so that 28 days are refunded
	onTrial := d.Buy(trial, Static)    // trial credit pays, and no seller is asked
	d.Buy(own, RemoteStatic)           // stays
	d.Seller.Next(fake.Provision, fake.Step{Err: procurement.Refuse(procurement.OutOfStock, "sold out")})
	if _, err := d.Create(own, RemoteStatic); err == nil { // refused: everything is given back
		t.Error("the seller sold what it does not have")
	}
	_, err = d.Wallet.Adjust(t.Context(), own, Dollars("-1.5"), "a correction is no revenue")
	OK(t, err)

	d.Clock.Advance(session.Day + time.Hour)
	_, err = d.sessions().End(t.Context(), static.ID)
	OK(t, err)
	_, err = d.refund(onTrial.ID, 50, "")
	OK(t, err)
	OK(t, d.Accounts.Disable(t.Context(), trial, "abuse")) // the rest of its days are refunded

	seller := lines(d.margin(ports.ByProvider))["remote"]
	Equal(t, "charged for half a GB and two addresses", seller.Charged, Dollars("2.25"))
	Equal(t, "28 of 30 days", seller.Refunded, billing.UnusedDays(domain.Dollar, 30, 28))
	Equal(t, "three orders of 0.30", seller.Cost, Dollars("0.90"))
	Equal(t, "orders", seller.Orders, 3)
	Equal(t, "of trial credit", seller.Trial, 0)
	Equal(t, "margin", seller.Margin(), Dollars("1.35")-seller.Refunded)

	local := lines(d.margin(ports.ByAgent))[trial]
	if local.Trial != local.Revenue() || local.Revenue() <= 0 || local.Paid() != 0 || local.Cost != 0 {
		t.Errorf("of the trial: %+v", local)
	}
	days := lines(d.margin(ports.ByDay))
	Equal(t, "the first day's cost", days[start.Format(time.DateOnly)].Cost, Dollars("0.90"))
	if next := days[start.Add(session.Day).Format(time.DateOnly)]; next.Refunded == 0 || next.Charged != 0 {
		t.Errorf("the second day is %+v", next)
	}

	for _, by := range keys {
		d.agrees(d.margin(by))
	}
}

// TestTheMarginHasRenewalsDirectSessionsAndRefunds compares what is reported with each order and each
// session, read by themselves.
func TestTheMarginHasRenewalsDirectSessionsAndRefunds(t *testing.T) {
	t.Parallel()
	seller := fake.NewProvider("direct")
	seller.Can(func(c *procurement.Capabilities) { c.ViaUpstream, c.Direct = true, true })
	p := SharedProduct("dyn_straight", session.Dynamic, procurement.Source{Provider: "direct"})
	p.Direct = true
	w := Open(t, Options{Providers: []ports.Provider{seller}, Products: []catalog.Product{p}})
	seller.SetClock(w.Clock.Now)
	st := operator.Audited(w.Store, w.IDs)
	d := desk{w, st, operator.NewTrail(st, w.Clock, w.IDs)}
	seller.SetQuote("", procurement.Quote{Cost: Dollars("0.10"), Stock: procurement.StockYes})
	d.Seller.SetQuote("", procurement.Quote{Cost: Dollars("0.30"), Stock: procurement.StockYes})
	agent := d.RegisterFunded(50)

	straight, renewed, ended := d.Buy(agent, "dyn_straight"), d.Buy(agent, RemoteStatic), d.Buy(agent, RemoteStatic)
	seller.Change(straight.ID, func(p *fake.Purchase) { p.Used = straight.Bytes / 2 })
	d.Clock.Advance(session.Day)
	OK(t, d.RunOrders())
	for _, id := range []string{renewed.ID, ended.ID} {
		_, err := d.World.Sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: id, Days: "30"})
		OK(t, err)
	}
	d.Clock.Advance(session.Day)
	_, err := d.refund(renewed.ID, 25, "")
	OK(t, err)
	for _, id := range []string{straight.ID, ended.ID} {
		_, err = d.sessions().End(t.Context(), id)
		OK(t, err)
	}
	d.Clock.Advance(2 * time.Hour)
	OK(t, d.RunOrders())

	at := lines(d.margin(ports.ByProvider))
	Equal(t, "orders of addresses and of their renewals", at["remote"].Orders, 4)
	Equal(t, "what these cost", at["remote"].Cost, Dollars("1.20"))
	Equal(t, "what was charged for these", at["remote"].Charged, Dollars("4"))
	Equal(t, "what the operator and the rest of the days gave back", at["remote"].Refunded,
		Dollars("0.5")+d.Read(agent, ended.ID).Money.Refunded.Total())
	Equal(t, "the direct session", at["direct"], billing.Margin{Charged: Dollars("0.25"), Trial: at["direct"].Trial,
		Cost: Dollars("0.10"), Orders: 1})
	var cost, revenue domain.Money
	for _, id := range []string{straight.ID, renewed.ID, ended.ID} {
		shown, err := d.sessions().Show(t.Context(), id)
		OK(t, err)
		cost, revenue = cost+shown.Cost, revenue+shown.Money.Charged.Total()-shown.Money.Refunded.Total()
	}
	for _, by := range keys {
		r := d.margin(by)
		d.agrees(r)
		Equal(t, "the cost of each order, by "+string(by), r.Total.Cost, cost)
		Equal(t, "what each session paid, by "+string(by), r.Total.Revenue(), revenue)
	}
}

// TestTheMarginHasWhatNoSellerNames sells through a gateway that is billed by the byte, through a seller that names no
// cost, and by this host, each with and without a configured cost, and gives one agent money.
func TestTheMarginHasWhatNoSellerNames(t *testing.T) {
	t.Parallel()
	gateway := fake.NewProvider("gateway")
	gateway.SetInProcess(true)
	gateway.Can(func(c *procurement.Capabilities) { c.ViaUpstream = true })
	w := Open(t, Options{TrialBalance: -1, Providers: []ports.Provider{gateway}, Products: []catalog.Product{
		SharedProduct("dyn_priced", session.Dynamic, procurement.Source{Provider: "gateway", Cost: Dollars("2.10")}),
		SharedProduct("dyn_unknown", session.Dynamic, procurement.Source{Provider: "gateway"}),
		SharedProduct("sta_listed", session.Static, procurement.Source{Provider: "remote",
			Costs: []procurement.Term{{Days: 30, Cost: Dollars("1.10")}, {Days: 90, Cost: Dollars("3")}}}),
		SharedProduct("sta_host", session.Static, procurement.Source{Provider: "embedded",
			Costs: []procurement.Term{{Days: 30, Cost: Dollars("0.10")}, {Days: 90, Cost: Dollars("0.25")}}}),
	}})
	st := operator.Audited(w.Store, w.IDs)
	d := desk{w, st, operator.NewTrail(st, w.Clock, w.IDs)}
	w.Seller.SetQuote("", procurement.Quote{Stock: procurement.StockYes}) // it names no cost
	agent := d.RegisterFunded(50)                                         // by a correction
	_, err := d.Wallet.Adjust(t.Context(), agent, Dollars("100"), "a gift")
	OK(t, err)
	_, err = d.Wallet.Adjust(t.Context(), agent, Dollars("-1"), "a correction")
	OK(t, err)

	for _, no := range []string{"dyn_priced", "dyn_unknown", Local} {
		v := d.Buy(agent, no)
		d.UseBytes(v.ID, no, 50_000_000)
		_, err := d.World.Sessions.Terminate(t.Context(), agent, v.ID)
		OK(t, err)
	}
	d.Buy(agent, "sta_listed")
	d.Buy(agent, RemoteStatic) // no cost is configured
	d.Buy(agent, Static)       // this host's own, which costs nothing
	host := d.Buy(agent, "sta_host")
	_, err = d.World.Sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: host.ID, Days: "90"})
	OK(t, err)

	products := lines(d.margin(ports.ByProduct))
	for _, c := range []struct {
		no               string
		estimated        string
		orders, sessions int // of unknown cost
	}{
		{"dyn_priced", "0.105", 0, 0}, {"dyn_unknown", "0", 0, 1}, {Local, "0", 0, 0}, {"sta_listed", "1.1", 0, 0},
		{RemoteStatic, "0", 1, 0}, {Static, "0", 0, 0}, {"sta_host", "0.35", 0, 0},
	} {
		m := products[c.no]
		Equal(t, "the estimate of "+c.no, m.Estimated, Dollars(c.estimated))
		Equal(t, "orders of unknown cost of "+c.no, m.Unpriced, c.orders)
		Equal(t, "sessions of unknown cost of "+c.no, m.UnpricedSessions, c.sessions)
		Equal(t, "the margin of "+c.no, m.Margin(), m.Paid()-m.Estimated)
	}
	for _, by := range keys {
		r := d.margin(by)
		d.agrees(r)
		Equal(t, "estimated by "+string(by), r.Total.Estimated, Dollars("1.555"))
		Equal(t, "unknown by "+string(by), r.Total.Unpriced+r.Total.UnpricedSessions, 2)
		Equal(t, "given by "+string(by), r.Total.Given, Dollars("149"))
		Equal(t, "the margin by "+string(by), r.Total.Margin(), r.Total.Paid()-Dollars("150.555"))
	}
	Equal(t, "given to the agent", lines(d.margin(ports.ByAgent))[agent].Given, Dollars("149"))
	Equal(t, "given without a product", products[""].Given, Dollars("149"))
	today, _, err := operator.NewMoney(d.store, d.Clock, d.Catalog).Days(t.Context(), 1)
	OK(t, err)
	Equal(t, "estimated today", today[0].Estimated, Dollars("1.555"))
}

// TestTheMarginOfTrafficThatWasAdded sells one session traffic at three prices, on two days.
func TestTheMarginOfTrafficThatWasAdded(t *testing.T) {
	t.Parallel()
	d := open(t)
	agent := d.RegisterFunded(50)
	v := d.BuySmall(agent) // 0.1 GB at 0.40
	add := func(price string) {
		d.Reprice(Local, Dollars(price))
		_, err := d.World.Sessions.TopUp(t.Context(), sessions.TopUp{AgentID: agent, SessionID: v.ID, Bytes: Gigabytes("0.1")})
		OK(t, err)
	}
	add("0.8")
	first := d.Clock.Now().Format(time.DateOnly)
	d.UseBytes(v.ID, "a", 150_000_000)
	d.Clock.Advance(time.Hour)
	d.UseBytes(v.ID, "b", 1_000_000) // which books the hour before
	d.Clock.Advance(session.Day - time.Hour)
	add("0.2")
	d.UseBytes(v.ID, "c", 99_000_000)
	_, err := d.World.Sessions.Terminate(t.Context(), agent, v.ID)
	OK(t, err)
	Equal(t, "charged", d.Read(agent, v.ID).Cost.Charged, Dollars("0.13")) // 0.1, 0.1 and 0.05 GB
	for _, by := range keys {
		r := d.margin(by)
		d.agrees(r)
		Equal(t, "revenue by "+string(by), r.Total.Revenue(), Dollars("0.13"))
	}
	days := lines(d.margin(ports.ByDay))
	Equal(t, "of the first day", days[first].Charged, Dollars("0.08"))
	Equal(t, "of the second", days[d.Clock.Now().Format(time.DateOnly)].Charged, Dollars("0.05"))
	Equal(t, "of the product", lines(d.margin(ports.ByProduct))[Local].Charged, Dollars("0.13"))
	Equal(t, "of the agent", lines(d.margin(ports.ByAgent))[agent].Charged, Dollars("0.13"))
}

// agrees compares a report with the tables, which it reads by queries of its own.
func (d desk) agrees(r operator.MarginReport) {
	d.T.Helper()
	var sum billing.Margin
	for _, l := range r.Lines {
		sum = sum.Plus(l.Margin)
	}
	Equal(d.T, "the lines by "+string(r.By), sum, r.Total)
	of := func(sum, from string) domain.Money {
		n, err := strconv.ParseInt(d.Column(`SELECT CAST(COALESCE(SUM(` + sum + `), 0) AS BIGINT) FROM ` + from)[0], 10, 64)
		OK(d.T, err)
		return domain.Money(n)
	}
	Equal(d.T, "charged", r.Total.Charged, of("charged_trial + charged_own", "sessions"))
	Equal(d.T, "refunded", r.Total.Refunded, of("refunded_trial + refunded_own", "sessions"))
	Equal(d.T, "paid by trial credit", r.Total.Trial, of("charged_trial - refunded_trial", "sessions"))
	Equal(d.T, "paid", r.Total.Paid(), of("charged_own - refunded_own", "sessions"))
	Equal(d.T, "cost", r.Total.Cost, of("cost", "upstream_orders WHERE status = 'confirmed'"))
	Equal(d.T, "charged less refunded of the wallets", r.Total.Revenue(), of("charged - refunded", "wallets"))
	Equal(d.T, "revenue of the ledger", r.Total.Revenue(), r.Accounts[billing.Revenue])
}

func TestAReportIsOfItsTimeAlone(t *testing.T) {
	t.Parallel()
	d := open(t)
	agent := d.RegisterFunded(20)
	money := operator.NewMoney(d.store, d.Clock, d.Catalog)
	at := d.Clock.Now()
	d.Buy(agent, Static)
	for _, c := range []struct {
		name     string
		from, to time.Time
		empty    bool
	}{
		{"from the moment on", at, at.Add(time.Microsecond), false},
		{"until before the moment", at.Add(-session.Day), at, true},
		{"after it", at.Add(time.Microsecond), at.Add(session.Day), true},
	} {
		r, err := money.Margin(t.Context(), c.from, c.to, ports.ByAgent)
		OK(t, err)
		Equal(t, c.name, len(r.Lines) == 0, c.empty)
	}
	for _, c := range []struct {
		from, to time.Time
		by       ports.MarginKey
	}{{at, at, ports.ByDay}, {at, at.Add(-1), ports.ByDay}, {at.AddDate(-11, 0, 0), at, ports.ByDay}, {at, at.Add(1), "colour"}} {
		if _, err := money.Margin(t.Context(), c.from, c.to, c.by); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
}

func TestDaysShowWhatCameIn(t *testing.T) {
	t.Parallel()
	d := open(t)
	agent := d.RegisterFunded(20)
	d.Buy(agent, Static)
	days, live, err := operator.NewMoney(d.store, d.Clock, d.Catalog).Days(context.Background(), 7)
	OK(t, err)
	if len(days) != 7 || !days[0].Day.Equal(d.Clock.Now().Truncate(session.Day)) || days[0].Charged == 0 || days[1].Charged != 0 {
		t.Errorf("the days are %+v", days)
	}
	Equal(t, "live", live[session.Active], 1)
}

func TestAgentsAreFoundWithTheirMoney(t *testing.T) {
	t.Parallel()
	d := open(t)
	a, b := d.RegisterFunded(20), d.Register()
	d.Exec(`UPDATE agents SET name = 'Half 50%_off', contact_email = 'Sales@Shop.example' WHERE id = ?`, a)
	OK(t, d.Accounts.Disable(t.Context(), b, "x"))
	money := operator.NewMoney(d.store, d.Clock, d.Catalog)
	for _, c := range []struct {
		name string
		f    ports.AgentFilter
		want []string
	}{
		{"all", ports.AgentFilter{}, []string{b, a}},
		{"by a part of the name", ports.AgentFilter{Search: "50%_OFF"}, []string{a}},
		{"by a part of the address", ports.AgentFilter{Search: "sales@shop"}, []string{a}},
		{"by id", ports.AgentFilter{Search: b}, []string{b}},
		{"no pattern", ports.AgentFilter{Search: "%"}, []string{a}},
		{"by status", ports.AgentFilter{Status: "disabled"}, []string{b}},
		{"by referrer", ports.AgentFilter{Referrer: "openAgent", Status: "active"}, []string{a}},
		{"of another referrer", ports.AgentFilter{Referrer: "x"}, nil},
	} {
		list, err := money.Agents(t.Context(), c.f, domain.Page{Number: 1, Size: 10})
		OK(t, err)
		var got []string
		for _, x := range list.Items {
			got = append(got, x.ID)
			Equal(t, "the balance of "+x.ID, x.Wallet.Balance(), d.Balance(x.ID))
		}
		Equal(t, c.name, strings.Join(got, " "), strings.Join(c.want, " "))
		Equal(t, c.name+": in all", list.Total, len(c.want))
	}
}

// A report is the same once its days are over for good and kept, and is compared with the ledger then too.
func TestTheMarginOfKeptDaysIsTheSame(t *testing.T) {
	t.Parallel()
	d := open(t)
	d.Seller.SetQuote("", procurement.Quote{Cost: Dollars("0.30"), Stock: procurement.StockYes})
	start := d.Clock.Now().Truncate(session.Day)
	own, other := d.RegisterFunded(40), d.RegisterFunded(40)
	var ended string
	for day := range 3 {
		used := d.Buy(own, Local)
		d.UseBytes(used.ID, "l", int64(day+1)*billing.GB/8)
		_, err := d.Sessions.Terminate(t.Context(), own, used.ID)
		OK(t, err)
		d.Buy(other, Remote)
		d.Buy(own, Static)
		ended = d.Buy(other, RemoteStatic).ID
		d.Clock.Advance(session.Day)
	}
	_, err := d.sessions().End(t.Context(), ended)
	OK(t, err)
	from, to := start.Add(time.Hour), start.Add(10*session.Day)
	money := operator.NewMoney(d.store, d.Clock, d.Catalog)
	report := func(by ports.MarginKey) operator.MarginReport {
		t.Helper()
		r, err := money.Margin(t.Context(), from, to, by)
		OK(t, err)
		return r
	}
	before := map[ports.MarginKey]operator.MarginReport{}
	for _, by := range keys {
		before[by] = report(by)
	}
	d.Clock.Advance(5 * session.Day)
	OK(t, d.DB.SumUp(t.Context()))
	Equal(t, "days that are kept", d.Column("SELECT COUNT(DISTINCT day) FROM margin_sums")[0], "4")
	for _, by := range keys {
		r := report(by)
		if !slices.Equal(r.Lines, before[by].Lines) || r.Total != before[by].Total || len(r.Lines) == 0 {
			t.Errorf("by %s: %+v, before it was kept %+v", by, r.Lines, before[by].Lines)
		}
	}
	d.Exec("UPDATE margin_sums SET charged = charged + 1 WHERE by_key = 'provider'")
	if _, err := money.Margin(t.Context(), from, to, ports.ByProvider); !errors.Is(err, operator.ErrDisagrees) {
		t.Errorf("of kept days that are wrong: %v", err)
	}
	d.Exec("UPDATE margin_sums SET charged = charged - 1 WHERE by_key = 'provider'") // the proof finds them too
}
