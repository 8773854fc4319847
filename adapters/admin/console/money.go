package console

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"agentproxy/app/operator"
	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/recharge"
	"agentproxy/ports"
)

func dayTable(days operator.Days) *table {
	t := &table{Columns: []string{"Day", "Money in", "Charged", "Refunded", "Of trial credit", "Sellers' cost",
		"Margin"}}
	for _, d := range days {
		name := d.Day.Format(time.DateOnly)
		t.Rows = append(t.Rows, row{ID: "day-" + name, Cells: []cell{text(name), usd(d.Received), usd(d.Charged),
			usd(d.Refunded),
			usd(d.Trial), usd(d.Cost), usd(d.Margin.Margin())}})
	}
	return t
}

// money shows the margin of a time by a key.
func (c *Console) money(r *http.Request) (page, error) {
	p, q := page{Title: "Money"}, r.URL.Query()
	by := ports.MarginKey(q.Get("by"))
	if by == "" {
		by = ports.ByDay
	}
	var from, to time.Time
	for _, x := range []struct {
		name string
		at   *time.Time
	}{{"from", &from}, {"to", &to}} {
		if text := q.Get(x.name); text != "" {
			at, err := time.Parse(time.DateOnly, text)
			if err != nil {
				return p, domain.InvalidField(x.name, "must be a day such as 2026-11-01")
			}
			*x.at = at
		}
	}
	rep, err := c.Money.Margin(r.Context(), from, to, by)
	if err != nil {
		return p, err
	}
	t := &table{Columns: []string{strings.ToUpper(string(by[:1])) + string(by[1:]), "Charged", "Refunded",
		"Of trial credit",
		"Paid", "Sellers' cost", "Margin", "Orders", "Without a cost"}, Empty: "Nothing was booked in this time."}
	cells := func(key string, m billing.Margin) []cell {
		return []cell{text(key), usd(m.Charged), usd(m.Refunded), usd(m.Trial), usd(m.Paid()), usd(m.Cost),
			usd(m.Margin()),
			number(m.Orders), number(m.Unpriced)}
	}
	for _, l := range rep.Lines {
		t.Rows = append(t.Rows, row{ID: "margin-" + l.Key, Cells: cells(l.Key, l.Margin)})
	}
	keys := field{Name: "by", Label: "By"}
	for _, k := range []ports.MarginKey{ports.ByDay, ports.ByProvider, ports.ByProduct, ports.ByAgent} {
		keys.Options = append(keys.Options, option{Value: string(k), Text: string(k), Chosen: k == by})
	}
	day := func(name, label string) field {
		f := given(r, name, label)
		f.Type = "date"
		return f
	}
	m := rep.Total
	p.Sections = []section{{Figures: []figure{{Name: "Charged less refunded", ID: "revenue", Value: usd(m.Revenue()),
		Note: "as the ledger has it"}, {Name: "Paid of own money", ID: "paid", Value: usd(m.Paid())},
		{Name: "Sellers' cost", ID: "cost", Value: usd(m.Cost), Note: fmt.Sprint(m.Unpriced, " of ", m.Orders,
			" orders without a cost")},
		{Name: "Margin", ID: "margin", Value: usd(m.Margin())}}},
		{Title: "Margin",
			Note: "Charges and refunds by when they were booked, orders at sellers by when they were confirmed; UTC, " +
				"the last 30 days unless you choose. The total is compared with the ledger.",
			Filter: []field{keys, day("from", "From"), day("to", "Until before")}, Table: t}}
	return p, nil
}

// recharges lists orders of agents' payments.
func (c *Console) recharges(r *http.Request) (page, error) {
	p, at := page{Title: "Recharges"}, pageOf(r)
	list, err := c.Recharges.All(r.Context(), recharge.Status(r.URL.Query().Get("status")), at)
	if err != nil {
		return p, err
	}
	st, err := c.Payments.Status(r.Context())
	if err != nil {
		return p, err
	}
	t := &table{Columns: []string{"Order", "Agent", "Status", "Amount", "Received", "Network", "Address", "Created",
		"Paid"},
		Empty: "No recharge order."}
	for _, o := range list.Items {
		t.Rows = append(t.Rows, row{ID: "order-" + o.ID, Cells: []cell{text(o.ID), link(o.AgentID, "/agents/"),
			tag(o.Status),
			usd(o.Amount), usd(o.Received), text(o.Network), text(o.Address), when(o.CreatedAt), when(o.PaidAt)}})
	}
	s := section{Title: "Orders", Table: t, Filter: []field{choice(r, "status", "Status", "pending", "confirming",
		"paid", "expired",
		"failed")}}
	p.Sections = []section{{Title: "The chain", Facts: []figure{{Name: "Read", ID: "chain-read-at",
		Value: when(st.ReadAt)},
		{Name: "Final block", Value: number(st.Final)}, {Name: "Newest block", Value: number(st.Latest)},
		{Name: "Transfers not final yet", Value: number(st.Seen)},
		{Name: "Addresses that differ", ID: "drifting", Value: alarm(st.Drifting),
			Note: "as this replica found them"}},
		Links: []button{do("recharge-rescan", "Read the chain again", "", false)}}, s.paged(r, at, list.Total)}
	return p, nil
}
