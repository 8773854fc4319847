package storage_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"agentproxy/adapters/storage"
	"agentproxy/adapters/storage/engine"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/sqlitetest"
)

// changeFile runs a statement on a SQLite file by another connection, as another process does.
func changeFile(t *testing.T, path, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+path+"?_busy_timeout=10000")
	if err == nil {
		_, err = db.Exec(statement)
	}
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

// On SQLite a purchase does not read again what the one before it has read and written, until another connection
// changes the file.
func TestRowsAreKeptUntilAnotherConnectionChangesTheFile(t *testing.T) {
	t.Parallel()
	notes := &tracer{notes: map[string][]string{}}
	path := sqlitetest.File(t)
	st := openWith(t, storage.Config{Path: path, Trace: notes})
	addAgent(t, st, "agt_1", 1_000_000)
	units := int64(0)
	buy := func() (reads int, err error) {
		units++
		name := fmt.Sprint(units)
		err = buyAhead(context.WithValue(t.Context(), unitName{}, name), st, "agt_1", units, nothing)
		return strings.Count(notes.of(name), "FROM wallets") + strings.Count(notes.of(name), "FROM agents"), err
	}
	if reads, err := buy(); reads != 2 || err != nil { // the wallet was made by the unit before
		t.Errorf("the first reads %d, %v", reads, err)
	}
	if reads, err := buy(); reads != 0 || err != nil {
		t.Errorf("the second reads %d, %v", reads, err)
	}
	if _, err := buy(); !errors.Is(err, billing.ErrInsufficientBalance) {
		t.Errorf("the third spends what is not there: %v", err)
	}
	changeFile(t, path, "UPDATE wallets SET own = own + 400000 WHERE agent_id = 'agt_1'")
	if reads, err := buy(); reads != 3 || err != nil {
		t.Errorf("after a change by another connection it reads %d, %v", reads, err)
	}
	report := func(name string) int {
		err := reportAhead(context.WithValue(t.Context(), unitName{}, name), st, "agt_1", fmt.Sprintf("sess_%020d", 7919))
		if err != nil {
			t.Error(err)
		}
		return strings.Count(notes.of(name), "FROM sessions")
	}
	if first, second := report("first report"), report("second report"); first != 1 || second != 0 {
		t.Errorf("the first report reads health %d times, the second %d", first, second)
	}
	changeFile(t, path, "UPDATE agents SET status = 'disabled' WHERE id = 'agt_1'")
	err := st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		a, err := tx.Agents().Get(ctx, "agt_1")
		if a.Status != account.Disabled {
			t.Errorf("the agent is %s", a.Status)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// A transaction that was not committed leaves nothing that the next one finds, whether it was rolled back or may have
// been committed.
func TestNoRowsAreKeptOfATransactionThatFailed(t *testing.T) {
	t.Parallel()
	st := openStore(t)
	addAgent(t, st, "agt_1", 1_000_000)
	var failing atomic.Bool
	st.SetCommit(func(tx *engine.Transaction) error {
		if failing.Load() {
			return errors.Join(tx.Rollback(), errors.New("disk full"))
		}
		return tx.Commit()
	})
	for n := range int64(3) {
		failing.Store(n == 1)
		if err := buyAhead(t.Context(), st, "agt_1", n, nothing); (err == nil) == (n == 1) {
			t.Errorf("purchase %d: %v", n, err)
		}
	}
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		w, err := tx.Ledger().Wallet(ctx, "agt_1")
		if w.LiveSessions != 2 || w.Available.Own != 200_000 {
			t.Errorf("%d sessions live, %d is left", w.LiveSessions, w.Available.Own)
		}
		return err
	})
	verify(t, st)
}

// known is what a history has made of an agent and its session.
type known struct {
	own     domain.Money
	name    string
	url     string
	rotated int // how often health was
	ended   bool
}

