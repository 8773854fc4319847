package console

import (
	"cmp"
	"encoding/csv"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentproxy/app/accounts"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/audit"
	"agentproxy/ports"
)

// withoutQuery cuts the query of an agent's URL, which often holds a secret.
func withoutQuery(address string) string {
	before, _, cut := strings.Cut(address, "?")
	if cut {
		before += "?…"
	}
	return before
}

// agentFilter reads what a list of agents is narrowed to.
func agentFilter(q url.Values) (f ports.AgentFilter, err error) {
	f = ports.AgentFilter{Search: q.Get("search"), Referrer: q.Get("referrer"), Status: account.Status(q.Get("status")),
		Order: ports.AgentOrder(q.Get("sort"))}
	if f.Order != "" && !slices.Contains(ports.AgentOrders, f.Order) {
		return f, domain.InvalidField("sort", "must be balance, charged, recharged or live")
	}
	if text := q.Get("registered_from"); text != "" {
		f.RegisteredFrom, err = account.ParseNetwork(text)
	}
	return f, err
}

// agents lists accounts.
func (c *Console) agents(r *http.Request) (page, error) {
	p, at := page{Title: "Agents"}, pageOf(r)
	f, err := agentFilter(r.URL.Query())
	if err != nil {
		return p, err
	}
	list, err := c.use.Money.Agents(r.Context(), f, at)
	t := &table{Columns: []string{"Agent", "Name", "Status", "Tier", "Balance", "Charged", "Recharged", "Live",
		"Since", "Last seen"},
		Empty: "No agent matches."}
	for _, a := range list.Items {
		w := a.Wallet
		t.Rows = append(t.Rows, row{ID: "agent-" + a.ID, Cells: []cell{link(a.ID, "/agents/"), text(a.Name),
			tag(a.Status), text(string(c.use.Accounts.TierOf(a.Agent, w))),
			usd(w.Balance()), usd(w.Charged - w.Refunded + a.Unbooked), usd(w.Recharged), number(w.LiveSessions),
			when(a.CreatedAt), when(a.Seen)}})
	}
	s := section{Table: t, Filter: []field{given(r, "search", "Id, name or address"), given(r, "referrer",
		"Referrer"),
		choice(r, "status", "Status", "active", "disabled"), given(r, "registered_from", "Registered from network"),
		sorted(r)},
		Links: []button{{Text: "Open an account", Href: "/do/agent-add"}, {Text: "Referring agents",
			Href: "/agents/referrers"}, {Text: "Download as CSV", Href: "/agents.csv?" + r.URL.Query().Encode()},
			{Text: "Disable a network", Href: "/do/agent-disable-network", Danger: true}}}
	p.Sections = []section{s.paged(r, at, list.Total)}
	return p, err
}

// sorted returns the field of the order of agents.
func sorted(r *http.Request) field {
	f := field{Name: "sort", Label: "Sort", Options: []option{{Value: "", Text: "newest"}}}
	for _, o := range ports.AgentOrders {
		f.Options = append(f.Options, option{Value: string(o), Text: "most " + string(o),
			Chosen: r.URL.Query().Get("sort") == string(o)})
	}
	return f
}

// agentFile answers all accounts that match, for a spreadsheet that sorts them.
func (c *Console) agentFile(w http.ResponseWriter, r *http.Request) {
	allowSlow(w)
	at := domain.Page{Number: 1, Size: domain.MaxPageSize}
	f, err := agentFilter(r.URL.Query())
	var list domain.List[ports.AgentMoney]
	if err == nil {
		list, err = c.use.Money.Agents(r.Context(), f, at)
	}
	if err != nil {
		problem, status := c.problemOf(err)
		c.render(w, r, status, page{Title: "Agents", problem: problem})
		return
	}
	out := csvFile(w, "agents.csv")
	_ = out.Write([]string{"agent_id", "name", "contact_email", "status", "tier", "balance", "held", "charged",
		"recharged", "live_sessions", "referrer", "created_at", "last_seen_at"})
	for len(list.Items) > 0 {
		for _, a := range list.Items {
			m, seen := a.Wallet, ""
			if !a.Seen.IsZero() {
				seen = a.Seen.UTC().Format(time.RFC3339)
			}
			_ = out.Write([]string{a.ID, harmless(a.Name), harmless(a.ContactEmail), string(a.Status),
				string(c.use.Accounts.TierOf(a.Agent, m)), m.Balance().String(), m.Held.Total().String(),
				(m.Charged - m.Refunded).String(), m.Recharged.String(), strconv.Itoa(int(m.LiveSessions)),
				harmless(a.Referrer.Name), a.CreatedAt.UTC().Format(time.RFC3339), seen})
		}
		if at.Number++; (at.Number-1)*at.Size >= list.Total || out.Error() != nil {
			break
		}
		if list, err = c.use.Money.Agents(r.Context(), f, at); err != nil {
			panic(http.ErrAbortHandler) // a file that is cut must not look whole
		}
	}
	out.Flush()
}

// csvFile begins the answer of a table that a browser stores under a name.
func csvFile(w http.ResponseWriter, name string) *csv.Writer {
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
	return csv.NewWriter(w)
}

// harmless keeps a spreadsheet from taking a text of a stranger for a formula.
func harmless(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return "'" + s
	}
	return s
}

