package proof

import (
	"strings"
)

// A rule's query sees a part of the database: its tables are hidden by those of the same names that a WITH clause
// defines. ?1 and ?2 are the range of agents.

// scopedTables are the tables of the rules that are proved by ranges of agents.
var scopedTables = []string{"wallets", "ledger_entries", "sessions", "usage_hours", "session_topups",
	"session_counts", "agent_hours", "key_wallets"}

const ofRange = "agent_id >= ?1 AND agent_id < ?2"

// part is one table of a scope.
type part struct{ name, query string }

func with(parts []part) string {
	var b strings.Builder
	for i, p := range parts {
		b.WriteString([]string{"WITH ", ", "}[min(i, 1)] + p.name + " AS (" + p.query + ")")
	}
	return b.String() + " "
}

// table returns the name of a table that a WITH clause hides. One of PostgreSQL does not see itself, nor what follows.
func (p *Prover) table(name string) string {
	if p.postgres {
		return name
	}
	return "main." + name
}

// whole is the scope of all rows of a range of agents.
func (p *Prover) whole() string {
	var parts []part
	for _, name := range scopedTables {
		parts = append(parts, part{name, "SELECT * FROM " + p.table(name) + " WHERE " + ofRange})
	}
	return with(parts)
}

// each returns a query for the rows x of a table for each row o of others, by an index that begins with the agent:
// PostgreSQL joins a query with an order in no other way, and SQLite keeps the order of a CROSS JOIN.
func (p *Prover) each(others, table, where, order string) string {
	if p.postgres {
		return "SELECT x.* FROM " + others + " o CROSS JOIN LATERAL (SELECT * FROM " + table + " y WHERE " +
			strings.ReplaceAll(where, "x.", "y.") + " ORDER BY " + strings.ReplaceAll(order, "x.", "y.") + ") x"
	}
	return "SELECT x.* FROM " + others + " o CROSS JOIN " + table + " x WHERE " + where
}

// open is the scope of what is in no month that is sealed before ?3. The tables that begin with all_ have the other
// rows too; opened has what sessions had in these months, and sealed what their agents had.
func (p *Prover) open() string {
	of := func(name, where, order string) part {
		return part{name, p.each("behind", p.table(name), "x.agent_id = o.agent_id AND "+where, order)}
	}
	all := func(name, table string) part {
		return part{name, "SELECT * FROM " + p.table(table)}
	}
	in := func(name, table string) part {
		return part{name, "SELECT * FROM " + p.table(table) + " WHERE " + ofRange}
	}
	parts := []part{
		{"sealed", "SELECT * FROM ledger_seals WHERE " + ofRange + " AND month = ?3"},
		{"opened", "SELECT * FROM ledger_openings WHERE " + ofRange + " AND month = ?3"},
		{"behind", "SELECT w.agent_id, COALESCE(l.entries, 0) AS entries, COALESCE(l.month, 0) AS month FROM " +
			p.table("wallets") + " w LEFT JOIN ledger_seals l ON l.agent_id = w.agent_id AND l.month = ?3 " +
			"WHERE w.agent_id >= ?1 AND w.agent_id < ?2"},
		all("all_entries", "ledger_entries"), all("all_sessions", "sessions"), all("all_topups", "session_topups"),
		in("all_hours", "usage_hours"), in("all_agent_hours", "agent_hours"),
		in("wallets", "wallets"), in("session_counts", "session_counts"), in("key_wallets", "key_wallets"),
		of("ledger_entries", "x.ord > o.entries", "x.ord"),
		of("usage_hours", "x.counted IN (0, 1) AND x.hour >= o.month", "x.hour"),
		of("agent_hours", "x.hour >= o.month", "x.hour"),
	}
	sessions := of("sessions", "x.status IN ("+statuses+") AND x.counted = 0", "x.ord")
	sessions.query += " UNION ALL " + of("sessions", "x.counted = 1 AND x.ended_at >= o.month", "x.ended_at").query
	topups := part{"session_topups", p.each("sessions", p.table("session_topups"),
		"x.agent_id = o.agent_id AND x.session_id = o.id", "x.no")}
	return with(append(parts, sessions, topups))
}

// openEntries selects the entries of a range of agents that are in no month sealed before ?3, with their seq.
func (p *Prover) openEntries() string {
	query := strings.Replace(strings.TrimSuffix(entrySelect, " WHERE "), "ledger_entries", "fresh", 1)
	behind := "SELECT w.agent_id, COALESCE(l.entries, 0) AS entries FROM wallets w LEFT JOIN ledger_seals l " +
		"ON l.agent_id = w.agent_id AND l.month = ?3 WHERE w.agent_id >= ?1 AND w.agent_id < ?2"
	return with([]part{{"behind", behind}, {"fresh", p.each("behind", "ledger_entries",
		"x.agent_id = o.agent_id AND x.ord > o.entries", "x.ord")}}) + query + " ORDER BY agent_id, ord"
}

