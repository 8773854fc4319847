package sessions

import (
	"cmp"
	"strings"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/rows"
	"agentproxy/adapters/storage/work"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// Stored is a row of sessions, with its usage and when it is settled.
type Stored struct {
	Row
	usage    usageRow
	settleAt int64
	// read are the status and the end as they were read, which indexes have.
	read indexedState
	// changed are the parts that the unit changed.
	changed parts
	// locked is false for a row that was read for an answer alone, and added true for one that the table has not.
	locked, added bool
}

// parts are those of a row of sessions that change apart from each other.
type parts int

const (
	stateChanged parts = 1 << iota
	usageChanged
	planChanged
)

func (f *Stored) targets(more ...any) []any {
	return column.Targets(&f.Row, column.Targets(&f.usage, more...)...)
}

var (
	// selectStored reads rows for scanStored; the sessions follow it.
	selectStored = "SELECT " + selectRow + ", " + usageColumns + ", s.settle_at FROM sessions s WHERE s.id "

	addedColumns = column.Names(new(addedRow))
	addedRows    = rows.ColumnsOf[addedRow]("nth") // of those of its agent
	// insertSessions numbers sessions within their agents. Of two that get the same number at the same
	// time, the unique index refuses one, which is run again.
	insertSessions = rows.NewStatement[addedRow]("insert sessions", addedRows,
		"INSERT INTO sessions ("+strings.Join(addedColumns, ", ")+", ord) VALUES ("+
			work.Placeholders(1, len(addedColumns))+", (SELECT COALESCE(MAX(ord), 0) FROM sessions WHERE agent_id = ?2) + "+
			work.Placeholders(len(addedColumns)+1, 1)+")",
		"INSERT INTO sessions ("+strings.Join(addedColumns, ", ")+", ord) SELECT u."+strings.Join(addedColumns, ", u.")+
			`, u.nth + (SELECT COALESCE(MAX(s.ord), 0) FROM sessions s WHERE s.agent_id = u.agent_id) FROM `+
			addedRows.From())

	putStates = rows.Update[stateRow]("write sessions", "sessions", 1)
	// putUnindexed writes a session whose status and end stay. SQLite writes the entries of every index that has a
	// column of the statement, PostgreSQL those whose values change.
	putUnindexed = rows.Update[unindexedRow]("write sessions", "sessions", 1)
	putUsages    = rows.Update[usedRow]("write usage", "sessions", 1)
	putPlans     = rows.Update[planRow]("plan settlements", "sessions", 1)
	putWhole     = rows.Update[wholeRow]("write whole sessions", "sessions", 1)
)

// The rows of the statements that write parts of a session.
type (
	addedRow struct {
		Row
		SettleAt int64
	}
	stateRow struct {
		ID string
		State
	}
	unindexedRow struct {
		ID string
		unindexedState
	}
	usedRow struct {
		ID                                     string
		Up, Down, Connections, Leased, UsageAt int64
	}
	planRow struct {
		ID       string
		SettleAt int64
	}
	wholeRow struct {
		ID string
		State
		Up, Down, Connections, Leased, UsageAt, SettleAt int64
	}
)

// Table has what units read and change of sessions. What Get returns is changed as a copy.
var Table = &rows.Table[string, *Stored]{
	Order: work.SessionOrder,
	Find: func(s *rows.Set, id string) (f *Stored, found bool, err error) {
		f = new(Stored)
		found, err = s.Find(f.targets(&f.settleAt), selectStored+"= ?1", "s", id)
		f.keep()
		return f, found, work.Wrap("read session "+id, err)
	},
	// They are locked by the query that locks them for their health.
	Ahead: rows.Ahead[string, *Stored]{
		What: "read sessions", Query: selectStored + "= ANY(?1::text[])",
		Scan: func(row engine.Row) (string, *Stored, error) {
			f, err := scanStored(row)
			return f.ID, f, err
		},
	},
	Write: writeSessions,
	Written: func(f *Stored) *Stored {
		own := *f
		own.changed, own.added = 0, false
		own.keep()
		return &own
	},
}

// scanStored scans a row of selectStored, which is locked in a unit.
func scanStored(row engine.Row) (f *Stored, err error) {
	f = new(Stored)
	err = row.Scan(f.targets(&f.settleAt)...)
	f.keep()
	return f, err
}

// Shown reports whether what views show of the session was changed.
func (f *Stored) Shown() bool { return f != nil && f.changed&^planChanged != 0 }

// keep notes a row as it was read.
func (f *Stored) keep() { f.read, f.locked = f.indexedState, true }

// writeSessions writes each row once.
func writeSessions(_ *rows.Set, to rows.Writer, list []rows.Change[string, *Stored]) error {
	var added []addedRow
	var states []stateRow
	var unindexed []unindexedRow
	var used []usedRow
	var plans []planRow
	var whole []wholeRow
	for i := range list {
		f := list[i].Row
		u := &f.usage
		changed := f.changed
		if !list[i].Stored {
			added = append(added, addedRow{f.Row, f.settleAt})
			changed &= usageChanged
		}
		switch {
		case changed == 0:
		case changed == stateChanged && !to.Arrays() && f.indexedState == f.read:
			unindexed = append(unindexed, unindexedRow{f.ID, f.unindexedState})
		case changed == stateChanged:
			states = append(states, stateRow{f.ID, f.State})
		case changed == usageChanged:
			used = append(used, usedRow{f.ID, u.Up, u.Down, u.Connections, u.Leased, u.UsageAt})
		case changed == planChanged:
			plans = append(plans, planRow{f.ID, f.settleAt})
		default:
			whole = append(whole, wholeRow{f.ID, f.State, u.Up, u.Down, u.Connections, u.Leased, u.UsageAt, f.settleAt})
		}
	}
	if err := insertNumbered(to, added); err != nil {
		return err
	}
	return cmp.Or(putStates.Write(to, states), putUnindexed.Write(to, unindexed), putUsages.Write(to, used),
		putPlans.Write(to, plans), putWhole.Write(to, whole))
}

// insertNumbered inserts sessions, each with its place among the new ones of its agent: one statement does not
// find what it inserts itself.
func insertNumbered(to rows.Writer, added []addedRow) error {
	nth := map[string]int64{}
	return insertSessions.Values(to, len(added), func(i int) []any {
		agentID := added[i].AgentID
		if nth[agentID]++; !to.Arrays() {
			nth[agentID] = 1
		}
		return append(column.Values(&added[i]), nth[agentID])
	})
}

// stored returns a session for a change.
func stored(u *work.Unit, id string) (*Stored, error) {
	f, found, err := Table.Get(u.Set, id)
	switch {
	case err != nil:
		return nil, err
	case !found:
		return nil, session.ErrNotFound
	case !f.locked:
		return nil, u.Set.Escape()
	}
	own := *f
	return &own, nil
}

// store changes a part of a session.
func store(u *work.Unit, f *Stored, part parts) error {
	f.changed |= part
	if part == stateChanged {
		HealthTable.Amend(u.Set, f.ID, func(h StoredHealth) StoredHealth { h.status = f.Status; return h })
	}
	return Table.Put(u.Set, f.ID, f)
}

// scanWhole scans a row of ReadFrom.
func scanWhole(row engine.Row) (f *Stored, h StoredHealth, err error) {
	f = new(Stored)
	err = row.Scan(f.targets(&f.settleAt, &h.seq, &h.State)...)
	f.keep()
	h.owner, h.kind, h.status, h.stored = f.AgentID, f.Type, f.Status, h.State != nil
	return f, h, err
}

// LoadWhole loads a row of ReadFrom. It is locked in a unit with a transaction of its own.
func LoadWhole(s *rows.Set, row engine.Row) error {
	f, h, err := scanWhole(row)
	if err == nil {
		f.locked = !s.Ahead()
		h.locked = f.locked
		Table.Load(s, f.ID, f)
		HealthTable.Load(s, f.ID, h)
	}
	return err
}

// ScanRead scans a row of ReadFrom for a list.
func ScanRead(row engine.Row) (read ports.SessionRead, err error) {
	f, h, err := scanWhole(row)
	if err != nil {
		return read, err
	}
	return toRead(f, &h)
}

// toRead returns a session as views show it.
func toRead(f *Stored, h *StoredHealth) (read ports.SessionRead, err error) {
	if read.Session, err = FromRow(&f.Row); err != nil {
		return read, err
	}
	read.Usage, read.Health = fromUsageRow(f.usage), &fresh
	if len(h.State) > 0 {
		read.Health = new(health.State)
		err = DecodeHealth(h.State, read.Health)
	}
	return read, err
}
