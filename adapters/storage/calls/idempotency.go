// Package calls keeps what calls of the API leave beside what they change: their Idempotency-Keys, the cursors of
// queued telemetry, the jobs that they start, and the changes of which other processes are notified.
package calls

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/rows"
	"agentproxy/adapters/storage/work"
	"agentproxy/ports"
)

// idempotency keeps Idempotency-Keys. Errors do not repeat the key, which is the
// caller's.
type idempotency struct{ *work.Unit }

// Idempotency returns the calls with a key in a unit.
func Idempotency(u *work.Unit) ports.Idempotency { return idempotency{u} }

func (r idempotency) Find(_ context.Context, agentID, path, key string, since time.Time) (ports.Call, bool, error) {
	c, found, err := Table.Get(r.Set, Key{agentID, path, key})
	if err != nil || !found || c.CreatedAt.Before(since) {
		return ports.Call{}, false, err
	}
	return c, true, nil
}

func (r idempotency) Keep(_ context.Context, c ports.Call) error {
	return Table.Put(r.Set, Key{c.AgentID, c.Path, c.Key}, c)
}

const setOutcome = `UPDATE idempotency_keys SET status = ?5
	WHERE agent_id = ?1 AND path = ?2 AND key = ?3 AND resource = ?4`

// SetOutcome stores an outcome with one statement. It waits for a unit that deletes the key and
// then changes nothing.
func (r idempotency) SetOutcome(_ context.Context, agentID, path, key, resource string, to ports.Outcome) error {
	return r.Later("set the outcome of a key of "+agentID, setOutcome, agentID, path, key, resource, outcomeStatus(to))
}

// DropFor walks the agent's keys of the last day.
func (r idempotency) DropFor(_ context.Context, agentID, resource string) error {
	return r.Later("drop keys of "+resource, "DELETE FROM idempotency_keys WHERE agent_id = ?1 AND resource = ?2",
		agentID, resource)
}

// Purge repeats its condition outside of the subquery. Where the DELETE waits for a unit that stores an
// old key anew, PostgreSQL evaluates only the outer one on the new version of the row.
func (r idempotency) Purge(_ context.Context, before time.Time, limit int) (int, error) {
	n, err := r.Exec(`DELETE FROM idempotency_keys WHERE created_at < ?1 AND (agent_id, path, key) IN (
		SELECT agent_id, path, key FROM idempotency_keys WHERE created_at < ?1 ORDER BY created_at LIMIT ?2)`,
		column.Micros(before), limit)
	if err != nil {
		return 0, fmt.Errorf("purge keys: %w", err)
	}
	return int(n), nil
}

// Row is a row of idempotency_keys.
type Row struct {
	AgentID, Path, Key string
	Request            []byte
	Resource           string
	Status, CreatedAt  int64
}

// Key is the key of a row of idempotency_keys.
type Key struct{ AgentID, Path, Key string }

// Lock returns the name of the advisory lock of a key, which may have no row yet.
func (k Key) Lock() string { return strings.Join([]string{"call", k.AgentID, k.Path, k.Key}, "\n") }

var putCalls = rows.Upsert[Row]("keep keys", "idempotency_keys", 3)

// Table has the calls with an Idempotency-Key. Of two with a key that is not stored yet the second must find it.
var Table = &rows.Table[Key, ports.Call]{
	Order: work.CallOrder,
	Compare: func(x, y Key) int {
		return cmp.Or(strings.Compare(x.AgentID, y.AgentID), strings.Compare(x.Path, y.Path), strings.Compare(x.Key, y.Key))
	},
	// The locks have names, and the rows are found by the three parts of their keys.
	Ahead: rows.Ahead[Key, ports.Call]{
		What: "read keys", Lock: "SELECT pg_advisory_xact_lock(hashtextextended(k, 0)) FROM unnest(?1::text[]) AS k",
		Query: "SELECT " + columns + " FROM idempotency_keys JOIN " + Named +
			" ON agent_id = u.a AND path = u.p AND key = u.k",
		Scan: func(row engine.Row) (Key, ports.Call, error) {
			var c Row
			err := row.Scan(column.Targets(&c)...)
			return Key{c.AgentID, c.Path, c.Key}, fromRow(c), err
		},
	},
	Find: func(s *rows.Set, k Key) (ports.Call, bool, error) {
		s.Serialize(k.Lock())
		var row Row
		found, err := s.Find(column.Targets(&row), "SELECT "+columns+
			" FROM idempotency_keys WHERE agent_id = ?1 AND path = ?2 AND key = ?3", "", k.AgentID, k.Path, k.Key)
		return fromRow(row), found, work.Wrap("find key of "+k.AgentID, err)
	},
	Write: func(_ *rows.Set, to rows.Writer, changed []rows.Change[Key, ports.Call]) error {
		return putCalls.Write(to, rows.Map(changed, func(c rows.Change[Key, ports.Call]) Row {
			return toRow(c.Row)
		}))
	},
}

var columns = strings.Join(column.Names(new(Row)), ", ")

// Named are keys u by arrays of their parts.
const Named = "unnest(?1::text[], ?2::text[], ?3::text[]) AS u(a, p, k)"

func toRow(c ports.Call) Row {
	return Row{c.AgentID, c.Path, c.Key, column.Bytes(c.Request), c.Resource, int64(outcomeStatus(c.Outcome)),
		column.Micros(c.CreatedAt)}
}

func fromRow(r Row) ports.Call {
	return ports.Call{AgentID: r.AgentID, Path: r.Path, Key: r.Key, Request: r.Request, Resource: r.Resource,
		Outcome: storedOutcomes[int(r.Status)], CreatedAt: column.Time(r.CreatedAt)}
}

// storedOutcomes are outcomes as the column status has them: the HTTP status of the
// first answer, or 0 while the call is in flight.
var storedOutcomes = map[int]ports.Outcome{0: ports.InFlight, 200: ports.Completed, 201: ports.Created,
	202: ports.Pending, 410: ports.Ended}

func outcomeStatus(o ports.Outcome) int {
	for status, stored := range storedOutcomes {
		if stored == o {
			return status
		}
	}
	return 0
}

// SessionOf is the session of a key k, on PostgreSQL.
const SessionOf = "split_part(k.resource, '" + ports.ResourceSeparator + "', 1)"
