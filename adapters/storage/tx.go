package storage

import (
	"database/sql"
	"errors"
	"fmt"

	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/rows"
	"agentproxy/adapters/storage/work"
	"agentproxy/domain/session"
)

// tx is one unit of work, which hands out the repositories.
type tx struct {
	work.Unit
	store *Store
	own   rows.Set
	batch *batch // nil for a unit with a transaction of its own, and on SQLite
	// packed are the workers that a unit which writes has read in archives, with their sessions.
	packed map[int64]string
}

// unit returns a unit on a connection, in a transaction or in none.
func (s *Store) unit(conn engine.Conn, in *engine.Transaction) *tx {
	t := &tx{Unit: work.Unit{Conn: conn, In: in, Database: s.work}, store: s, own: rows.New(conn, in)}
	t.Set = &t.own
	return t
}

// skipLocked is like ForUpdate for rows that may as well be left to the next unit.
func (t *tx) skipLocked(table string) string {
	if !t.Locks() {
		return ""
	}
	return t.ForUpdate(table) + " SKIP LOCKED"
}

// join has the unit share a batch, which takes no statement of its own.
func (t *tx) join(b *batch) { t.batch, t.Conn, t.Set = b, batchConn{b}, b.rows }

// seqOf returns the number by which other tables refer to a session.
func (t *tx) seqOf(sessionID string) (seq int64, err error) {
	err = t.Row("SELECT seq FROM sessions WHERE id = ?1", sessionID).Scan(&seq)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, session.ErrNotFound
	}
	if err != nil {
		return 0, fmt.Errorf("find session %s: %w", sessionID, err)
	}
	return seq, nil
}

// hold locks sessions for what is kept beside them. It is a statement before the
// one that reads: a row that a query had to wait for is read anew, but not what
// the query joins with it.
func (t *tx) hold(ids ...string) {
	if !t.Locks() {
		return
	}
	list, args := work.InTexts(ids)
	query := "SELECT 1 FROM sessions s WHERE s.id IN " + list + " ORDER BY s.id" + t.ForUpdate("s")
	_ = t.LockFirst("lock sessions", query, args...) // the next statement returns its error
}
