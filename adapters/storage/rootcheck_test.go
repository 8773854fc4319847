package storage_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"agentproxy/adapters/storage"
	"agentproxy/domain/account"
	"agentproxy/domain/procurement"
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
			{"without its predecessors too, as nothing depends on them", [][]byte{two}, nil},
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

// What depends on a root secret that was replaced keeps the service from starting without it.
func TestAReplacedRootSecretIsNeeded(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *storage.Store) {
		st, ctx := open(t), t.Context()
		one, two, three := []byte("one"), []byte("two"), []byte("three")
		check := func(claim string, want storage.MissingRootError, checks ...[]byte) {
			t.Helper()
			err := st.CheckRoot(ctx, checks)
			got, missing := errors.AsType[storage.MissingRootError](err)
			if got != want || missing != (want != storage.MissingRootError{}) || !missing && err != nil {
				t.Errorf("%s: %v", claim, err)
			}
		}
		agent := func(id string, issued time.Time) {
			t.Helper()
			update(t, st, func(ctx context.Context, tx ports.Tx) (err error) {
				a := account.Agent{ID: id, BillingUserID: id, Status: account.Active, KeyHash: []byte("k" + id),
					SecretHash: []byte("s" + id), KeyCreatedAt: issued, CreatedAt: issued}
				if a.Referrer, err = tx.Referrers().Default(ctx); err != nil {
					return err
				}
				return tx.Agents().Insert(ctx, a)
			})
		}
		long, later := now.Add(-24*time.Hour), now.Add(24*time.Hour)
		none, key := storage.MissingRootError{}, storage.MissingRootError{Keys: 1}
		check("the first start", none, one)
		agent("agt_1", long)
		check("the secret is replaced", none, two, one)
		check("the key depends on the one before", key, two)
		check("a third one does not change that", key, three, two)
		check("all are listed", none, three, two, one)
		check("the first one alone is missing", key, three, two)

		update(t, st, func(ctx context.Context, tx ports.Tx) error {
			a, err := tx.Agents().Get(ctx, "agt_1")
			if err != nil {
				return err
			}
			a.KeyCreatedAt = later
			return tx.Agents().Put(ctx, a)
		})
		check("the key was rotated", none, three)
		agent("agt_2", long)
		update(t, st, func(ctx context.Context, tx ports.Tx) error {
			k := account.Key{ID: "key_1", AgentID: "agt_1", Hash: []byte("further"), Created: long}
			return tx.Keys().Insert(ctx, k)
		})
		keys := storage.MissingRootError{Keys: 2}
		check("a further key counts", keys, three)
		if got, err := st.DropRoots(ctx, three); got != keys || err != nil {
			t.Errorf("dropping ends %+v: %v", got, err)
		}
		check("what was dropped is not needed", none, three)
		check("the first one is the current one again", none, one, three)
		check("and needs none but itself and the third one", keys, one)
	})
}

// A delivery depends on the root secret that it is sealed under until it is sealed anew or its order is closed.
func TestASealedDeliveryNeedsItsRootSecret(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *storage.Store) {
		st, ctx := open(t), t.Context()
		for _, checks := range [][][]byte{{[]byte("one")}, {[]byte("two"), []byte("one")}} {
			if err := st.CheckRoot(ctx, checks); err != nil {
				t.Fatal(err)
			}
		}
		update(t, st, func(ctx context.Context, tx ports.Tx) error {
			for _, id := range []string{"open", "closed", "nothing"} {
				o := procurement.Order{ID: id, Intent: procurement.Intent{Key: id, SessionID: "s-" + id}, SessionID: "s-" + id, Status: procurement.Confirmed,
					DecidedAt: now.Add(-time.Hour), SealedDelivery: []byte("sealed")}
				switch id {
				case "closed":
					o.ClosedAt = now
				case "nothing":
					o.SealedDelivery = nil
				}
				if err := tx.Orders().Insert(ctx, o); err != nil {
					return err
				}
			}
			return nil
		})
		two := [][]byte{[]byte("two")}
		if err := st.CheckRoot(ctx, two); !errors.Is(err, storage.MissingRootError{Sealed: 1}) {
			t.Errorf("with one sealed: %v", err)
		}
		update(t, st, func(ctx context.Context, tx ports.Tx) error { return tx.Orders().KeepResealed(ctx) })
		if err := st.CheckRoot(ctx, two); err != nil {
			t.Errorf("with everything sealed anew: %v", err)
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
