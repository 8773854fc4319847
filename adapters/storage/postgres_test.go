package storage_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentproxy/adapters/storage"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/domain/health"
	"agentproxy/domain/recharge"
	"agentproxy/ports"
	"agentproxy/test/pg"
)

// Both databases are open in one process, and rows that GORM reads are locked
// all the same: a *gorm.Config that they share would lose the locks.
func TestRowsThatGORMReadsAreLocked(t *testing.T) {
	_ = openStore(t) // SQLite first: it is what would change a shared config
	st := openPostgres(t)
	waitsFor(t, st,
		func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Referrers().ByCode(ctx, "openAgent")
			return err
		},
		func(ctx context.Context, tx ports.Tx) error { return tx.Referrers().Disable(ctx, "openAgent", now) })
}

// What a unit reads by hand is locked too.
func TestRowsThatAUnitReadsAreLocked(t *testing.T) {
	for name, read := range map[string]func(context.Context, ports.Tx) error{
		"a session": func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Sessions().Get(ctx, "agt_1", "sess_1")
			return err
		},
		"a session, of any owner": func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Sessions().Load(ctx, "sess_1")
			return err
		},
		"a session with what is kept beside it": func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Sessions().Read(ctx, "agt_1", "sess_1")
			return err
		},
		"the newest session": func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Sessions().Newest(ctx, "agt_1", "", "dyn_fast_1")
			return err
		},
		"the usage": func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Traffic().Usage(ctx, "sess_1")
			return err
		},
		"the health": func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Health().Get(ctx, "agt_1", []string{"sess_1"})
			return err
		},
		"the wallet": func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Ledger().Wallet(ctx, "agt_1")
			return err
		},
		"the agent": func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Agents().Get(ctx, "agt_1")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := openPostgres(t)
			addAgent(t, st, "agt_1", domain.Dollar)
			update(t, st, func(ctx context.Context, tx ports.Tx) error {
				return tx.Sessions().Insert(ctx, dynamicSession("agt_1", "sess_1"))
			})
			waitsFor(t, st, read, func(ctx context.Context, tx ports.Tx) error {
				switch name {
				case "the wallet":
					return tx.Ledger().SetLive(ctx, "agt_1", "", 0)
				case "the agent":
					return tx.Agents().Put(ctx, account.Agent{ID: "agt_1", KeyHash: []byte("k")})
				}
				return tx.Sessions().Put(ctx, dynamicSession("agt_1", "sess_1"))
			})
		})
	}
}

// Who touches an agent's orders holds its wallet, and what it reads stays locked
// all the same: the rows, and what has none yet.
func TestWhatIsReadOfRechargesIsLocked(t *testing.T) {
	seen := recharge.Transfer{Key: recharge.Key{Network: "tron", TxID: "bb", LogIndex: 1}, To: "Ta", Amount: 1,
		State: recharge.Seen, AgentID: "agt_1", OrderID: "PAY2"}
	order := recharge.NewOrder("PAY2", "agt_1", "tron", "Ta", 7*domain.Dollar, now)
	putOrder := func(ctx context.Context, tx ports.Tx) error { return tx.Recharges().PutOrder(ctx, order) }
	putSeen := func(ctx context.Context, tx ports.Tx) error {
		_, err := tx.Transfers().PutTransfer(ctx, seen)
		return err
	}
	putAddress := func(ctx context.Context, tx ports.Tx) error {
		return tx.PayAddresses().PutAddress(ctx, recharge.Address{Network: "tron", Address: "Ta"})
	}
	for name, c := range map[string]struct {
		read, write func(context.Context, ports.Tx) error
	}{
		"an order": {func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Recharges().Order(ctx, "agt_1", "PAY2")
			return err
		}, putOrder},
		"an order, of any owner": {func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Recharges().LoadOrder(ctx, "PAY2")
			return err
		}, putOrder},
		"payable orders": {func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Recharges().Payable(ctx, "tron", "agt_1", now)
			return err
		}, putOrder},
		"a transfer": {func(ctx context.Context, tx ports.Tx) error {
			_, _, err := tx.Transfers().Transfer(ctx, seen.Key)
			return err
		}, putSeen},
		"seen transfers": {func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Transfers().SeenOf(ctx, "tron", "agt_1")
			return err
		}, putSeen},
		"an agent's address": {func(ctx context.Context, tx ports.Tx) error {
			_, _, err := tx.PayAddresses().AddressOf(ctx, "tron", "", "agt_1")
			return err
		}, putAddress},
		"owned addresses": {func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.PayAddresses().Owned(ctx, "tron", []string{"Tx", "Ta"})
			return err
		}, putAddress},
		"the mark, before the first": {readMark, readMark},
		"the genesis, before it is set": {readGenesis, func(ctx context.Context, tx ports.Tx) error {
			return errors.Join(readGenesis(ctx, tx), tx.Devchain().SetGenesis(ctx, now, time.Second))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			waitsFor(t, openBooks(t, openPostgres), c.read, c.write)
		})
	}
}

