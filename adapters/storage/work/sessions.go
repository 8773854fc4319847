package work

import (
	"database/sql"
	"errors"
	"fmt"

	"agentproxy/domain/session"
)

// SkipLocked is like ForUpdate for rows that may as well be left to the next unit.
func (u *Unit) SkipLocked(table string) string {
	if !u.Locks() {
		return ""
	}
	return u.ForUpdate(table) + " SKIP LOCKED"
}

// SeqOf returns the number by which other tables refer to a session.
func (u *Unit) SeqOf(sessionID string) (seq int64, err error) {
	err = u.Row("SELECT seq FROM sessions WHERE id = ?1", sessionID).Scan(&seq)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, session.ErrNotFound
	}
	if err != nil {
		return 0, fmt.Errorf("find session %s: %w", sessionID, err)
	}
	return seq, nil
}

// Hold locks sessions for what is kept beside them. It is a statement before the
// one that reads: a row that a query had to wait for is read anew, but not what
// the query joins with it.
func (u *Unit) Hold(ids ...string) {
	if !u.Locks() {
		return
	}
	list, args := InTexts(ids)
	query := "SELECT 1 FROM sessions s WHERE s.id IN " + list + " ORDER BY s.id" + u.ForUpdate("s")
	_ = u.LockFirst("lock sessions", query, args...) // the next statement returns its error
}

// By returns a hint for SQLite, which has no statistics before ANALYZE, that a table is read by a
// partial index.
func (d *Database) By(index string) string {
	if !d.Hints {
		return ""
	}
	return " INDEXED BY " + index
}
