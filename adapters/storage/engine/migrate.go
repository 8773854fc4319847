package engine

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivermigrate"
)

// Migrator returns what applies the migrations in files to db.
func Migrator(kind goose.Dialect, files fs.FS, db *sql.DB, more ...goose.ProviderOption) (*goose.Provider, error) {
	provider, err := goose.NewProvider(kind, db, files, append(more, goose.WithDisableGlobalRegistry(true))...)
	if err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	return provider, nil
}

// MigrateOwn brings the tables of the service up to date.
func MigrateOwn(ctx context.Context, log *slog.Logger, provider *goose.Provider) error {
	done, err := provider.Up(ctx)
	if n := len(done); n > 0 {
		var took time.Duration
		for _, result := range done {
			took += result.Duration
		}
		log.Info("migrated", "migrations", n, "version", done[n-1].Source.Version, "took", took)
	}
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

// MigrateRiver brings the tables of River up to date. It runs after MigrateOwn and not within it: a
// Go migration needs a second connection, and SQLite has one.
func MigrateRiver[T any](ctx context.Context, driver riverdriver.Driver[T]) error {
	// It would log each of its steps; a failure is in its error.
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return fmt.Errorf("migrate river: %w", err)
	}
	if _, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("migrate river: %w", err)
	}
	return nil
}