func readMark(ctx context.Context, tx ports.Tx) error {
	_, _, err := tx.Transfers().ScanCursor(ctx, "tron")
	return err
}

func readGenesis(ctx context.Context, tx ports.Tx) error {
	_, _, _, err := tx.Devchain().Genesis(ctx)
	return err
}

// waitsFor proves that a unit that writes waits for one that has read.
func waitsFor(t *testing.T, st *storage.Store, read, write func(context.Context, ports.Tx) error) {
	t.Helper()
	began, end := make(chan struct{}), make(chan struct{})
	done, written := make(chan error, 1), make(chan error, 1)
	go func() {
		done <- st.Update(context.Background(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
			err := read(ctx, tx)
			close(began)
			<-end
			return err
		})
	}()
	<-began
	go func() { written <- st.Update(context.Background(), ports.ReadSet{}, write) }()
	eventually(t, "the unit that writes waits or ends", func() bool { return len(written) > 0 || lockWaits(t, st) > 0 })
	if len(written) > 0 {
		t.Error("the row was written while another unit had read it")
	}
	close(end)
	if err := errors.Join(<-done, <-written); err != nil {
		t.Error(err)
	}
}

func TestReportsAtOnceAllCount(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *storage.Store) {
		st := open(t)
		addAgent(t, st, "agt_1", domain.Dollar)
		update(t, st, func(ctx context.Context, tx ports.Tx) error {
			return tx.Sessions().Insert(ctx, dynamicSession("agt_1", "sess_1"))
		})
		const n = 40
		var wg sync.WaitGroup
		for range n {
			wg.Go(func() {
				err := st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
					found, err := tx.Health().Get(ctx, "agt_1", []string{"sess_1"})
					if err != nil {
						return err
					}
					state := found["sess_1"].State
					state.Rotate(health.RotationManual, now)
					return tx.Health().Put(ctx, "sess_1", state)
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		view(t, st, func(ctx context.Context, tx ports.Tx) error {
			found, err := tx.Health().Get(ctx, "agt_1", []string{"sess_1"})
			state := found["sess_1"].State
			if got := state.Stats().Rotations; got != n {
				t.Errorf("%d rotations are kept of %d", got, n)
			}
			return err
		})
	})
}

// Two units lock two wallets in different order: one of them runs again.
func TestUnitsThatBlockEachOtherRunAgain(t *testing.T) {
	t.Parallel()
	st := openPostgres(t)
	addAgent(t, st, "agt_1", domain.Dollar)
	addAgent(t, st, "agt_2", domain.Dollar)
	var runs atomic.Int32
	var wg, both sync.WaitGroup
	both.Add(2)
	for _, order := range [][]string{{"agt_1", "agt_2"}, {"agt_2", "agt_1"}} {
		meet := sync.OnceFunc(func() { both.Done(); both.Wait() })
		wg.Go(func() {
			err := st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
				runs.Add(1)
				for _, id := range order {
					if err := tx.Ledger().SetLive(ctx, id, "", 1); err != nil {
						return err
					}
					meet()
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	// More, where the one that was sent back takes its first row before the other,
	// which was waiting for it, has woken up.
	if n := runs.Load(); n < 3 {
		t.Errorf("%d runs, want 3 or more", n)
	}
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		w, err := tx.Ledger().Wallet(ctx, "agt_1")
		if w.LiveSessions != 2 {
			t.Errorf("%d live sessions, want 2", w.LiveSessions)
		}
		return err
	})
}

// Two agents are given the same money at once: the reference is booked once.
func TestOneReferenceIsBookedOnceInAnyReplica(t *testing.T) {
	st := openPostgres(t)
	ids := []string{"agt_1", "agt_2", "agt_3", "agt_4"}
	for _, id := range ids {
		addAgent(t, st, id, domain.Dollar)
	}
	var won, refused atomic.Int32
	var first sync.Once
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			err := st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
				_, err := tx.Ledger().Post(ctx, deposit(ids[i%4], "transfer:1", 5, i))
				first.Do(func() { awaitLock(t, st) }) // the others come in between
				return err
			})
			switch {
			case err == nil:
				won.Add(1)
			case errors.Is(err, ports.ErrDuplicate):
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 || refused.Load() != 19 {
		t.Errorf("%d were booked and %d refused", won.Load(), refused.Load())
	}
	verify(t, st)
}

// After a refused duplicate the unit goes on, and the rest of it counts.
func TestADuplicateDoesNotSpoilTheUnit(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *storage.Store) {
		st := open(t)
		addAgent(t, st, "agt_1", domain.Dollar)
		update(t, st, func(ctx context.Context, tx ports.Tx) error {
			if err := tx.Addresses().Take(ctx, "p", "sess_1", []string{"192.0.2.1"}); err != nil {
				return err
			}
			if err := tx.Addresses().Take(ctx, "p", "sess_2", []string{"192.0.2.2", "192.0.2.1"}); !errors.Is(err, ports.ErrDuplicate) {
				t.Errorf("a taken address: %v", err)
			}
			other := account.Referrer{ID: "ref_2", Name: "n", Code: "openAgent"}
			if err := tx.Referrers().Insert(ctx, other, now); err == nil {
				t.Error("a referrer's code was taken twice")
			}
			_, err := tx.Ledger().Post(ctx, deposit("agt_1", "fund:agt_1", 5, 1))
			if !errors.Is(err, ports.ErrDuplicate) {
				t.Errorf("a reference twice: %v", err)
			}
			return tx.Counters().Add(ctx, "agt_1", ports.Tally{Good: 1})
		})
		view(t, st, func(ctx context.Context, tx ports.Tx) error {
			tally, err := tx.Counters().Get(ctx, "agt_1")
			if tally.Good != 1 {
				t.Error("what followed the refusals is lost")
			}
			taken, errTaken := tx.Addresses().Taken(ctx, "p")
			if len(taken) != 1 {
				t.Errorf("taken: %v", taken)
			}
			return errors.Join(err, errTaken)
		})
	})
}

