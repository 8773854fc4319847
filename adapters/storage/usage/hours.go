// Package usage keeps what sessions use by hour, and what is counted of agents.
package usage

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/rows"
	"agentproxy/adapters/storage/work"
	"agentproxy/domain"
	"agentproxy/ports"
)

// counters keeps one tally an agent.
type counters struct{ *work.Unit }

// Counters returns the tallies of agents in a unit.
func Counters(u *work.Unit) ports.Counters { return counters{u} }

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

// HourRow is a row of usage_hours.
type HourRow struct {
	AgentID                                             string
	Hour                                                int64
	SessionID                                           string
	Up, Down, Connections, Charged, Refunded, Recharged int64
}

// Totals returns the totals of an hour.
func (h HourRow) Totals() ports.Totals {
	return ports.Totals{Up: h.Up, Down: h.Down, Connections: h.Connections, Charged: domain.Money(h.Charged),
		Refunded: domain.Money(h.Refunded), Recharged: domain.Money(h.Recharged)}
}

// hourKey is the key of an hour of a session.
type hourKey struct {
	agentID   string
	hour      int64
	sessionID string
}

var addHours = rows.Add[HourRow]("add to hours", "usage_hours", 3)

// hours has the totals of sessions by hour.
var hours = &rows.Sums[hourKey, ports.Totals]{
	Order: work.HourOrder,
	Plus:  ports.Totals.Plus,
	Compare: func(x, y hourKey) int {
		return cmp.Or(strings.Compare(x.agentID, y.agentID), cmp.Compare(x.hour, y.hour),
			strings.Compare(x.sessionID, y.sessionID))
	},
	Write: func(_ *rows.Set, to rows.Writer, added []rows.Sum[hourKey, ports.Totals]) error {
		return addHours.Write(to, rows.Map(added, func(a rows.Sum[hourKey, ports.Totals]) HourRow {
			k, t := a.Key, a.Row
			return HourRow{k.agentID, k.hour, k.sessionID, t.Up, t.Down, t.Connections, int64(t.Charged),
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

// AddHour adds to the totals of one session in one hour.
func AddHour(s *rows.Set, agentID, sessionID string, hour time.Time, add ports.Totals) error {
	return hours.Add(s, hourKey{agentID, column.Micros(hour), sessionID}, add)
}
