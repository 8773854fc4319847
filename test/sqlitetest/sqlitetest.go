// Package sqlitetest gives tests SQLite databases with the present schema. The migrations run once a
// process.
package sqlitetest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"agentproxy/adapters/storage"
)

// migrated returns the bytes of a migrated database.
var migrated = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "sqlitetest")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "template.db")
	st, err := storage.Open(context.Background(), storage.Config{Path: path})
	if err != nil {
		return nil, err
	}
	// Close moves the write-ahead log into the file.
	if err := errors.Join(st.Migrate(context.Background()), st.Close()); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// File returns the path of a new database on the disk, which is removed when the test ends.
func File(t testing.TB) string {
	t.Helper()
	return create(t, t.TempDir())
}

// InMemory returns the path of a new database in a file system in memory, or on the disk if the
// system has none at /dev/shm. The database is removed when the test ends.
func InMemory(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "agentproxy")
	if err != nil {
		return File(t)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return create(t, dir)
}

func create(t testing.TB, dir string) string {
	t.Helper()
	content, err := migrated()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "test.db")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
