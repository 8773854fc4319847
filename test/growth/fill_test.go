//go:build campaign

package growth_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"agentproxy/domain/eventlog"
	"agentproxy/ports"
	"agentproxy/test/apptest"
)

// filled is an agent and what it was given.
type filled struct {
	agent           string
	sessions, lives int
}

// What a clone of a session bought and used, and what it cost, in bytes and millionths of a dollar.
const (
	cloneBytes = 2_500_000
	cloneCost  = 1000
	// cloneEvents is how many events a clone has.
	cloneEvents = 9
	clonePeriod = 29 * 24 * time.Hour
)

// fill gives a new agent sessions of the last 29 days, each with its entries, its hour, its health and its
// events, so that the ledger is right. The last ones live.
func fill(w *apptest.World, sessions, lives int) filled {
	w.T.Helper()
	ctx := context.Background()
	f := filled{w.RegisterFunded(1000), sessions, lives}
	first := w.Buy(f.agent, apptest.Local)
	w.UseBytes(first.ID, "l", cloneBytes)
	w.Report(f.agent, first.ID, "success")
	events := make([]eventlog.Event, cloneEvents)
	for i := range events {
		events[i] = eventlog.Event{ID: fmt.Sprint("evt_", i), At: w.Clock.Now(), Type: "success", Source: eventlog.Agent,
			TargetHost: "example.com", StatusCode: 200, LatencyMS: 120}
	}
	apptest.OK(w.T, w.DB.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		return tx.Events().Append(ctx, first.ID, events)
	}))
	ended := sessions - lives
	step := clonePeriod.Microseconds() / int64(sessions)
	from := w.Clock.Now().Add(-clonePeriod).UnixMicro()
	values := strings.NewReplacer("{agent}", f.agent, "{first}", first.ID, "{n}", fmt.Sprint(sessions), "{ended}", fmt.Sprint(ended),
		"{lives}", fmt.Sprint(lives), "{product}", apptest.Local, "{at}", fmt.Sprintf("(%d + g.n * %d)", from, step), "{id}", "'sess_' || '"+f.agent[4:]+"' || g.n",
		"{bytes}", fmt.Sprint(cloneBytes), "{cost}", fmt.Sprint(cloneCost), "{events}", fmt.Sprint(cloneEvents))
	for _, statement := range append([]string{cloneSessions(w)}, clones...) {
		w.Exec(values.Replace(statement))
	}
	return f
}

// numbers makes the table growth_n with the numbers up to n.
func numbers(w *apptest.World, n int) {
	w.Exec("CREATE TABLE growth_n (n BIGINT NOT NULL PRIMARY KEY)")
	w.Exec(fmt.Sprintf(`INSERT INTO growth_n WITH RECURSIVE k (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM k WHERE n < %d)
		SELECT n FROM k`, n))
}

// cloneSessions inserts the sessions.
func cloneSessions(w *apptest.World) string {
	const over = "CASE WHEN g.n <= {ended} THEN "
	set := map[string]string{
		"id": "{id}", "ord": "s.ord + g.n", "created_at": "{at}", "activated_at": "{at}", "usage_at": "{at}",
		"product_no": "CASE g.n % 500 WHEN 7 THEN 'rare' ELSE s.product_no END",
		"status":     over + "CASE g.n % 400 WHEN 9 THEN 'expired' ELSE 'terminated' END ELSE 'active' END",
		"reason":     over + "'agent_request' ELSE '' END", "ended_at": over + "{at} + 3600000000 ELSE 0 END",
		"bytes": "{bytes}", "price": "400000", "top_ups": "''", "rotations": "0", "worker_rotations": "0",
		"held_trial": "0", "held_own": over + "0 ELSE {cost} END",
		"charged_trial": "0", "charged_own": over + "{cost} ELSE 0 END", "refunded_trial": "0", "refunded_own": "0",
		"up": over + "{bytes} ELSE 0 END", "down": "0", "connections": over + "1 ELSE 0 END", "leased": "0", "settle_at": "0",
		"counted": "0",
	}
	columns := "SELECT name FROM pragma_table_info('sessions') WHERE name <> 'seq'"
	if w.Postgres() {
		columns = "SELECT column_name FROM information_schema.columns WHERE table_name = 'sessions' AND column_name <> 'seq'"
	}
	names := w.Column(columns)
	values := make([]string, len(names))
	for i, name := range names {
		if values[i] = set[name]; values[i] == "" {
			values[i] = "s." + name
		}
	}
	return "INSERT INTO sessions (" + strings.Join(names, ", ") + ") SELECT " + strings.Join(values, ", ") +
		" FROM growth_n g CROSS JOIN sessions s WHERE s.id = '{first}' AND g.n <= {n} ORDER BY g.n"
}

