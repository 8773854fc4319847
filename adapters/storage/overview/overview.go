// Package overview reads across all agents, for operators.
package overview

import (
	"context"
	"time"

	"agentproxy/adapters/storage/accounts"
	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/ledger"
	"agentproxy/adapters/storage/margins"
	"agentproxy/adapters/storage/sessions"
	"agentproxy/adapters/storage/work"
	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// overview reads across all agents.
type overview struct{ *work.Unit }

// Overview returns what a unit reads across all agents.
func Overview(u *work.Unit) ports.Overview { return overview{u} }

func (r overview) Sessions(
	ctx context.Context, f ports.OverviewFilter, page domain.Page,
) (domain.List[ports.SessionRead], error) {
	list := domain.List[ports.SessionRead]{Page: page}
	var c work.Conditions
	c.Text("agent_id = ?", f.AgentID)
	c.Text("type = ?", string(f.Type))
	c.Text("product_no = ?", f.ProductNo)
	c.Text("provider = ?", f.Provider)
	if f.Status != "" {
		c.Words(sessions.StatusIs("", f.Status))
	}
	err := r.Row("SELECT COUNT(*) FROM sessions"+c.Where(), c.Args...).Scan(&list.Total)
	if err == nil && list.Total > page.Offset() {
		numbers := "SELECT seq FROM sessions" + c.Where() + " ORDER BY seq DESC" + c.Page(page)
		err = r.Rows(ctx, sessions.ReadFrom+"WHERE s.seq IN ("+numbers+") ORDER BY s.seq DESC", c.Args,
			func(row engine.Row) error {
				read, err := sessions.ScanRead(row)
				list.Items = append(list.Items, read)
				return err
			})
	}
	return list, work.Wrap("list sessions of all agents", err)
}

func (r overview) Agents(
	ctx context.Context, f ports.AgentFilter, page domain.Page,
) (domain.List[ports.AgentMoney], error) {
	found, err := accounts.Agents(r.Unit).List(ctx, f, page)
	list := domain.List[ports.AgentMoney]{Page: page, Total: found.Total}
	if err != nil || len(found.Items) == 0 {
		return list, err
	}
	ids := make([]string, len(found.Items))
	for i, a := range found.Items {
		ids[i] = a.ID
	}
	wallets := map[string]billing.Wallet{}
	in, args := work.InTexts(ids)
	err = r.Rows(ctx, ledger.SelectWallets+"IN "+in, args, func(row engine.Row) error {
		w, err := ledger.ScanWallet(row)
		wallets[w.AgentID] = w.Wallet
		return err
	})
	seen := map[string]int64{}
	if err == nil {
		query := "SELECT agent_id, MAX(used_at) FROM api_keys WHERE agent_id IN " + in + " GROUP BY agent_id"
		err = r.Rows(ctx, query, args, func(row engine.Row) error {
			var id string
			var at int64
			err := row.Scan(&id, &at)
			seen[id] = at
			return err
		})
	}
	if err != nil {
		return list, work.Wrap("list agents with their money", err)
	}
	due, err := r.Unbooked(ctx, ids...)
	for _, a := range found.Items {
		m := ports.AgentMoney{Agent: a, Wallet: wallets[a.ID], Unbooked: due[a.ID], Seen: a.KeyUsedAt}
		if at := column.Time(seen[a.ID]); at.After(m.Seen) {
			m.Seen = at
		}
		list.Items = append(list.Items, m)
	}
	return list, err
}

func (r overview) Unbooked(ctx context.Context, agentIDs ...string) (map[string]domain.Money, error) {
	query := "SELECT s.agent_id, " + sessions.DueColumns + " FROM sessions s WHERE " + sessions.Unbooked
	var args []any
	if len(agentIDs) > 0 {
		var in string
		in, args = work.InTexts(agentIDs)
		query += " AND s.agent_id IN " + in
	}
	sums := map[string]domain.Money{}
	err := r.Rows(ctx, query, args, func(row engine.Row) error {
		var agent string
		var d sessions.DueRow
		if err := row.Scan(append([]any{&agent}, d.Targets()...)...); err != nil {
			return err
		}
		due, err := d.Due()
		sums[agent] += due
		return err
	})
	return sums, work.Wrap("sum what is not charged yet", err)
}

func (r overview) Margins(
	ctx context.Context, from, to time.Time, by ports.MarginKey,
) (map[string]billing.Margin, error) {
	return margins.Reports{Unit: r.Unit}.Margins(ctx, from, to, by)
}

func (r overview) Deliveries(
	ctx context.Context, from, to time.Time, by ports.MarginKey,
) ([]ports.Delivery, error) {
	return margins.Reports{Unit: r.Unit}.Deliveries(ctx, from, to, by)
}

func (r overview) Accounts(ctx context.Context, from, to time.Time) (map[billing.Account]domain.Money, error) {
	return margins.Reports{Unit: r.Unit}.Accounts(ctx, from, to)
}

func (r overview) Received(ctx context.Context, from, to time.Time) (map[time.Time]domain.Money, error) {
	return margins.Reports{Unit: r.Unit}.Received(ctx, from, to)
}

func (r overview) Registered(ctx context.Context, from, to time.Time) (map[time.Time]int, error) {
	days := map[time.Time]int{}
	// The first condition is that of the index by time.
	err := r.Rows(ctx, `SELECT created_at / 86400000000, COUNT(*) FROM agents
		WHERE length(registered_from) > 0 AND created_at >= ?1 AND created_at < ?2 GROUP BY 1`,
		[]any{column.Micros(from), column.Micros(to)}, func(row engine.Row) error {
			var day int64
			var n int
			err := row.Scan(&day, &n)
			days[time.Unix(day*24*60*60, 0).UTC()] = n
			return err
		})
	return days, work.Wrap("count registrations", err)
}

func (r overview) Live(ctx context.Context) (map[session.Status]int, error) {
	counts := map[session.Status]int{}
	err := r.Rows(ctx, "SELECT status, COUNT(*) FROM sessions WHERE "+sessions.Live+" GROUP BY status", nil,
		func(row engine.Row) error {
			var status string
			var n int
			err := row.Scan(&status, &n)
			counts[session.Status(status)] = n
			return err
		})
	return counts, work.Wrap("count live sessions", err)
}

func (r overview) Providers(ctx context.Context) (map[string]ports.Named, error) {
	all := map[string]ports.Named{}
	err := r.Rows(ctx, `SELECT provider, COUNT(*), 0, 0 FROM sessions WHERE `+sessions.Live+` GROUP BY provider
		UNION ALL SELECT provider, 0, COUNT(*), 0 FROM upstream_orders WHERE status IN ('planned', 'sent', 'unknown')
		GROUP BY provider UNION ALL SELECT provider, 0, 0, COUNT(*) FROM list_claims GROUP BY provider`, nil,
		func(row engine.Row) error {
			var name string
			var n ports.Named
			err := row.Scan(&name, &n.Sessions, &n.Orders, &n.Claims)
			was := all[name]
			all[name] = ports.Named{Sessions: was.Sessions + n.Sessions, Orders: was.Orders + n.Orders,
				Claims: was.Claims + n.Claims}
			return err
		})
	return all, work.Wrap("count what names providers", err)
}
