package storage

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/rows"
	"agentproxy/adapters/storage/work"
	"agentproxy/ports"
)

// calls keeps Idempotency-Keys. Errors do not repeat the key, which is the
// caller's.
type calls struct{ *tx }

func (r calls) Find(_ context.Context, agentID, path, key string, since time.Time) (ports.Call, bool, error) {
	c, found, err := callTable.Get(r.Set, callKey{agentID, path, key})
	if err != nil || !found || c.CreatedAt.Before(since) {
		return ports.Call{}, false, err
	}
	return c, true, nil
}

func (r calls) Put(_ context.Context, c ports.Call) error {
	return callTable.Put(r.Set, callKey{c.AgentID, c.Path, c.Key}, c)
}

const setOutcome = `UPDATE idempotency_keys SET status = ?5
	WHERE agent_id = ?1 AND path = ?2 AND key = ?3 AND resource = ?4`

// SetOutcome stores an outcome with one statement. It waits for a unit that deletes the key and
// then changes nothing.
func (r calls) SetOutcome(_ context.Context, agentID, path, key, resource string, to ports.Outcome) error {
	return r.Later("set the outcome of a key of "+agentID, setOutcome, agentID, path, key, resource, outcomeStatus(to))
}

// DropFor walks the agent's keys of the last day.
func (r calls) DropFor(_ context.Context, agentID, resource string) error {
	return r.Later("drop keys of "+resource, "DELETE FROM idempotency_keys WHERE agent_id = ?1 AND resource = ?2",
		agentID, resource)
}

// Purge repeats its condition outside of the subquery. Where the DELETE waits for a unit that stores an
// old key anew, PostgreSQL evaluates only the outer one on the new version of the row.
func (r calls) Purge(_ context.Context, before time.Time, limit int) (int, error) {
	n, err := r.Exec(`DELETE FROM idempotency_keys WHERE created_at < ?1 AND (agent_id, path, key) IN (
		SELECT agent_id, path, key FROM idempotency_keys WHERE created_at < ?1 ORDER BY created_at LIMIT ?2)`,
		column.Micros(before), limit)
	if err != nil {
		return 0, fmt.Errorf("purge keys: %w", err)
	}
	return int(n), nil
}

// callRow is a row of idempotency_keys.
type callRow struct {
	AgentID, Path, Key string
	Request            []byte
	Resource           string
	Status, CreatedAt  int64
}

// callKey is the key of a row of idempotency_keys.
type callKey struct{ agentID, path, key string }

// lock returns the name of the advisory lock of a key, which may have no row yet.
func (k callKey) lock() string { return strings.Join([]string{"call", k.agentID, k.path, k.key}, "\n") }

var putCalls = rows.Upsert[callRow]("keep keys", "idempotency_keys", 3)

// callTable has the calls with an Idempotency-Key. Of two with a key that is not stored yet the second must find it.
var callTable = &rows.Table[callKey, ports.Call]{
	Order: work.CallOrder,
	Compare: func(x, y callKey) int {
		return cmp.Or(strings.Compare(x.agentID, y.agentID), strings.Compare(x.path, y.path), strings.Compare(x.key, y.key))
	},
	Find: func(s *rows.Set, k callKey) (ports.Call, bool, error) {
		s.Serialize(k.lock())
		var row callRow
		found, err := s.Find(column.Targets(&row), "SELECT "+callColumns+
			" FROM idempotency_keys WHERE agent_id = ?1 AND path = ?2 AND key = ?3", "", k.agentID, k.path, k.key)
		return fromCallRow(row), found, work.Wrap("find key of "+k.agentID, err)
	},
	Write: func(_ *rows.Set, to rows.Writer, changed []rows.Change[callKey, ports.Call]) error {
		return putCalls.Write(to, rows.Map(changed, func(c rows.Change[callKey, ports.Call]) callRow {
			return toCallRow(c.Row)
		}))
	},
}

var callColumns = strings.Join(column.Names(new(callRow)), ", ")

func toCallRow(c ports.Call) callRow {
	return callRow{c.AgentID, c.Path, c.Key, column.Bytes(c.Request), c.Resource, int64(outcomeStatus(c.Outcome)),
		column.Micros(c.CreatedAt)}
}

func fromCallRow(r callRow) ports.Call {
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