// clones are the statements for what belongs to the sessions.
var clones = []string{
	`INSERT INTO ledger_entries (id, agent_id, ord, type, trial, own, held_trial, held_own, account, counter, ref, session_id,
		order_id, description, at, balance_after)
		SELECT 'txn_h_' || {id}, '{agent}', w.entries + CASE WHEN g.n <= {ended} THEN 2 * g.n - 1 ELSE {ended} + g.n END, 'hold',
		0, -{cost}, 0, {cost}, '', 0, 'hold:' || {id}, {id}, '',
		'held for ' || CASE g.n % 500 WHEN 7 THEN 'rare' ELSE '{product}' END, {at}, w.trial + w.own - {cost} * g.n
		FROM growth_n g CROSS JOIN wallets w WHERE w.agent_id = '{agent}' AND g.n <= {n} ORDER BY g.n`,
	`INSERT INTO ledger_entries (id, agent_id, ord, type, trial, own, held_trial, held_own, account, counter, ref, session_id,
		order_id, description, at, balance_after)
		SELECT 'txn_c_' || {id}, '{agent}', w.entries + 2 * g.n, 'charge', 0, 0, 0, -{cost}, 'revenue', {cost}, 'charge:' || {id},
		{id}, '', 'traffic', {at}, w.trial + w.own - {cost} * g.n
		FROM growth_n g CROSS JOIN wallets w WHERE w.agent_id = '{agent}' AND g.n <= {ended} ORDER BY g.n`,
	`UPDATE wallets SET own = own - {cost} * {n}, held_own = held_own + {cost} * {lives}, charged = charged + {cost} * {ended},
		live_sessions = live_sessions + {lives}, entries = entries + {ended} + {n} WHERE agent_id = '{agent}'`,
	`UPDATE wallets SET spent_today = spent_today + (SELECT COALESCE(SUM(-e.own), 0) FROM ledger_entries e
		WHERE e.agent_id = '{agent}' AND e.id LIKE 'txn_h_%' AND e.at >= wallets.spent_day) WHERE agent_id = '{agent}'`,
	`INSERT INTO usage_hours (agent_id, hour, session_id, up, down, connections, charged, refunded, recharged)
		SELECT agent_id, created_at - created_at % 3600000000, id, up, 0, 1, charged_own, 0, 0 FROM sessions
		WHERE agent_id = '{agent}' AND charged_own > 0 AND id <> '{first}'`,
	`UPDATE counters SET bytes = bytes + CAST({bytes} AS BIGINT) * {ended}, reported = reported + {n}, scored = scored + {n}, good = good + {n}
		WHERE agent_id = '{agent}'`,
	`INSERT INTO event_chunks (session, last_no, n, last_at, body, day) SELECT x.seq, {events}, {events}, c.last_at, c.body, c.day
		FROM (SELECT e.* FROM event_chunks e JOIN sessions s ON s.seq = e.session WHERE s.id = '{first}'
			ORDER BY e.last_no DESC LIMIT 1) c
		CROSS JOIN sessions x WHERE x.agent_id = '{agent}' AND x.id <> '{first}'`,
	`INSERT INTO session_health (session, state) SELECT x.seq, h.state FROM session_health h
		JOIN sessions s ON s.seq = h.session CROSS JOIN sessions x
		WHERE s.id = '{first}' AND x.agent_id = '{agent}' AND x.id <> '{first}'`,
}
