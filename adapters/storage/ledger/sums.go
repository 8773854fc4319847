package ledger

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/margins"
	"agentproxy/adapters/storage/usage"
	"agentproxy/adapters/storage/work"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// What no unit changes any more is counted once, by SumUp: ended sessions in session_counts, and
// hours that are over in agent_hours. With a session that is counted ends what it alone needed: its rules, and
// the workers that were not used. A count or a sum is what is stored there and what is not
// counted yet, which is little. Calls of agents write neither table.

const (
	// countBatch is how many rows a unit counts.
	countBatch = 500
	// countAfter is the age of the end of an hour at which it is counted. What comes later is added
	// by a trigger.
	countAfter = 10 * time.Minute

	// countable are the sessions of a status that are counted next. What ended and still holds
	// money is charged later: until then it is found with what lives.
	countable = "s.counted = 0 AND s.status = ?1 AND s.held_trial + s.held_own = 0"
)

// place is that of a row among those that are counted, in the order of their index.
type place struct {
	agentID string
	at      int64 // the number of a session, or an hour
	session string
}

// counting counts rows behind a place in one unit. It returns how many it found, and the place of
// the last.
type counting func(ctx context.Context, u *work.Unit, after place) (n int, last place, err error)

// SumUp counts what ended since it ran last. A unit counts and marks a few rows, so it may stop at
// any time, and several processes may run it at once. Each unit begins behind the rows of the one
// before: on PostgreSQL their entries of the index stay for a while.
func SumUp(ctx context.Context, db work.Units, now time.Time) error {
	before := now.Add(-time.Hour - countAfter)
	steps := []counting{func(ctx context.Context, u *work.Unit, after place) (int, place, error) {
		return countHours(ctx, u, before, after)
	}}
	for _, status := range []session.Status{session.Terminated, session.Expired, session.Failed} {
		steps = append(steps, func(ctx context.Context, u *work.Unit, after place) (int, place, error) {
			return countEnded(ctx, u, status, after)
		})
	}
	for _, step := range steps {
		var after place
		for n := countBatch; n == countBatch && ctx.Err() == nil; {
			var last place
			err := db.Update(ctx, func(u *work.Unit) (err error) {
				n, last, err = step(ctx, u, after)
				return err
			})
			if err != nil {
				return err
			}
			after = last
		}
	}
	if err := countMonths(ctx, db); err != nil {
		return err
	}
	return SumDays(ctx, db)
}

// SumDays sums what is new by day, a part in each unit.
func SumDays(ctx context.Context, db work.Units) error {
	sums := []func(context.Context, *work.Unit) (bool, error){margins.SumOrders}
	for _, e := range margins.AllEntries {
		sums = append(sums, e.Sum)
	}
	sums = append(sums, margins.SumHours) // of a day that takes too long no other sum waits
	for _, sum := range sums {
		for more := true; more && ctx.Err() == nil; {
			err := db.Update(ctx, func(u *work.Unit) (err error) {
				more, err = sum(ctx, u)
				return err
			})
			if err != nil {
				return work.Wrap("sum by day", err)
			}
		}
	}
	return nil
}

// countRow is the key of a row of session_counts.
type countRow struct{ AgentID, ProductNo, Type, Status string }

func countEnded(ctx context.Context, u *work.Unit, status session.Status, after place) (n int, last place, err error) {
	u.Serialize("sum up")
	counts := map[countRow]int64{}
	var over []endedSession
	err = u.Rows(ctx, "SELECT s.seq, s.id, s.ord, s.agent_id, s.product_no, s.type, s.status FROM sessions s"+
		u.Database.By("sessions_open")+" WHERE "+countable+" AND (s.agent_id, s.ord) > (?3, ?4)"+
		" ORDER BY s.agent_id, s.ord LIMIT ?2"+u.SkipLocked("s"),
		[]any{string(status), countBatch, after.agentID, after.at}, func(row engine.Row) error {
			var s endedSession
			var k countRow
			err := row.Scan(&s.seq, &s.id, &last.at, &k.AgentID, &k.ProductNo, &k.Type, &k.Status)
			last.agentID = k.AgentID
			s.dynamic = k.Type == string(session.Dynamic)
			over = append(over, s)
			counts[k]++
			return err
		})
	if err != nil {
		return 0, last, work.Wrap("list ended sessions", err)
	}
	for _, s := range over {
		if err := s.count(u); err != nil {
			return 0, last, err
		}
	}
	keys := slices.SortedFunc(maps.Keys(counts), func(x, y countRow) int {
		return cmp.Or(cmp.Compare(x.AgentID, y.AgentID), cmp.Compare(x.ProductNo, y.ProductNo),
			cmp.Compare(x.Type, y.Type), cmp.Compare(x.Status, y.Status))
	})
	for _, k := range keys {
		err := u.Later("count sessions of "+k.AgentID, `INSERT INTO session_counts (agent_id, product_no, type, status, n)
			VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (agent_id, product_no, type, status)
			DO UPDATE SET n = session_counts.n + excluded.n`, k.AgentID, k.ProductNo, k.Type, k.Status, counts[k])
		if err != nil {
			return 0, last, err
		}
	}
	return len(over), last, nil
}

// endedSession is a session that nothing changes any more: no traffic of it is leased.
type endedSession struct {
	seq     int64
	id      string
	dynamic bool
}

// dropUnused keeps the workers of which anything is known: what they moved, or their health.
const dropUnused = `DELETE FROM workers WHERE session = ?1 AND up + down + connections = 0
	AND NOT EXISTS (SELECT 1 FROM worker_health h WHERE h.worker = workers.seq)`

