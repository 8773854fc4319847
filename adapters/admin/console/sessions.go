package console

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"agentproxy/adapters/console/ui"
	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/eventlog"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/domain/worker"
	"agentproxy/ports"
)

// allSessions lists sessions of all agents.
func (c *Console) allSessions(r *http.Request) (page, error) {
	p, at, q := page{Title: "Sessions"}, pageOf(r), r.URL.Query()
	list, err := c.use.Sessions.List(r.Context(), ports.OverviewFilter{AgentID: q.Get("agent"),
		ProductNo: q.Get("product"),
		Provider:  q.Get("seller"), Status: session.Status(q.Get("status")), Type: session.Type(q.Get("type"))}, at)
	s := section{Table: sessionTable(list.Items), Filter: []field{given(r, "agent", "Agent"), given(r, "product",
		"Product"),
		given(r, "seller", "Seller"), choice(r, "status", "Status", "creating", "active", "terminated", "expired",
			"failed"),
		choice(r, "type", "Type", "dynamic", "static")}}
	p.Sections = []section{s.paged(r, at, list.Total)}
	return p, err
}

func sessionTable(list []ports.SessionRead) *table {
	t := &table{Columns: []string{"Session", "Agent", "Product", "Seller", "Status", "Used", "Charged", "Refunded",
		"Created"},
		Empty: "No session matches."}
	for _, s := range list {
		charged, _, _ := s.Cost()
		t.Rows = append(t.Rows, row{ID: "session-" + s.ID, Cells: []cell{link(s.ID, "/sessions/"), link(s.AgentID,
			"/agents/"),
			text(s.ProductNo), text(s.Provider), tag(s.Status), {Text: ui.Bytes(s.Usage.Used()), Num: true},
			usd(charged.Total()), usd(s.Money.Refunded.Total()), when(s.CreatedAt)}})
	}
	return t
}

// session shows one session with its orders.
func (c *Console) session(r *http.Request) (page, error) {
	id := r.PathValue("id")
	p := page{Title: "Session " + id}
	d, err := c.use.Sessions.Show(r.Context(), id)
	if err != nil {
		return p, err
	}
	exits := ""
	for _, e := range d.Exits {
		if e.IP.IsValid() {
			exits += e.IP.String() + " "
		}
	}
	m, bought := d.Money, ""
	if d.Bytes > 0 {
		bought = "of " + ui.Bytes(d.Bytes)
	}
	facts := section{Title: "Session", Facts: []figure{{Name: "Agent", Value: link(d.AgentID, "/agents/")},
		{Name: "Product", Value: text(d.ProductNo)}, {Name: "Seller", Value: text(d.Provider)},
		{Name: "Status", ID: "status", Value: tag(d.Status), Note: strings.ReplaceAll(string(d.Reason), "_", " ")},
		{Name: "Country",
			Value: text(d.Location.Country)},
		{Name: "Exits", Value: text(exits)}, {Name: "Used", Value: text(ui.Bytes(d.Usage.Used())),
			Note: bought},
		{Name: "Created", Value: when(d.CreatedAt)}, {Name: "Expires", Value: when(d.ExpiresAt)}, {Name: "Ended",
			Value: when(d.EndedAt)}}}
	if d.Failure.Code != "" {
		facts.Facts = append(facts.Facts, figure{Name: "Failure", Value: text(d.Failure.Message),
			Note: d.Failure.Code})
	}
	if !d.Status.Over() {
		facts.Links = append(facts.Links, doDanger("session-end", "End it", id))
	}
	if m.Charged.Total() > m.Refunded.Total() {
		facts.Links = append(facts.Links, do("refund", "Refund", id))
	}
	charged, held, unbooked := d.SessionRead.Cost()
	note := ui.USD(charged.Trial) + " of trial credit"
	if unbooked > 0 {
		note += "; " + notBooked(unbooked)
	}
	p.Sections = []section{{Figures: []figure{{Name: "Held", ID: "held", Value: usd(held.Total())},
		{Name: "Charged", ID: "charged", Value: usd(charged.Total()), Note: note},
		{Name: "Refunded", ID: "refunded", Value: usd(m.Refunded.Total())}, {Name: "Cost at sellers", ID: "cost",
			Value: usd(d.Cost)},
	}}, facts, {Title: "Orders at sellers", Table: orderTable("order-", d.Orders).without("Session")},
		{Title: "Last events", ID: "events", Table: eventTable(d.Events)}, {Title: "Where the traffic went", ID: "hosts",
			Note: "The last 7 days, the most traffic first.", Table: hostTable(d.Hosts)}}
	if len(d.Workers) > 0 {
		p.Sections = append(p.Sections, section{Title: "Workers", ID: "workers", Table: workerTable(d.Workers)})
	}
	return p, nil
}

