package storage

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"agentproxy/ports"
)

// changes keeps what other processes must hear of.
type changes struct{ *tx }

// noteChange is called by Put of agents and of sessions.
func (t *tx) noteChange(agentID, sessionID string) error {
	_, err := t.exec("INSERT INTO changes (agent_id, session_id, at) VALUES (?1, ?2, ?3)",
		agentID, sessionID, micros(t.store.config.Now()))
	if err != nil {
		return fmt.Errorf("note change: %w", err)
	}
	return nil
}

func (r changes) Last(context.Context) (last int64, err error) {
	if err := r.row("SELECT COALESCE(MAX(seq), 0) FROM changes").Scan(&last); err != nil {
		return 0, fmt.Errorf("read last change: %w", err)
	}
	return last, nil
}

func (r changes) Since(ctx context.Context, seq int64, limit int) ([]ports.Change, error) {
	var since []ports.Change
	err := r.rows(ctx, "SELECT seq, agent_id, session_id FROM changes WHERE seq > ?1 ORDER BY seq LIMIT ?2",
		[]any{seq, limit}, func(rows *sql.Rows) error {
			var c ports.Change
			err := rows.Scan(&c.Seq, &c.Agent, &c.Session)
			since = append(since, c)
			return err
		})
	if err != nil {
		return nil, fmt.Errorf("list changes: %w", err)
	}
	return since, nil
}

// Purge keeps the newest change, so that Last never falls back.
func (r changes) Purge(_ context.Context, before time.Time) error {
	_, err := r.exec("DELETE FROM changes WHERE at < ?1 AND seq < (SELECT MAX(seq) FROM changes)", micros(before))
	if err != nil {
		return fmt.Errorf("purge changes: %w", err)
	}
	return nil
}
