package storage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

func (e *sqliteEngine) backup(ctx context.Context, file string) error {
	// Made here and not by SQLite, so that two backups cannot choose the same
	// file and nobody else can read it.
	made, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	err = e.copyTo(ctx, file)
	if err == nil {
		err = made.Sync()
	}
	err = errors.Join(err, made.Close())
	if err == nil {
		err = syncFolder(filepath.Dir(file))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("backup: %w", err), os.Remove(file))
	}
	return nil
}

func (e *sqliteEngine) copyTo(ctx context.Context, file string) error {
	// A connection of its own: it reads one snapshot and keeps neither the
	// writer nor a reader from its work.
	source := sql.OpenDB(newConnector("", e.path, sqliteCommon))
	defer source.Close()
	if _, err := source.ExecContext(ctx, "VACUUM INTO ?", file); err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	copied := sql.OpenDB(newConnector("", file, sqliteCommon))
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

// syncFolder makes the name of a new file survive a power failure.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