// agent shows one account with its sessions and its ledger.
func (c *Console) agent(r *http.Request) (page, error) {
	ctx, id := r.Context(), r.PathValue("id")
	p := page{Title: "Agent " + id}
	info, err := c.use.Accounts.Info(ctx, id)
	if err != nil {
		return p, err
	}
	b, err := c.use.Wallet.Balance(ctx, id)
	if err != nil {
		return p, err
	}
	first := domain.Page{Number: 1, Size: 20}
	sessions, err := c.use.Sessions.List(ctx, ports.OverviewFilter{AgentID: id}, first)
	if err != nil {
		return p, err
	}
	entries, err := c.use.Wallet.Transactions(ctx, id, ports.LedgerFilter{}, first)
	if err != nil {
		return p, err
	}
	done, err := c.use.Trail.List(ctx, audit.Filter{Subject: id}, first)
	if err != nil {
		return p, err
	}
	keys, err := c.use.Accounts.Keys.Views(ctx, id)
	if err != nil {
		return p, err
	}
	p.Sections = []section{
		{Figures: []figure{{Name: "Balance", ID: "balance", Value: usd(b.Wallet.Balance())}, {Name: "Held",
			ID: "held", Value: usd(b.Held)},
			{Name: "Trial credit", ID: "trial", Value: usd(b.Wallet.Available.Trial)},
			{Name: "Spent", ID: "spent", Value: usd(b.Spent), Note: notBooked(b.Unbooked)}, {Name: "Live sessions",
				Value: number(b.Wallet.LiveSessions)}}},
		agentFacts(info.Agent, info.Tier, info.PerMinute),
		{Title: "Keys", ID: "keys", Table: keyTable(keys)},
		{Title: "Last sessions", Table: sessionTable(sessions.Items).without("Agent"),
			Links: []button{{Text: "All its sessions", Href: "/sessions?agent=" + id}}},
		{Title: "Last entries of the ledger", ID: "ledger", Table: entryTable(entries.Items)},
		{Title: "Notes and what operators did", ID: "notes", Table: actionTable(done.Items)},
	}
	return p, nil
}

// keyTable lists keys with what they may spend and have spent, without the keys themselves.
func keyTable(keys []accounts.KeyView) *table {
	t := &table{Columns: []string{"Key", "State", "Spent", "Held", "Left", "Ever", "A day", "A purchase", "Live",
		"Sees", "Last used", "Ends"}}
	limit := func(m *domain.Money) cell {
		if m == nil {
			return cell{Text: "–", Num: true}
		}
		return usd(*m)
	}
	for _, k := range keys {
		name, l, left := k.Name, k.Limits, cell{Text: "–", Num: true}
		if k.Hint != "" {
			name += " …" + k.Hint
		}
		if k.Limited {
			left = usd(k.Left)
		}
		live, sees := number(k.Live), string(l.Reach())
		if l.MaxSessions > 0 {
			live.Text += " of " + strconv.Itoa(l.MaxSessions)
		}
		if len(l.Products) > 0 {
			sees += "; buys " + strings.Join(l.Products, ", ")
		}
		t.Rows = append(t.Rows, row{ID: k.ID, Cells: []cell{text(name), tag(k.State()), usd(k.Spent), usd(k.Held), left,
			limit(l.Budget.Total), limit(l.Budget.Daily), limit(l.Budget.PerPurchase), live, text(sees), when(k.Used),
			when(k.Expires)}})
	}
	return t
}

func agentFacts(a account.Agent, tier account.Tier, perMinute int) section {
	limit := strconv.Itoa(perMinute) + " a minute"
	if perMinute == 0 {
		limit = "unlimited"
	}
	s := section{Title: "Account", Facts: []figure{{Name: "Name", ID: "name", Value: text(a.Name)},
		{Name: "Status", ID: "status", Value: tag(a.Status), Note: a.DisabledFor}, {Name: "Tier",
			Value: text(string(tier)), Note: a.VerifiedFor},
		{Name: "Address", Value: text(a.ContactEmail)}, {Name: "Webhook", Value: text(withoutQuery(a.WebhookURL))},
		{Name: "Referred by", Value: text(a.Referrer.Name)}, {Name: "Rate limit", Value: text(limit)},
		{Name: "Registered", Value: when(a.CreatedAt), Note: a.Origin.UserAgent}}}
	if a.Origin.Addr.IsValid() {
		s.Facts = append(s.Facts, figure{Name: "Registered from", Value: text(a.Origin.Addr.String())})
	}
	s.Links = []button{doDanger("agent-disable", "Disable", a.ID)}
	if a.Status == account.Disabled {
		s.Links = []button{do("agent-enable", "Enable", a.ID)}
	}
	s.Links = append(s.Links, do("agent-note", "Add a note", a.ID),
		do("adjust", "Correct the balance", a.ID), do("agent-set-tier", "Set the tier",
			a.ID),
		do("agent-set-rate-limit", "Set the rate limit", a.ID), doDanger("agent-rotate-key", "Replace the key",
			a.ID))
	return s
}

// referrers lists referring agents.
func (c *Console) referrers(r *http.Request) (page, error) {
	p := page{Title: "Referring agents"}
	list, err := c.use.Referrers.List(r.Context())
	t := &table{Columns: []string{"Name", "Code", "Id", "State", "Agents", "Decide"}}
	for _, x := range list {
		state, decide := cell{Text: "taken", Tag: "good"},
			cell{Links: []button{doDanger("referrer-disable", "refuse", x.Code)}}
		switch {
		case x.Disabled:
			state, decide = cell{Text: "refused", Tag: "bad"}, cell{Text: "–"}
		case x.Default:
			state, decide = cell{Text: "default"}, cell{Text: "–"}
		}
		t.Rows = append(t.Rows, row{ID: "referrer-" + x.ID, Cells: []cell{text(x.Name), text(x.Code), text(x.ID), state,
			{Text: "show", Href: "/agents?referrer=" + url.QueryEscape(cmp.Or(x.Code, x.Name))}, decide}})
	}
	p.Sections = []section{{Note: "An agent that registers with a code is counted for its referring agent.", Table: t,
		Links: []button{{Text: "Add a referring agent", Href: "/do/referrer-add"}}}}
	return p, err
}
