package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Backup writes a checked copy of the database to a new file. It refuses a file that exists.
func (d *Database) Backup(ctx context.Context, file string) error {
	// Created here and not by SQLite, so that two backups cannot choose the same file and only its
	// owner can read it.
	created, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	err = d.copyTo(ctx, file)
	if err == nil {
		err = created.Sync()
	}
	err = errors.Join(err, created.Close())
	if err == nil {
		err = syncFolder(filepath.Dir(file))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("backup: %w", err), os.Remove(file))
	}
	return nil
}

func (d *Database) copyTo(ctx context.Context, file string) error {
	// A connection of its own reads one snapshot and blocks neither the writer nor a reader.
	source := sql.OpenDB(newConnector("", d.path, common))
	defer source.Close()
	if _, err := source.ExecContext(ctx, "VACUUM INTO ?", file); err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	copied := sql.OpenDB(newConnector("", file, common))
	defer copied.Close()
	var verdict string
	if err := copied.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict); err != nil {
		return fmt.Errorf("check the copy: %w", err)
	}
	if verdict != "ok" {
		return fmt.Errorf("check the copy: %s", verdict)
	}
	return nil
}

// CheckCopy returns an error unless a file is a sound SQLite database with the tables of this program. It
// writes nothing.
func CheckCopy(ctx context.Context, file string) error {
	if _, err := os.Stat(file); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	db := sql.OpenDB(newConnector("", file, common))
	defer db.Close()
	var verdict string
	if err := db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict); err != nil {
		return fmt.Errorf("check %s: %w", file, err)
	}
	if verdict != "ok" {
		return fmt.Errorf("check %s: %s", file, verdict)
	}
	var n int
	if err := db.QueryRowContext(ctx, "SELECT COUNT(*) FROM recharge_keys").Scan(&n); err != nil {
		return fmt.Errorf("%s is not a database of this program: %w", file, err)
	}
	return nil
}

// ErrInUse is returned for a database that another process has open.
var ErrInUse = errors.New("the database is open in another process: stop the service first")

// CheckIdle returns ErrInUse if another process has a database open. What lies beside the file is in it
// afterwards: leaving the write-ahead log needs the file for oneself.
func CheckIdle(ctx context.Context, file string) error {
	db := sql.OpenDB(newConnector("", file, common))
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("open %s: %w", file, err)
	}
	defer conn.Close()
	var mode string
	if _, err := conn.ExecContext(ctx, "PRAGMA busy_timeout = 1000"); err != nil {
		return fmt.Errorf("open %s: %w", file, err)
	}
	if err := conn.QueryRowContext(ctx, "PRAGMA journal_mode = DELETE").Scan(&mode); err != nil || mode != "delete" {
		return fmt.Errorf("%w (%s)", ErrInUse, file)
	}
	return nil
}

// syncFolder makes the directory entry of a new file survive a power failure.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
