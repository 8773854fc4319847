package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
)

// ErrNewerSchema is returned for a database whose schema needs a newer program.
var ErrNewerSchema = errors.New("the database was migrated by a newer version of this program, and this one does not " +
	"work with it; use that version")

// ErrOlderSchema is returned for a database that was not migrated to the schema of this program.
var ErrOlderSchema = errors.New("the database has an older schema; bring it up to date with: agentproxy migrate")

// Migrate brings the schema up to date, the tables of River last. It may run in several processes at
// once and more than once. A newer schema that this program works with is left as it is.
func (s *Store) Migrate(ctx context.Context) error {
	current, known, err := s.SchemaVersion(ctx)
	if err != nil {
		return err
	}
	if current > known {
		s.config.Logger.Info("the database has a newer schema, which this program works with", "schema", current,
			"own", known)
		return s.checkSchema(ctx)
	}
	files, err := s.migrations()
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return s.database.Migrate(ctx, files, s.config.Logger)
}

// migrations returns the files of this program's migrations.
func (s *Store) migrations() (fs.FS, error) {
	files, err := s.database.Migrations()
	if err == nil && s.config.Migrations != nil {
		return s.config.Migrations(files), nil
	}
	return files, err
}

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
	migrations, err := s.migrations()
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

// CheckSchema returns nil if this program works with the schema: its own, or a newer one whose
// min_compatible allows it. It returns ErrOlderSchema or ErrNewerSchema otherwise.
func (s *Store) CheckSchema(ctx context.Context) error {
	current, known, err := s.SchemaVersion(ctx)
	if err == nil && current < known {
		return fmt.Errorf("schema %d, needed is %d: %w", current, known, ErrOlderSchema)
	}
	if err != nil {
		return err
	}
	return s.checkSchema(ctx)
}

// checkSchema returns ErrNewerSchema for a schema that is newer than what this program works with.
func (s *Store) checkSchema(ctx context.Context) error {
	current, known, err := s.SchemaVersion(ctx)
	if err != nil || current <= known {
		return err
	}
	var oldest int64
	if err := s.Writer().QueryRowContext(ctx, "SELECT min_compatible FROM schema_state").Scan(&oldest); err != nil {
		return fmt.Errorf("read which programs the schema works with: %w", err)
	}
	if known < oldest {
		return fmt.Errorf("schema %d, for programs of %d or newer, this one's is %d: %w", current, oldest, known,
			ErrNewerSchema)
	}
	return nil
}
