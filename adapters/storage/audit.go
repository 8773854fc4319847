package storage

import (
	"context"
	"fmt"

	"agentproxy/adapters/storage/engine"
	"agentproxy/ports"
)

// rule is one rule of the ledger: a query for the rows that break it, each with
// its name and what is wrong with it. The database walks the rows, so a long
// ledger takes no memory here.
type rule struct {
	name, broken string
}

// entrySums are the sums of an agent's entries, next to its wallet.
const entrySums = ` FROM wallets w LEFT JOIN (SELECT agent_id, COUNT(*) AS n, MAX(ord) AS ord,
	SUM(trial) AS trial, SUM(own) AS own, SUM(held_trial) AS held_trial, SUM(held_own) AS held_own,
	SUM(CASE WHEN type = 'charge' THEN counter ELSE 0 END) AS charged,
	SUM(CASE WHEN type = 'refund' THEN trial + own ELSE 0 END) AS refunded,
	SUM(CASE WHEN type = 'recharge' THEN trial + own ELSE 0 END) AS recharged
	FROM ledger_entries GROUP BY agent_id) e ON e.agent_id = w.agent_id `

var rules = []rule{
	{"every entry sums to zero", `SELECT id, 'sum ' || (trial + own + held_trial + held_own + counter)
		FROM ledger_entries WHERE trial + own + held_trial + held_own + counter <> 0 OR (account = '' AND counter <> 0)`},
	{"every entry belongs to a wallet", `SELECT id, 'agent ' || agent_id FROM ledger_entries
		WHERE agent_id NOT IN (SELECT agent_id FROM wallets)`},
	{"no part of a wallet is negative", `SELECT agent_id, 'trial ' || trial || ', own ' || own || ', held ' ||
		held_trial || ' and ' || held_own FROM wallets WHERE trial < 0 OR own < 0 OR held_trial < 0 OR held_own < 0`},
	{"every wallet equals its entries", `SELECT w.agent_id, 'wallet ' || w.trial || ', ' || w.own || ', ' || w.held_trial ||
		', ' || w.held_own || '; entries ' || COALESCE(e.trial, 0) || ', ' || COALESCE(e.own, 0) || ', ' ||
		COALESCE(e.held_trial, 0) || ', ' || COALESCE(e.held_own, 0)` + entrySums + `
		WHERE w.trial <> COALESCE(e.trial, 0) OR w.own <> COALESCE(e.own, 0)
		OR w.held_trial <> COALESCE(e.held_trial, 0) OR w.held_own <> COALESCE(e.held_own, 0)`},
	{"what a wallet was charged, refunded and recharged equals its entries", `SELECT w.agent_id, 'wallet ' || w.charged ||
		', ' || w.refunded || ', ' || w.recharged || '; entries ' || COALESCE(e.charged, 0) || ', ' ||
		COALESCE(e.refunded, 0) || ', ' || COALESCE(e.recharged, 0)` + entrySums + `
		WHERE w.charged <> COALESCE(e.charged, 0) OR w.refunded <> COALESCE(e.refunded, 0)
		OR w.recharged <> COALESCE(e.recharged, 0)`},
	{"no entry is missing", `SELECT w.agent_id, 'wallet ' || w.entries || '; entries ' || COALESCE(e.n, 0) ||
		', last ' || COALESCE(e.ord, 0)` + entrySums + `
		WHERE w.entries <> COALESCE(e.n, 0) OR w.entries <> COALESCE(e.ord, 0)`},
	{"the balance after the last entry is the balance", `SELECT w.agent_id, 'wallet ' || (w.trial + w.own) ||
		'; last entry ' || l.balance_after
		FROM wallets w JOIN ledger_entries l ON l.agent_id = w.agent_id AND l.ord = w.entries
		WHERE l.balance_after <> w.trial + w.own`},
	{"what a wallet holds its sessions hold", `SELECT w.agent_id, 'wallet ' || w.held_trial || ' and ' || w.held_own ||
		'; sessions ' || COALESCE(s.trial, 0) || ' and ' || COALESCE(s.own, 0)
		FROM wallets w LEFT JOIN (SELECT agent_id, SUM(held_trial) AS trial, SUM(held_own) AS own
		FROM sessions GROUP BY agent_id) s ON s.agent_id = w.agent_id
		WHERE w.held_trial <> COALESCE(s.trial, 0) OR w.held_own <> COALESCE(s.own, 0)`},
	{"a wallet counts its live sessions", `SELECT w.agent_id, 'wallet ' || w.live_sessions || '; sessions ' ||
		COALESCE(s.n, 0) FROM wallets w LEFT JOIN (SELECT agent_id, COUNT(*) AS n FROM sessions
		WHERE ` + live + ` GROUP BY agent_id) s ON s.agent_id = w.agent_id
		WHERE w.live_sessions <> COALESCE(s.n, 0)`},
	{"no session used more than it bought", `SELECT id, 'bought ' || bytes || ', used ' || (up + down) || ', leased ' || leased
		FROM sessions WHERE bytes > 0 AND up + down + leased > bytes`},
	{"what a session leased its leases have left", `SELECT s.id, 'session ' || s.leased || '; leases ' || COALESCE(l.unused, 0)
		FROM sessions s LEFT JOIN (SELECT session_id, SUM(granted - up - down) AS unused
		FROM leases GROUP BY session_id) l ON l.session_id = s.id
		WHERE s.leased <> COALESCE(l.unused, 0)`},
	{"what a session was charged and refunded equals its entries", `SELECT s.id, 'session ' || (s.charged_trial + s.charged_own) ||
		' and ' || (s.refunded_trial + s.refunded_own) || '; entries ' || COALESCE(e.charged, 0) || ' and ' ||
		COALESCE(e.refunded, 0)
		FROM sessions s LEFT JOIN (SELECT session_id,
		SUM(CASE WHEN type = 'charge' THEN counter ELSE 0 END) AS charged,
		SUM(CASE WHEN type = 'refund' THEN trial + own ELSE 0 END) AS refunded
		FROM ledger_entries WHERE type IN ('charge', 'refund') GROUP BY session_id) e ON e.session_id = s.id
		WHERE s.charged_trial + s.charged_own <> COALESCE(e.charged, 0)
		OR s.refunded_trial + s.refunded_own <> COALESCE(e.refunded, 0)`},
	{"every credited transfer is final, of that amount and of that agent", `SELECT e.id, e.ref || ' of ' ||
		(e.trial + e.own) || ' for ' || e.agent_id FROM (SELECT ref, agent_id, trial + own AS amount, type FROM ledger_entries
		WHERE substr(ref, 1, 5) = 'usdt:' EXCEPT SELECT ` + transferRef + `, x.agent_id, x.amount, 'recharge'
		FROM recharge_transfers x WHERE x.state = 'final') d JOIN ledger_entries e ON e.ref = d.ref`},
	{"every final transfer is credited to its agent", `SELECT x.tx_id, 'log ' || x.log_index || ', ' || x.amount || ' for ' ||
		x.agent_id FROM recharge_transfers x LEFT JOIN ledger_entries e ON e.ref = ` + transferRef + `
		AND e.agent_id = x.agent_id AND e.trial + e.own = x.amount AND e.type = 'recharge'
		WHERE x.state = 'final' AND x.agent_id <> '' AND e.ref IS NULL`},
	{"a final transfer to an agent's address is that agent's", `SELECT x.tx_id, 'log ' || x.log_index || ' to ' || a.agent_id ||
		', is of ' || x.agent_id FROM recharge_transfers x
		JOIN recharge_addresses a ON a.network = x.network AND a.address = x.to_address
		WHERE x.state = 'final' AND x.agent_id <> a.agent_id`},
	{"what an order received its final transfers brought", `SELECT o.id, 'order ' || o.received || '; transfers ' ||
		COALESCE(x.amount, 0) FROM recharge_orders o LEFT JOIN (SELECT order_id, agent_id, network, SUM(amount) AS amount
		FROM recharge_transfers WHERE state = 'final' AND order_id <> '' GROUP BY order_id, agent_id, network) x
		ON x.order_id = o.id AND x.agent_id = o.agent_id AND x.network = o.network
		WHERE o.received <> COALESCE(x.amount, 0)`},
	{"an order is paid when it received its amount", `SELECT id, status || ', received ' || received || ' of ' || amount
		FROM recharge_orders WHERE (status = 'paid' AND received < amount) OR (status <> 'paid' AND received >= amount)`},
	{"every order of a provider belongs to a session", `SELECT o.id, 'session ' || o.session_id FROM upstream_orders o
		LEFT JOIN sessions s ON s.id = o.session_id WHERE s.id IS NULL`},
	{"nothing is bought twice for a session", `SELECT session_id, 'purchases ' || COUNT(*) FROM upstream_orders
		WHERE kind = 'purchase' AND status = 'confirmed' GROUP BY session_id HAVING COUNT(*) > 1`},
	{"what was bought is kept, and nothing else", `SELECT id, status || ' ' || kind || ', ' || length(goods) || ' bytes sealed'
		FROM upstream_orders WHERE (length(goods) > 0) <> (kind = 'purchase' AND status = 'confirmed')`},
}

// transferRef is the reference by which the ledger books the transfer x.
const transferRef = `'usdt:' || x.network || ':' || x.tx_id || ':' || x.log_index`

// Verify proves the ledger on one snapshot, while others write.
func (s *Store) Verify(ctx context.Context) (faults []ports.Fault, entries int, err error) {
	err = s.database.Audit(ctx, func(conn engine.Conn) error {
		for _, rule := range rules {
			err := conn.Rows(ctx, rule.broken, nil, func(rows engine.Row) error {
				f := ports.Fault{Rule: rule.name}
				err := rows.Scan(&f.Where, &f.Detail)
				faults = append(faults, f)
				return err
			})
			if err != nil {
				return fmt.Errorf("verify that %s: %w", rule.name, err)
			}
		}
		return conn.Row("SELECT COUNT(*) FROM ledger_entries", nil).Scan(&entries)
	})
	if err != nil {
		return nil, 0, fmt.Errorf("verify: %w", err)
	}
	return faults, entries, nil
}
