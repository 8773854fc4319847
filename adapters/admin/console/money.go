package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"agentproxy/adapters/console/ui"
	"agentproxy/app/operator"
	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/recharge"
	"agentproxy/ports"
)

func dayTable(days operator.Days) *table {
	t := &table{Columns: []string{"Day", "Money in", "Charged", "Refunded", "Trial", "Given", "Cost", "Estimated",
		"Margin"}}
	for _, d := range days {
		name := d.Day.Format(time.DateOnly)
		t.Rows = append(t.Rows, row{ID: "day-" + name, Cells: []cell{text(name), usd(d.Received), usd(d.Charged),
			usd(d.Refunded), usd(d.Trial), usd(d.Given), usd(d.Cost), usd(d.Estimated), usd(d.Margin.Margin())}})
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
	from, to, err := days(r)
	if err != nil {
		return p, err
	}
	rep, err := c.use.Money.Margin(r.Context(), from, to, by)
	if err != nil {
		return p, err
	}
	t := &table{Columns: []string{strings.ToUpper(string(by[:1])) + string(by[1:]), "Charged", "Refunded",
		"Trial", "Paid", "Given", "Cost", "Estimated", "Margin", "Orders", "Unknown", "Replaced",
		"Returned"},
		Empty: "Nothing was booked in this time."}
	cells := func(key string, m billing.Margin) []cell {
		return []cell{keyed(by, key), usd(m.Charged), usd(m.Refunded), usd(m.Trial), usd(m.Paid()), usd(m.Given),
			usd(m.Cost), usd(m.Estimated), usd(m.Margin()), number(m.Orders), number(m.Unpriced + m.UnpricedSessions),
			number(m.Replaced), number(m.Returned)}
	}
	for _, l := range rep.Lines {
		t.Rows = append(t.Rows, row{ID: "margin-" + l.Key, Cells: cells(l.Key, l.Margin)})
	}
	keys := field{Name: "by", Label: "By"}
	for _, k := range []ports.MarginKey{ports.ByDay, ports.ByProvider, ports.ByProduct, ports.ByAgent} {
		keys.Options = append(keys.Options, option{Value: string(k), Text: string(k), Chosen: k == by})
	}
	m, later := rep.Total, ""
	if rep.Unbooked > 0 {
		later = "; " + ui.USD(rep.Unbooked) + " more is booked at the end of the hour"
	}
	p.Sections = []section{{Figures: []figure{{Name: "Charged less refunded", ID: "revenue", Value: usd(m.Revenue()),
		Note: "as the ledger has it" + later}, {Name: "Paid of own money", ID: "paid", Value: usd(m.Paid())},
		{Name: "Given by corrections", ID: "given", Value: usd(m.Given), Note: "not paid by agents"},
		{Name: "Sellers' cost", ID: "cost", Value: usd(m.Cost), Note: "as sellers named it"},
		{Name: "Estimated cost", ID: "estimated", Value: usd(m.Estimated), Note: unpriced(m)},
		{Name: "Margin", ID: "margin", Value: usd(m.Margin())}}},
		{Title: "Margin",
			Note: "Charges and refunds by when they were booked, orders at sellers by when they were confirmed; UTC, " +
				"the last 30 days unless you choose. The total is compared with the ledger. Trial: what trial credit paid; " +
				"Cost: as sellers named it; Unknown: orders and sessions with neither cost nor estimate; " +
				"Replaced and Returned: addresses that were given back, for another one or for their unused days.",
			Filter: []field{keys, dayField(r, "from", "From"), dayField(r, "to", "Until before")}, Table: t}}
	return p, nil
}

// unpriced returns where an estimate comes from, and what is not in it.
func unpriced(m billing.Margin) string {
	note := "by the configured costs, where no seller named one"
	if n := m.Unpriced + m.UnpricedSessions; n > 0 {
		note += fmt.Sprintf("; %d orders and sessions have neither: the margin is too high by what they cost", n)
	}
	return note
}

// keyed returns the key of a line, as a link if it has a page.
func keyed(by ports.MarginKey, key string) cell {
	switch {
	case key == "": // what corrections gave, for one
		return text("(no " + string(by) + ")")
	case by == ports.ByAgent:
		return link(key, "/agents/")
	case by == ports.ByProvider:
		return link(key, "/sellers/")
	}
	return text(key)
}

// recharges lists orders of agents' payments.
func (c *Console) recharges(r *http.Request) (page, error) {
	p, at := page{Title: "Recharges"}, pageOf(r)
	list, err := c.use.Recharges.All(r.Context(), recharge.Status(r.URL.Query().Get("status")), at)
	if err != nil {
		return p, err
	}
	st, err := c.use.Payments.Status(r.Context())
	if err != nil {
		return p, err
	}
	t := &table{Columns: []string{"Order", "Agent", "Status", "Amount", "Received", "Address", "Created", "Paid"},
		Empty: "No recharge order."}
	for _, o := range list.Items {
		t.Rows = append(t.Rows, row{ID: "order-" + o.ID, Cells: []cell{link(o.ID, "/recharges/"), link(o.AgentID, "/agents/"),
			tag(o.Status),
			usd(o.Amount), usd(o.Received), text(o.Address), when(o.CreatedAt), when(o.PaidAt)}})
	}
	s := section{Title: "Orders", Table: t, Filter: []field{choice(r, "status", "Status", "pending", "confirming",
		"paid", "expired",
		"failed")}}
	p.Sections = []section{{Title: "The chain", Facts: []figure{{Name: "Read", ID: "chain-read-at",
		Value: when(st.ReadAt)},
		{Name: "Final block", Value: number(st.Final)}, {Name: "Newest block", Value: number(st.Latest)},
		{Name: "Transfers not final yet", Value: number(st.Seen)},
		{Name: "Addresses that differ", ID: "drifting", Value: alarm(st.Drifting),
			Note: "as this replica found them"},
		{Name: "Set aside", ID: "set-aside", Value: alarm(st.Aside), Note: "could not be booked; agentproxy recharge aside"},
		{Name: "Moved between addresses", ID: "own-moves", Value: alarm(st.OwnMoves), Note: "none is credited"}},
		Links: []button{{Text: "Addresses and balances", Href: "/recharges/addresses"},
			{Text: "Compare with the chain", Href: "/do/recharge-audit"},
			{Text: "Read the chain again", Href: "/do/recharge-rescan"}}}, s.paged(r, at, list.Total)}
	return p, nil
}

// recharge shows one order with the transfers that paid it.
func (c *Console) recharge(r *http.Request) (page, error) {
	p := page{Title: "Recharge " + r.PathValue("id")}
	d, err := c.use.Recharges.Show(r.Context(), r.PathValue("id"))
	if err != nil {
		return p, err
	}
	o := d.Order
	facts := section{Facts: []figure{{Name: "Agent", Value: link(o.AgentID, "/agents/")},
		{Name: "Status", ID: "status", Value: tag(o.Status)}, {Name: "Amount", Value: plain(usd(o.Amount))},
		{Name: "Received", ID: "received", Value: plain(usd(o.Received))},
		{Name: "Confirmations", Value: text(fmt.Sprintf("%d of %d", d.Confirmations, d.Required))},
		{Name: "Network", Value: text(o.Network)}, {Name: "Address", ID: "address", Value: text(o.Address),
			Note: fmt.Sprintf("number %d of the key %s", d.Wallet.Index, d.Wallet.Fingerprint)},
		{Name: "Created", Value: when(o.CreatedAt)}, {Name: "Window ends", Value: when(o.ExpiresAt)},
		{Name: "Paid", Value: when(o.PaidAt)}}}
	if c.use.Host.Send != nil {
		facts.Links = []button{{Text: "Send a development transfer",
			Href: "/do/devchain-send?to=" + url.QueryEscape(o.Address) + "&amount=" + o.Amount.String()}}
	}
	t := &table{Columns: []string{"Transaction", "Log", "Amount", "From", "Block", "At", "State"},
		Empty: "No transfer was seen."}
	for _, x := range d.Transfers {
		t.Rows = append(t.Rows, row{Cells: []cell{text(x.TxID), number(x.LogIndex), usd(x.Amount), text(x.From),
			number(x.Block), when(x.BlockTime), tag(x.State)}})
	}
	p.Sections = []section{facts, {Title: "Transfers", ID: "transfers", Table: t}}
	return p, nil
}

// addresses lists every payment address with its balance on the chain.
func (c *Console) addresses(r *http.Request) (page, error) {
	p := page{Title: "Payment addresses"}
	list, err := c.use.Payments.Holdings(r.Context())
	if err != nil {
		return p, err
	}
	t := &table{Columns: []string{"Index", "Address", "Balance", "Agent", "Key", "Since"},
		Empty: "No agent has an address yet."}
	var sum domain.Money
	for _, h := range list {
		sum += h.Balance
		t.Rows = append(t.Rows, row{Cells: []cell{number(int64(h.Index)), text(h.Address.Address), usd(h.Balance),
			link(h.AgentID, "/agents/"), text(h.Fingerprint), when(h.CreatedAt)}})
	}
	p.Sections = []section{{Figures: []figure{{Name: "On all addresses", ID: "held-on-chain", Value: usd(sum)},
		{Name: "Addresses", ID: "addresses-count", Value: number(len(list))}}},
		{ID: "addresses", Note: "Balances are those of the chain at this moment.", Table: t,
			Links: []button{{Text: "Download as CSV", Href: "/recharges/addresses.csv"}}}}
	return p, c.addMoves(r.Context(), &p)
}

// addMoves adds what moved between two addresses, if anything did.
func (c *Console) addMoves(ctx context.Context, p *page) error {
	moves, err := c.use.Payments.OwnMoves(ctx)
	if err != nil || len(moves) == 0 {
		return err
	}
	t := &table{Columns: []string{"Transaction", "Log", "Amount", "From", "To", "At"}}
	for _, m := range moves {
		t.Rows = append(t.Rows, row{Cells: []cell{text(m.TxID), number(m.LogIndex), usd(m.Amount), text(m.From), text(m.To),
			when(m.BlockTime)}})
	}
	p.Sections = append(p.Sections, section{Title: "Moved between addresses", ID: "moves", Table: t,
		Note: "You moved these: they are no payments, and none is credited. Collect to an address outside the account."})
	return nil
}

// addressFile returns the list of addresses as a file.
func (c *Console) addressFile(w http.ResponseWriter, r *http.Request) {
	allowSlow(w)
	list, err := c.use.Payments.Holdings(r.Context())
	if err != nil {
		problem, status := c.problemOf(err)
		c.render(w, r, status, page{Title: "Payment addresses", problem: problem})
		return
	}
	out := csvFile(w, "addresses.csv")
	_ = out.Write([]string{"index", "address", "balance", "agent_id", "key_fingerprint", "created_at"})
	for _, h := range list {
		_ = out.Write([]string{fmt.Sprint(h.Index), h.Address.Address, h.Balance.String(), h.AgentID, h.Fingerprint,
			h.CreatedAt.UTC().Format(time.RFC3339)})
	}
	out.Flush() // what fails is the connection's end
}