// count marks the session as counted, and drops its rules and the workers that were not used.
func (s endedSession) count(u *work.Unit) error {
	if err := u.Later("count a session", "UPDATE sessions SET counted = 1 WHERE seq = ?1", s.seq); err != nil {
		return err
	}
	err := u.Later("drop the rules of a session", "DELETE FROM session_policies WHERE session_id = ?1", s.id)
	if err != nil {
		return err
	}
	if !s.dynamic {
		return nil
	}
	return u.Later("drop unused workers", dropUnused, s.seq)
}

// sumKey is the key of a row of agent_hours.
type sumKey struct {
	agentID    string
	hour       int64
	ofSessions bool
}

// sumRow is what is added to a row of agent_hours.
type sumRow struct {
	ports.Totals
	last int64
}

const addSums = `INSERT INTO agent_hours
	(agent_id, hour, of_sessions, up, down, connections, charged, refunded, recharged, last)
	VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT (agent_id, hour, of_sessions) DO UPDATE SET
	up = agent_hours.up + excluded.up, down = agent_hours.down + excluded.down,
	connections = agent_hours.connections + excluded.connections, charged = agent_hours.charged + excluded.charged,
	refunded = agent_hours.refunded + excluded.refunded, recharged = agent_hours.recharged + excluded.recharged,
	last = agent_hours.last + excluded.last`

func countHours(ctx context.Context, u *work.Unit, before time.Time, after place) (n int, end place, err error) {
	u.Serialize("sum up")
	var rows []usage.HourRow
	query := `SELECT h.agent_id, h.hour, h.session_id, h.up, h.down, h.connections, h.charged, h.refunded, h.recharged
		FROM usage_hours h` + u.Database.By("usage_hours_hour") + ` WHERE h.counted = 0 AND h.hour <= ?1
		AND (h.agent_id, h.hour, h.session_id) > (?3, ?4, ?5)
		ORDER BY h.agent_id, h.hour, h.session_id LIMIT ?2` + u.SkipLocked("h")
	args := []any{column.Micros(before), countBatch, after.agentID, after.at, after.session}
	err = u.Rows(ctx, query, args, func(row engine.Row) error {
		var h usage.HourRow
		err := row.Scan(column.Targets(&h)...)
		rows = append(rows, h)
		return err
	})
	if err != nil || len(rows) == 0 {
		return 0, end, work.Wrap("list hours to count", err)
	}
	last, err := LastHours(ctx, u, rows)
	if err != nil {
		return 0, end, err
	}
	sums := map[sumKey]sumRow{}
	add := func(k sumKey, more ports.Totals, last int64) {
		sums[k] = sumRow{sums[k].Plus(more), sums[k].last + last}
	}
	for _, h := range rows {
		k := sumKey{h.AgentID, h.Hour, h.SessionID != ""}
		add(k, h.Totals(), 0)
		if before, known := last[h.SessionID]; k.ofSessions && (!known || before < h.Hour) {
			if known {
				add(sumKey{h.AgentID, before, true}, ports.Totals{}, -1)
			}
			add(k, ports.Totals{}, 1)
			last[h.SessionID] = h.Hour
		}
		err := u.Later("count an hour",
			"UPDATE usage_hours SET counted = 1 WHERE agent_id = ?1 AND hour = ?2 AND session_id = ?3",
			h.AgentID, h.Hour, h.SessionID)
		if err != nil {
			return 0, end, err
		}
	}
	newest := rows[len(rows)-1]
	return len(rows), place{newest.AgentID, newest.Hour, newest.SessionID}, putSums(u, sums)
}

// putSums adds to rows of agent_hours, in the order in which every unit locks them.
func putSums(u *work.Unit, sums map[sumKey]sumRow) error {
	keys := slices.SortedFunc(maps.Keys(sums), func(x, y sumKey) int {
		return cmp.Or(cmp.Compare(x.agentID, y.agentID), cmp.Compare(x.hour, y.hour),
			cmp.Compare(column.Flag(x.ofSessions), column.Flag(y.ofSessions)))
	})
	for _, k := range keys {
		s := sums[k]
		err := u.Later("sum an hour of "+k.agentID, addSums, k.agentID, k.hour, column.Flag(k.ofSessions), s.Up, s.Down,
			s.Connections, int64(s.Charged), int64(s.Refunded), int64(s.Recharged), s.last)
		if err != nil {
			return err
		}
	}
	return nil
}

// LastHours returns the last counted hour of the sessions of rows, for those that have one.
// With the sign SQLite uses the key and no index of what is counted, in which it would walk over the hours of
// all sessions of the agent.
func LastHours(ctx context.Context, u *work.Unit, rows []usage.HourRow) (map[string]int64, error) {
	ids := make([]string, len(rows))
	for i, h := range rows {
		ids[i] = h.SessionID
	}
	slices.Sort(ids)
	list, args := work.InTexts(slices.Compact(ids))
	last := map[string]int64{}
	err := u.Rows(ctx, `SELECT s.id, COALESCE((SELECT u.hour FROM usage_hours u
		WHERE u.agent_id = s.agent_id AND u.session_id = s.id AND +u.counted = 1
		ORDER BY u.hour DESC LIMIT 1), 0) FROM sessions s WHERE s.id IN `+list, args, func(row engine.Row) error {
		var id string
		var hour int64
		err := row.Scan(&id, &hour)
		if hour > 0 {
			last[id] = hour
		}
		return err
	})
	return last, work.Wrap("read the hours of sessions", err)
}
