package storage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"agentproxy/ports"
)

// changes keeps what other processes are notified of.
type changes struct{ *tx }

// noteChange inserts a change. Put of agents, sessions and orders calls it.
func (t *tx) noteChange(agentID, sessionID string) error {
	t.touch(sessionID)
	return t.later("note change", "INSERT INTO changes (agent_id, session_id, at) VALUES (?1, ?2, ?3)",
		agentID, sessionID, micros(t.store.now()))
}

func (r changes) Last(context.Context) (ports.Cursor, error) {
	last, err := r.store.database.LastChange(r)
	if err != nil {
		return "", fmt.Errorf("read last change: %w", err)
	}
	return last, nil
}

func (r changes) Since(ctx context.Context, after ports.Cursor, limit int) ([]ports.Change, ports.Cursor, error) {
	list, next, err := r.store.database.ChangesSince(r.listContext(ctx), r, after, limit)
	if err != nil && !errors.Is(err, ports.ErrMissed) {
		return nil, "", fmt.Errorf("list changes: %w", err)
	}
	return list, next, err
}

func (r changes) Purge(_ context.Context, before time.Time, limit int) (int, error) {
	n, err := r.exec(r.store.database.PurgeChanges(), micros(before), limit)
	return int(n), wrap("purge changes", err)
}
