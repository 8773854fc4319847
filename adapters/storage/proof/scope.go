package proof

import "strings"

// A rule's query sees a part of the database: its tables are hidden by those of the same names that a WITH clause
// defines. ?1 and ?2 are the range of agents.

// scopedTables are the tables of the rules that are proved by ranges of agents.
var scopedTables = []string{"wallets", "ledger_entries", "sessions", "usage_hours", "session_topups",
	"session_counts", "agent_hours", "ledger_months", "ledger_month_sessions", "key_wallets"}

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
		of("ledger_months", "x.month >= o.month", "x.month"),
		of("ledger_month_sessions", "x.month >= o.month", "x.month"),
	}
	sessions := of("sessions", "x.status IN ("+statuses+") AND x.counted = 0", "x.ord")
	sessions.query += " UNION ALL " + of("sessions", "x.counted = 1 AND x.ended_at >= o.month", "x.ended_at").query
	topups := part{"session_topups", p.each("sessions", p.table("session_topups"),
		"x.agent_id = o.agent_id AND x.session_id = o.id", "x.no")}
	return with(append(parts, sessions, topups))
}

// statuses are those of a session.
const statuses = "'creating', 'active', 'terminated', 'expired', 'failed'"

// openEntries selects the entries of a range of agents that are in no month sealed before ?3, with their seq.
func (p *Prover) openEntries() string {
	query := strings.Replace(strings.TrimSuffix(entrySelect, " WHERE "), "ledger_entries", "fresh", 1)
	behind := "SELECT w.agent_id, COALESCE(l.entries, 0) AS entries FROM wallets w LEFT JOIN ledger_seals l " +
		"ON l.agent_id = w.agent_id AND l.month = ?3 WHERE w.agent_id >= ?1 AND w.agent_id < ?2"
	return with([]part{{"behind", behind}, {"fresh", p.each("behind", "ledger_entries",
		"x.agent_id = o.agent_id AND x.ord > o.entries", "x.ord")}}) + query + " ORDER BY agent_id, ord"
}