// Text that PostgreSQL cannot store is not found, which is not an internal error.
func TestTextThatCannotBeStoredIsNotFound(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *storage.Store) {
		st := open(t)
		for _, id := range []string{"a\x00b", "\xff\xfe"} {
			err := st.Read(t.Context(), func(ctx context.Context, tx ports.Tx) error {
				_, err := tx.Sessions().Read(ctx, id, id)
				return err
			})
			if e, ok := errors.AsType[*domain.Error](err); !ok || e.Kind != domain.NotFound {
				t.Errorf("%q: %v", id, err)
			}
		}
	})
}

func TestThePoolBoundsItsConnections(t *testing.T) {
	url := pg.Database(t)
	settings := map[string]string{"statement_timeout": "5s", "lock_timeout": "2s",
		"idle_in_transaction_session_timeout": "10s", "application_name": "agentproxy"}
	for name := range settings {
		url = pg.With(url, name, "")
	}
	st := openURL(t, url)
	if n := st.Pool().Config().MaxConns; n != 20 {
		t.Errorf("%d connections by default", n)
	}
	for name, want := range settings {
		var got string
		if err := st.Pool().QueryRow(t.Context(), "SHOW "+name).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %q, %v; want %q", name, got, err, want)
		}
	}
}

// A URL that lets a dial or a statement take longer lets the waits that contain one last longer too.
func TestTheBoundsFollowTheURL(t *testing.T) {
	base := pg.Database(t)
	for _, c := range []struct {
		dial, statement string
		patience, unit  time.Duration
	}{
		{"", "", 2 * time.Second, 6 * time.Second},
		{"60", "60000", time.Minute, 61 * time.Second},
		{"300", "2min", 5 * time.Minute, 2*time.Minute + time.Second},
	} {
		st := openURL(t, pg.With(pg.With(base, "connect_timeout", c.dial), "statement_timeout", c.statement))
		if patience, unit := st.Bounds(); patience != c.patience || unit != c.unit {
			t.Errorf("%+v: a connection is waited for for %v, a unit has %v", c, patience, unit)
		}
	}
}

func TestReplicasMayMigrateTogether(t *testing.T) {
	t.Parallel()
	url := pg.Empty(t)
	var wg sync.WaitGroup
	for range 4 {
		st := openURL(t, url)
		wg.Go(func() {
			if err := errors.Join(st.Migrate(t.Context()), st.Migrate(t.Context())); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	st := openURL(t, url)
	addAgent(t, st, "agt_1", domain.Dollar)
	var river int
	if err := st.Pool().QueryRow(t.Context(), "SELECT COUNT(*) FROM river_job").Scan(&river); err != nil {
		t.Errorf("the tables of River: %v", err)
	}
}

func TestBackupIsRefused(t *testing.T) {
	st := openPostgres(t)
	e, ok := errors.AsType[*domain.Error](st.Backup(t.Context(), t.TempDir()+"/copy"))
	if !ok || !strings.Contains(e.Message, "pg_dump") {
		t.Errorf("got %v", e)
	}
}

// verify demands right books.
func verify(t *testing.T, st *storage.Store) (entries int) {
	t.Helper()
	faults, entries, err := st.Verify(t.Context())
	if err != nil || len(faults) > 0 {
		t.Errorf("verify: %v, %+v", err, faults)
	}
	return entries
}

// deposit is money from outside.
func deposit(agentID, ref string, amount domain.Money, n int) ports.Posting {
	p := ports.Posting{Day: now.Truncate(24 * time.Hour)}
	p.Entry.ID, p.Entry.AgentID, p.Entry.Ref, p.Entry.At = fmt.Sprint("txn_", ref, "_", n), agentID, ref, now
	p.Entry.Type, p.Entry.Available.Own, p.Entry.Account, p.Entry.Counter = billing.Adjustment, amount, billing.Corrections, -amount
	return p
}
