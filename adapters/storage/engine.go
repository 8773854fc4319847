package storage

import (
	"context"
	"database/sql"

	"gorm.io/gorm"

	"agentproxy/ports"
)

// engine is what differs between the databases.
type engine interface {
	// handle is what writes: the one connection of SQLite, or PostgreSQL's pool.
	handle() *sql.DB
	// dialector tells GORM how to speak.
	dialector() gorm.Dialector
	// view, look and update run a unit with a tx of theirs; see ports.Store.
	view(ctx context.Context, run func(context.Context, *tx) error) error
	look(ctx context.Context, run func(context.Context, *tx) error) error
	update(ctx context.Context, run func(context.Context, *tx) error) error
	// audit is view for as long as it takes.
	audit(ctx context.Context, run func(context.Context, *tx) error) error
	ping(ctx context.Context) error
	backup(ctx context.Context, file string) error
	// migrate brings the schema up to date, migrated tells whether one exists.
	migrate(ctx context.Context, s *Store) error
	migrated(ctx context.Context) (bool, error)
	// fault marks failures of the database itself as such, so that the caller is
	// told to try again, and leaves every other error as it is. What fails because
	// the caller's ctx has ended is none.
	fault(ctx context.Context, err error) error
	changesSince(ctx context.Context, t *tx, after ports.Cursor, limit int) ([]ports.Change, ports.Cursor, error)
	dialect() *dialect
	close() error
}

// dialect is how statements differ. Those of both databases are written once,
// with parameters as SQLite numbers them: ?1, ?2.
type dialect struct {
	folder string // of the migrations
	// postgres says that parameters are $1, $2, and that several units write at
	// once, so that what they read must be locked.
	postgres bool
	// The feed of changes; see changes.go.
	lastChange, purgeChanges string
}
