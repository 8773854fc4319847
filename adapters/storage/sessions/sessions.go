// Package sessions keeps sessions, with their usage, leases, health, events, rules and peers.
package sessions

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"agentproxy/adapters/storage/work"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// repository keeps sessions. Its lists are in sessionlists.go.
type repository struct{ *work.Unit }

// Sessions returns the sessions of a unit.
func Sessions(u *work.Unit) ports.Sessions { return repository{u} }

func (r repository) Insert(_ context.Context, s session.Session) error {
	if _, known := Table.Peek(r.Set, s.ID); known {
		return fmt.Errorf("insert session %s: %w", s.ID, ports.ErrDuplicate)
	}
	row := toRow(s)
	f := &Stored{Row: row, usage: usageRow{Bytes: row.Bytes}, locked: true, added: true}
	return Table.Insert(r.Set, s.ID, f)
}

func (r repository) Put(_ context.Context, s session.Session) error {
	f, err := stored(r.Unit, s.ID)
	if err == nil && f.AgentID != s.AgentID {
		err = session.ErrNotFound
	}
	if err != nil {
		return err
	}
	f.State = toRow(s).State
	f.usage.Bytes = f.Bytes
	if err := store(r.Unit, f, stateChanged); err != nil {
		return err
	}
	return r.NoteChange("", s.ID)
}

func (r repository) Get(ctx context.Context, agentID, id string) (session.Session, error) {
	s, err := r.Load(ctx, id)
	if err == nil && s.AgentID != agentID {
		return session.Session{}, session.ErrNotFound
	}
	return s, err
}

func (r repository) Load(_ context.Context, id string) (session.Session, error) {
	f, found, err := Table.Get(r.Set, id)
	if err == nil && !found {
		err = session.ErrNotFound
	}
	if err != nil {
		return session.Session{}, err
	}
	return FromRow(&f.Row)
}

func (r repository) Read(_ context.Context, agentID, id string) (read ports.SessionRead, err error) {
	if err := r.readWhole(id); err != nil {
		return read, err
	}
	f, found, err := Table.Get(r.Set, id)
	switch {
	case err != nil:
		return read, err
	case !found || f.AgentID != agentID:
		return read, session.ErrNotFound
	}
	h, looked := HealthTable.Peek(r.Set, id)
	if !looked && !f.added {
		return read, r.Set.Escape()
	}
	return toRead(f, &h)
}

// readWhole loads a session with its usage and its health by one statement, if they are not in memory.
func (r repository) readWhole(id string) error {
	_, known := Table.Peek(r.Set, id)
	_, looked := HealthTable.Peek(r.Set, id)
	if r.Set.Ahead() || known && looked {
		return nil
	}
	r.Hold(id)
	err := LoadWhole(r.Set, r.Row(readSession, id))
	if errors.Is(err, sql.ErrNoRows) {
		Table.Ask(r.Set, id)
		return nil
	}
	return work.Wrap("read session "+id, err)
}
