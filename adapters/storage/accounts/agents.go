// Package accounts keeps the agents, who referred them, their keys and what of the trial was granted.
package accounts

import (
	"context"
	"fmt"
	"strings"
	"time"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/rows"
	"agentproxy/adapters/storage/work"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/ports"
)

// agents keeps accounts.
type agents struct{ *work.Unit }

// Agents returns the accounts in a unit.
func Agents(u *work.Unit) ports.Agents { return agents{u} }

func (r agents) Insert(ctx context.Context, a account.Agent) error {
	row := toAgentRow(a)
	if err := r.Write(ctx).Create(&row).Error; err != nil {
		return fmt.Errorf("insert agent %s: %w", a.ID, err)
	}
	return nil
}

// Put writes every column that may change, zero values included.
func (r agents) Put(ctx context.Context, a account.Agent) error {
	row := toAgentRow(a)
	done := r.Write(ctx).Model(&agentRow{}).Where("id = ?", a.ID).
		Select("*").Omit("id", "referrer_id", "registered_from", "registered_with", "created_at").Updates(&row)
	if done.Error != nil {
		return fmt.Errorf("write agent %s: %w", a.ID, done.Error)
	}
	if done.RowsAffected == 0 {
		return account.ErrNotFound
	}
	return r.NoteChange(a.ID, "")
}

// AgentSelect reads accounts a with their referrers f, for ScanAgent.
const AgentSelect = `SELECT a.id, a.billing_user_id, a.name, a.contact_email, a.webhook_url, a.description, a.status,
	a.disabled_for, a.verified_for, a.key_hash, a.key_hint, a.key_created_at, a.key_used_at, a.secret_hash,
	a.secret_held_until, a.former_secret_hash, a.token_version, a.webhook_version, a.per_minute, a.registered_from,
	a.registered_with, a.created_at, a.updated_at,
	f.id, f.name, f.code, f.is_default, f.disabled
	FROM agents a JOIN referrers f ON f.id = a.referrer_id `

// Accounts are the agents that units read by their ids.
var Accounts = &rows.Table[string, account.Agent]{
	Order: work.AgentOrder,
	Keep:  true,
	Find:  func(s *rows.Set, id string) (account.Agent, bool, error) { return find(s, "a", id) },
	Read:  func(s *rows.Set, id string) (account.Agent, bool, error) { return find(s, "", id) },
	Ahead: rows.Ahead[string, account.Agent]{
		What: "read agents", Lock: "SELECT 1 FROM agents WHERE id = " + work.AgentsOf + " ORDER BY id FOR " + work.RowLock,
		Query: AgentSelect + "WHERE a.id = " + work.AgentsOf,
		Scan: func(row engine.Row) (string, account.Agent, error) {
			a, err := ScanAgent(row)
			return a.ID, a, err
		},
	},
}

func find(s *rows.Set, lock, id string) (a account.Agent, found bool, err error) {
	found, err = s.One(AgentSelect+"WHERE a.id = ?1", lock, func(row engine.Row) error {
		a, err = ScanAgent(row)
		return err
	}, id)
	return a, found, work.Wrap("read agent", err)
}

func (r agents) Get(_ context.Context, id string) (account.Agent, error) {
	return one(Accounts.Get(r.Set, id))
}

func (r agents) Peek(_ context.Context, id string) (account.Agent, error) {
	return one(Accounts.Look(r.Set, id))
}

func one(a account.Agent, found bool, err error) (account.Agent, error) {
	if err == nil && !found {
		err = account.ErrNotFound
	}
	return a, err
}

func (r agents) List(
	ctx context.Context, f ports.AgentFilter, page domain.Page,
) (domain.List[account.Agent], error) {
	list := domain.List[account.Agent]{Page: page}
	c := agentWhere(f)
	count := "SELECT COUNT(*) FROM agents a JOIN referrers f ON f.id = a.referrer_id" + c.Where()
	err := r.Row(count, c.Args...).Scan(&list.Total)
	if err == nil {
		query := AgentSelect + strings.Replace(agentOrders[f.Order], "$", c.Where(), 1) + "a.seq DESC" + c.Page(page)
		err = r.Rows(ctx, query, c.Args, func(rows engine.Row) error {
			a, err := ScanAgent(rows)
			list.Items = append(list.Items, a)
			return err
		})
	}
	if err != nil {
		return list, fmt.Errorf("list agents: %w", err)
	}
	return list, nil
}

func (r agents) ForgetOrigins(_ context.Context, before time.Time, limit int) (int, error) {
	none := []byte{}
	n, err := r.Exec(`UPDATE agents SET registered_from = ?1, registered_with = '' WHERE id IN (
		SELECT id FROM agents WHERE length(registered_from) > 0 AND created_at < ?2 LIMIT ?3)`,
		none, column.Micros(before), limit)
	if err != nil {
		return 0, fmt.Errorf("forget where agents registered: %w", err)
	}
	return int(n), nil
}

