package storage_test

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"agentproxy/adapters/storage"
	"agentproxy/domain/billing"
	"agentproxy/domain/session"
	"agentproxy/domain/worker"
	"agentproxy/ports"
	"agentproxy/test/pg"
)

// Programs from before the archive work with the schema, for a week and until something is archived.
func TestTheFirstArchiveExcludesOlderPrograms(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]storage.Config{
		"SQLite":     {Path: filepath.Join(t.TempDir(), "archive.db")},
		"PostgreSQL": {URL: storage.URL(pg.Database(t))},
	} {
		t.Run(name, func(t *testing.T) { firstArchiveExcludes(t, at) })
	}
}

// before33 returns the migrations of a program without archives.
func before33(own fs.FS) fs.FS {
	older := fstest.MapFS{}
	names, _ := fs.Glob(own, "*.sql")
	for _, name := range names {
		if name < "00033_" {
			text, _ := fs.ReadFile(own, name)
			older[name] = &fstest.MapFile{Data: text}
		}
	}
	return older
}

func firstArchiveExcludes(t *testing.T, at storage.Config) {
	open := func(migrations func(fs.FS) fs.FS) *storage.Store {
		t.Helper()
		at.Migrations = migrations
		st, err := storage.Open(t.Context(), at)
		if err == nil {
			t.Cleanup(func() { _ = st.Close() })
			err = st.Migrate(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
	old := open(before33)
	var undo []string
	if at.URL == "" { // this program inserts the agent and the session, so its later columns are there meanwhile
		for _, c := range [][2]string{{"agents", "secret_held_until INTEGER"}, {"agents", "former_secret_hash BLOB"},
			{"wallets", "adjusted INTEGER"}, {"wallets", "restricted_keys INTEGER"}, {"sessions", "bought_by TEXT"},
			{"sessions", "buyer TEXT"}, {"sessions", "require TEXT"}, {"sessions", "skipped INTEGER"},
			{"sessions", "ended_exits TEXT"}, {"sessions", "kept INTEGER"}} {
			name, _, _ := strings.Cut(c[1], " ")
			execAll(t, old, "ALTER TABLE "+c[0]+" ADD COLUMN "+c[1])
			undo = append(undo, "ALTER TABLE "+c[0]+" DROP COLUMN "+name)
		}
	}
	addAgent(t, old, "agt_1", 0)
	update(t, old, func(ctx context.Context, tx ports.Tx) error {
		s := dynamicSession("agt_1", "sess_1")
		s.Status, s.Reason, s.EndedAt, s.Money.Held = session.Expired, session.TrafficExhausted, s.CreatedAt, billing.Funds{}
		return tx.Sessions().Insert(ctx, s)
	})
	execAll(t, old, undo...)
	// The program of before has the tables of workers, and no other.
	execAll(t, old, `INSERT INTO workers (session, name, country, city, ttl, strict, uniq, max_bytes,
		exit_ip, turn, assigned_at, lost, changeable, rotations, created_at) SELECT seq, 'a', '', '', 0, 0, 0, 0, '', 0, 1, 0, 0, 0, 1
		FROM sessions`)
	program := open(nil)
	again := open(before33) // a step back
	check := func(what string, st *storage.Store, want error) {
		t.Helper()
		if err := st.CheckSchema(t.Context()); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	check("an older program after the migration", old, nil)
	check("one that is started again", again, nil)

	var text []byte
	err := program.Writer().QueryRow("SELECT value FROM service_values WHERE name = 'archive-from'").Scan(&text)
	from, err2 := strconv.ParseInt(string(text), 10, 64)
	week := time.Until(time.UnixMicro(from))
	if err = errors.Join(err, err2); err != nil || week < 6*24*time.Hour || week > 7*24*time.Hour {
		t.Errorf("archives may be made in %s: %v", week, err)
	}
	dueAt := func(now time.Time) (due []string) {
		t.Helper()
		err := program.View(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) (err error) {
			due, _, err = tx.Workers().ArchiveDue(ctx, now, now, 0, 10)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return due
	}
	if due := dueAt(time.UnixMicro(from - 1)); len(due) != 0 {
		t.Errorf("due within the week: %v", due)
	}
	if due := dueAt(time.UnixMicro(from)); len(due) != 1 {
		t.Errorf("due after the week: %v", due)
	}

	killed := errors.New("killed")
	err = program.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		return errors.Join(tx.Workers().Archive(ctx, "sess_1", now), killed)
	})
	if !errors.Is(err, killed) {
		t.Fatal(err)
	}
	update(t, program, func(ctx context.Context, tx ports.Tx) error { return tx.Workers().Archive(ctx, "sess_none", now) })
	check("an older program before anything is archived", old, nil)
	update(t, program, func(ctx context.Context, tx ports.Tx) error { return tx.Workers().Archive(ctx, "sess_1", now) })
	check("an older program after that", old, storage.ErrNewerSchema)
	if err := again.Migrate(t.Context()); !errors.Is(err, storage.ErrNewerSchema) {
		t.Errorf("an older program starts: %v", err)
	}
	check("the program itself", program, nil)
	var list []worker.Worker
	err = program.View(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) (err error) {
		list, err = tx.Workers().Of(ctx, "sess_1")
		return err
	})
	if err != nil || len(list) != 1 || list[0].Name != "a" {
		t.Errorf("%+v, %v", list, err)
	}
}
