package proof

// entrySums are the sums of an agent's entries, next to its wallet.
const entrySums = ` FROM wallets w LEFT JOIN (SELECT agent_id, COUNT(*) AS n, MAX(ord) AS ord,
	SUM(trial) AS trial, SUM(own) AS own, SUM(held_trial) AS held_trial, SUM(held_own) AS held_own,
	SUM(CASE WHEN type = 'charge' THEN counter ELSE 0 END) AS charged,
	SUM(CASE WHEN type = 'refund' THEN trial + own ELSE 0 END) AS refunded,
	SUM(CASE WHEN type = 'recharge' THEN trial + own ELSE 0 END) AS recharged
	FROM ledger_entries GROUP BY agent_id) e ON e.agent_id = w.agent_id `

// ledgerRules are those of entries and wallets.
var ledgerRules = []rule{
	{"every entry sums to zero", `SELECT id, 'sum ' || (trial + own + held_trial + held_own + counter)
		FROM ledger_entries WHERE trial + own + held_trial + held_own + counter <> 0 OR (account = '' AND counter <> 0)`},
	{"every entry belongs to a wallet", `SELECT id, 'agent ' || agent_id FROM ledger_entries
		WHERE agent_id NOT IN (SELECT agent_id FROM wallets)`},
	{"no part of a wallet is negative", `SELECT agent_id, 'trial ' || trial || ', own ' || own || ', held ' ||
		held_trial || ' and ' || held_own FROM wallets WHERE trial < 0 OR own < 0 OR held_trial < 0 OR held_own < 0`},
	{"every wallet equals its entries",
		`SELECT w.agent_id, 'wallet ' || w.trial || ', ' || w.own || ', ' || w.held_trial ||
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
	{"every entry moves what its type moves",
		`SELECT id, type || ' of ' || trial || ', ' || own || ', held ' || held_trial ||
		' and ' || held_own || ', ' || account || ' ' || counter FROM ledger_entries WHERE NOT CASE type
		WHEN 'trial_grant' THEN account = 'trial_grants' AND trial >= 0 AND own = 0 AND held_trial = 0 AND held_own = 0
		WHEN 'recharge' THEN account = 'usdt_clearing' AND trial = 0 AND own >= 0 AND held_trial = 0 AND held_own = 0
		WHEN 'hold' THEN account = '' AND held_trial >= 0 AND held_own >= 0 AND trial = -held_trial AND own = -held_own
		WHEN 'charge' THEN account = 'revenue' AND trial = 0 AND own = 0 AND held_trial <= 0 AND held_own <= 0
		WHEN 'release' THEN account = '' AND held_trial <= 0 AND held_own <= 0 AND trial = -held_trial AND own = -held_own
		WHEN 'refund' THEN account = 'revenue' AND trial >= 0 AND own >= 0 AND held_trial = 0 AND held_own = 0
		WHEN 'trial_expiry' THEN account = 'trial_expired' AND trial <= 0 AND own = 0 AND held_trial = 0 AND held_own = 0
		WHEN 'adjustment' THEN account = 'corrections' AND held_trial = 0 AND held_own = 0
		ELSE 1 = 0 END`},
	{"the balance after an entry is the sum up to it", `SELECT id, 'balance ' || balance_after || '; sum ' || total FROM (
		SELECT id, balance_after, SUM(trial + own) OVER (
			PARTITION BY agent_id ORDER BY ord ROWS UNBOUNDED PRECEDING) AS total
		FROM ledger_entries) e WHERE balance_after <> total`},
	{"expired trial credit is not spendable", `SELECT agent_id, 'trial ' || trial FROM wallets
		WHERE trial_expired = 1 AND trial <> 0`},
	{"what a wallet holds its sessions hold", `SELECT w.agent_id, 'wallet ' || w.held_trial || ' and ' || w.held_own ||
		'; sessions ' || COALESCE(s.trial, 0) || ' and ' || COALESCE(s.own, 0)
		FROM wallets w LEFT JOIN (SELECT agent_id, SUM(held_trial) AS trial, SUM(held_own) AS own
		FROM sessions GROUP BY agent_id) s ON s.agent_id = w.agent_id
		WHERE w.held_trial <> COALESCE(s.trial, 0) OR w.held_own <> COALESCE(s.own, 0)`},
	{"a wallet counts its live sessions", `SELECT w.agent_id, 'wallet ' || w.live_sessions || '; sessions ' ||
		COALESCE(s.n, 0) FROM wallets w LEFT JOIN (SELECT agent_id, COUNT(*) AS n FROM sessions
		WHERE ` + live + ` GROUP BY agent_id) s ON s.agent_id = w.agent_id
		WHERE w.live_sessions <> COALESCE(s.n, 0)`},
	{"what the hours of an agent were charged, refunded and recharged equals its wallet", `SELECT w.agent_id, 'wallet ' ||
		w.charged || ', ' || w.refunded || ', ' || w.recharged || '; hours ' || COALESCE(h.charged, 0) || ', ' ||
		COALESCE(h.refunded, 0) || ', ' || COALESCE(h.recharged, 0)
		FROM wallets w LEFT JOIN (SELECT agent_id, SUM(charged) AS charged, SUM(refunded) AS refunded,
		SUM(recharged) AS recharged FROM usage_hours GROUP BY agent_id) h ON h.agent_id = w.agent_id
		WHERE w.charged <> COALESCE(h.charged, 0) OR w.refunded <> COALESCE(h.refunded, 0)
		OR w.recharged <> COALESCE(h.recharged, 0)`},
	{"the traffic and the rotations of an agent are those of its sessions", `SELECT s.agent_id, 'sessions ' || s.bytes ||
		' and ' || s.rotations || '; agent ' || COALESCE(c.bytes, 0) || ' and ' || COALESCE(c.rotations, 0)
		FROM (SELECT agent_id, SUM(up + down) AS bytes, SUM(rotations + worker_rotations) AS rotations
		FROM sessions GROUP BY agent_id) s LEFT JOIN counters c ON c.agent_id = s.agent_id
		WHERE s.bytes <> COALESCE(c.bytes, 0) OR s.rotations <> COALESCE(c.rotations, 0)`},
}

// priceOf returns the price of a number of bytes at a price of a GB, with round added before the
// division. It is -1 where the product would not fit 64 bits, as with a damaged row.
func priceOf(bytes, price, round string) string {
	return `CASE WHEN ` + price + ` NOT BETWEEN 0 AND 9000000000 OR ` + bytes +
		` NOT BETWEEN 0 AND 1000000000000000000 THEN -1
		ELSE (` + bytes + `) / 1000000000 * ` + price + ` +
		((` + bytes + `) % 1000000000 * ` + price + ` + ` + round + `) / 1000000000 END`
}

var (
	// usedPrice is the price of what a session s used, where runsOf is joined.
	usedPrice = `COALESCE(r.due, ` + priceOf("s.up + s.down", "s.price", "0") + `)`
	// createdPrice is the price of the traffic that s was created with, where additions is joined.
	createdPrice = priceOf("(s.bytes - COALESCE(a.bytes, 0))", "s.price", "999999999")
	addedPrice   = priceOf("t.bytes", "t.price", "999999999")

	// runsOf has the price of what was used of each run of a session that traffic was added to, each
	// rounded down by itself.
	runsOf = ` LEFT JOIN (SELECT p.session_id, CAST(SUM(` + priceOf("p.used", "p.price", "0") + `) AS BIGINT) AS due
		FROM (SELECT x.session_id, x.price, CASE WHEN x.used <= x.start THEN 0
		WHEN x.used >= x.start + x.bytes THEN x.bytes ELSE x.used - x.start END AS used
		FROM (SELECT c.id AS session_id, c.price, 0 AS start, COALESCE(f.first, c.bytes) AS bytes, c.up + c.down AS used
		FROM sessions c JOIN (SELECT session_id, MIN(CASE WHEN run > 0 THEN start END) AS first
		FROM session_topups GROUP BY session_id) f ON f.session_id = c.id
		UNION ALL SELECT t.session_id, t.price, MIN(t.start), CAST(SUM(t.bytes) AS BIGINT), MIN(c.up + c.down)
		FROM session_topups t JOIN sessions c ON c.id = t.session_id WHERE t.run > 0
		GROUP BY t.session_id, t.run, t.price) x) p GROUP BY p.session_id) r ON r.session_id = s.id `

	// additions has what was added to a session.
	additions = ` LEFT JOIN (SELECT session_id, CAST(SUM(bytes) AS BIGINT) AS bytes
		FROM session_topups GROUP BY session_id) a ON a.session_id = s.id `
)

const (
	ended = "s.status IN ('terminated', 'expired', 'failed')"
	live  = "status IN ('creating', 'active')"
)

// sessionRules are those of sessions and of what is kept beside them.
var sessionRules = []rule{
	{"no session used more than it bought",
		`SELECT id, 'bought ' || bytes || ', used ' || (up + down) || ', leased ' || leased
		FROM sessions WHERE bytes > 0 AND up + down + leased > bytes`},
	{"no workers moved more than their session",
		`SELECT s.id, 'session ' || (s.up + s.down) || ' by ' || s.connections || '; workers ' || w.bytes || ' by ' || w.n
		FROM sessions s JOIN (SELECT session, SUM(up + down) AS bytes, SUM(connections) AS n
		FROM (SELECT session, up, down, connections FROM workers
		UNION ALL SELECT session, up, down, connections FROM session_archive) x GROUP BY session) w ON w.session = s.seq
		WHERE w.bytes > s.up + s.down OR w.n > s.connections`},
	{"an archived session ended, holds nothing and has no other workers",
		`SELECT s.id, s.status || ', holds ' || (s.held_trial + s.held_own) || ', ' || a.workers || ' archived, ' ||
		(SELECT COUNT(*) FROM workers w WHERE w.session = a.session) || ' others'
		FROM session_archive a JOIN sessions s ON s.seq = a.session
		WHERE NOT (` + ended + `) OR s.ended_at = 0 OR s.held_trial + s.held_own + s.leased > 0
		OR EXISTS (SELECT 1 FROM workers w WHERE w.session = a.session)`},
	{"what a session leased its leases have left",
		`SELECT s.id, 'session ' || s.leased || '; leases ' || COALESCE(l.unused, 0)
		FROM sessions s LEFT JOIN (SELECT session_id, SUM(granted - up - down) AS unused
		FROM leases GROUP BY session_id) l ON l.session_id = s.id
		WHERE s.leased <> COALESCE(l.unused, 0)`},
	{"what a session holds, was charged and refunded equals its entries",
		`SELECT s.id, 'session ' || s.held_trial || ' and ' ||
		s.held_own || ', ' || s.charged_trial || ' and ' || s.charged_own || ', ' || s.refunded_trial || ' and ' ||
		s.refunded_own || '; entries ' || COALESCE(e.held_trial, 0) || ' and ' || COALESCE(e.held_own, 0) || ', ' ||
		COALESCE(e.charged_trial, 0) || ' and ' || COALESCE(e.charged_own, 0) || ', ' ||
		COALESCE(e.refunded_trial, 0) || ' and ' || COALESCE(e.refunded_own, 0)
		FROM sessions s LEFT JOIN (SELECT session_id, SUM(held_trial) AS held_trial, SUM(held_own) AS held_own,
		SUM(CASE WHEN type = 'charge' THEN -held_trial ELSE 0 END) AS charged_trial,
		SUM(CASE WHEN type = 'charge' THEN -held_own ELSE 0 END) AS charged_own,
		SUM(CASE WHEN type = 'refund' THEN trial ELSE 0 END) AS refunded_trial,
		SUM(CASE WHEN type = 'refund' THEN own ELSE 0 END) AS refunded_own
		FROM ledger_entries WHERE session_id <> '' GROUP BY session_id) e ON e.session_id = s.id
		WHERE s.held_trial <> COALESCE(e.held_trial, 0) OR s.held_own <> COALESCE(e.held_own, 0)
		OR s.charged_trial <> COALESCE(e.charged_trial, 0) OR s.charged_own <> COALESCE(e.charged_own, 0)
		OR s.refunded_trial <> COALESCE(e.refunded_trial, 0) OR s.refunded_own <> COALESCE(e.refunded_own, 0)`},
	{"every entry of a session is of its agent", `SELECT e.id, e.agent_id || ', session ' || e.session_id
		FROM ledger_entries e LEFT JOIN sessions s ON s.id = e.session_id
		WHERE e.session_id <> '' AND (s.id IS NULL OR s.agent_id <> e.agent_id)`},
	{"no session is refunded more than it was charged", `SELECT s.id, 'charged ' || s.charged_trial || ' and ' ||
		s.charged_own || ', refunded ' || s.refunded_trial || ' and ' || s.refunded_own FROM sessions s
		WHERE s.refunded_trial NOT BETWEEN 0 AND s.charged_trial OR s.refunded_own NOT BETWEEN 0 AND s.charged_own`},
	{"what was held for a session is its price", `SELECT s.id, 'price ' || s.price || ', held ' || -(e.trial + e.own)
		FROM sessions s JOIN ledger_entries e ON e.ref = 'hold:' || s.id` + additions + `
		WHERE -(e.trial + e.own) <> CASE s.type WHEN 'dynamic' THEN ` + createdPrice + `
			ELSE CASE WHEN s.price BETWEEN 0 AND 9000000000 AND s.quantity BETWEEN 0 AND 1000000000
			THEN s.price * s.quantity ELSE -1 END END`},
	{"what was held for added traffic is its price",
		`SELECT t.session_id, 'addition ' || t.no || ' at ' || t.price || ', held ' || COALESCE(-(e.trial + e.own), 0)
		FROM session_topups t LEFT JOIN ledger_entries e ON e.ref = 'hold:' || t.session_id || ':traffic:' || t.no
		AND e.session_id = t.session_id WHERE COALESCE(-(e.trial + e.own), -2) <> ` + addedPrice + `
		UNION ALL SELECT e.session_id, e.ref || ' of no addition' FROM ledger_entries e
		LEFT JOIN session_topups t ON e.ref = 'hold:' || t.session_id || ':traffic:' || t.no
		WHERE e.type = 'hold' AND e.ref LIKE 'hold:%:traffic:%' AND t.no IS NULL`},
	{"traffic is charged to its price once settled, and never beyond",
		`SELECT s.id, 'used ' || (s.up + s.down) || ' at ' ||
		s.price || ', charged ' || (s.charged_trial + s.charged_own) FROM sessions s` + runsOf + `
		WHERE s.type = 'dynamic' AND s.activated_at > 0 AND (s.charged_trial + s.charged_own > ` + usedPrice + `
		OR ` + ended + ` AND s.held_trial + s.held_own = 0 AND s.charged_trial + s.charged_own <> ` + usedPrice + `)`},
	{"an ended session that holds money waits for something", `SELECT s.id, s.status || ', holds ' ||
		(s.held_trial + s.held_own) FROM sessions s
		WHERE ` + ended + ` AND s.held_trial + s.held_own > 0 AND s.settle_at = 0 AND NOT EXISTS (
			SELECT 1 FROM upstream_orders o WHERE o.session_id = s.id AND (o.status IN ('sent', 'unknown')
			OR o.kind = 'purchase' AND o.status = 'confirmed' AND o.state = 'pending'))`},
	{"a session that was never active is charged for what was delivered", `SELECT s.id, s.status || ', charged ' ||
		(s.charged_trial + s.charged_own) || ', holds ' || (s.held_trial + s.held_own) FROM sessions s
		WHERE s.activated_at = 0 AND s.charged_trial + s.charged_own > 0 AND NOT (
			s.status = 'terminated' AND s.held_trial + s.held_own = 0 AND EXISTS (SELECT 1 FROM upstream_orders o
			WHERE o.session_id = s.id AND o.kind = 'purchase' AND o.status = 'confirmed' AND o.sent_at > 0))`},
	{"an active session with traffic that is not charged is settled later", `SELECT s.id, 'used ' || (s.up + s.down) ||
		' at ' || s.price || ', charged ' || (s.charged_trial + s.charged_own) FROM sessions s` + runsOf + `
		WHERE s.status = 'active' AND s.type = 'dynamic' AND s.settle_at = 0
		AND s.charged_trial + s.charged_own < ` + usedPrice},
	{"a session has an end and a reason once it ended, and not before",
		`SELECT s.id, s.status || ', ended at ' || s.ended_at ||
		', ' || s.reason FROM sessions s WHERE (` + ended + `) <> (s.ended_at > 0 AND s.reason <> '')`},
	{"an active session has its exits", `SELECT s.id, s.quantity || ' exits, has ' || s.exits FROM sessions s
		WHERE s.status = 'active' AND (s.exits = ''
		OR length(s.exits) - length(replace(s.exits, ',', '')) + 1 <> s.quantity)`},
	{"the hours of a session add up to it",
		`SELECT s.id, 'session ' || s.up || ', ' || s.down || ', ' || s.connections || ', ' ||
		(s.charged_trial + s.charged_own) || ', ' || (s.refunded_trial + s.refunded_own) || '; hours ' ||
		COALESCE(h.up, 0) || ', ' || COALESCE(h.down, 0) || ', ' || COALESCE(h.connections, 0) || ', ' ||
		COALESCE(h.charged, 0) || ', ' || COALESCE(h.refunded, 0)
		FROM sessions s LEFT JOIN (SELECT session_id, SUM(up) AS up, SUM(down) AS down, SUM(connections) AS connections,
		SUM(charged) AS charged, SUM(refunded) AS refunded
		FROM usage_hours WHERE session_id <> '' GROUP BY session_id) h ON h.session_id = s.id
		WHERE s.up <> COALESCE(h.up, 0) OR s.down <> COALESCE(h.down, 0) OR s.connections <> COALESCE(h.connections, 0)
		OR s.charged_trial + s.charged_own <> COALESCE(h.charged, 0)
		OR s.refunded_trial + s.refunded_own <> COALESCE(h.refunded, 0)`},
}

// countRules are those of what is counted once: it is what a count of its rows is.
var countRules = []rule{
	{"the counts of ended sessions are right", `SELECT x.agent_id,
		x.product_no || ', ' || x.type || ', ' || x.status || ': ' || SUM(x.n) || ' too many'
		FROM (SELECT agent_id, product_no, type, status, n FROM session_counts
		UNION ALL SELECT agent_id, product_no, type, status, -1 FROM sessions WHERE counted = 1) x
		GROUP BY x.agent_id, x.product_no, x.type, x.status HAVING SUM(x.n) <> 0`},
	{"a counted session ended and holds nothing", `SELECT s.id, s.status || ', holds ' || (s.held_trial + s.held_own)
		FROM sessions s WHERE s.counted = 1 AND (NOT (` + ended + `) OR s.held_trial + s.held_own > 0)`},
	{"the sums of hours are right", `SELECT x.agent_id,
		'hour ' || x.hour || ' of ' || x.of_sessions || ': ' || SUM(x.up) || ', ' || SUM(x.down) || ', ' ||
		SUM(x.connections) || ', ' || SUM(x.charged) || ', ' || SUM(x.refunded) || ', ' || SUM(x.recharged) || ' too much'
		FROM (SELECT agent_id, hour, of_sessions, up, down, connections, charged, refunded, recharged FROM agent_hours
		UNION ALL SELECT agent_id, hour, CASE session_id WHEN '' THEN 0 ELSE 1 END, -up, -down,
		-connections, -charged, -refunded, -recharged FROM usage_hours WHERE counted = 1) x
		GROUP BY x.agent_id, x.hour, x.of_sessions HAVING SUM(x.up) <> 0 OR SUM(x.down) <> 0 OR SUM(x.connections) <> 0
		OR SUM(x.charged) <> 0 OR SUM(x.refunded) <> 0 OR SUM(x.recharged) <> 0`},
	{"the counts of sessions by their last hour are right", `SELECT x.agent_id, 'hour ' || x.hour || ': ' || SUM(x.n) ||
		' too many' FROM (SELECT agent_id, hour, last AS n FROM agent_hours
		UNION ALL SELECT agent_id, MAX(hour), -1 FROM usage_hours WHERE counted = 1 AND session_id <> ''
		GROUP BY agent_id, session_id) x GROUP BY x.agent_id, x.hour HAVING SUM(x.n) <> 0`},
}

// placeRules are those of addresses and idempotency keys, which name a session and not its agent.
var placeRules = []rule{
	{"only a live session has addresses", `SELECT a.ip, 'session ' || a.session_id FROM static_addresses a
		LEFT JOIN sessions s ON s.id = a.session_id
		WHERE s.status IS NULL OR s.status NOT IN ('creating', 'active')`},
	{"an active static session has its addresses", `SELECT s.id, s.quantity || ' addresses, has ' || COALESCE(a.n, 0)
		FROM sessions s LEFT JOIN (SELECT session_id, COUNT(*) AS n FROM static_addresses GROUP BY session_id) a
		ON a.session_id = s.id
		WHERE s.status = 'active' AND s.type = 'static' AND s.quantity <> COALESCE(a.n, 0)`},
	{"a failed session has no idempotency key", `SELECT s.id, 'key of ' || k.created_at FROM idempotency_keys k
		JOIN sessions s ON s.id = k.resource WHERE s.status = 'failed'`},
}

// transferRef is the reference by which the ledger books the transfer x.
const transferRef = `'usdt:' || x.network || ':' || x.tx_id || ':' || x.log_index`

// rechargeRules are those of received money.
var rechargeRules = []rule{
	{"every recharge is a final transfer of that amount, agent and order", `SELECT e.id, e.ref || ' of ' ||
		(e.trial + e.own) || ' for ' || e.agent_id FROM (SELECT ref, agent_id, order_id, trial + own AS amount, type
		FROM ledger_entries WHERE type = 'recharge' OR substr(ref, 1, 5) = 'usdt:'
		EXCEPT SELECT ` + transferRef + `, x.agent_id, x.order_id, x.amount, 'recharge'
		FROM recharge_transfers x WHERE x.state = 'final') d JOIN ledger_entries e ON e.ref = d.ref`},
	{"every final transfer is credited to its agent",
		`SELECT x.tx_id, 'log ' || x.log_index || ', ' || x.amount || ' for ' ||
		x.agent_id FROM recharge_transfers x LEFT JOIN ledger_entries e ON e.ref = ` + transferRef + `
		AND e.agent_id = x.agent_id AND e.trial + e.own = x.amount AND e.type = 'recharge'
		WHERE x.state = 'final' AND x.agent_id <> '' AND e.ref IS NULL`},
	{"a final transfer to an agent's address is that agent's",
		`SELECT x.tx_id, 'log ' || x.log_index || ' to ' || a.agent_id ||
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
	{"a paid order has the time of its payment", `SELECT id, status || ' at ' || paid_at FROM recharge_orders
		WHERE (status = 'paid') <> (paid_at > 0)`},
}

// orderRules are those of what is bought of providers.
var orderRules = []rule{
	{"every order of a provider belongs to a session", `SELECT o.id, 'session ' || o.session_id FROM upstream_orders o
		LEFT JOIN sessions s ON s.id = o.session_id WHERE s.id IS NULL`},
	{"nothing is bought twice for a session", `SELECT session_id, 'purchases ' || COUNT(*) FROM upstream_orders
		WHERE kind = 'purchase' AND status = 'confirmed' GROUP BY session_id HAVING COUNT(*) > 1`},
	{"what was bought is kept, and nothing else",
		`SELECT id, status || ' ' || kind || ', ' || length(goods) || ' bytes sealed'
		FROM upstream_orders WHERE (length(goods) > 0) <> (kind = 'purchase' AND status = 'confirmed')`},
	{"an order that was not sent has no cost", `SELECT id, status || ', cost ' || cost FROM upstream_orders
		WHERE (sent_at = 0 AND cost <> 0) OR cost < 0`},
}

// guarded is the name of the rule by which the triggers are in place that keep the ledger, and what
// operators did, from being changed.
const guarded = "the ledger cannot be changed"

const guards = `SELECT g.name, 'no trigger on ' || g.kept FROM (
	SELECT 'ledger_entries_keep' AS name, 'ledger_entries' AS kept
	UNION ALL SELECT 'ledger_entries_stay', 'ledger_entries'
	UNION ALL SELECT 'recharge_transfers_keep', 'recharge_transfers'
	UNION ALL SELECT 'recharge_transfers_stay', 'recharge_transfers'
	UNION ALL SELECT 'audit_actions_keep', 'audit_actions'`

const (
	sqliteGuards = guards + ` UNION ALL SELECT 'audit_actions_stay', 'audit_actions') g WHERE NOT EXISTS (
		SELECT 1 FROM sqlite_master m WHERE m.type = 'trigger' AND m.name = g.name
		AND m.tbl_name = g.kept AND m.sql LIKE '%RAISE(ABORT%')`
	postgresGuards = guards + `) g WHERE NOT EXISTS (
		SELECT 1 FROM pg_trigger t WHERE t.tgname = g.name AND t.tgrelid = to_regclass(g.kept)
		AND t.tgenabled IN ('O', 'A'))`
)
