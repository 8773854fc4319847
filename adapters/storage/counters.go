package storage

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"agentproxy/adapters/storage/rows"
	"agentproxy/adapters/storage/work"
	"agentproxy/ports"
)

// counters keeps one tally an agent.
type counters struct{ *tx }

func (r counters) Add(_ context.Context, agentID string, t ports.Tally) error {
	return tallyTable.Add(r.Set, agentID, t)
}

func (r counters) Get(_ context.Context, agentID string) (t ports.Tally, err error) {
	err = r.Row("SELECT reported, scored, good, rotations, bytes FROM counters WHERE agent_id = ?1"+
		r.ForUpdate("counters"), agentID).
		Scan(&t.Reported, &t.Scored, &t.Good, &t.Rotations, &t.Bytes)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return ports.Tally{}, fmt.Errorf("read counters of %s: %w", agentID, err)
	}
	return t, nil
}

// hourRow is a row of usage_hours.
type hourRow struct {
	AgentID                                             string
	Hour                                                int64
	SessionID                                           string
	Up, Down, Connections, Charged, Refunded, Recharged int64
}

// hourKey is the key of an hour of a session.
type hourKey struct {
	agentID   string
	hour      int64
	sessionID string
}

var addHours = rows.Add[hourRow]("add to hours", "usage_hours", 3)

// hourTable has the totals of sessions by hour.
var hourTable = &rows.Sums[hourKey, ports.Totals]{
	Order: work.HourOrder,
	Plus:  ports.Totals.Plus,
	Compare: func(x, y hourKey) int {
		return cmp.Or(strings.Compare(x.agentID, y.agentID), cmp.Compare(x.hour, y.hour),
			strings.Compare(x.sessionID, y.sessionID))
	},
	Write: func(_ *rows.Set, to rows.Writer, added []rows.Sum[hourKey, ports.Totals]) error {
		return addHours.Write(to, rows.Map(added, func(a rows.Sum[hourKey, ports.Totals]) hourRow {
			k, t := a.Key, a.Row
			return hourRow{k.agentID, k.hour, k.sessionID, t.Up, t.Down, t.Connections, int64(t.Charged),
				int64(t.Refunded), int64(t.Recharged)}
		}))
	},
}

// counterRow is a row of counters.
type counterRow struct {
	AgentID                                  string
	Reported, Scored, Good, Rotations, Bytes int64
}

var addTallies = rows.Add[counterRow]("count", "counters", 1)

// tallyTable has what is counted of agents.
var tallyTable = &rows.Sums[string, ports.Tally]{
	Order:   work.CounterOrder,
	Plus:    ports.Tally.Plus,
	Compare: strings.Compare,
	Write: func(_ *rows.Set, to rows.Writer, added []rows.Sum[string, ports.Tally]) error {
		return addTallies.Write(to, rows.Map(added, func(a rows.Sum[string, ports.Tally]) counterRow {
			t := a.Row
			return counterRow{a.Key, t.Reported, t.Scored, t.Good, t.Rotations, t.Bytes}
		}))
	},
}
