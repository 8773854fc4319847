package webhooks

import (
	"cmp"
	"strconv"
	"strings"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/rows"
	"agentproxy/adapters/storage/work"
	"agentproxy/domain/webhook"
)

// Endpoints are the webhooks of agents, which a unit on PostgreSQL keeps only when it shares them.
var Endpoints = &rows.Table[string, webhook.Endpoint]{
	Order: work.EndpointOrder,
	Keep:  true,
	Read: func(s *rows.Set, agentID string) (e webhook.Endpoint, found bool, err error) {
		var row endpointOf
		found, err = s.Find(row.targets(), SelectEndpoints+"WHERE a.id = ?1", "", agentID)
		return row.endpoint(), found, work.Wrap("read webhook of "+agentID, err)
	},
	Ahead: rows.Ahead[string, webhook.Endpoint]{
		What: "read webhooks", Query: SelectEndpoints + "WHERE a.id = " + work.AgentsOf,
		Scan: func(row engine.Row) (string, webhook.Endpoint, error) {
			e, err := ScanEndpoint(row)
			return e.AgentID, e, err
		},
	},
}

// Pending are how many deliveries of agents are pending, up to webhook.MaxPending.
var Pending = &rows.Table[string, int]{
	Order: work.PendingOrder,
	Read: func(s *rows.Set, agentID string) (n int, found bool, err error) {
		found, err = s.Find([]any{&n}, CountPending+"?1 AND status = 'pending' LIMIT "+
			strconv.Itoa(webhook.MaxPending)+") d", "", agentID)
		return n, found, work.Wrap("count pending deliveries of "+agentID, err)
	},
	// Of agents with a webhook.
	Ahead: rows.Ahead[string, int]{
		What: "count deliveries", Query: "SELECT a.id, (" + CountPending + "a.id AND status = 'pending' LIMIT " +
			strconv.Itoa(webhook.MaxPending) + ") d) FROM agents a WHERE a.webhook_url <> '' AND a.id = " + work.AgentsOf,
		Scan: func(row engine.Row) (agentID string, pending int, err error) {
			err = row.Scan(&agentID, &pending)
			return agentID, pending, err
		},
	},
	// They are counted.
	Write: func(*rows.Set, rows.Writer, []rows.Change[string, int]) error { return nil },
}

// CountPending begins a query for the pending deliveries of an agent.
const CountPending = "SELECT COUNT(*) FROM (SELECT 1 FROM webhook_deliveries WHERE agent_id = "

// newEvent is a row of outbox.
type newEvent struct {
	ID, AgentID, Type string
	At                int64
	Data              string // JSON
	SessionID         string // empty: of no session
	Sent              bool   // to a webhook
}

var insertEvents = rows.Insert[newEvent]("append webhook events", "outbox", "")

var events = &rows.Inserts[newEvent]{
	Order: work.OutboxOrder,
	Write: func(_ *rows.Set, to rows.Writer, added []newEvent) error { return insertEvents.Write(to, added) },
}

// newDelivery is a row of webhook_deliveries.
type newDelivery struct {
	ID, AgentID, EventID, Type, Status string
	Attempts, Tries, LastStatusCode    int64
	LastError                          string
	NextAttemptAt, CreatedAt           int64
}

var insertDeliveries = rows.Insert[newDelivery]("insert deliveries", "webhook_deliveries", "")

// deliveries are found by their events, of which each has one.
var deliveries = &rows.Table[string, newDelivery]{
	Order:  work.DeliveryOrder,
	Unread: rows.Always[string],
	Find: func(s *rows.Set, eventID string) (row newDelivery, found bool, err error) {
		var one int
		found, err = s.Find([]any{&one}, "SELECT 1 FROM webhook_deliveries WHERE event_id = ?1", "", eventID)
		return row, found, work.Wrap("look for the delivery of "+eventID, err)
	},
	Write: func(_ *rows.Set, to rows.Writer, changed []rows.Change[string, newDelivery]) error {
		return insertDeliveries.Write(to, rows.Map(changed, rows.Change[string, newDelivery].Value))
	},
}

// MarkKey is the key of what an agent is notified of once.
type MarkKey struct{ AgentID, What string }

// markRow is a row of webhook_marks.
type markRow struct {
	AgentID, What string
	Mark          int64
}

var (
	updateMarks = rows.Update[markRow]("mark what was notified", "webhook_marks", 2)
	insertMarks = rows.Insert[markRow]("mark what is notified first", "webhook_marks", "")
)

// Marks are what agents are notified of once. Of two units that set the first mark at the same time the second
// is refused, and runs again. The row of an agent without a name notes that all its marks were read ahead.
var Marks = &rows.Table[MarkKey, int64]{
	Order: work.MarkOrder,
	Compare: func(x, y MarkKey) int {
		return cmp.Or(strings.Compare(x.AgentID, y.AgentID), strings.Compare(x.What, y.What))
	},
	Unread: func(read func(MarkKey) bool, k MarkKey) bool { return read(MarkKey{AgentID: k.AgentID}) },
	// The wallets of their agents are locked before.
	Ahead: rows.Ahead[MarkKey, int64]{
		What: "read marks", Query: "SELECT m.agent_id, m.what, m.mark FROM agents a " +
			"JOIN webhook_marks m ON m.agent_id = a.id WHERE a.id = " + work.AgentsOf,
		Scan: func(row engine.Row) (k MarkKey, mark int64, err error) {
			err = row.Scan(&k.AgentID, &k.What, &mark)
			return k, mark, err
		},
	},
	Find: func(s *rows.Set, k MarkKey) (mark int64, found bool, err error) {
		found, err = s.Find([]any{&mark}, "SELECT mark FROM webhook_marks WHERE agent_id = ?1 AND what = ?2",
			"webhook_marks", k.AgentID, k.What)
		return mark, found, work.Wrap("read mark "+k.What+" of "+k.AgentID, err)
	},
	Write: func(_ *rows.Set, to rows.Writer, changed []rows.Change[MarkKey, int64]) error {
		var first, next []markRow
		for _, c := range changed {
			row := markRow{c.Key.AgentID, c.Key.What, c.Row}
			if c.Stored {
				next = append(next, row)
			} else {
				first = append(first, row)
			}
		}
		return cmp.Or(updateMarks.Write(to, next), insertMarks.Write(to, first))
	},
}

// endpointOf is a row of SelectEndpoints.
type endpointOf struct {
	agentID, url                     string
	version                          int64
	rotated, disabled, failing, last int64
}

func (r *endpointOf) targets() []any {
	return []any{&r.agentID, &r.url, &r.version, &r.rotated, &r.disabled, &r.failing, &r.last}
}

func (r *endpointOf) endpoint() webhook.Endpoint {
	return webhook.Endpoint{AgentID: r.agentID, URL: r.url, Version: r.version, RotatedAt: column.Time(r.rotated),
		DisabledAt: column.Time(r.disabled), FailingSince: column.Time(r.failing), LastDeliveryAt: column.Time(r.last)}
}
