package storage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"agentproxy/ports"
)

// counters keeps one tally an agent.
type counters struct{ *tx }

const addCounters = `INSERT INTO counters (agent_id, reported, scored, good, rotations, bytes)
	VALUES (?1, ?2, ?3, ?4, ?5, ?6)` + addCountersAgain

func (r counters) Add(_ context.Context, agentID string, t ports.Tally) error {
	if r.batch != nil {
		r.batch.count(agentID, t)
		return nil
	}
	return r.Later("count for "+agentID, addCounters, agentID, t.Reported, t.Scored, t.Good, t.Rotations, t.Bytes)
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
