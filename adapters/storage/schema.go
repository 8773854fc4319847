package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
)

// ErrNewerSchema is returned for a database that a newer program has migrated.
var ErrNewerSchema = errors.New("the database was migrated by a newer version of this program; use that version")

// ErrOlderSchema is returned for a database that was not migrated to the schema of this program.
var ErrOlderSchema = errors.New("the database has an older schema; bring it up to date with: agentproxy migrate")

// Migrate brings the schema up to date, the tables of River last. It may run in several processes at
// once and more than once.
func (s *Store) Migrate(ctx context.Context) error { return s.database.Migrate(ctx, s.config.Logger) }

// SchemaVersion returns the version of the schema, 0 before the first Migrate, and that of this
// program.
func (s *Store) SchemaVersion(ctx context.Context) (current, known int64, err error) {
	if known, err = s.knownSchema(); err != nil {
		return 0, 0, fmt.Errorf("read schema version: %w", err)
	}
	migrated, err := s.database.Migrated(ctx)
	if err == nil && migrated {
		err = s.Writer().QueryRowContext(ctx,
			"SELECT COALESCE(MAX(version_id), 0) FROM goose_db_version WHERE is_applied").Scan(&current)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("read schema version: %w", err)
	}
	return current, known, nil
}

func (s *Store) knownSchema() (known int64, err error) {
	migrations, err := s.database.Migrations()
	if err != nil {
		return 0, err
	}
	files, err := fs.ReadDir(migrations, ".")
	if err != nil {
		return 0, err
	}
	for _, file := range files {
		version, err := goose.NumericComponent(file.Name())
		if err != nil {
			return 0, err
		}
		known = max(known, version)
	}
	return known, nil
}

func (s *Store) checkSchema(ctx context.Context) error {
	current, known, err := s.SchemaVersion(ctx)
	if err != nil {
		return err
	}
	if current > known {
		return fmt.Errorf("schema %d, known up to %d: %w", current, known, ErrNewerSchema)
	}
	return nil
}
