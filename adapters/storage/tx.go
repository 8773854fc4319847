package storage

import (
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/work"
)

// tx is one unit of work, which hands out the repositories.
type tx struct {
	work.Unit
	store *Store
	batch *batch // nil for a unit with a transaction of its own, and on SQLite
	// packed are the workers that a unit which writes has read in archives, with their sessions.
	packed map[int64]string
}

// unit returns a unit on a connection, in a transaction or in none.
func (s *Store) unit(conn engine.Conn, in *engine.Transaction) *tx {
	return &tx{Unit: work.Unit{Conn: conn, In: in, Database: s.work}, store: s}
}

// skipLocked is like ForUpdate for rows that may as well be left to the next unit.
func (t *tx) skipLocked(table string) string {
	if !t.Locks() {
		return ""
	}
	return t.ForUpdate(table) + " SKIP LOCKED"
}
