package storage

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
)

//go:embed migrations
var migrations embed.FS

// ErrNewerSchema says that a newer program has migrated the database.
var ErrNewerSchema = errors.New("the database was migrated by a newer version of this program; use that version")

// ErrOlderSchema says that the database was not migrated to what this program
// needs.
var ErrOlderSchema = errors.New("the database has an older schema; bring it up to date with: agentproxy migrate")

// Migrate brings the schema up to date, the tables of River last. It may run in
// several processes at once and more than once.
func (s *Store) Migrate(ctx context.Context) error { return s.engine.migrate(ctx, s) }

// goose brings our own tables up to date.
func (s *Store) goose(ctx context.Context, provider *goose.Provider) error {
	done, err := provider.Up(ctx)
	for _, result := range done {
		s.config.Logger.Info("migrated", "version", result.Source.Version, "took", result.Duration)
	}
	return err
}

// river brings the tables of River up to date. It runs after goose and not
// within it: a Go migration asks for a second connection, and there may be one.
func river[T any](ctx context.Context, driver riverdriver.Driver[T]) error {
	// It would log each of its steps; what goes wrong is in its error.
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return fmt.Errorf("migrate river: %w", err)
	}
	if _, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("migrate river: %w", err)
	}
	return nil
}

func (e *sqliteEngine) migrate(ctx context.Context, s *Store) error {
	provider, err := migrator(goose.DialectSQLite3, e.dialect(), e.writer)
	if err != nil {
		return err
	}
	if err := patiently(ctx, func() error { return s.goose(ctx, provider) }); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return patiently(ctx, func() error { return river(ctx, riversqlite.New(e.writer)) })
}

// riverLock is the number of the lock that River's migration takes; goose has
// one of its own.
const riverLock = 6_127_004_519_330_872_741

// migrate uses connections of its own, without the limits of a unit but with
// that of a lock: a migration that waits holds up everybody behind it.
// Processes that start together take turns.
func (e *postgresEngine) migrate(ctx context.Context, s *Store) error {
	c, err := poolConfig(e.config.URL, 4)
	if err != nil {
		return err
	}
	c.ConnConfig.RuntimeParams["statement_timeout"] = "0"
	c.ConnConfig.RuntimeParams["idle_in_transaction_session_timeout"] = "0"
	pool, err := connect(ctx, c)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	defer pool.Close()
	db := stdlib.OpenDBFromPool(pool)
	defer db.Close()
	wait := lock.WithLockTimeout(1, 300) // seconds, tries
	own, errOwn := lock.NewPostgresSessionLocker(wait)
	rivers, errRivers := lock.NewPostgresSessionLocker(wait, lock.WithLockID(riverLock))
	provider, err := migrator(goose.DialectPostgres, e.dialect(), db, goose.WithSessionLocker(own))
	if err := errors.Join(err, errOwn, errRivers); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	if err := s.goose(ctx, provider); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	defer conn.Close()
	if err := rivers.SessionLock(ctx, conn); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return errors.Join(river(ctx, riverpgxv5.New(pool)), rivers.SessionUnlock(context.WithoutCancel(ctx), conn))
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

func migrator(kind goose.Dialect, d *dialect, db *sql.DB, more ...goose.ProviderOption) (*goose.Provider, error) {
	folder, err := fs.Sub(migrations, d.folder)
	if err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	provider, err := goose.NewProvider(kind, db, folder, append(more, goose.WithDisableGlobalRegistry(true))...)
	if err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	return provider, nil
}

// SchemaVersion returns the version of the schema, 0 before the first Migrate,
// and the one that this program brings.
func (s *Store) SchemaVersion(ctx context.Context) (current, known int64, err error) {
	files, err := fs.ReadDir(migrations, s.engine.dialect().folder)
	if err != nil {
		return 0, 0, fmt.Errorf("read schema version: %w", err)
	}
	for _, file := range files {
		version, err := goose.NumericComponent(file.Name())
		if err != nil {
			return 0, 0, fmt.Errorf("read schema version: %w", err)
		}
		known = max(known, version)
	}
	there, err := s.engine.migrated(ctx)
	if err == nil && there {
		err = s.Writer().QueryRowContext(ctx,
			"SELECT COALESCE(MAX(version_id), 0) FROM goose_db_version WHERE is_applied").Scan(&current)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("read schema version: %w", err)
	}
	return current, known, nil
}

func (e *sqliteEngine) migrated(ctx context.Context) (there bool, err error) {
	err = e.writer.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'goose_db_version')").Scan(&there)
	return there, err
}

func (e *postgresEngine) migrated(ctx context.Context) (there bool, err error) {
	err = e.pool.QueryRow(ctx, "SELECT to_regclass('goose_db_version') IS NOT NULL").Scan(&there)
	return there, err
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
