package contract

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

var unitClaims = []claim{
	{"a unit that fails leaves nothing", unitRollsBack},
	{"a unit that panics leaves nothing and the panic reaches its caller", unitPanics},
	{"a unit with a cancelled context does not run", unitCancelled},
	{"a unit sees what it wrote", unitReadsItsWrites},
	{"a view cannot write", viewCannotWrite},
	{"a view is a snapshot", viewIsSnapshot},
	{"a view sees what was committed before it began", viewIsCurrent},
	{"a look sees what was committed before it, and cannot write", lookIsCurrent},
	{"of twenty terminations one wins", oneTerminationWins},
	{"units that run at once all take effect", unitsRunAtOnce},
	{"a job is inserted with its unit or not at all", jobsFollowTheirUnit},
	{"the store answers a ping", storeAnswersPing},
}

var errUnit = errors.New("this unit fails")

func unitRollsBack(t *testing.T, st ports.Store) {
	addAgent(t, st, "agt_1", domain.Dollar)
	addSessions(t, st, dynamicSession("agt_1", "sess_1"))
	before := lastChange(t, st)
	err := st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		if _, err := tx.Ledger().Post(ctx, fund("agt_1", "lost", domain.Dollar)); err != nil {
			return err
		}
		if err := tx.Sessions().Insert(ctx, dynamicSession("agt_1", "sess_2")); err != nil {
			return err
		}
		changed := dynamicSession("agt_1", "sess_1")
		changed.Status = session.Terminated
		if err := tx.Sessions().Put(ctx, changed); err != nil {
			return err
		}
		if err := tx.Idempotency().Keep(ctx, ports.Call{AgentID: "agt_1", Path: "/p", Key: "k", CreatedAt: storeNow}); err != nil {
			return err
		}
		return errUnit
	})
	if !errors.Is(err, errUnit) {
		t.Fatalf("the caller got %v, want its own error", err)
	}
	if w := wallet(t, st, "agt_1"); w.Balance() != domain.Dollar {
		t.Errorf("the balance is %v, want 1", w.Balance())
	}
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		if s, err := tx.Sessions().Load(ctx, "sess_1"); err != nil || s.Status != session.Active {
			t.Errorf("the session is %v, %v, want it active", s.Status, err)
		}
		if _, err := tx.Sessions().Load(ctx, "sess_2"); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("the new session: %v, want not found", err)
		}
		if _, found, err := tx.Idempotency().Find(ctx, "agt_1", "/p", "k", time.Time{}); found || err != nil {
			t.Errorf("the key was kept: %v, %v", found, err)
		}
		if list, _, err := tx.Changes().Since(ctx, before, 10); len(list) != 0 || err != nil {
			t.Errorf("a change was noted: %v, %v", list, err)
		}
		return nil
	})
}

func unitPanics(t *testing.T, st ports.Store) {
	func() {
		defer func() {
			if p := recover(); p != "boom" {
				t.Errorf("recovered %v, want boom", p)
			}
		}()
		_ = st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
			if err := tx.Sessions().Insert(ctx, dynamicSession("agt_1", "sess_1")); err != nil {
				return err
			}
			panic("boom")
		})
	}()
	addSessions(t, st, dynamicSession("agt_1", "sess_2")) // the store still works
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		if _, err := tx.Sessions().Load(ctx, "sess_1"); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("the session of the panic: %v, want not found", err)
		}
		return nil
	})
}

func unitCancelled(t *testing.T, st ports.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	run := func(context.Context, ports.Tx) error {
		t.Error("the unit ran")
		return nil
	}
	if err := st.Update(ctx, ports.ReadSet{}, run); !errors.Is(err, context.Canceled) {
		t.Errorf("Update returned %v", err)
	}
	if err := st.View(ctx, ports.ReadSet{}, run); !errors.Is(err, context.Canceled) {
		t.Errorf("View returned %v", err)
	}
}

func unitReadsItsWrites(t *testing.T, st ports.Store) {
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		want := dynamicSession("agt_1", "sess_1")
		if err := tx.Sessions().Insert(ctx, want); err != nil {
			return err
		}
		if _, err := tx.Sessions().Get(ctx, "agt_1", "sess_1"); err != nil {
			t.Errorf("the session inside its unit: %v", err)
		}
		return nil
	})
}

func viewCannotWrite(t *testing.T, st ports.Store) {
	addAgent(t, st, "agt_1", domain.Dollar)
	addSessions(t, st, dynamicSession("agt_1", "sess_1"))
	for name, write := range map[string]unit{
		"insert a session": func(ctx context.Context, tx ports.Tx) error {
			return tx.Sessions().Insert(ctx, dynamicSession("agt_1", "sess_2"))
		},
		"insert an agent": func(ctx context.Context, tx ports.Tx) error {
			return tx.Agents().Insert(ctx, storeAgent("agt_2"))
		},
		"put an agent": func(ctx context.Context, tx ports.Tx) error {
			return tx.Agents().Put(ctx, storeAgent("agt_1"))
		},
		"post an entry": func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Ledger().Post(ctx, fund("agt_1", "view", 1))
			return err
		},
		"take an address": func(ctx context.Context, tx ports.Tx) error {
			return tx.Addresses().Take(ctx, "embedded", "sess_1", []string{"192.0.2.1"})
		},
		"insert a job": func(ctx context.Context, tx ports.Tx) error {
			return tx.Jobs().Insert(ctx, ports.Job{Kind: "provision"}, storeNow)
		},
	} {
		if err := st.View(t.Context(), ports.ReadSet{}, write); err == nil {
			t.Errorf("a view could %s", name)
		}
	}
	if w := wallet(t, st, "agt_1"); w.Balance() != domain.Dollar {
		t.Errorf("the balance is %v, want 1", w.Balance())
	}
}

