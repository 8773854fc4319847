package storage

import (
	"context"
	"database/sql"

	"agentproxy/domain/feed"
)

// SetCommit replaces how transactions are committed.
func (s *Store) SetCommit(commit func(*sql.Tx) error) { s.commits.commit = commit }

// Waiting counts the units that wait for their turn.
func (s *Store) Waiting() int { return len(s.commits.queue) }

// Lane hands out a connection that reads.
func (s *Store) Lane(ctx context.Context, fn func(*sql.Conn) error) error {
	return s.lanes.view(ctx, func(l *lane) error { return fn(l.conn) })
}

// AppendChunk and ReadChunk are the encoding of events.
func AppendChunk(b []byte, events []feed.Event) []byte { return appendChunk(b, events) }
func ReadChunk(b []byte) ([]feed.Event, error)         { return readChunk(b) }

// SessionColumns are the columns of sessions, id and agent first.
var SessionColumns = sessionColumns

// NewerSchema pretends that a newer program migrated the database.
func (s *Store) NewerSchema() error {
	_, err := s.writer.Exec("INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, 1)")
	return err
}

// Rules are the names of the rules that Verify checks.
func Rules() (names []string) {
	for _, r := range rules {
		names = append(names, r.name)
	}
	return names
}
