package proof

// left is the text of a rule that only whole proofs check: it compares kept sums with all rows that they are of.
const left = ""

// openRules are the texts of rules in the scope of what is in no sealed month, where they differ. What they need of
// sealed months they take from the seals, or look up by a key.
var openRules = map[string]string{
	"what a restricted key spent and holds its sessions cost and hold": keyMoney("all_sessions"),
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
		s.ended_at, s.expires_at, s.activated_at, COALESCE(r.trial + r.own, 0) AS got, COALESCE(o.paid, 0) +
		CAST(SUM(CASE WHEN e.ord < r.ord OR r.ord IS NULL AND e.at < s.ended_at THEN e.counter ELSE 0 END) AS BIGINT) AS paid
		FROM sessions s LEFT JOIN ledger_entries e ON e.session_id = s.id AND e.type IN ('charge', 'refund')
		LEFT JOIN opened o ON o.session_id = s.id LEFT JOIN all_entries r ON r.ref = 'refund:' || s.id
		WHERE s.type = 'static' AND s.activated_at > 0 AND s.ended_at > 0
		GROUP BY s.id, s.reason, s.ended_at, s.expires_at, s.activated_at, r.trial, r.own, r.ord, o.paid`),
	"a session is of the product that it was held for":    heldProduct("all_entries"),
	"the counts of ended sessions are right":              left,
	"the counts of sessions by their last hour are right": left,
}