// openRules are the texts of rules in the scope of what is in no sealed month, where they differ. What they need of
// sealed months they take from the seals, or look up by a key.
var openRules = map[string]string{
	keyCosts:   keyMoney("all_sessions"),
	spentByKey: keyDay("all_sessions", "?3"),
	"what the hours of an agent were charged, refunded and recharged equals its wallet": `SELECT w.agent_id, 'wallet ' ||
		w.charged || ', ' || w.refunded || ', ' || w.recharged || '; hours ' || COALESCE(h.charged, 0) || ', ' ||
		COALESCE(h.refunded, 0) || ', ' || COALESCE(h.recharged, 0)
		FROM wallets w LEFT JOIN (SELECT agent_id, SUM(charged) AS charged, SUM(refunded) AS refunded,
		SUM(recharged) AS recharged FROM (SELECT agent_id, charged, refunded, recharged FROM all_agent_hours
		UNION ALL SELECT agent_id, charged, refunded, recharged FROM all_hours WHERE counted = 0) u
		GROUP BY agent_id) h ON h.agent_id = w.agent_id
		WHERE w.charged <> COALESCE(h.charged, 0) OR w.refunded <> COALESCE(h.refunded, 0)
		OR w.recharged <> COALESCE(h.recharged, 0)`,
	"the traffic and the rotations of an agent are those of its sessions": `SELECT s.agent_id, 'sessions ' || s.bytes ||
		' and ' || s.rotations || '; agent ' || COALESCE(c.bytes, 0) || ' and ' || COALESCE(c.rotations, 0)
		FROM (SELECT agent_id, SUM(bytes) AS bytes, SUM(rotations) AS rotations
		FROM (SELECT agent_id, bytes, rotations FROM sealed
		UNION ALL SELECT agent_id, up + down, rotations + worker_rotations FROM sessions) x
		GROUP BY agent_id) s LEFT JOIN counters c ON c.agent_id = s.agent_id
		WHERE s.bytes <> COALESCE(c.bytes, 0) OR s.rotations <> COALESCE(c.rotations, 0)`,
	"what a session holds, was charged and refunded equals its entries": sessionMoney(`(SELECT session_id, held_trial,
		held_own, charged_trial, charged_own, refunded_trial, refunded_own FROM opened
		UNION ALL SELECT session_id, held_trial, held_own, ` + entryMoney + ` FROM ledger_entries WHERE session_id <> '') u`),
	"every entry of a session is of its agent": `SELECT e.id, e.agent_id || ', session ' || e.session_id
		FROM ledger_entries e LEFT JOIN all_sessions s ON s.id = e.session_id
		WHERE e.session_id <> '' AND (s.id IS NULL OR s.agent_id <> e.agent_id)`,
	"what was held for a session is its price": heldPrice("all_entries"),
	"what was held for added traffic is its price": `SELECT t.session_id, 'addition ' || t.no || ' at ' ||
		t.price || ', held ' || COALESCE(-(e.trial + e.own), 0)
		FROM session_topups t LEFT JOIN all_entries e ON e.ref = 'hold:' || t.session_id || ':traffic:' || t.no
		AND e.session_id = t.session_id WHERE COALESCE(-(e.trial + e.own), -2) <> ` + addedPrice + `
		UNION ALL SELECT e.session_id, e.ref || ' of no addition' FROM ledger_entries e
		LEFT JOIN all_topups t ON t.agent_id = e.agent_id AND t.session_id = e.session_id
		AND e.ref = 'hold:' || t.session_id || ':traffic:' || t.no
		WHERE e.type = 'hold' AND e.ref LIKE 'hold:%:traffic:%' AND t.no IS NULL`,
	"the hours of a session add up to it": sessionHours(`sessions z JOIN all_hours u ON u.agent_id = z.agent_id
		AND u.session_id = z.id`),
	"a static session lasts as many days as were paid": paidDays(`(SELECT session_id, renewals AS n, renewed AS last
		FROM opened WHERE renewals > 0 UNION ALL SELECT e.session_id, 1, ` + renewalEnd + ` FROM ledger_entries e
		WHERE ` + renewalHold + `) u`),
	"a static session that ends early is refunded its unused days by its reason": unusedDays(`SELECT s.id, s.reason,
		s.ended_at, s.expires_at, s.activated_at, s.kept, COALESCE(r.trial + r.own, 0) AS got, COALESCE(o.paid, 0) +
		CAST(SUM(CASE WHEN e.ord < r.ord OR r.ord IS NULL AND e.at < s.ended_at THEN e.counter ELSE 0 END) AS BIGINT) AS paid
		FROM sessions s LEFT JOIN ledger_entries e ON e.session_id = s.id AND e.type IN ('charge', 'refund')
		LEFT JOIN opened o ON o.session_id = s.id LEFT JOIN all_entries r ON r.ref = 'refund:' || s.id
		WHERE s.type = 'static' AND s.activated_at > 0 AND s.ended_at > 0
		GROUP BY s.id, s.reason, s.ended_at, s.expires_at, s.activated_at, s.kept, r.trial, r.own, r.ord, o.paid`),

	"a session is of the product that it was held for":    heldProduct("all_entries"),
	"the counts of ended sessions are right":              left,
	"the counts of sessions by their last hour are right": left,
}
