package storage_test

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"agentproxy/adapters/storage"
	"agentproxy/ports"
	"agentproxy/test/pg"
)

// The migrations of later programs: the first adds, the second takes away.
const (
	adding = `-- +goose Up
		ALTER TABLE referrers ADD COLUMN note TEXT NOT NULL DEFAULT '';`
	removing = `-- +goose Up
		ALTER TABLE referrers DROP COLUMN note;
		UPDATE schema_state SET min_compatible = 9002;`
)

// withMigrations returns what adds migrations to those of this program.
func withMigrations(t *testing.T, more map[string]string) func(fs.FS) fs.FS {
	return func(own fs.FS) fs.FS {
		all := fstest.MapFS{}
		names, err := fs.Glob(own, "*.sql")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := fs.ReadFile(own, name)
			if err != nil {
				t.Fatal(err)
			}
			all[name] = &fstest.MapFile{Data: text}
		}
		for name, text := range more {
			all[name] = &fstest.MapFile{Data: []byte(text)}
		}
		return all
	}
}

func TestProgramsOfTwoVersionsShareASchema(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]storage.Config{
		"SQLite":     {Path: filepath.Join(t.TempDir(), "schema.db")},
		"PostgreSQL": {URL: storage.URL(pg.Database(t))},
	} {
		t.Run(name, func(t *testing.T) { twoVersionsShareASchema(t, at) })
	}
}

func twoVersionsShareASchema(t *testing.T, at storage.Config) {
	open := func(more map[string]string) (*storage.Store, error) {
		at.Migrations = withMigrations(t, more)
		st, err := storage.Open(t.Context(), at)
		if err == nil {
			t.Cleanup(func() { _ = st.Close() })
		}
		return st, err
	}
	must := func(st *storage.Store, err error) *storage.Store {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
	check := func(what string, st *storage.Store, want error) {
		t.Helper()
		if err := st.CheckSchema(t.Context()); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	expanded := map[string]string{"09001_add.sql": adding}
	contracted := map[string]string{"09001_add.sql": adding, "09002_remove.sql": removing}

	old := must(open(nil))
	if err := old.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("the first program", old, nil)
	next := must(open(expanded))
	check("a later one before it migrates", next, storage.ErrOlderSchema)
	if err := next.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("it", next, nil)
	check("the first while the later one starts", old, nil)
	addAgent(t, old, "agt_1", 0)

	again := must(open(nil)) // a step back
	if err := again.Migrate(t.Context()); err != nil {
		t.Errorf("the first program does not start on what the later one left: %v", err)
	}
	check("the first, started again", again, nil)
	addAgent(t, again, "agt_2", 0)
	check("the later one beside it", next, nil)

	last := must(open(contracted))
	if err := last.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("the last", last, nil)
	check("the first after the last migrated", old, storage.ErrNewerSchema)
	check("the one before the last", next, storage.ErrNewerSchema)
	if err := old.Migrate(t.Context()); !errors.Is(err, storage.ErrNewerSchema) {
		t.Errorf("the first migrates: %v", err)
	}
	if _, err := open(expanded); !errors.Is(err, storage.ErrNewerSchema) {
		t.Errorf("a program that the schema excludes starts: %v", err)
	}
}

// removes matches what programs of an older schema would miss.
var removes = regexp.MustCompile(`(?i)\b(DROP\s+(TABLE|COLUMN|NOT NULL)|RENAME|SET NOT NULL|ALTER COLUMN \w+ TYPE)\b`)

// rebuilds matches the end of a table's rebuilding, which SQLite's manual describes for what ALTER TABLE cannot do.
var rebuilds = regexp.MustCompile(`ALTER TABLE \w+_rebuilt RENAME TO (\w+);`)

// TestMigrationsThatRemoveSayWhoTheyExclude reads the migrations since schema_state was added.
func TestMigrationsThatRemoveSayWhoTheyExclude(t *testing.T) {
	names, err := filepath.Glob("*/migrations/*.sql")
	if err != nil || len(names) < 20 {
		t.Fatalf("%d migrations, %v", len(names), err)
	}
	for _, name := range names {
		if path.Base(filepath.ToSlash(name)) <= "00018_" {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		up, _, _ := strings.Cut(string(text), "-- +goose Down")
		if table := rebuilds.FindStringSubmatch(up); table != nil { // under its own name
			up = strings.NewReplacer("DROP TABLE "+table[1]+";", "", table[0], "").Replace(up)
		}
		if found := removes.FindString(up); found != "" && !strings.Contains(up, "min_compatible") {
			t.Errorf("%s: %s takes away what older programs use; set min_compatible", name, found)
		}
	}
}

// before returns what leaves out the migrations from a name on.
func before(t *testing.T, name string) func(fs.FS) fs.FS {
	return func(own fs.FS) fs.FS {
		all := withMigrations(t, nil)(own).(fstest.MapFS)
		maps.DeleteFunc(all, func(file string, _ *fstest.MapFile) bool { return file >= name })
		return all
	}
}

// Events keep their numbers when their table is rebuilt, and a number that was purged is not given again.
func TestEventsOutliveTheRebuildingOfTheirTable(t *testing.T) {
	t.Parallel()
	at := storage.Config{Path: filepath.Join(t.TempDir(), "old.db"), Now: func() time.Time { return now },
		Migrations: before(t, "00051_")}
	old, err := storage.Open(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	if err := old.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	execAll(t, old, `INSERT INTO outbox (seq, id, agent_id, type, at, data, session_id) VALUES
		(3, 'evt_3', 'agt_1', 'balance.low', 1, '{"a":"b"}', 's'), (9, 'evt_9', 'agt_1', 'balance.low', 2, '{}', '')`,
		"DELETE FROM outbox WHERE seq = 9")
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	st := openAt(t, at.Path)
	update(t, st, func(ctx context.Context, tx ports.Tx) error { return appendFor(ctx, tx, "agt_1", "evt_10") })
	var rows string
	if err := st.Writer().QueryRow("SELECT group_concat(seq || ' ' || id || ' ' || session_id || ' ' || sent || data, ', ') FROM outbox WHERE id <> ''").
		Scan(&rows); err != nil || rows != `3 evt_3 s 1{"a":"b"}, 10 evt_10  1{"n":"1"}` {
		t.Errorf("there are %q: %v", rows, err)
	}
	view(t, st, func(ctx context.Context, tx ports.Tx) error { _, err := tx.Outbox().Event(ctx, "evt_3"); return err })
}
