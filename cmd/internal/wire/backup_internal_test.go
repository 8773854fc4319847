package wire

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentproxy/adapters/storage"
	"agentproxy/domain"
	"agentproxy/test/sqlitetest"
)

// A page must not write what the next start reads as the root secret, as a log of SQLite or as a mark.
func TestABackupHasANameOfItsOwn(t *testing.T) {
	t.Parallel()
	database := sqlitetest.File(t)
	folder := filepath.Dir(database)
	st, err := storage.Open(t.Context(), storage.Config{Path: database})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for _, name := range []string{"", ".db", "monday", "monday.sqlite", "monday.db/", "../monday.db", "a/monday.db", `a\monday.db`,
		".hidden.db", "a\x00.db", "a b.db", "a\n.db", "münchen.db", strings.Repeat("a", 98) + ".db", "monday.DB",
		"ap.db.secret", "ap.db.secret.previous", "ap.db.secret.db", "ap.db-wal", "ap.db-shm", "ap.db-journal", "other.db-wal.db",
		"ap.db.reserve", "ap.db.admin", "ap.db.ADMIN.db", "ap.db.Secret.previous.db", "ap.db.indexes.db", "x-journal.db", "x-SHM.db"} {
		_, err := backupBeside(t.Context(), st, database, name)
		if e, ok := errors.AsType[*domain.Error](err); !ok || e.Kind != domain.Invalid {
			t.Errorf("%q: %v", name, err)
		}
	}
	kept, err := os.ReadFile(database)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"monday.db", "ap-2026-11-27_1.db"} {
		if path, err := backupBeside(t.Context(), st, database, name); err != nil || path != filepath.Join(folder, name) {
			t.Errorf("%q: %q, %v", name, path, err)
		}
		if err := storage.CheckCopy(t.Context(), filepath.Join(folder, name)); err != nil {
			t.Error(err)
		}
	}
	// What exists stays: another backup, and the database itself.
	for _, name := range []string{"monday.db", filepath.Base(database)} {
		if _, err := backupBeside(t.Context(), st, database, name); err == nil || !strings.Contains(err.Error(), "file") {
			t.Errorf("%q: %v", name, err)
		}
	}
	if now, err := os.ReadFile(database); err != nil || len(now) < len(kept) {
		t.Errorf("the database has %d bytes, had %d: %v", len(now), len(kept), err)
	}
	if list, err := filepath.Glob(filepath.Join(folder, "*")); err != nil || len(list) > 8 {
		t.Errorf("the folder has %v", list)
	}
}
