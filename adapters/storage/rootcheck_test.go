package storage_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"agentproxy/adapters/storage"
	"agentproxy/domain/account"
	"agentproxy/ports"
	"agentproxy/test/sqlitetest"
)

func TestTheDatabaseBelongsToItsRootSecret(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *storage.Store) {
		st, ctx := open(t), t.Context()
		one, two, three := []byte("one"), []byte("two"), []byte("three")
		for _, c := range []struct {
			claim  string
			checks [][]byte
			want   error
		}{
			{"the first start decides", [][]byte{one}, nil},
			{"the same again", [][]byte{one}, nil},
			{"another one is refused", [][]byte{two}, storage.ErrOtherSecret},
			{"so is one whose predecessor is another", [][]byte{two, three}, storage.ErrOtherSecret},
			{"one that replaces it is taken", [][]byte{two, three, one}, nil},
			{"and is the one from then on", [][]byte{one}, storage.ErrOtherSecret},
			{"without its predecessors too", [][]byte{two}, nil},
		} {
			if err := st.CheckRoot(ctx, c.checks); !errors.Is(err, c.want) {
				t.Errorf("%s: %v", c.claim, err)
			}
		}
		if known, err := st.HasRoot(ctx, [][]byte{one, two}); !known || err != nil {
			t.Errorf("its own is known: %t, %v", known, err)
		}
		if known, err := st.HasRoot(ctx, [][]byte{one, three}); known || err != nil {
			t.Errorf("others are known: %t, %v", known, err)
		}
		if err := st.ForgetRoot(ctx); err != nil {
			t.Fatal(err)
		}
		if known, err := st.HasRoot(ctx, [][]byte{two}); known || err != nil {
			t.Errorf("a forgotten one is known: %t, %v", known, err)
		}
		if err := st.CheckRoot(ctx, [][]byte{three}); err != nil {
			t.Error(err)
		}
	})
}

func TestHasAgents(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *storage.Store) {
		st := open(t)
		if has, err := st.HasAgents(t.Context()); has || err != nil {
			t.Errorf("a new database has agents: %t, %v", has, err)
		}
		update(t, st, func(ctx context.Context, tx ports.Tx) error {
			a := account.Agent{ID: "agt_1", Status: account.Active, KeyHash: []byte("k"), SecretHash: []byte("s")}
			var err error
			if a.Referrer, err = tx.Referrers().Default(ctx); err != nil {
				return err
			}
			return tx.Agents().Insert(ctx, a)
		})
		if has, err := st.HasAgents(t.Context()); !has || err != nil {
			t.Errorf("one with an agent has none: %t, %v", has, err)
		}
	})
}

func TestAnOpenDatabaseFileIsClosedToOthers(t *testing.T) {
	path := sqlitetest.File(t)
	leave := openAt(t, path) // its files stay beside it until it is closed
	for _, end := range []string{"", "-wal", "-shm"} {
		if err := os.Chmod(path+end, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	openAt(t, path)
	for _, end := range []string{"", "-wal", "-shm"} {
		if info, err := os.Stat(path + end); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%q is %v, %v", end, info.Mode(), err)
		}
	}
	_ = leave
	if err := os.Chmod(path, 0o660); err != nil { // what the owner has given to a group is kept
		t.Fatal(err)
	}
	openAt(t, path)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("a file of a group is %v, %v", info.Mode(), err)
	}
}
