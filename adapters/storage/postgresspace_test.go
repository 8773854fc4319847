package storage_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"agentproxy/adapters/storage"
	"agentproxy/domain"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/pg"
)

// Of PostgreSQL's space what the operator declared is known, and that its disk was full.
func TestSpaceOfPostgres(t *testing.T) {
	t.Parallel()
	dsn := pg.Database(t)
	var later atomic.Int64 // of this host's clock
	open := func(capacity int64) *storage.Store {
		t.Helper()
		st, err := storage.Open(t.Context(), storage.Config{URL: storage.URL(dsn), MaxConns: 4, Capacity: capacity,
			Host: func() time.Time { return time.Now().Add(time.Duration(later.Load())) }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = st.Close() })
		return st
	}
	st := open(0)
	var size int64
	if err := st.Writer().QueryRow("SELECT pg_database_size(current_database())").Scan(&size); err != nil {
		t.Fatal(err)
	}
	free := func(st *storage.Store) int64 {
		t.Helper()
		bytes, known, err := st.Free()
		if !known || err != nil {
			t.Errorf("%d are free: %v, %v", bytes, known, err)
		}
		return int64(bytes)
	}
	scarce := func(st *storage.Store) bool {
		t.Helper()
		yes, err := st.Scarce()
		if err != nil {
			t.Error(err)
		}
		return yes
	}
	if _, known, err := st.Free(); known || err != nil || scarce(st) || st.DiskFull() {
		t.Errorf("without a capacity the space is known: %v, %v", known, err)
	}
	if wide := open(2 * size); scarce(wide) || free(wide) < size/2 || free(wide) > size*3/2 {
		t.Errorf("of %d bytes %d are free", 2*size, free(wide))
	}
	narrow := open(size + size/20 + 1<<20)
	if scarce(narrow) {
		t.Errorf("%d bytes are scarce", free(narrow))
	}
	if _, err := narrow.Writer().Exec(`CREATE TABLE filler AS SELECT repeat('x', 1000) FROM generate_series(1, 4000)`); err != nil {
		t.Fatal(err)
	}
	later.Add(int64(time.Minute))
	eventually(t, "the growth to be seen", func() bool { return scarce(narrow) })
	if over := open(size / 2); !scarce(over) || free(over) != 0 {
		t.Errorf("%d bytes are free beyond the capacity", free(over))
	}

	for _, statement := range []string{
		`CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
			$$BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END$$`,
		`CREATE TRIGGER full_disk BEFORE INSERT ON sessions EXECUTE FUNCTION full_disk()`,
	} {
		if _, err := st.Writer().Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	addAgent(t, st, "agt_1", 0)
	err := st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		s := dynamicSession("agt_1", "sess_1")
		s.Status = session.Active
		return tx.Sessions().Insert(ctx, s)
	})
	if !errors.Is(err, domain.ErrUnavailable) || !scarce(st) || !st.DiskFull() {
		t.Errorf("a full disk is answered %v, and the space is scarce: %v", err, scarce(st))
	}
	later.Add(int64(5 * time.Minute))
	if scarce(st) || st.DiskFull() {
		t.Error("the space stays scarce")
	}
}
