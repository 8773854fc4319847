package proof

// day is a day in microseconds, hour an hour.
const (
	day  = "86400000000"
	hour = "3600000000"
)

// paidDays compares the days of static sessions with what was paid. Each renewal in this process is a hold, which names
// the end before it: rows u has how many (n) and the last of a session. Of those at a provider there are the days of
// the ones that were confirmed before the session ended, and of all: a seller may have extended what it refused.
func paidDays(renewals string) string {
	return `SELECT x.id, 'active at ' || x.activated_at || ', ends at ' || x.expires_at || ', paid for ' || x.least ||
		' days, or ' || x.most FROM (SELECT s.id, s.activated_at, s.expires_at,
		CASE WHEN h.n > 0 THEN (h.last * 1000000 + 1000000 - s.activated_at) / ` + day + ` + 1
			ELSE s.days + COALESCE(r.least, 0) END AS least,
		CASE WHEN h.n > 0 THEN (h.last * 1000000 + 1000000 - s.activated_at) / ` + day + ` + 3650
			ELSE s.days + COALESCE(r.most, 0) END AS most
		FROM sessions s LEFT JOIN (SELECT u.session_id, SUM(u.n) AS n, MAX(u.last) AS last FROM ` + renewals + `
		GROUP BY u.session_id) h ON h.session_id = s.id
		LEFT JOIN (SELECT c.id, SUM(CASE WHEN o.status = 'confirmed' AND (c.ended_at = 0 OR o.decided_at < c.ended_at)
			THEN o.days ELSE 0 END) AS least, SUM(o.days) AS most
		FROM sessions c JOIN upstream_orders o ON o.session_id = c.id AND o.kind = 'renewal'
		GROUP BY c.id) r ON r.id = s.id WHERE s.type = 'static' AND s.activated_at > 0) x
		WHERE (x.expires_at - x.activated_at) % ` + day + ` <> 0
		OR (x.expires_at - x.activated_at) / ` + day + ` NOT BETWEEN x.least AND x.most`
}

// unusedDays compares the refunds of static sessions that were active and ended, with what the end gave back and what
// had been charged by then, with the days that were not used.
func unusedDays(ends string) string {
	return `SELECT x.id, x.reason || ', refunded ' || x.got || ' of ' || x.due FROM (SELECT d.id, d.reason, d.got,
		CASE WHEN d.reason NOT IN ('provider_lost', 'account_disabled', 'operator_request') OR d.ended_at >= d.expires_at
			OR d.expires_at < d.activated_at + ` + day + ` THEN 0
		WHEN d.paid - d.kept BETWEEN 0 AND 2000000000000000 AND d.ended_at >= d.activated_at THEN
			(d.paid - d.kept) * ((d.expires_at - d.ended_at) / ` + day + `) / ((d.expires_at - d.activated_at) / ` + day + `)
		ELSE d.paid - d.kept END AS due FROM (` + ends + `) d) x WHERE x.got <> x.due`
}

// endedExits is how many addresses of a session s ended before it.
const endedExits = `CASE s.ended_exits WHEN '' THEN 0
	ELSE 1 + length(s.ended_exits) - length(replace(s.ended_exits, ',', '')) END`

// heldProduct compares the product of a session with what it was held for, by an entry in a table.
func heldProduct(entries string) string {
	return `SELECT s.id, s.product_no || '; ' || e.description
		FROM sessions s JOIN ` + entries + ` e ON e.ref = 'hold:' || s.id
		WHERE e.description <> '' AND e.description NOT LIKE '%' || s.product_no`
}

