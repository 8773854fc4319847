package apptest

import (
	"context"
	"encoding/json"
	"strings"

	"agentproxy/domain/webhook"
)

// undecided selects the orders of the session s that may still be delivered.
const undecided = `SELECT 1 FROM upstream_orders o WHERE o.session_id = s.id AND (o.status IN ('sent', 'unknown')
	OR o.kind = 'purchase' AND o.status = 'confirmed' AND o.state = 'pending')`

// uncounted selects the purchases of the session s that its provider is to count.
const uncounted = `SELECT 1 FROM upstream_orders o WHERE o.session_id = s.id
	AND o.kind = 'purchase' AND o.status = 'confirmed' AND o.closed_at = 0`

// rules holds a query for each invariant of the accounts, by its description. A query
// returns the rows that break the invariant. None uses code of the program.
var rules = map[string]string{
	"a wallet equals its entries": `SELECT w.agent_id FROM wallets w LEFT JOIN (SELECT agent_id, SUM(trial) t, SUM(own) o,
		SUM(held_trial) ht, SUM(held_own) ho, COUNT(*) n FROM ledger_entries GROUP BY agent_id) e USING (agent_id)
		WHERE (w.trial, w.own, w.held_trial, w.held_own, w.entries) IS DISTINCT FROM
		(COALESCE(t, 0), COALESCE(o, 0), COALESCE(ht, 0), COALESCE(ho, 0), COALESCE(n, 0))`,
	"the balance after an entry is the sum up to it": `SELECT id FROM (SELECT id, balance_after,
		SUM(trial + own) OVER (PARTITION BY agent_id ORDER BY ord) s FROM ledger_entries) e WHERE s <> balance_after`,
	"a wallet counts its charges and refunds": `SELECT w.agent_id FROM wallets w LEFT JOIN (SELECT agent_id,
		SUM(CASE type WHEN 'charge' THEN counter ELSE 0 END) c, SUM(CASE type WHEN 'refund' THEN -counter ELSE 0 END) r
		FROM ledger_entries GROUP BY agent_id) e USING (agent_id)
		WHERE (w.charged, w.refunded) IS DISTINCT FROM (COALESCE(c, 0), COALESCE(r, 0))`,
	"what a wallet holds its sessions hold": `SELECT w.agent_id FROM wallets w LEFT JOIN (SELECT agent_id, SUM(held_trial) t,
		SUM(held_own) o FROM sessions GROUP BY agent_id) s USING (agent_id)
		WHERE (w.held_trial, w.held_own) IS DISTINCT FROM (COALESCE(t, 0), COALESCE(o, 0))`,
	"a wallet counts its live sessions": `SELECT w.agent_id FROM wallets w WHERE w.live_sessions <> (SELECT COUNT(*)
		FROM sessions s WHERE s.agent_id = w.agent_id AND s.status IN ('creating', 'active'))`,
	"a session holds and was charged the sums of its entries": `SELECT s.id FROM sessions s LEFT JOIN (SELECT session_id,
		SUM(held_trial) ht, SUM(held_own) ho,
		SUM(CASE type WHEN 'charge' THEN -held_trial ELSE 0 END) ct, SUM(CASE type WHEN 'charge' THEN -held_own ELSE 0 END) co,
		SUM(CASE type WHEN 'refund' THEN trial ELSE 0 END) rt, SUM(CASE type WHEN 'refund' THEN own ELSE 0 END) ro
		FROM ledger_entries GROUP BY session_id) e ON e.session_id = s.id
		WHERE (s.held_trial, s.held_own, s.charged_trial, s.charged_own, s.refunded_trial, s.refunded_own) IS DISTINCT FROM
		(COALESCE(ht, 0), COALESCE(ho, 0), COALESCE(ct, 0), COALESCE(co, 0), COALESCE(rt, 0), COALESCE(ro, 0))`,
	"held and charged and released are the hold": `SELECT session_id FROM ledger_entries WHERE session_id <> ''
		GROUP BY session_id HAVING -SUM(CASE type WHEN 'hold' THEN trial + own ELSE 0 END) <>
		SUM(held_trial + held_own) + SUM(CASE type WHEN 'charge' THEN counter ELSE 0 END) +
		SUM(CASE type WHEN 'release' THEN trial + own ELSE 0 END)`,
	"no session used more than it bought": `SELECT id FROM sessions WHERE bytes > 0 AND up + down + leased > bytes`,
	"what is leased is the sum of the leases": `SELECT s.id FROM sessions s LEFT JOIN (SELECT session_id, SUM(granted - up - down) n
		FROM leases GROUP BY session_id) l ON l.session_id = s.id WHERE s.leased <> COALESCE(n, 0)`,
	"traffic is charged to the floor once settled, never beyond": `SELECT id FROM sessions WHERE type = 'dynamic' AND activated_at > 0
		AND id NOT IN (SELECT session_id FROM session_topups WHERE run > 0) AND (
		charged_trial + charged_own > (up + down) * price / 1000000000 OR
		status NOT IN ('creating', 'active') AND leased = 0 AND held_trial + held_own = 0 AND charged_trial + charged_own <> (up + down) * price / 1000000000)`,
	"a session that ended, reports no more and waits for no order holds nothing": `SELECT id FROM sessions s
		WHERE status IN ('terminated', 'expired', 'failed') AND leased = 0 AND held_trial + held_own > 0
		AND NOT EXISTS (` + undecided + `) AND NOT EXISTS (` + uncounted + `)`,
	"one that waits for a report is looked at again": `SELECT id FROM sessions s
		WHERE status IN ('terminated', 'expired', 'failed') AND held_trial + held_own > 0 AND settle_at = 0
		AND NOT EXISTS (` + undecided + `)`,
	"an active session with unbooked use is looked at again": `SELECT id FROM sessions WHERE status = 'active'
		AND type = 'dynamic' AND settle_at = 0
		AND id NOT IN (SELECT session_id FROM session_topups WHERE run > 0) AND charged_trial + charged_own < (up + down) * price / 1000000000`,
	"a session that ended has the time and the reason": `SELECT id FROM sessions WHERE (status IN ('terminated', 'expired', 'failed'))
		<> (ended_at > 0 AND reason <> '')`,
	"an active session has its exits": `SELECT id FROM sessions WHERE status = 'active'
		AND LENGTH(exits) - LENGTH(REPLACE(exits, ',', '')) + 1 <> quantity OR status = 'active' AND exits = ''`,
	"an address is taken by a live session": `SELECT a.ip FROM static_addresses a LEFT JOIN sessions s ON s.id = a.session_id
		WHERE s.status IS NULL OR s.status NOT IN ('creating', 'active')`,
	"an active static session has its addresses": `SELECT id FROM sessions s WHERE status = 'active' AND type = 'static'
		AND quantity <> (SELECT COUNT(*) FROM static_addresses a WHERE a.session_id = s.id) + CASE ended_exits WHEN '' THEN 0
		ELSE 1 + LENGTH(ended_exits) - LENGTH(REPLACE(ended_exits, ',', '')) END`,
	"at most one charge an hour beside the last": `SELECT e.session_id FROM ledger_entries e JOIN sessions s ON s.id = e.session_id
		WHERE e.type = 'charge' AND s.type = 'dynamic' AND NOT (e.at >= s.ended_at AND s.ended_at > 0)
		GROUP BY e.session_id, e.at / 3600000000 HAVING COUNT(*) > 1`,
	"a failed session has no key": `SELECT k.key FROM idempotency_keys k JOIN sessions s ON s.id = k.resource WHERE s.status = 'failed'`,
	"the hours of a session add up to it": `SELECT s.id FROM sessions s LEFT JOIN (SELECT session_id, SUM(up) u, SUM(down) d,
		SUM(connections) n, SUM(charged) c, SUM(refunded) r FROM usage_hours GROUP BY session_id) h ON h.session_id = s.id
		WHERE (s.up, s.down, s.connections, s.charged_trial + s.charged_own, s.refunded_trial + s.refunded_own) IS DISTINCT FROM
		(COALESCE(u, 0), COALESCE(d, 0), COALESCE(n, 0), COALESCE(c, 0), COALESCE(r, 0))`,
	"the bytes of an agent are those of its sessions": `SELECT agent_id FROM (SELECT agent_id, SUM(up + down) b, SUM(rotations + worker_rotations) r
		FROM sessions GROUP BY agent_id) s LEFT JOIN counters c USING (agent_id)
		WHERE (b, r) IS DISTINCT FROM (COALESCE(c.bytes, 0), COALESCE(c.rotations, 0))`,
}

