package console

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"agentproxy/adapters/console/ui"
	"agentproxy/app/operator"
	"agentproxy/domain"
	"agentproxy/domain/audit"
	"agentproxy/domain/billing"
	"agentproxy/domain/session"
)

// How many days the overview shows: of the money, and of what the service grew by.
const (
	overviewDays = 7
	growthDays   = 30
)

// overview shows what needs the operator, and the last days.
func (c *Console) overview(r *http.Request) (page, error) {
	p := page{Title: "Overview"}
	days, live, err := c.use.Money.Days(r.Context(), overviewDays)
	if err != nil {
		return p, err
	}
	grown, err := c.use.Money.Growth(r.Context(), growthDays)
	if err != nil {
		return p, err
	}
	open, frozen, err := c.use.Orders.Tally(r.Context())
	if err != nil {
		return p, err
	}
	parked, err := c.use.Jobs.List(r.Context(), Parked, "", 100)
	if err != nil {
		return p, err
	}
	proof, err := c.use.Proof.Proof(r.Context())
	if err != nil {
		return p, err
	}
	chain, err := c.use.Payments.Status(r.Context())
	if err != nil {
		return p, err
	}
	today := days[0]
	p.Sections = []section{{Figures: []figure{
		{Name: "Live sessions", ID: "active-sessions", Value: number(live[session.Active]),
			Note: fmt.Sprint(live[session.Creating], " being created")},
		{Name: "Money in today", ID: "received-today", Value: usd(today.Received), Note: "UTC day"},
		{Name: "Margin today", ID: "margin-today", Value: usd(today.Margin.Margin()),
			Note: marginNote(today.Margin)},
		{Name: "Frozen orders", ID: "frozen-orders", Value: alarm(frozen).to("/sellers"),
			Note: fmt.Sprint(open, " open in all")},
		{Name: "Parked jobs", ID: "parked-jobs", Value: alarm(len(parked)).to("/jobs")},
		{Name: "Ledger faults", ID: "ledger-faults", Value: alarm(proof.Faults).to("/do/verify"), Note: proof.Rule},
	}}, {Title: "Money by UTC day", Table: dayTable(days), Links: []button{{Text: "More of money", Href: "/money"}}},
		growth(grown),
		{Title: "State", Facts: []figure{
			{Name: "Ledger proved", ID: "proved-at", Value: when(proof.SucceededAt), Note: fmt.Sprint(
				proof.Entries, " entries")},
			{Name: "New entries proved", ID: "new-proved-at", Value: when(proof.NewAt)},
			{Name: "Chain read", ID: "chain-read-at", Value: when(chain.ReadAt), Note: fmt.Sprint("to block ",
				chain.Final)},
			{Name: "Addresses that differ from the chain", ID: "drifting", Value: alarm(chain.Drifting)},
			{Name: "Transfers not final yet", ID: "transfers-seen", Value: number(chain.Seen)},
			{Name: "Version", ID: "version", Value: text(c.use.Host.Version)},
		}, Links: []button{{Text: "Prove the ledger", Href: "/do/verify"}, {Text: "Copy the database",
			Href: "/do/backup"}, {Text: "Seal again", Href: "/do/secret-rotate"}}}}
	list, err := c.use.Trail.List(r.Context(), audit.Filter{}, domain.Page{Number: 1, Size: 10})
	if err != nil {
		return p, err
	}
	p.Sections = append(p.Sections, section{Title: "Last actions of operators", Table: actionTable(list.Items),
		Links: []button{{Text: "All actions", Href: "/audit"}}})
	return p, nil
}

// growth shows registrations and recharges by day: drawn, and for who has no scripts the days that had any.
func growth(days []operator.Growth) section {
	registered := ui.Chart{Title: "Accounts registered by UTC day", Unit: "count", Names: []string{"Accounts"}}
	received := ui.Chart{Title: "Money in by UTC day", Unit: "usd", Names: []string{"Recharges"}}
	var accounts, money []float64
	for _, d := range days {
		registered.Times = append(registered.Times, d.Day.Unix())
		accounts = append(accounts, float64(d.Registered))
		money = append(money, float64(d.Received)/float64(domain.Dollar))
	}
	t := &table{Columns: []string{"Day", "Accounts", "Money in"}, Empty: "No account and no recharge in this time."}
	for _, d := range slices.Backward(days) {
		if d.Registered > 0 || d.Received > 0 {
			name := d.Day.Format(time.DateOnly)
			t.Rows = append(t.Rows, row{ID: "growth-" + name, Cells: []cell{text(name), number(d.Registered),
				usd(d.Received)}})
		}
	}
	received.Times = registered.Times
	registered.Values, received.Values = [][]float64{accounts}, [][]float64{money}
	return section{Title: fmt.Sprintf("Growth in %d days", len(days)), ID: "growth",
		Charts: []ui.Chart{registered, received}, Table: t,
		Note: "Accounts that registered themselves, and recharges as they were credited."}
}

// alarm returns a number that should be 0.
func alarm(n int) cell {
	c := cell{Text: fmt.Sprint(n), Tag: "good"}
	if n > 0 {
		c.Tag = "bad"
	}
	return c
}

// to makes a value a link.
func (c cell) to(href string) cell {
	c.Href = href
	return c
}

// audit shows what operators did.
func (c *Console) audit(r *http.Request) (page, error) {
	p, at := page{Title: "What operators did"}, pageOf(r)
	q := r.URL.Query()
	from, to, err := days(r)
	if err != nil {
		return p, err
	}
	list, err := c.use.Trail.List(r.Context(), audit.Filter{By: q.Get("by"), Name: q.Get("action"),
		Subject: q.Get("about"), From: from, To: to}, at)
	s := section{Filter: []field{given(r, "by", "By"), given(r, "action", "Action"), given(r, "about", "About"),
		dayField(r, "from", "From"), dayField(r, "to", "Until before")}, Table: actionTable(list.Items)}
	p.Sections = []section{s.paged(r, at, list.Total)}
	return p, err
}

func actionTable(list []audit.Action) *table {
	t := &table{Columns: []string{"When", "By", "Action", "About", "Why", "Details"}, Empty: "Nothing was done yet."}
	for _, a := range list {
		t.Rows = append(t.Rows, row{ID: "action-" + a.ID, Cells: []cell{when(a.At), text(a.By), text(a.Name),
			subject(a.Subject),
			text(a.Reason), text(a.Details)}})
	}
	return t
}

// marginNote returns what a margin is made of.
func marginNote(m billing.Margin) string {
	note := "paid less given and sellers' cost"
	if m.Estimated > 0 {
		note += ", in part estimated"
	}
	if m.Unpriced+m.UnpricedSessions > 0 {
		note += "; some costs are unknown"
	}
	return note
}