// soldRules are those of what was sold against what was paid, ordered and used for it.
var soldRules = []rule{
	{"a static session lasts as many days as were paid",
		paidDays("(SELECT e.session_id, 1 AS n, " + renewalEnd + " AS last FROM ledger_entries e WHERE " +
			renewalHold + ") u")},
	{"a session begins before it is active and ends", // but for a clock that went back a little
		`SELECT id, 'created at ' || created_at || ', active at ' || activated_at || ', ended at ' || ended_at FROM sessions
		WHERE activated_at > 0 AND activated_at < created_at - ` + hour + `
		OR ended_at > 0 AND ended_at < created_at - ` + hour},
	{"a static session that ends early is refunded its unused days by its reason",
		unusedDays(`SELECT s.id, s.reason, s.ended_at, s.expires_at, s.activated_at, s.kept,
		COALESCE(r.trial + r.own, 0) AS got,
		CAST(SUM(CASE WHEN e.ord < r.ord OR r.ord IS NULL AND e.at < s.ended_at THEN e.counter ELSE 0 END) AS BIGINT) AS paid
		FROM sessions s JOIN ledger_entries e ON e.session_id = s.id AND e.type IN ('charge', 'refund')
		LEFT JOIN ledger_entries r ON r.ref = 'refund:' || s.id
		WHERE s.type = 'static' AND s.activated_at > 0 AND s.ended_at > 0
		GROUP BY s.id, s.reason, s.ended_at, s.expires_at, s.activated_at, s.kept, r.trial, r.own, r.ord`)},
	{"what a session keeps and which addresses ended is as they were given back", `SELECT x.id, 'keeps ' || x.kept ||
		' of ' || x.due || '; ' || x.n || ' of ' || x.ended FROM (SELECT s.id, s.kept, ` + endedExits + ` AS n,
		COALESCE((SELECT CAST(SUM(r.kept) AS BIGINT) FROM replacements r WHERE r.session_id = s.id), 0) AS due,
		(SELECT COUNT(*) FROM replacements r WHERE r.session_id = s.id AND r.status = 'ended') AS ended
		FROM sessions s) x WHERE x.kept <> x.due OR x.n <> x.ended`},
	{"an active static session is charged, and holds nothing but for a renewal",
		`SELECT s.id, 'holds ' || (s.held_trial + s.held_own) || ', charged ' || (s.charged_trial + s.charged_own)
		FROM sessions s WHERE s.type = 'static' AND s.activated_at > 0 AND (s.status = 'active'
		AND s.held_trial + s.held_own > 0 AND NOT EXISTS (SELECT 1 FROM upstream_orders o WHERE o.session_id = s.id
		AND o.kind = 'renewal' AND o.status IN ('planned', 'sent', 'unknown'))
		OR s.price BETWEEN 0 AND 9000000000 AND s.quantity BETWEEN 0 AND 1000000000
		AND s.charged_trial + s.charged_own < s.price * s.quantity)`},
	{isOrdered, `SELECT s.id, s.provider || ', ' || s.type || ', ' || s.country || ' ' ||
		s.city || ', ' || s.quantity || ' for ' || s.days || ' days; order ' || o.id || ' of ' || o.provider || ', ' ||
		o.type || ', ' || o.country || ' ' || o.city || ', ' || o.quantity || ' for ' || o.days || ' days' FROM sessions s
		JOIN upstream_orders o ON o.session_id = s.id AND o.kind = 'purchase' AND o.status = 'confirmed'
` + additions + `
		WHERE o.provider <> s.provider OR o.type <> s.type OR o.country <> s.country OR o.city <> s.city
		OR o.quantity <> s.quantity OR o.days <> s.days
		OR s.type = 'dynamic' AND o.bytes <> s.bytes - COALESCE(a.bytes, 0)`},
	{dynamicTerms, `SELECT s.id, s.quantity || ' addresses, ' || s.days || ' days' FROM sessions s
		WHERE ` + oddSessions[dynamicTerms]},
	{"a session is of the product that it was held for", heldProduct("ledger_entries")},
	{orderThere,
		`SELECT s.id, s.provider FROM sessions s WHERE s.status = 'active'
		AND EXISTS (SELECT 1 FROM upstream_orders p WHERE p.provider = s.provider)
		AND NOT EXISTS (SELECT 1 FROM upstream_orders o WHERE o.session_id = s.id AND o.kind = 'purchase'
		AND o.status = 'confirmed' AND o.provider = s.provider AND o.state <> 'gone' AND o.closed_at = 0 AND o.next_at > 0)`},
	{linesThere, `SELECT s.id, s.provider || ', order ' || o.id || ' of ' || o.quantity
		FROM sessions s JOIN upstream_orders o ON o.session_id = s.id AND o.kind = 'purchase' AND o.status = 'confirmed'
		WHERE s.status = 'active' AND o.ref = o.id AND o.quantity <> (SELECT COUNT(*) FROM list_claims c
		WHERE c.provider = o.provider AND c.order_id = o.id)`},
	{counterFell, `SELECT s.id, 'order ' || o.id || ' from ' ||
		o.counter_base || ', used ' || (s.up + s.down) FROM upstream_orders o JOIN sessions s ON s.id = o.session_id
		WHERE o.counter_base NOT BETWEEN 0 AND s.up + s.down`},
	{"a session is settled soon after it was used or ended", // by the last count of a direct one: 73 hours
		`SELECT id, status || ', to be settled at ' || settle_at FROM sessions WHERE settle_at > 0 AND leased = 0
		AND settle_at > created_at + 4 * ` + day + ` AND settle_at > usage_at + 4 * ` + day + `
		AND settle_at > ended_at + 4 * ` + day},
	{"a session has the additions that were bought for it",
		`SELECT s.id, COALESCE(t.no, 0) || ' additions; ' || s.top_ups FROM sessions s LEFT JOIN (
		SELECT session_id, MAX(no) AS no FROM session_topups GROUP BY session_id) t ON t.session_id = s.id
		WHERE CASE WHEN t.no IS NULL THEN s.top_ups LIKE '%"no":%' ELSE s.top_ups NOT LIKE '%"no":' || t.no || ',%' END
		UNION ALL SELECT s.id, 'run of ' || t.bytes || ' at ' || t.price || '; ' || s.top_ups FROM (SELECT session_id, price,
		CAST(SUM(bytes) AS BIGINT) AS bytes FROM session_topups WHERE run > 0 GROUP BY session_id, run, price) t
		JOIN sessions s ON s.id = t.session_id
		WHERE s.top_ups NOT LIKE '%{"bytes":' || t.bytes || ',"price":' || t.price || '}%'
		UNION ALL SELECT s.id, 'addition ' || t.no || ' of run ' || t.run || ', from ' || t.start || ' on'
		FROM session_topups t JOIN sessions s ON s.id = t.session_id WHERE t.start <> CASE t.run WHEN 0 THEN 0 ELSE
		s.bytes - (SELECT SUM(l.bytes) FROM session_topups l WHERE l.session_id = t.session_id AND l.run >= t.run) END`},
	{"the hours of a session lie within its life", // but for a replica whose clock was a day off
		`SELECT s.id, 'hour ' || h.hour || '; created at ' || s.created_at || ', used at ' || s.usage_at
		FROM usage_hours h JOIN sessions s ON s.id = h.session_id
		WHERE (h.up + h.down + h.connections > 0 OR s.type = 'dynamic' AND s.activated_at > 0 AND h.charged > 0)
		AND (h.hour < s.created_at - 2 * ` + day + ` OR h.hour > s.usage_at + 2 * ` + day + `)`},
	{"refunds and recharges are summed in their hours", `SELECT x.agent_id, 'hour ' || x.hour || ' of ' ||
		x.session_id || ': ' || SUM(x.refunded) || ', ' || SUM(x.recharged) || ' too much'
		FROM (SELECT agent_id, session_id, hour, refunded, recharged FROM usage_hours WHERE refunded <> 0 OR recharged <> 0
		UNION ALL SELECT agent_id, session_id, at - at % ` + hour + `, CASE type WHEN 'refund' THEN -trial - own ELSE 0 END,
		CASE type WHEN 'recharge' THEN -trial - own ELSE 0 END FROM ledger_entries WHERE type IN ('refund', 'recharge')) x
		GROUP BY x.agent_id, x.session_id, x.hour HAVING SUM(x.refunded) <> 0 OR SUM(x.recharged) <> 0`},
}
