package storage

import (
	"context"
	"strings"
	"time"

	"agentproxy/adapters/storage/accounts"
	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/work"
	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// dayMicros is a day as columns have it.
const dayMicros = 86_400_000_000

// overview reads across all agents.
type overview struct{ *tx }

func (r overview) Sessions(
	ctx context.Context, f ports.OverviewFilter, page domain.Page,
) (domain.List[ports.SessionRead], error) {
	list := domain.List[ports.SessionRead]{Page: page}
	var c work.Conditions
	c.Text("agent_id = ?", f.AgentID)
	c.Text("status = ?", string(f.Status))
	c.Text("type = ?", string(f.Type))
	c.Text("product_no = ?", f.ProductNo)
	c.Text("provider = ?", f.Provider)
	if f.Status == session.Creating || f.Status == session.Active {
		c.Words(live) // the words of the partial index
	}
	err := r.Row("SELECT COUNT(*) FROM sessions"+c.Where(), c.Args...).Scan(&list.Total)
	if err == nil && list.Total > page.Offset() {
		numbers := "SELECT seq FROM sessions" + c.Where() + " ORDER BY seq DESC" + c.Page(page)
		err = r.Rows(ctx, sessionReadFrom+"WHERE s.seq IN ("+numbers+") ORDER BY s.seq DESC", c.Args,
			func(row engine.Row) error {
				read, err := scanSessionRead(row)
				list.Items = append(list.Items, read)
				return err
			})
	}
	return list, work.Wrap("list sessions of all agents", err)
}

func (r overview) Agents(
	ctx context.Context, f ports.AgentFilter, page domain.Page,
) (domain.List[ports.AgentMoney], error) {
	found, err := accounts.Agents(&r.Unit).List(ctx, f, page)
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
	query := "SELECT " + strings.Join(column.Names(new(walletRow)), ", ") + " FROM wallets WHERE agent_id IN " + in
	err = r.Rows(ctx, query, args, func(row engine.Row) error {
		var w walletRow
		err := row.Scan(column.Targets(&w)...)
		if err == nil {
			wallets[w.AgentID], err = fromWalletRow(w)
		}
		return err
	})
	seen := map[string]int64{}
	if err == nil {
		query = "SELECT agent_id, MAX(used_at) FROM api_keys WHERE agent_id IN " + in + " GROUP BY agent_id"
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
	query := "SELECT s.agent_id, " + dueColumns + " FROM sessions s" + r.store.by("sessions_open") + " WHERE " + holdsMoney
	var args []any
	if len(agentIDs) > 0 {
		var in string
		in, args = work.InTexts(agentIDs)
		query += " AND s.agent_id IN " + in
	}
	sums := map[string]domain.Money{}
	err := r.Rows(ctx, query, args, func(row engine.Row) error {
		var agent string
		var d dueRow
		if err := row.Scan(append([]any{&agent}, d.targets()...)...); err != nil {
			return err
		}
		due, err := d.due()
		sums[agent] += due
		return err
	})
	return sums, work.Wrap("sum what is not charged yet", err)
}

// dayAccount is the key of a row of account_days.
type dayAccount struct {
	day     int64
	account billing.Account
}

// The sums of whole days, and the entries behind the number. With the sign these are read, not all of the time.
const (
	accountDays = `SELECT day, account, counter FROM account_days WHERE day >= ?1 AND day < ?2
		UNION ALL SELECT at / 86400000000 * 86400000000, account, CAST(SUM(counter) AS BIGINT) FROM ledger_entries
		WHERE seq > ?3 AND account <> '' AND +at >= ?1 AND +at < ?2 GROUP BY 1, 2`
	edgeOfDay = `SELECT account, CAST(SUM(counter) AS BIGINT) FROM ledger_entries
		WHERE account <> '' AND at >= ?1 AND at < ?2 GROUP BY account`
)

// accountDays sums the service's side of entries by day. Of a day that lies partly in the time the other part is read
// and taken off: of today there is none.
func (r overview) accountDays(ctx context.Context, from, to time.Time) (map[dayAccount]domain.Money, error) {
	begin, end := column.Micros(from), column.Micros(to)
	first, last := begin/dayMicros*dayMicros, (end+dayMicros-1)/dayMicros*dayMicros
	sums := map[dayAccount]domain.Money{}
	d, err := r.summedDays()
	if err != nil {
		return nil, err
	}
	err = r.Rows(ctx, accountDays, []any{first, last, d.Mark}, func(row engine.Row) error {
		var k dayAccount
		var sum domain.Money
		err := row.Scan(&k.day, &k.account, &sum)
		sums[k] += sum
		return err
	})
	for _, edge := range [...]struct{ day, from, to int64 }{{first, first, begin}, {last - dayMicros, end, last}} {
		if err != nil || edge.from == edge.to {
			continue
		}
		err = r.Rows(ctx, edgeOfDay, []any{edge.from, edge.to}, func(row engine.Row) error {
			k := dayAccount{day: edge.day}
			var sum domain.Money
			err := row.Scan(&k.account, &sum)
			sums[k] -= sum
			return err
		})
	}
	return sums, err
}

func (r overview) Accounts(ctx context.Context, from, to time.Time) (map[billing.Account]domain.Money, error) {
	days, err := r.accountDays(ctx, from, to)
	sums := map[billing.Account]domain.Money{}
	for k, sum := range days {
		sums[k.account] += sum
	}
	return sums, work.Wrap("sum accounts", err)
}

func (r overview) Received(ctx context.Context, from, to time.Time) (map[time.Time]domain.Money, error) {
	days, err := r.accountDays(ctx, from, to)
	sums := map[time.Time]domain.Money{}
	for k, sum := range days {
		if k.account == billing.USDT {
			sums[time.UnixMicro(k.day).UTC()] = -sum
		}
	}
	return sums, work.Wrap("sum recharges by day", err)
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
	err := r.Rows(ctx, "SELECT status, COUNT(*) FROM sessions WHERE "+live+" GROUP BY status", nil,
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
	err := r.Rows(ctx, `SELECT provider, COUNT(*), 0, 0 FROM sessions WHERE `+live+` GROUP BY provider
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
