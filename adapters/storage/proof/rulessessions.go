package proof

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

// endedExits is how many addresses of a session s ended before it.
const endedExits = `CASE s.ended_exits WHEN '' THEN 0
	ELSE 1 + length(s.ended_exits) - length(replace(s.ended_exits, ',', '')) END`

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

// heldProduct compares the product of a session with what it was held for, by an entry in a table.
func heldProduct(entries string) string {
	return `SELECT s.id, s.product_no || '; ' || e.description
		FROM sessions s JOIN ` + entries + ` e ON e.ref = 'hold:' || s.id
		WHERE e.description <> '' AND e.description NOT LIKE '%' || s.product_no`
}

const (
	openingSelect = `SELECT agent_id, session_id, held_trial, held_own, charged_trial, charged_own, refunded_trial,
		refunded_own, paid, renewals, renewed FROM ledger_openings WHERE agent_id >= ?1 AND agent_id < ?2 AND month = ?3`

	// sealedSessions sums what the sessions that ended before ?3 moved.
	sealedSessions = `SELECT agent_id, CAST(SUM(up + down) AS BIGINT), CAST(SUM(rotations + worker_rotations) AS BIGINT)
		FROM sessions WHERE agent_id >= ?1 AND agent_id < ?2 AND counted = 1 AND ended_at < ?3 GROUP BY agent_id`
	// unsealable are the agents with a session that ended before ?3 and is not counted, as when it still holds money.
	unsealable = `SELECT DISTINCT agent_id FROM sessions
		WHERE agent_id >= ?1 AND agent_id < ?2 AND counted = 0 AND ended_at > 0 AND ended_at < ?3`
	// openings sums the entries before ?3 of the sessions that go on.
	openings = `SELECT e.agent_id, e.session_id, CAST(SUM(e.held_trial) AS BIGINT), CAST(SUM(e.held_own) AS BIGINT),
		CAST(SUM(CASE WHEN e.type = 'charge' THEN -e.held_trial ELSE 0 END) AS BIGINT),
		CAST(SUM(CASE WHEN e.type = 'charge' THEN -e.held_own ELSE 0 END) AS BIGINT),
		CAST(SUM(CASE WHEN e.type = 'refund' THEN e.trial ELSE 0 END) AS BIGINT),
		CAST(SUM(CASE WHEN e.type = 'refund' THEN e.own ELSE 0 END) AS BIGINT),
		CAST(SUM(CASE WHEN e.type IN ('charge', 'refund') THEN e.counter ELSE 0 END) AS BIGINT),
		CAST(SUM(CASE WHEN ` + renewalHold + ` THEN 1 ELSE 0 END) AS BIGINT),
		CAST(COALESCE(MAX(CASE WHEN ` + renewalHold + ` THEN ` + renewalEnd + ` END), 0) AS BIGINT)
		FROM sessions s JOIN ledger_entries e ON e.agent_id = s.agent_id AND e.session_id = s.id
		WHERE s.agent_id >= ?1 AND s.agent_id < ?2 AND (s.counted = 0 OR s.ended_at >= ?3)
		AND e.agent_id >= ?1 AND e.agent_id < ?2 AND e.at < ?3 GROUP BY e.agent_id, e.session_id`

	// renewalHold are the entries e that hold money for the renewal of a static session, and renewalEnd is the end
	// before it in seconds, which their references name.
	renewalHold = "e.type = 'hold' AND e.ref LIKE 'hold:' || e.session_id || ':renew:%'"
	renewalEnd  = "CAST(substr(e.ref, length(e.session_id) + 13) AS BIGINT)"
)

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
	usedPrice = `COALESCE(r.due, ` + simplePrice + `)`
	// createdPrice is the price of the traffic that s was created with, where additions is joined.
	createdPrice = priceOf("(s.bytes - COALESCE(a.bytes, 0))", "s.price", "999999999")
	simplePrice  = priceOf("s.up + s.down", "s.price", "0") // without additions
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

// entryMoney are the columns of what an entry charges and refunds.
const entryMoney = `CASE WHEN type = 'charge' THEN -held_trial ELSE 0 END AS charged_trial,
	CASE WHEN type = 'charge' THEN -held_own ELSE 0 END AS charged_own,
	CASE WHEN type = 'refund' THEN trial ELSE 0 END AS refunded_trial,
	CASE WHEN type = 'refund' THEN own ELSE 0 END AS refunded_own`