func viewIsSnapshot(t *testing.T, st ports.Store) {
	addAgent(t, st, "agt_1", domain.Dollar)
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		before, err := tx.Ledger().Wallet(ctx, "agt_1")
		if err != nil {
			return err
		}
		mustPost(t, st, fund("agt_1", "between", domain.Dollar))
		after, err := tx.Ledger().Wallet(ctx, "agt_1")
		if err != nil {
			return err
		}
		if before.Balance() != after.Balance() {
			t.Errorf("the balance changed from %v to %v within a view", before.Balance(), after.Balance())
		}
		return nil
	})
}

func viewIsCurrent(t *testing.T, st ports.Store) {
	addAgent(t, st, "agt_1", 0)
	for i := range 50 {
		mustPost(t, st, fund("agt_1", "step"+string(rune('0'+i)), 1))
		if w := wallet(t, st, "agt_1"); w.Balance() != domain.Money(i+1) {
			t.Fatalf("after %d postings the balance is %v", i+1, w.Balance())
		}
	}
}

func lookIsCurrent(t *testing.T, st ports.Store) {
	addAgent(t, st, "agt_1", 0)
	for i := range 50 {
		mustPost(t, st, fund("agt_1", "look"+string(rune('0'+i)), 1))
		err := st.Read(t.Context(), func(ctx context.Context, tx ports.Tx) error {
			w, err := tx.Ledger().Wallet(ctx, "agt_1")
			if w.Balance() != domain.Money(i+1) {
				t.Fatalf("after %d postings the balance is %v", i+1, w.Balance())
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	err := st.Read(t.Context(), func(ctx context.Context, tx ports.Tx) error {
		return tx.Agents().Insert(ctx, storeAgent("agt_2"))
	})
	if err == nil {
		t.Error("a look inserted an agent")
	}
}

// overlap is a pause within a unit, between what it reads and what it writes: without the lock that is under test others
// do the same meanwhile. With the lock the result is the same however short it is.
func overlap() { time.Sleep(5 * time.Millisecond) }

func oneTerminationWins(t *testing.T, st ports.Store) {
	addSessions(t, st, dynamicSession("agt_1", "sess_1"))
	var won atomic.Int32
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			err := st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
				s, err := tx.Sessions().Get(ctx, "agt_1", "sess_1")
				if err != nil {
					return err
				}
				if s.Status.Over() {
					return errUnit
				}
				overlap()
				s.Status, s.EndedAt = session.Terminated, storeNow
				return tx.Sessions().Put(ctx, s)
			})
			if err == nil {
				won.Add(1)
			} else if !errors.Is(err, errUnit) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := won.Load(); n != 1 {
		t.Errorf("%d callers terminated the session, want 1", n)
	}
}

func unitsRunAtOnce(t *testing.T, st ports.Store) {
	const callers, each = 16, 25
	addAgent(t, st, "agt_1", 0)
	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() {
			for i := range each {
				ref := string(rune('a'+caller)) + string(rune('a'+i))
				fail := i%5 == 4
				err := st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
					_, err := tx.Ledger().Post(ctx, fund("agt_1", ref, 1))
					if err == nil && fail {
						err = errUnit
					}
					return err
				})
				if fail != errors.Is(err, errUnit) || !fail && err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if w, want := wallet(t, st, "agt_1"), domain.Money(callers*each*4/5); w.Balance() != want {
		t.Errorf("the balance is %v, want %v: those that failed count nothing, all others do", w.Balance(), want)
	}
}

func jobsFollowTheirUnit(t *testing.T, st ports.Store) {
	jobs, ok := st.(interface {
		Jobs(ctx context.Context) (int, error)
	})
	if !ok {
		t.Skip("the store does not count its jobs")
	}
	insert := func(ctx context.Context, tx ports.Tx) error {
		return tx.Jobs().Insert(ctx, ports.Job{Kind: "provision", SessionID: "sess_1", After: time.Second}, storeNow)
	}
	update(t, st, insert)
	err := st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		return errors.Join(insert(ctx, tx), errUnit)
	})
	if !errors.Is(err, errUnit) {
		t.Fatal(err)
	}
	if n, err := jobs.Jobs(t.Context()); n != 1 || err != nil {
		t.Errorf("%d jobs were inserted, %v; want 1", n, err)
	}
}

func storeAnswersPing(t *testing.T, st ports.Store) {
	if err := st.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}
