package work

import (
	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/rows"
)

// The order in which a unit writes the tables that it keeps rows of. The first are locked when they are read, by
// all units in this order. Those from ListOrder back to WorkerOrder are only read.
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
	SessionOrder
	HealthOrder
	EventOrder
	JobOrder
	WorkerOrder
	HoldingOrder
	ListOrder
)

// AgentsOf are agents by their ids, and those of sessions: the two arrays by which what agents have is read ahead.
const AgentsOf = "ANY(?1::text[] || ARRAY(SELECT o.agent_id FROM sessions o WHERE o.id = ANY(?2::text[])))"

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

// SetServiceValue keeps a value under a name.
const SetServiceValue = `INSERT INTO service_values (name, value) VALUES (?1, ?2)
	ON CONFLICT (name) DO UPDATE SET value = excluded.value`
