package storage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"agentproxy/adapters/storage/column"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// sessions keeps sessions. Its lists are in sessionlists.go.
type sessions struct{ *tx }

func (r sessions) Insert(_ context.Context, s session.Session) error {
	if r.batch != nil {
		r.batch.insertSession(s)
		return nil
	}
	row := toSessionRow(s)
	return r.Later("insert session "+s.ID, insertSession, column.Values(&row)...)
}

func (r sessions) Put(_ context.Context, s session.Session) error {
	if r.batch != nil {
		if err := r.batch.putSession(s); err != nil {
			return err
		}
		return r.NoteChange("", s.ID)
	}
	row := toSessionRow(s)
	args := append([]any{s.ID, s.AgentID}, column.Values(&row.sessionState)...)
	var n int64
	var err error
	if r.store.postgres == nil {
		n, err = r.Exec(putUnindexed, args...)
	}
	if n == 0 && err == nil {
		n, err = r.Exec(putSession, args...)
	}
	if err != nil {
		return fmt.Errorf("write session %s: %w", s.ID, err)
	}
	if n == 0 {
		return session.ErrNotFound
	}
	return r.NoteChange("", s.ID)
}

func (r sessions) Get(_ context.Context, agentID, id string) (session.Session, error) {
	if r.batch != nil {
		return r.batch.session(r.batch.ownSession(agentID, id))
	}
	return scanSession(id, r.Row(getSession+r.ForUpdate("s"), id, agentID))
}

func (r sessions) Load(_ context.Context, id string) (session.Session, error) {
	if r.batch != nil {
		return r.batch.session(r.batch.anySession(id))
	}
	return scanSession(id, r.Row(loadSession+r.ForUpdate("s"), id))
}

func (r sessions) Read(_ context.Context, agentID, id string) (ports.SessionRead, error) {
	if r.batch != nil {
		return r.batch.readSession(agentID, id)
	}
	r.hold(id)
	read, err := scanSessionRead(r.Row(readSession, id, agentID))
	if errors.Is(err, sql.ErrNoRows) {
		return ports.SessionRead{}, session.ErrNotFound
	}
	if err != nil {
		return ports.SessionRead{}, fmt.Errorf("read session %s: %w", id, err)
	}
	return read, nil
}
