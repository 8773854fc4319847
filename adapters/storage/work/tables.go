package work

import (
	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/rows"
)

// The order in which a unit writes the tables that it keeps rows of. The first are locked when they are read, by
// all units in this order. The last have rows that are written without being read.
const (
	FoldOrder = iota
	CallOrder
	WalletOrder
	KeyWalletOrder
	EntryOrder
	CounterOrder
	HourOrder
	ChangeOrder
	OutboxOrder
	DeliveryOrder
	PendingOrder
	MarkOrder
	EndpointOrder
	AgentOrder
)

// changeRow is a row of changes.
type changeRow struct {
	AgentID, SessionID string
	At                 int64
}

var insertChanges = rows.Insert[changeRow]("note changes", "changes", "")

// changes are what other processes are notified of.
var changes = &rows.Inserts[changeRow]{
	Order: ChangeOrder,
	Write: func(_ *rows.Set, to rows.Writer, added []changeRow) error { return insertChanges.Write(to, added) },
}

// NoteChange notes for other processes that an agent or a session changed.
func (u *Unit) NoteChange(agentID, sessionID string) error {
	u.Touch(sessionID)
	return changes.Insert(u.Set, changeRow{agentID, sessionID, column.Micros(u.Database.Now())})
}

// NoteEvent has every process notified that an agent has another event, once the unit is committed.
func (u *Unit) NoteEvent(agentID string) {
	if u.Touched != nil {
		u.Touched.Feeds = append(u.Touched.Feeds, agentID)
	}
}