// Audit checks the accounts by the store's own audit and by the queries in rules.
func (w *World) Audit() {
	w.T.Helper()
	faults, _, err := w.DB.Verify(context.Background())
	if err != nil {
		w.T.Error(err)
	}
	for _, f := range faults {
		w.T.Errorf("audit: %s: %s: %s", f.Rule, f.Where, f.Detail)
	}
	w.CheckEvents()
	for rule, query := range rules {
		if broken := w.Column(query); len(broken) > 0 {
			w.T.Errorf("audit: broken invariant: %s: %v", rule, broken)
		}
	}
}

// CheckEvents compares the data of all events with what is declared of their types.
func (w *World) CheckEvents() {
	w.T.Helper()
	for _, row := range w.Column(`SELECT DISTINCT type || ' ' || data FROM outbox`) {
		of, text, _ := strings.Cut(row, " ")
		var data map[string]string
		OK(w.T, json.Unmarshal([]byte(text), &data))
		if err := webhook.CheckData(webhook.Type(of), data); err != nil {
			w.T.Error(err)
		}
	}
}

// Entries returns "type amount" of each ledger entry of an agent, oldest first.
func (w *World) Entries(agent string) string {
	w.T.Helper()
	return strings.Join(w.Column(`SELECT type || ' ' || (trial + own) || CASE type WHEN 'charge' THEN ' of ' || counter ELSE '' END
		FROM ledger_entries WHERE agent_id = ? ORDER BY ord`, agent), ", ")
}
