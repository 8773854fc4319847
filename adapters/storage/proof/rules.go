package proof

// ledgerRules are those of entries and wallets.
var ledgerRules = []rule{
	{"no part of a wallet is negative", `SELECT agent_id, 'trial ' || trial || ', own ' || own || ', held ' ||
		held_trial || ' and ' || held_own FROM wallets WHERE trial < 0 OR own < 0 OR held_trial < 0 OR held_own < 0`},
	{"what a wallet holds its sessions hold", `SELECT w.agent_id, 'wallet ' || w.held_trial || ' and ' || w.held_own ||
		'; sessions ' || COALESCE(s.trial, 0) || ' and ' || COALESCE(s.own, 0)
		FROM wallets w LEFT JOIN (SELECT agent_id, SUM(held_trial) AS trial, SUM(held_own) AS own
		FROM sessions GROUP BY agent_id) s ON s.agent_id = w.agent_id
		WHERE w.held_trial <> COALESCE(s.trial, 0) OR w.held_own <> COALESCE(s.own, 0)`},
	{"a wallet counts its live sessions", `SELECT w.agent_id, 'wallet ' || w.live_sessions || '; sessions ' ||
		COALESCE(s.n, 0) FROM wallets w LEFT JOIN (SELECT agent_id, COUNT(*) AS n FROM sessions
		WHERE ` + live + ` GROUP BY agent_id) s ON s.agent_id = w.agent_id
		WHERE w.live_sessions <> COALESCE(s.n, 0)`},
	{"what a restricted key spent and holds its sessions cost and hold", keyMoney("sessions")},
	{"a wallet counts the restricted keys of its agent", `SELECT w.agent_id, 'wallet ' || w.restricted_keys || '; keys ' ||
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
