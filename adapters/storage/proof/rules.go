package proof

import "agentproxy/ports"

// ledgerRules are those of entries and wallets.
var ledgerRules = []rule{
	{"what a wallet holds its sessions hold", `SELECT w.agent_id, 'wallet ' || w.held_trial || ' and ' || w.held_own ||
		'; sessions ' || COALESCE(s.trial, 0) || ' and ' || COALESCE(s.own, 0)
		FROM wallets w LEFT JOIN (SELECT agent_id, SUM(held_trial) AS trial, SUM(held_own) AS own
		FROM sessions GROUP BY agent_id) s ON s.agent_id = w.agent_id
		WHERE w.held_trial <> COALESCE(s.trial, 0) OR w.held_own <> COALESCE(s.own, 0)`},
	{"a wallet counts its live sessions", `SELECT w.agent_id, 'wallet ' || w.live_sessions || '; sessions ' ||
		COALESCE(s.n, 0) FROM wallets w LEFT JOIN (SELECT agent_id, COUNT(*) AS n FROM sessions
		WHERE ` + live + ` GROUP BY agent_id) s ON s.agent_id = w.agent_id
		WHERE w.live_sessions <> COALESCE(s.n, 0)`},
	{keyCosts, keyMoney("sessions")},
	{spentByKey, keyDay("sessions", "0")},
	{keysCounted, `SELECT w.agent_id, 'wallet ' || w.restricted_keys || '; keys ' ||
		COALESCE(k.n, 0) FROM wallets w LEFT JOIN (SELECT agent_id, COUNT(*) AS n FROM key_wallets GROUP BY agent_id) k
		ON k.agent_id = w.agent_id WHERE w.restricted_keys <> COALESCE(k.n, 0)`},
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

// keyMoney compares restricted keys with the sessions that they bought, of which a table has all.
func keyMoney(sessions string) string {
	return `SELECT k.agent_id, k.key_id || ' spent ' || k.spent || ', holds ' || k.held || ', ' || k.live_sessions ||
		' live; sessions ' || COALESCE(s.spent, 0) || ', ' || COALESCE(s.held, 0) || ', ' || COALESCE(s.n, 0)
		FROM key_wallets k LEFT JOIN (SELECT agent_id, bought_by, SUM(held_trial + held_own) AS held,
		SUM(charged_trial + charged_own - refunded_trial - refunded_own) AS spent,
		SUM(CASE WHEN ` + live + ` THEN 1 ELSE 0 END) AS n FROM ` + sessions + `
		WHERE bought_by <> '' AND agent_id >= ?1 AND agent_id < ?2 GROUP BY agent_id, bought_by) s
		ON s.agent_id = k.agent_id AND s.bought_by = k.key_id
		WHERE k.spent <> COALESCE(s.spent, 0) OR k.held <> COALESCE(s.held, 0) OR k.live_sessions <> COALESCE(s.n, 0)`
}

// Rules of restricted keys.
const (
	keyCosts    = "what a restricted key spent and holds its sessions cost and hold"
	spentByKey  = "what a restricted key spent on its day was held on it"
	keysCounted = "a wallet counts the restricted keys of its agent"
)

// keyDay compares what restricted keys spent on their days, if those are not before a time, with what was held for the
// sessions that they bought, of which a table has all: at most that since the first entry on the day, and at least what
// is not released, as with the day of a wallet.
func keyDay(sessions, since string) string {
	return `SELECT x.agent_id, x.key_id || ' day ' || x.spent_day || ', spent ' || x.spent_today ||
		'; held ' || x.most || ', not released ' || x.least FROM (SELECT k.agent_id, k.key_id, k.spent_day, k.spent_today,
		COALESCE(SUM(CASE WHEN e.ord >= f.ord AND e.type = 'hold' THEN -(e.trial + e.own) ELSE 0 END), 0) AS most,
		COALESCE(SUM(CASE WHEN e.at >= k.spent_day THEN -(e.trial + e.own) ELSE 0 END), 0) AS least
		FROM key_wallets k LEFT JOIN (SELECT d.agent_id, d.spent_day, MIN(g.ord) AS ord
		FROM (SELECT DISTINCT agent_id, spent_day FROM key_wallets WHERE spent_day >= ` + since + `) d
		JOIN ledger_entries g ON g.agent_id = d.agent_id AND g.at >= d.spent_day GROUP BY d.agent_id, d.spent_day) f
		ON f.agent_id = k.agent_id AND f.spent_day = k.spent_day
		LEFT JOIN (SELECT b.bought_by, l.* FROM ledger_entries l JOIN ` + sessions + ` b ON b.id = l.session_id
		WHERE b.bought_by <> '' AND l.type IN ('hold', 'release')) e
		ON e.agent_id = k.agent_id AND e.bought_by = k.key_id AND (e.ord >= f.ord OR e.at >= k.spent_day)
		WHERE k.spent_day >= ` + since + ` GROUP BY k.agent_id, k.key_id, k.spent_day, k.spent_today) x
		WHERE x.spent_day % ` + day + ` <> 0 OR x.spent_today NOT BETWEEN x.least AND x.most`
}

// placeRules are those of addresses and idempotency keys, which name a session and not its agent.
func placeRules(postgres bool) []rule {
	const end = "'" + ports.ResourceSeparator + "'"
	session := "substr(k.resource, 1, instr(k.resource || " + end + ", " + end + ") - 1)"
	if postgres {
		session = "split_part(k.resource, " + end + ", 1)"
	}
	return []rule{
		{"only a live session has addresses", `SELECT a.ip, 'session ' || a.session_id FROM static_addresses a
			LEFT JOIN sessions s ON s.id = a.session_id
			WHERE s.status IS NULL OR s.status NOT IN ('creating', 'active')`},
		{"an active static session has its addresses", `SELECT s.id, s.quantity || ' addresses, has ' || COALESCE(a.n, 0)
			FROM sessions s LEFT JOIN (SELECT session_id, COUNT(*) AS n FROM static_addresses GROUP BY session_id) a
			ON a.session_id = s.id
			WHERE s.status = 'active' AND s.type = 'static' AND s.quantity <> COALESCE(a.n, 0) + ` + endedExits},
		{"the addresses of a session are its exits", `SELECT a.ip, 'session ' || s.id || ' of ' || s.provider ||
			', not of ' || a.provider || ', has ' || s.exits FROM static_addresses a JOIN sessions s ON s.id = a.session_id
			WHERE s.status = 'active' AND (a.provider <> s.provider
			OR ',' || s.exits || ',' NOT LIKE '%,' || a.ip || ',%')`},
		{"a failed session has no idempotency key", `SELECT s.id, 'key of ' || k.created_at FROM idempotency_keys k
			JOIN sessions s ON s.id = k.resource WHERE s.status = 'failed'`},
		{"an idempotency key names a session of its agent", `SELECT s.id, 'of ' || s.agent_id || ', key of ' || k.agent_id ||
			' at ' || k.created_at FROM idempotency_keys k JOIN sessions s ON s.id = ` + session + `
			WHERE s.agent_id <> k.agent_id AND k.agent_id <> ''`}, // the operator's have no agent
	}
}

// transferRef is the reference by which the ledger books the transfer x.
const transferRef = `'usdt:' || x.network || ':' || x.tx_id || ':' || x.log_index`

// ofTransfer is the name of the rule of what recharges are booked for. One that has no reference to a transfer is found
// in the walk, so that the others are found by their references.
const ofTransfer = "every recharge is a final transfer of that amount, agent and order"

// rechargeRules are those of received money.
var rechargeRules = []rule{
	{ofTransfer, `SELECT e.id, e.ref || ' of ' ||
		(e.trial + e.own) || ' for ' || e.agent_id FROM (SELECT ref, agent_id, order_id, trial + own AS amount, type
		FROM ledger_entries WHERE ref >= 'usdt:' AND ref < 'usdt;'
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
		WHERE x.state = 'final' AND x.agent_id <> a.agent_id
		AND NOT (x.agent_id = '' AND EXISTS (SELECT 1 FROM recharge_addresses o
		WHERE o.network = x.network AND o.address = x.from_address))`}, // what the operator moved is of no agent
	{"what the operator moved between addresses is of no agent",
		`SELECT x.tx_id, 'log ' || x.log_index || ', ' || x.amount || ' for ' || x.agent_id ||
		', order ' || x.order_id FROM recharge_transfers x
		WHERE x.state = 'final' AND x.note <> '' AND (x.agent_id <> '' OR x.order_id <> '')`},
	{"what is set aside is not booked", `SELECT a.tx_id, 'log ' || a.log_index || ' of ' || a.agent_id
		FROM recharge_aside a JOIN recharge_transfers x ON x.network = a.network AND x.tx_id = a.tx_id
		AND x.log_index = a.log_index WHERE x.state = 'final'`},
	{"what an order received its final transfers brought", `SELECT o.id, 'order ' || o.received || '; transfers ' ||
		COALESCE(x.amount, 0) FROM recharge_orders o LEFT JOIN (SELECT order_id, agent_id, network, SUM(amount) AS amount
		FROM recharge_transfers WHERE state = 'final' AND order_id <> '' GROUP BY order_id, agent_id, network) x
		ON x.order_id = o.id AND x.agent_id = o.agent_id AND x.network = o.network
		WHERE o.received <> COALESCE(x.amount, 0)`},
	{"an order is paid when it received its amount", `SELECT id, status || ', received ' || received || ' of ' || amount
		FROM recharge_orders WHERE (status = 'paid' AND received < amount) OR (status <> 'paid' AND received >= amount)`},
	{"a paid order has the time of its payment", `SELECT id, status || ' at ' || paid_at FROM recharge_orders
		WHERE (status = 'paid') <> (paid_at > 0)`},
	{"an order is paid at the time of a transfer to it", `SELECT o.id, 'paid at ' || o.paid_at FROM recharge_orders o
		WHERE o.status = 'paid' AND NOT EXISTS (SELECT 1 FROM recharge_transfers x WHERE x.order_id = o.id
		AND x.order_id <> '' AND x.state = 'final' AND x.block_time = o.paid_at)`},
	{"what an agent pays goes to an address of its own", `SELECT o.id, o.address || ' of ' ||
		COALESCE(a.agent_id, 'no agent') || ', order of ' || o.agent_id FROM recharge_orders o
		LEFT JOIN recharge_addresses a ON a.network = o.network AND a.address = o.address
		WHERE a.agent_id IS NULL OR a.agent_id <> o.agent_id
		UNION ALL SELECT x.tx_id, x.to_address || ' of no agent, transfer of ' || x.agent_id FROM recharge_transfers x
		LEFT JOIN recharge_addresses a ON a.network = x.network AND a.address = x.to_address
		WHERE x.state = 'final' AND x.agent_id <> '' AND a.agent_id IS NULL`},
	{"no index of a key is given out again", `SELECT a.network, 'key ' || a.fingerprint || ', address ' || MAX(a.idx) ||
		', next ' || COALESCE(k.next, 0) FROM recharge_addresses a
		LEFT JOIN recharge_keys k ON k.network = a.network AND k.fingerprint = a.fingerprint
		GROUP BY a.network, a.fingerprint, k.next HAVING MAX(a.idx) >= COALESCE(k.next, 0)`},
	{"a chain is read up to its head at most", `SELECT network, 'read ' || final_number || ', head ' || latest
		FROM recharge_marks WHERE final_number > latest`},
	{"a window closes once the chain is past it", `SELECT o.id, o.status || ', ends at ' || o.expires_at ||
		'; chain at ' || COALESCE(m.final_time, 0) FROM recharge_orders o LEFT JOIN recharge_marks m ON m.network = o.network
		LEFT JOIN recharge_addresses a ON a.network = o.network AND a.address = o.address
		WHERE o.status IN ('expired', 'failed') AND COALESCE(m.final_time, 0) <= o.expires_at
		AND COALESCE(a.read_through, 0) <= o.expires_at`},
}

// kept is the time of the oldest action of an operator that is kept.
const kept = "(SELECT MIN(at) FROM audit_actions)"

// accountRules are those of accounts. What an operator did to an account that is younger than the oldest
// action that is kept is among the actions.
var accountRules = []rule{
	{"what an operator decides of an account is an action of his", `SELECT a.id, a.status || ', verified for ' ||
		a.verified_for FROM agents a WHERE a.created_at >= ` + kept + ` AND (
		a.verified_for <> '' AND NOT EXISTS (SELECT 1 FROM audit_actions x
		WHERE x.subject = a.id AND x.name = 'agent set-tier')
		OR a.status = 'disabled' AND NOT EXISTS (SELECT 1 FROM audit_actions x
		WHERE x.subject = a.id AND x.name = 'agent disable'))`},
	{"what was granted of the trial on a day is counted", `SELECT 'day ' || g.day, 'counted ' || g.granted ||
		', granted ' || COALESCE(SUM(e.trial), 0) FROM trial_grants g LEFT JOIN ledger_entries e ON e.at >= g.day
		AND e.at < g.day + 86400000000 AND e.account <> '' AND e.type = 'trial_grant'
		WHERE g.scope = 'total' GROUP BY g.day, g.granted HAVING g.granted <> COALESCE(SUM(e.trial), 0)`},
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
	// The whole days left of what was paid for an address that ended, and the fee of a replacement that was refused.
	{"an address that was given back is refunded what it is due", `SELECT r.id, r.status || ', refunded ' ||
		COALESCE(e.trial + e.own, 0) || ' of ' || r.refund || ', keeps ' || r.kept || ', fee ' || r.fee
		FROM replacements r JOIN sessions s ON s.id = r.session_id
		LEFT JOIN ledger_entries e ON e.ref = 'refund:' || r.session_id || ':' || r.id
		WHERE COALESCE(e.trial + e.own, 0) <> CASE r.status WHEN 'refused' THEN r.fee ELSE r.refund END
		OR r.kept <> 0 AND s.kept = 0 OR r.status = 'ended' AND s.ended_exits = ''
		OR r.status IN ('pending', 'done') AND (r.refund <> 0 OR r.kept <> r.fee)
		OR r.status = 'refused' AND (r.refund <> 0 OR r.kept NOT IN (0, r.fee)) OR r.status = 'ended' AND r.refund <> CASE
		WHEN r.ends_at < s.activated_at + ` + day + ` OR r.decided_at >= r.ends_at THEN 0
		ELSE (r.refund + r.kept) * ((r.ends_at - r.decided_at) / ` + day + `) /
			((r.ends_at - s.activated_at) / ` + day + `) END`},
	{"an order that was not sent has no cost", `SELECT id, status || ', cost ' || cost FROM upstream_orders
		WHERE (sent_at = 0 AND cost <> 0) OR cost < 0`},
}
