package storage_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"agentproxy/adapters/storage"
	"agentproxy/domain"
	"agentproxy/ports"
)

func TestTheWriterIsDurableAndKeepsForeignKeys(t *testing.T) {
	st := openStore(t)
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1",
		"busy_timeout": "10000", "query_only": "0", "recursive_triggers": "1"} {
		var got string
		if err := st.Writer().QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %q, %v; want %q", pragma, got, err, want)
		}
	}
	if n := st.Writer().Stats().MaxOpenConnections; n != 1 {
		t.Errorf("%d connections may write, want 1", n)
	}
	if _, err := st.Writer().ExecContext(t.Context(), `INSERT INTO wallets SELECT 'agt_none', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		0, NULL, NULL, '', 0, 0, 0, 0`); err == nil {
		t.Error("a wallet without an agent is accepted")
	}
}

func TestAReaderRefusesWrites(t *testing.T) {
	st := openStore(t)
	err := st.View(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error { // through GORM
		return tx.Addresses().Take(ctx, "p", "sess_1", []string{"192.0.2.1"})
	})
	if err == nil {
		t.Error("a reader wrote")
	}
	for range 20 { // every shard
		err := st.Reader(t.Context(), func(conn *sql.Conn) error {
			_, err := conn.ExecContext(t.Context(), "DELETE FROM agents")
			return err
		})
		if err == nil {
			t.Error("a reading connection wrote")
		}
	}
}

func TestTheFileIsItsOwnersAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	addAgent(t, openAt(t, path), "agt_1", 0)
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); mode != 0o600 {
			t.Errorf("%s has mode %o", filepath.Base(name), mode)
		}
	}
}

func TestAPathMayHoldAnyCharacter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b?c#d%e&f.db")
	addAgent(t, openAt(t, path), "agt_1", 0)
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}

func TestMigrateMayRunTwiceAndInSeveralProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	var wg sync.WaitGroup
	for range 4 {
		st, err := storage.Open(t.Context(), storage.Config{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = st.Close() })
		wg.Go(func() {
			if err := errors.Join(st.Migrate(t.Context()), st.Migrate(t.Context())); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	var river int
	st := openAt(t, path)
	if err := st.Writer().QueryRowContext(t.Context(), "SELECT COUNT(*) FROM river_job").Scan(&river); err != nil {
		t.Errorf("the tables of River: %v", err)
	}
}

func TestTwoStoresWriteTheSameFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	stores := []*storage.Store{openAt(t, path), openAt(t, path)}
	const each = 300
	var wg sync.WaitGroup
	for _, st := range stores {
		for range 4 {
			wg.Go(func() {
				for range each / 4 {
					err := st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
						// A lock that is asked for only after a read is refused at once.
						if _, err := tx.Counters().Get(ctx, "a"); err != nil {
							return err
						}
						return count("a", succeed)(ctx, tx)
					})
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	wg.Wait()
	for _, st := range stores {
		wantCounted(t, st, map[string]int64{"a": 2 * each})
	}
}

// TestKilledWhileWriting buys in a child process, kills it, and proves the
// ledger of what is left.
func TestKilledWhileWriting(t *testing.T) {
	if path := os.Getenv("STORAGE_TEST_BUY_AT"); path != "" {
		buyForEver(t, path)
	}
	path := filepath.Join(t.TempDir(), "test.db")
	st := openAt(t, path)
	addAgent(t, st, "agt_1", 1_000_000*domain.Dollar)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	before := 0
	for round := range 4 {
		child := exec.Command(os.Args[0], "-test.run", "^TestKilledWhileWriting$")
		child.Env = append(os.Environ(), "STORAGE_TEST_BUY_AT="+path, fmt.Sprint("STORAGE_TEST_ROUND=", round))
		begun, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		// The child writes a byte after each purchase, and is killed in the midst of the next.
		if _, err := io.ReadFull(begun, make([]byte, 20+31*round)); err != nil {
			t.Fatalf("the child booked too little: %v", err)
		}
		if err := child.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = child.Wait()

		st := openAt(t, path)
		faults, entries, err := st.Verify(t.Context())
		if err != nil || len(faults) > 0 {
			t.Errorf("after the kill: %v, %+v", err, faults)
		}
		if entries <= before {
			t.Errorf("round %d booked nothing: %d entries", round, entries)
		}
		before = entries
		var check string
		if err := st.Writer().QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&check); err != nil || check != "ok" {
			t.Errorf("integrity: %s, %v", check, err)
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func buyForEver(t *testing.T, path string) {
	st := openAt(t, path)
	var base int64
	_, _ = fmt.Sscan(os.Getenv("STORAGE_TEST_ROUND"), &base)
	var wg sync.WaitGroup
	for buyer := range int64(8) {
		wg.Go(func() {
			for i := int64(0); ; i++ {
				n := base*100_000_000 + buyer*10_000_000 + i
				if err := st.Update(context.Background(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
					return purchase(ctx, tx, "agt_1", n)
				}); err != nil {
					t.Error(err)
					return
				}
				fmt.Print(".")
			}
		})
	}
	wg.Wait()
}

func TestABackupIsACheckedCopy(t *testing.T) {
	st := openStore(t)
	addAgent(t, st, "agt_1", 5*domain.Dollar)
	file := filepath.Join(t.TempDir(), "copy.db")
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { // during writes
		for n := int64(0); ; n++ {
			select {
			case <-stop:
				return
			default:
				_ = st.Update(context.Background(), ports.ReadSet{}, count("a", succeed))
			}
		}
	})
	err := st.Backup(t.Context(), file)
	close(stop)
	wg.Wait()
	if err != nil {
		t.Fatal(err)
	}
	copied := openAt(t, file)
	if faults, entries, err := copied.Verify(t.Context()); err != nil || len(faults) > 0 || entries != 1 {
		t.Errorf("the copy has %d entries, %+v, %v", entries, faults, err)
	}
	if err := st.Backup(t.Context(), file); !errors.Is(err, os.ErrExist) {
		t.Errorf("a file that exists: %v", err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Errorf("the refused backup removed the file: %v", err)
	}
}

// An audit, which reads much, has the file mapped, and what reads after it on the same connection has not.
func TestAuditsMapTheFile(t *testing.T) {
	t.Parallel()
	st := openWith(t, storage.Config{Path: filepath.Join(t.TempDir(), "mapped.db"), Readers: 1})
	for range 2 {
		if n, err := st.MappedInAudit(); n != 2147418112 || err != nil {
			t.Errorf("an audit maps %d bytes, %v", n, err)
		}
		if n, err := st.MappedInView(); n != 0 || err != nil {
			t.Errorf("a view maps %d bytes, %v", n, err)
		}
	}
}