func eventTable(list []eventlog.Event) *table {
	t := &table{Columns: []string{"When", "From", "What", "Code", "Times", "Target", "Exit", "Worker"}, Empty: "No event."}
	for _, e := range list {
		what := strings.ReplaceAll(e.Type, "_", " ")
		if e.StatusCode > 0 {
			what += " " + strconv.Itoa(e.StatusCode)
		}
		t.Rows = append(t.Rows, row{Cells: []cell{when(e.At), text(e.Source.String()), text(what), text(e.Code),
			number(max(e.Count, 1)), text(e.TargetHost), text(e.ExitIP), text(e.Worker)}})
	}
	return t
}

func hostTable(list []traffic.Host) *table {
	t := &table{Columns: []string{"Host", "Traffic", "Connections", "Failed"}, Empty: "No connection has ended."}
	for _, h := range list {
		t.Rows = append(t.Rows, row{Cells: []cell{text(cmp.Or(h.Name, "all others")), {Text: ui.Bytes(h.Bytes), Num: true},
			number(h.Connections), number(h.Failures)}})
	}
	return t
}

func workerTable(list []worker.Worker) *table {
	t := &table{Columns: []string{"Name", "State", "Exit", "Traffic", "Connections", "Last failure"}}
	for _, w := range list {
		exit := ""
		if w.Exit.IP.IsValid() {
			exit = w.Exit.IP.String()
		}
		t.Rows = append(t.Rows, row{Cells: []cell{text(w.Name), tag(w.Status()), text(exit),
			{Text: ui.Bytes(w.Usage.Bytes()), Num: true}, number(w.Usage.Connections), text(w.LastError.Code)}})
	}
	return t
}

// notBooked returns a note of what of an amount is not in the ledger yet.
func notBooked(x domain.Money) string {
	if x == 0 {
		return ""
	}
	return ui.USD(x) + " of it is booked at the end of the hour"
}

// orderTable lists orders. The ids of its rows begin with prefix, since a page may list an order twice.
func orderTable(prefix string, list []procurement.Order) *table {
	t := &table{Columns: []string{"Order", "Session", "Seller", "Status", "Cost", "Reason", "Sent", "Decide"},
		Empty: "No order."}
	for _, o := range list {
		reason := string(o.Class)
		if o.Reason != "" {
			reason += ": " + o.Reason
		}
		state := tag(o.Status)
		if !o.FrozenAt.IsZero() {
			state = cell{Text: string(o.Status) + ", frozen", Tag: "bad"}
		}
		decide := cell{Text: "–"}
		switch {
		case o.Status == procurement.Unknown:
			decide = cell{Links: []button{do("orders-adopt", "adopt", o.ID), doDanger("orders-release", "release",
				o.ID)}}
		case o.MayBeLost() == nil:
			decide = cell{Links: []button{doDanger("orders-lost", "give up", o.ID)}}
		}
		t.Rows = append(t.Rows, row{ID: prefix + o.ID, Cells: []cell{text(o.ID), link(o.SessionID, "/sessions/"),
			text(o.Provider),
			state, usd(o.Cost), text(reason), when(o.SentAt), decide}})
	}
	return t
}

// without removes a column.
func (t *table) without(column string) *table {
	i := slices.Index(t.Columns, column)
	t.Columns = slices.Delete(t.Columns, i, i+1)
	for j, r := range t.Rows {
		t.Rows[j].Cells = slices.Delete(r.Cells, i, i+1)
	}
	return t
}

func entryTable(list []billing.Entry) *table {
	t := &table{Columns: []string{"When", "Type", "Amount", "Balance after", "Session", "Text"}, Empty: "No entry."}
	for _, e := range list {
		t.Rows = append(t.Rows, row{ID: "entry-" + e.ID, Cells: []cell{when(e.At),
			text(strings.ReplaceAll(string(e.Type), "_", " ")), usd(e.Amount()), usd(e.BalanceAfter),
			link(e.SessionID, "/sessions/"), text(e.Description)}})
	}
	return t
}
