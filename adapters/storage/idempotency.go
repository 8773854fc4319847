package storage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"agentproxy/adapters/storage/column"
	"agentproxy/ports"
)

// calls keeps Idempotency-Keys. Errors do not repeat the key, which is the
// caller's.
type calls struct{ *tx }

func (r calls) Find(_ context.Context, agentID, path, key string, since time.Time) (ports.Call, bool, error) {
	if r.batch != nil {
		return r.batch.findCall(agentID, path, key, since)
	}
	c := ports.Call{AgentID: agentID, Path: path, Key: key}
	// Of two calls with a key that is not stored yet the second must find it.
	r.Serialize(callLock(agentID, path, key))
	var at int64
	var status int
	err := r.Row(`SELECT request, resource, status, created_at FROM idempotency_keys
		WHERE agent_id = ?1 AND path = ?2 AND key = ?3 AND created_at >= ?4`, agentID, path, key, column.Micros(since)).
		Scan(&c.Request, &c.Resource, &status, &at)
	if errors.Is(err, sql.ErrNoRows) {
		return ports.Call{}, false, nil
	}
	if err != nil {
		return ports.Call{}, false, fmt.Errorf("find key of %s: %w", agentID, err)
	}
	c.Outcome, c.CreatedAt = storedOutcomes[status], column.Time(at)
	return c, true, nil
}

const putCall = `INSERT INTO idempotency_keys (agent_id, path, key, request, resource, status, created_at)
	VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)` + putCallAgain

func (r calls) Put(_ context.Context, c ports.Call) error {
	if r.batch != nil {
		return r.batch.putCall(c)
	}
	return r.Later("keep key of "+c.AgentID, putCall,
		c.AgentID, c.Path, c.Key, column.Bytes(c.Request), c.Resource, outcomeStatus(c.Outcome), column.Micros(c.CreatedAt))
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
