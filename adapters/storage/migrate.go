package storage

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
)

//go:embed migrations/sqlite/*.sql
var migrations embed.FS

// ErrNewerSchema says that a newer program has migrated the database.
var ErrNewerSchema = errors.New("the database was migrated by a newer version of this program; use that version")

// Migrate brings the schema up to date, the tables of River last. It may run in
// several processes at once and more than once.
func (s *Store) Migrate(ctx context.Context) error {
	provider, err := s.migrator()
	if err != nil {
		return err
	}
	err = patiently(ctx, func() error {
		done, err := provider.Up(ctx)
		for _, result := range done {
			s.config.Logger.Info("migrated", "version", result.Source.Version, "took", result.Duration)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	if err := patiently(ctx, func() error { return s.migrateRiver(ctx) }); err != nil {
		return fmt.Errorf("migrate river: %w", err)
	}
	return nil
}

// patiently tries again for a while. Two processes that start together find the
// same migrations missing; the one that comes second waits for the lock and then
// fails, because its tables exist, until the first one is through.
func patiently(ctx context.Context, migrate func() error) error {
	const tries, pause = 20, 100 * time.Millisecond
	for try := 1; ; try++ {
		err := migrate()
		if err == nil || try == tries || ctx.Err() != nil {
			return err
		}
		time.Sleep(pause)
	}
}

func (s *Store) migrator() (*goose.Provider, error) {
	folder, err := fs.Sub(migrations, "migrations/sqlite")
	if err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, s.writer, folder, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	return provider, nil
}

// migrateRiver runs after goose and not within it: a Go migration asks for a
// second connection, and there is only one.
func (s *Store) migrateRiver(ctx context.Context) error {
	// It would log each of its steps; what goes wrong is in its error.
	migrator, err := rivermigrate.New(riversqlite.New(s.writer), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return err
}

// SchemaVersion returns the version of the schema, 0 before the first Migrate,
// and the one that this program brings.
func (s *Store) SchemaVersion(ctx context.Context) (current, known int64, err error) {
	provider, err := s.migrator()
	if err != nil {
		return 0, 0, err
	}
	for _, source := range provider.ListSources() {
		known = max(known, source.Version)
	}
	var tables int
	err = s.writer.QueryRowContext(ctx, "SELECT COUNT(*) FROM sqlite_master WHERE name = 'goose_db_version'").Scan(&tables)
	if err == nil && tables > 0 {
		err = s.writer.QueryRowContext(ctx,
			"SELECT COALESCE(MAX(version_id), 0) FROM goose_db_version WHERE is_applied = 1").Scan(&current)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("read schema version: %w", err)
	}
	return current, known, nil
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