// sessionMoney compares what sessions hold, were charged and refunded with the sums of rows.
func sessionMoney(rows string) string {
	return `SELECT s.id, 'session ' || s.held_trial || ' and ' ||
		s.held_own || ', ' || s.charged_trial || ' and ' || s.charged_own || ', ' || s.refunded_trial || ' and ' ||
		s.refunded_own || '; entries ' || COALESCE(e.held_trial, 0) || ' and ' || COALESCE(e.held_own, 0) || ', ' ||
		COALESCE(e.charged_trial, 0) || ' and ' || COALESCE(e.charged_own, 0) || ', ' ||
		COALESCE(e.refunded_trial, 0) || ' and ' || COALESCE(e.refunded_own, 0)
		FROM sessions s LEFT JOIN (SELECT session_id, SUM(held_trial) AS held_trial, SUM(held_own) AS held_own,
		SUM(charged_trial) AS charged_trial, SUM(charged_own) AS charged_own, SUM(refunded_trial) AS refunded_trial,
		SUM(refunded_own) AS refunded_own FROM ` + rows + ` GROUP BY session_id) e ON e.session_id = s.id
		WHERE s.held_trial <> COALESCE(e.held_trial, 0) OR s.held_own <> COALESCE(e.held_own, 0)
		OR s.charged_trial <> COALESCE(e.charged_trial, 0) OR s.charged_own <> COALESCE(e.charged_own, 0)
		OR s.refunded_trial <> COALESCE(e.refunded_trial, 0) OR s.refunded_own <> COALESCE(e.refunded_own, 0)`
}

// heldPrice compares what was held for a session, by an entry in a table, with its price.
func heldPrice(entries string) string {
	return `SELECT s.id, 'price ' || s.price || ', held ' || -(e.trial + e.own)
		FROM sessions s JOIN ` + entries + ` e ON e.ref = 'hold:' || s.id` + additions + `
		WHERE -(e.trial + e.own) <> CASE s.type WHEN 'dynamic' THEN ` + createdPrice + `
			ELSE CASE WHEN s.price BETWEEN 0 AND 9000000000 AND s.quantity BETWEEN 0 AND 1000000000
			THEN s.price * s.quantity ELSE -1 END END`
}

// sessionHours compares sessions with the sums of their hours u.
func sessionHours(hours string) string {
	return `SELECT s.id, 'session ' || s.up || ', ' || s.down || ', ' || s.connections || ', ' ||
		(s.charged_trial + s.charged_own) || ', ' || (s.refunded_trial + s.refunded_own) || '; hours ' ||
		COALESCE(h.up, 0) || ', ' || COALESCE(h.down, 0) || ', ' || COALESCE(h.connections, 0) || ', ' ||
		COALESCE(h.charged, 0) || ', ' || COALESCE(h.refunded, 0)
		FROM sessions s LEFT JOIN (SELECT u.session_id, SUM(u.up) AS up, SUM(u.down) AS down,
		SUM(u.connections) AS connections, SUM(u.charged) AS charged, SUM(u.refunded) AS refunded
		FROM ` + hours + ` GROUP BY u.session_id) h ON h.session_id = s.id
		WHERE s.up <> COALESCE(h.up, 0) OR s.down <> COALESCE(h.down, 0) OR s.connections <> COALESCE(h.connections, 0)
		OR s.charged_trial + s.charged_own <> COALESCE(h.charged, 0)
		OR s.refunded_trial + s.refunded_own <> COALESCE(h.refunded, 0)`
}

const (
	ended = "s.status IN ('terminated', 'expired', 'failed')"
	live  = "status IN ('creating', 'active')"
)

// sessionRules are those of sessions and of what is kept beside them.
var sessionRules = []rule{
	{"no session used more than it bought",
		`SELECT id, 'bought ' || bytes || ', used ' || (up + down) || ', leased ' || leased
		FROM sessions WHERE bytes > 0 AND up + down + leased > bytes`},
	{leasesLeft, `SELECT s.id, 'session ' || s.leased || '; leases ' || COALESCE(l.unused, 0)
		FROM sessions s LEFT JOIN (SELECT session_id, SUM(granted - up - down) AS unused
		FROM leases GROUP BY session_id) l ON l.session_id = s.id
		WHERE s.leased <> 0 AND s.leased <> COALESCE(l.unused, 0)`},
	{"what a session holds, was charged and refunded equals its entries",
		sessionMoney("(SELECT session_id, held_trial, held_own, " + entryMoney +
			" FROM ledger_entries WHERE session_id <> '') u")},
	{"every entry of a session is of its agent", `SELECT e.id, e.agent_id || ', session ' || e.session_id
		FROM ledger_entries e LEFT JOIN sessions s ON s.id = e.session_id
		WHERE e.session_id <> '' AND (s.id IS NULL OR s.agent_id <> e.agent_id)`},
	{"no session is refunded more than it was charged", `SELECT s.id, 'charged ' || s.charged_trial || ' and ' ||
		s.charged_own || ', refunded ' || s.refunded_trial || ' and ' || s.refunded_own FROM sessions s
		WHERE s.refunded_trial NOT BETWEEN 0 AND s.charged_trial OR s.refunded_own NOT BETWEEN 0 AND s.charged_own`},
	{"what was held for a session is its price", heldPrice("ledger_entries")},
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
		sessionHours("usage_hours u WHERE u.session_id <> ''")},
}

// workerRules are those of workers and leases, which name a session and not its agent.
var workerRules = []rule{
	{"what leases have left their sessions leased", `SELECT l.session_id, 'leases ' || l.unused || '; session ' ||
		COALESCE(s.leased, 0) FROM (SELECT session_id, SUM(granted - up - down) AS unused FROM leases
		GROUP BY session_id) l LEFT JOIN sessions s ON s.id = l.session_id WHERE COALESCE(s.leased, 0) <> l.unused`},
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
