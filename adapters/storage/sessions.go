package storage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/work"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// sessions keeps sessions. Its lists are in sessionlists.go.
type sessions struct{ *tx }

var (
	sessionColumns = column.Names(new(sessionRow))
	stateColumns   = column.Names(new(sessionState))
	usageColumns   = "s." + strings.Join(column.Names(new(usageRow)), ", s.")

	// insertSession numbers the session within its agent. Of two that get the same number at the same
	// time, the unique index refuses one, which is run again.
	insertSession = "INSERT INTO sessions (" + strings.Join(sessionColumns, ", ") + ", ord) VALUES (" +
		work.Placeholders(1, len(sessionColumns)) +
		", (SELECT COALESCE(MAX(ord), 0) + 1 FROM sessions WHERE agent_id = ?2))"

	putSession = "UPDATE sessions SET (" + strings.Join(stateColumns, ", ") + ") = (" +
		work.Placeholders(3, len(stateColumns)) + ") WHERE id = ?1 AND agent_id = ?2"
	putUnindexed = putSessionBut("status", "expires_at")

	sessionSelect = "s." + strings.Join(sessionColumns, ", s.")

	loadSession = "SELECT " + sessionSelect + " FROM sessions s WHERE s.id = ?1"
	getSession  = loadSession + " AND s.agent_id = ?2"

	sessionReadFrom    = "SELECT " + sessionReadColumns
	sessionReadColumns = sessionSelect + ", " + usageColumns +
		", h.state FROM sessions s LEFT JOIN session_health h ON h.session = s.seq "
	readSession = sessionReadFrom + "WHERE s.id = ?1 AND s.agent_id = ?2"
)

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
		return r.batch.putSession(s)
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

// putSessionBut is like putSession, with the same arguments, for a session whose values of some
// columns stay. SQLite writes the entries of every index that has a column of the statement,
// PostgreSQL those whose values change.
func putSessionBut(same ...string) string {
	var columns, places, where []string
	for i, column := range stateColumns {
		place := "?" + strconv.Itoa(i+3)
		if slices.Contains(same, column) {
			where = append(where, " AND "+column+" = "+place)
			continue
		}
		columns, places = append(columns, column), append(places, place)
	}
	return "UPDATE sessions SET (" + strings.Join(columns, ", ") + ") = (" + strings.Join(places, ", ") +
		") WHERE id = ?1 AND agent_id = ?2" + strings.Join(where, "")
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

func scanSession(id string, found engine.Row) (session.Session, error) {
	var row sessionRow
	err := found.Scan(column.Targets(&row)...)
	if errors.Is(err, sql.ErrNoRows) {
		return session.Session{}, session.ErrNotFound
	}
	if err != nil {
		return session.Session{}, fmt.Errorf("read session %s: %w", id, err)
	}
	return fromSessionRow(&row)
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

// scanSessionRead scans a row of sessionReadFrom.
func scanSessionRead(found engine.Row) (read ports.SessionRead, err error) {
	var row sessionRow
	var usage usageRow
	var state []byte
	if err := found.Scan(column.Targets(&row, column.Targets(&usage, &state)...)...); err != nil {
		return read, err
	}
	if read.Session, err = fromSessionRow(&row); err != nil {
		return read, err
	}
	read.Usage = fromUsageRow(usage)
	read.Health = &fresh
	if len(state) > 0 {
		read.Health = new(health.State)
		*read.Health, err = fromHealthBlob(state)
	}
	return read, err
}

// fresh is the state of sessions without reports.
var fresh health.State

// fromHealthBlob decodes a state. Without a row it is the zero state.
func fromHealthBlob(blob []byte) (s health.State, err error) {
	if len(blob) == 0 {
		return s, nil
	}
	if err := s.UnmarshalBinary(blob); err != nil {
		return s, fmt.Errorf("health state: %w", err)
	}
	return s, nil
}
