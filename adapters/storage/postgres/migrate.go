package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"agentproxy/adapters/storage/engine"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Migrations returns the files of the migrations.
func (d *Database) Migrations() (fs.FS, error) { return fs.Sub(migrations, "migrations") }

// riverLock is the number of the advisory lock around River's migration; goose has one of its own.
const riverLock = 6_127_004_519_330_872_741

// Migrate applies the migrations in files. It uses connections of its own, without the limits of a unit
// but with that of a lock: a migration that waits blocks every query behind it. Processes that start
// together migrate one after the other.
func (d *Database) Migrate(ctx context.Context, files fs.FS, log *slog.Logger) error {
	c, err := poolConfig(d.url, 4)
	if err != nil {
		return err
	}
	statements, settings := session(c.ConnConfig, map[string]string{"statement_timeout": "0",
		"idle_in_transaction_session_timeout": "0"})
	(&servers{settings: statements, log: log}).watch(c.ConnConfig)
	pool, _, err := connect(ctx, c, settings)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	defer pool.Close()
	db := stdlib.OpenDBFromPool(pool)
	defer db.Close()
	wait := lock.WithLockTimeout(1, 300) // seconds, tries
	own, errOwn := lock.NewPostgresSessionLocker(wait)
	rivers, errRivers := lock.NewPostgresSessionLocker(wait, lock.WithLockID(riverLock))
	provider, err := engine.Migrator(goose.DialectPostgres, files, db, goose.WithSessionLocker(own))
	if err := errors.Join(err, errOwn, errRivers); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	if err := engine.MigrateOwn(ctx, log, provider); err != nil {
		return err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	defer conn.Close()
	if err := rivers.SessionLock(ctx, conn); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	err = engine.MigrateRiver(ctx, riverpgxv5.New(pool))
	return errors.Join(err, rivers.SessionUnlock(context.WithoutCancel(ctx), conn))
}

// Migrated reports whether Migrate ever ran.
func (d *Database) Migrated(ctx context.Context) (done bool, err error) {
	err = d.pool.QueryRow(ctx, "SELECT to_regclass('goose_db_version') IS NOT NULL").Scan(&done)
	return done, err
}