// unused returns what holds for an agent a that registered itself and to which nothing refers. Trial credit is an entry
// of the ledger, which is never removed: an agent that had some stays.
func (r agents) unused() string {
	condition := unusedBut
	for _, part := range r.Database.Feed.Of("a.id") {
		condition += " AND NOT EXISTS (SELECT 1 FROM " + part.From + ")"
	}
	return condition
}

// unusedBut is unused but for the events.
const unusedBut = `length(a.registered_from) > 0 AND a.key_used_at = 0 AND a.verified_for = ''
	AND NOT EXISTS (SELECT 1 FROM ledger_entries x WHERE x.agent_id = a.id)
	AND NOT EXISTS (SELECT 1 FROM sessions x WHERE x.agent_id = a.id)
	AND NOT EXISTS (SELECT 1 FROM api_keys x WHERE x.agent_id = a.id)
	AND a.id NOT IN (SELECT agent_id FROM recharge_addresses)
	AND NOT EXISTS (SELECT 1 FROM recharge_orders x WHERE x.agent_id = a.id)
	AND NOT EXISTS (SELECT 1 FROM audit_actions x WHERE x.subject = a.id)`

func (r agents) Unused(ctx context.Context, from, to time.Time, limit int) (ids []string, err error) {
	ids, err = r.ids(ctx, "a.created_at >= ?1 AND a.created_at < ?2 AND a.status = ?3 AND "+r.unused()+
		" ORDER BY a.created_at LIMIT ?4", column.Micros(from), column.Micros(to), string(account.Active), limit)
	return ids, work.Wrap("list unused agents", err)
}

// ids returns the ids of the agents a of a condition.
func (r agents) ids(ctx context.Context, where string, args ...any) (ids []string, err error) {
	err = r.Rows(ctx, "SELECT a.id FROM agents a WHERE "+where, args, func(row engine.Row) error {
		var id string
		err := row.Scan(&id)
		ids = append(ids, id)
		return err
	})
	return ids, err
}

func (r agents) RemoveUnused(
	ctx context.Context, disabledFor string, before time.Time, limit int,
) (ids []string, err error) {
	ids, err = r.ids(ctx, "a.status = ?1 AND a.disabled_for = ?2 AND a.updated_at < ?3 AND "+r.unused()+" LIMIT ?4",
		string(account.Disabled), disabledFor, column.Micros(before), limit)
	if err != nil || len(ids) == 0 {
		return nil, work.Wrap("list unused agents that were disabled", err)
	}
	in, args := work.InTexts(ids)
	for _, table := range []string{"webhook_marks", "webhook_states", "ledger_proofs", "ledger_counted",
		"ledger_months", "ledger_month_sessions", "wallets"} {
		if _, err := r.Exec("DELETE FROM "+table+" WHERE agent_id IN "+in, args...); err != nil {
			return nil, fmt.Errorf("remove unused agents from %s: %w", table, err)
		}
	}
	if _, err := r.Exec("DELETE FROM agents WHERE id IN "+in, args...); err != nil {
		return nil, fmt.Errorf("remove unused agents: %w", err)
	}
	for _, id := range ids {
		if err := r.NoteChange(id, ""); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// agentOrders are the tables and the words that list agents in an order; $ is where the conditions belong.
var agentOrders = map[ports.AgentOrder]string{
	"":                "$ ORDER BY ",
	ports.ByBalance:   byWallet + "w.trial + w.own + w.held_trial + w.held_own DESC, ",
	ports.ByCharged:   byWallet + "w.charged - w.refunded DESC, ",
	ports.ByRecharged: byWallet + "w.recharged DESC, ",
	ports.ByLive:      byWallet + "w.live_sessions DESC, ",
}

const byWallet = "JOIN wallets w ON w.agent_id = a.id $ ORDER BY "

// agentWhere returns the conditions of a filter of agents.
func agentWhere(f ports.AgentFilter) (c work.Conditions) {
	if f.RegisteredFrom.IsValid() {
		first, last := column.AddressRange(f.RegisteredFrom)
		c.Add("length(a.registered_from) > 0 AND a.registered_from >= ?", first)
		c.Add("a.registered_from <= ?", last)
	}
	c.Text("a.status = ?", string(f.Status))
	c.Text("(f.code = ? OR f.name = ?)", f.Referrer)
	if f.Search != "" {
		c.Add(`(a.id LIKE ? ESCAPE '\' OR LOWER(a.name) LIKE '%' || LOWER(?) || '%' ESCAPE '\'
			OR LOWER(a.contact_email) LIKE '%' || LOWER(?) || '%' ESCAPE '\')`, literal(f.Search))
	}
	return c
}

// literal escapes what LIKE does not take as it is.
func literal(text string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(text)
}
