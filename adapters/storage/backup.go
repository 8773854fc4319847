package storage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"time"

	"agentproxy/adapters/storage/sqlite"
	"agentproxy/ports"
)

// lastBackup is the name under which the time of the last backup is kept.
const lastBackup = "last-backup"

// Backup writes a checked copy of the database to a new file while the service runs, and keeps when.
// It refuses a file that exists, and returns postgres.ErrBackup on PostgreSQL.
func (s *Store) Backup(ctx context.Context, file string) error {
	if err := s.database.Backup(ctx, file); err != nil {
		return err
	}
	at := s.clock.Now().UnixMicro()
	return s.Update(ctx, ports.ReadSet{}, func(ctx context.Context, unit ports.Tx) error {
		return unit.(*tx).Later("keep the time of the backup", `INSERT INTO service_values (name, value) VALUES (?1, ?2)
			ON CONFLICT (name) DO UPDATE SET value = excluded.value`, lastBackup, []byte(strconv.FormatInt(at, 10)))
	})
}

// CheckCopy returns an error unless a file is a sound copy of a SQLite database of this program.
func CheckCopy(ctx context.Context, file string) error { return sqlite.CheckCopy(ctx, file) }

// CheckIdle returns an error if another process has a SQLite database open.
func CheckIdle(ctx context.Context, file string) error { return sqlite.CheckIdle(ctx, file) }

// BackedUpAt returns when Backup last succeeded; the zero time if it never did.
func (s *Store) BackedUpAt(ctx context.Context) (at time.Time, err error) {
	err = s.Read(ctx, func(_ context.Context, unit ports.Tx) error {
		var text []byte
		err := unit.(*tx).Row("SELECT value FROM service_values WHERE name = ?1", lastBackup).Scan(&text)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the time of the last backup: %w", err)
		}
		n, err := strconv.ParseInt(string(text), 10, 64)
		at = time.UnixMicro(n).UTC()
		return err
	})
	return at, err
}