// Two processes on one database change rows that each keeps in memory. Whatever units of theirs fail meanwhile, each
// finds what the other has made.
func TestEachProcessFindsWhatTheOtherHasChanged(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, open func(testing.TB) *storage.Store) {
		first := open(t)
		stores := []*storage.Store{first, openWith(t, first.Config())}
		var histories atomic.Int64
		rapid.Check(t, func(rt *rapid.T) {
			n := histories.Add(1)
			agentID, id := fmt.Sprint("agt_", n), fmt.Sprint("sess_", n)
			addAgent(t, first, agentID, 1000)
			update(t, first, func(ctx context.Context, tx ports.Tx) error {
				return errors.Join(tx.Sessions().Insert(ctx, dynamicSession(agentID, id)), tx.Ledger().SetLive(ctx, agentID, "", 1))
			})
			want := known{own: 1000, name: agentID}
			for i := range rapid.IntRange(20, 90).Draw(rt, "units") {
				st := stores[rapid.IntRange(0, 1).Draw(rt, "store")]
				fails := rapid.IntRange(0, 19).Draw(rt, "fails") == 0
				does := rapid.SampledFrom([]string{"book", "book", "name", "hook", "rotate", "end", "read", "read"}).Draw(rt, "does")
				made := want
				err := st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
					if err := want.compare(ctx, tx, agentID, id); err != nil {
						return err
					}
					made = want
					if err := made.change(ctx, tx, does, agentID, id, int(n)*1000+i); err != nil || !fails {
						return err
					}
					return errUnit
				})
				switch {
				case err == nil:
					want = made
				case !fails || !errors.Is(err, errUnit):
					rt.Fatalf("unit %d, to %s: %v", i, does, err)
				}
			}
			update(t, first, func(ctx context.Context, tx ports.Tx) error { // as verify expects it
				s, err := tx.Sessions().Load(ctx, id)
				if err != nil || s.Status.Over() {
					return err
				}
				s, _ = s.Terminate(session.AgentRequest, now)
				return errors.Join(tx.Sessions().Put(ctx, s), tx.Ledger().SetLive(ctx, agentID, "", -1))
			})
		})
		verify(t, first)
	})
}

// compare returns what a unit finds otherwise than it was made.
func (k known) compare(ctx context.Context, tx ports.Tx, agentID, id string) error {
	w, walletErr := tx.Ledger().Wallet(ctx, agentID)
	a, agentErr := tx.Agents().Get(ctx, agentID)
	e, hookErr := tx.Webhooks().PeekEndpoint(ctx, agentID)
	reads, healthErr := tx.Health().Get(ctx, agentID, []string{id})
	if err := errors.Join(walletErr, agentErr, hookErr, healthErr); err != nil {
		return err
	}
	found := known{w.Available.Own, a.Name, e.URL, int(reads[id].State.Stats().Rotations), reads[id].Status.Over()}
	if found != k {
		return fmt.Errorf("it finds %+v, and was made %+v", found, k)
	}
	return nil
}

func (k *known) change(ctx context.Context, tx ports.Tx, does, agentID, id string, n int) error {
	switch does {
	case "book":
		k.own += domain.Money(n % 7)
		_, err := tx.Ledger().Post(ctx, deposit(agentID, fmt.Sprint("ref_", n), domain.Money(n%7), n))
		return err
	case "name", "hook":
		a, err := tx.Agents().Get(ctx, agentID)
		if does == "name" {
			a.Name = fmt.Sprint("name ", n)
		} else {
			a.WebhookURL = fmt.Sprint("https://hook.example/", n)
		}
		k.name, k.url = a.Name, a.WebhookURL
		return errors.Join(err, tx.Agents().Put(ctx, a))
	case "rotate":
		reads, err := tx.Health().Get(ctx, agentID, []string{id})
		if err != nil {
			return err
		}
		reads[id].State.Rotate(health.RotationManual, now)
		k.rotated++
		return tx.Health().Put(ctx, id, reads[id].State)
	case "end":
		s, err := tx.Sessions().Get(ctx, agentID, id)
		if err != nil || k.ended {
			return err
		}
		s, _ = s.Terminate(session.AgentRequest, now)
		k.ended = true
		return errors.Join(tx.Sessions().Put(ctx, s), tx.Ledger().SetLive(ctx, agentID, "", -1))
	}
	return nil
}

// The health of a session has its status, whatever was read of it before.
func TestHealthHasTheStatusOfItsSession(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, open func(testing.TB) *storage.Store) {
		st := open(t)
		addAgent(t, st, "agt_1", 1_000_000)
		if err := buyAhead(t.Context(), st, "agt_1", 1, nothing); err != nil {
			t.Fatal(err)
		}
		id := fmt.Sprintf("sess_%020d", 7919)
		statusOf := func(ctx context.Context, tx ports.Tx) session.Status {
			reads, err := tx.Health().Get(ctx, "agt_1", []string{id})
			if err != nil || reads[id] == nil {
				t.Fatalf("%v, %v", reads, err)
			}
			return reads[id].Status
		}
		if err := reportAhead(t.Context(), st, "agt_1", id); err != nil {
			t.Fatal(err)
		}
		err := st.Update(t.Context(), ports.ReadSet{Agent: "agt_1", Money: true, Sessions: []string{id}, Health: []string{id}},
			func(ctx context.Context, tx ports.Tx) error {
				if err := terminate(ctx, tx, "agt_1", id); err != nil {
					return err
				}
				if s := statusOf(ctx, tx); s != session.Terminated {
					t.Errorf("in the unit that ends it, it is %s", s)
				}
				return nil
			})
		if err != nil {
			t.Fatal(err)
		}
		err = st.Update(t.Context(), ports.ReadSet{Agent: "agt_1", Health: []string{id}}, func(ctx context.Context, tx ports.Tx) error {
			if s := statusOf(ctx, tx); s != session.Terminated {
				t.Errorf("in the next unit it is %s", s)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		verify(t, st)
	})
}
