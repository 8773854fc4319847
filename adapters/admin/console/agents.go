package console

import (
	"net/http"
	"strconv"
	"strings"

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

// agents lists accounts.
func (c *Console) agents(r *http.Request) (page, error) {
	p, at, q := page{Title: "Agents"}, pageOf(r), r.URL.Query()
	list, err := c.Money.Agents(r.Context(), ports.AgentFilter{Search: q.Get("search"), Referrer: q.Get("referrer"),
		Status: account.Status(q.Get("status"))}, at)
	t := &table{Columns: []string{"Agent", "Name", "Status", "Balance", "Held", "Charged", "Recharged", "Live",
		"Since"},
		Empty: "No agent matches."}
	for _, a := range list.Items {
		w := a.Wallet
		t.Rows = append(t.Rows, row{ID: "agent-" + a.ID, Cells: []cell{link(a.ID, "/agents/"), text(a.Name),
			tag(a.Status),
			usd(w.Balance()), usd(w.Held.Total()), usd(w.Charged - w.Refunded), usd(w.Recharged), number(w.LiveSessions),
			when(a.CreatedAt)}})
	}
	s := section{Table: t, Filter: []field{given(r, "search", "Id, name or address"), given(r, "referrer",
		"Referrer"),
		choice(r, "status", "Status", "active", "disabled")},
		Links: []button{{Text: "Open an account", Href: "/do/agent-add"}}}
	p.Sections = []section{s.paged(r, at, list.Total)}
	return p, err
}

// agent shows one account with its sessions and its ledger.
func (c *Console) agent(r *http.Request) (page, error) {
	ctx, id := r.Context(), r.PathValue("id")
	p := page{Title: "Agent " + id}
	info, err := c.Accounts.Info(ctx, id)
	if err != nil {
		return p, err
	}
	b, err := c.Wallet.Balance(ctx, id)
	if err != nil {
		return p, err
	}
	first := domain.Page{Number: 1, Size: 20}
	sessions, err := c.Sessions.List(ctx, ports.OverviewFilter{AgentID: id}, first)
	if err != nil {
		return p, err
	}
	entries, err := c.Wallet.Transactions(ctx, id, ports.LedgerFilter{}, first)
	if err != nil {
		return p, err
	}
	done, err := c.Trail.List(ctx, audit.Filter{Subject: id}, first)
	if err != nil {
		return p, err
	}
	p.Sections = []section{
		{Figures: []figure{{Name: "Balance", ID: "balance", Value: usd(b.Wallet.Balance())}, {Name: "Held",
			ID: "held", Value: usd(b.Held)},
			{Name: "Trial credit", ID: "trial", Value: usd(b.Wallet.Available.Trial)},
			{Name: "Spent", ID: "spent", Value: usd(b.Spent)}, {Name: "Live sessions",
				Value: number(b.Wallet.LiveSessions)}}},
		agentFacts(info.Agent, info.Tier, info.PerMinute),
		{Title: "Last sessions", Table: sessionTable(sessions.Items),
			Links: []button{{Text: "All its sessions", Href: "/sessions?agent=" + id}}},
		{Title: "Last entries of the ledger", ID: "ledger", Table: entryTable(entries.Items)},
		{Title: "What operators did", Table: actionTable(done.Items)},
	}
	return p, nil
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
	s.Links = []button{do("agent-disable", "Disable", a.ID, true)}
	if a.Status == account.Disabled {
		s.Links = []button{do("agent-enable", "Enable", a.ID, false)}
	}
	s.Links = append(s.Links, do("adjust", "Correct the balance", a.ID, false), do("agent-set-tier", "Set the tier",
		a.ID, false),
		do("agent-set-rate-limit", "Set the rate limit", a.ID, false), do("agent-rotate-key", "Replace the key",
			a.ID, true))
	return s
}
