package storage_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentproxy/adapters/storage"
	"agentproxy/adapters/storage/engine"
	"agentproxy/ports"
)

var errUnit = errors.New("this unit fails")

// gate is a unit that blocks the writer until it is opened, and then sets the clock to when others may
// not join its transaction any more, so that the units queued meanwhile share the next one, in the order
// of queue.
type gate struct {
	t     *testing.T
	st    *storage.Store
	open  chan struct{}
	pull  func() // opens it
	done  chan error
	units sync.WaitGroup
}

func closeGate(t *testing.T, st *storage.Store) *gate {
	t.Helper()
	return closeGateFor(context.Background(), ports.ReadSet{}, t, st)
}

// closeGateFor is closeGate for the committer to which a context belongs.
func closeGateFor(ctx context.Context, reads ports.ReadSet, t *testing.T, st *storage.Store) *gate {
	t.Helper()
	g := &gate{t: t, st: st, open: make(chan struct{}), done: make(chan error, 1)}
	g.pull = sync.OnceFunc(func() { close(g.open) })
	t.Cleanup(g.pull) // before the store is closed, which waits for the units
	began := make(chan struct{})
	begin := sync.OnceFunc(func() { close(began) })
	at, passed := time.Now(), atomic.Int64{}
	st.SetNow(func() time.Time { return at.Add(time.Duration(passed.Load())) })
	go func() {
		g.done <- st.Update(ctx, reads, func(ctx context.Context, tx ports.Tx) error {
			begin()
			<-g.open
			passed.Add(int64(time.Second))
			return tx.Counters().Add(ctx, "gate", ports.Tally{Reported: 1})
		})
	}()
	<-began
	return g
}

// queue starts a unit and waits until it is queued.
func (g *gate) queue(unit func()) {
	g.t.Helper()
	before := g.st.Waiting()
	g.units.Go(unit)
	eventually(g.t, "the unit is queued", func() bool { return g.st.Waiting() > before })
}

// pass opens the gate and waits for the queued units.
func (g *gate) pass() {
	g.t.Helper()
	g.pull()
	if err := <-g.done; err != nil {
		g.t.Error(err)
	}
	g.units.Wait()
}

// count returns a unit that counts for name and then returns the error of end.
func count(name string, end func() error) func(context.Context, ports.Tx) error {
	return func(ctx context.Context, tx ports.Tx) error {
		if err := tx.Counters().Add(ctx, name, ports.Tally{Reported: 1}); err != nil {
			return err
		}
		return end()
	}
}

func succeed() error { return nil }
func fail() error    { return errUnit }

func counted(t *testing.T, st ports.Store, name string) (n int64) {
	t.Helper()
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		tally, err := tx.Counters().Get(ctx, name)
		n = tally.Reported
		return err
	})
	return n
}

func wantCounted(t *testing.T, st ports.Store, want map[string]int64) {
	t.Helper()
	for name, n := range want {
		if got := counted(t, st, name); got != n {
			t.Errorf("%s counts %d, want %d", name, got, n)
		}
	}
}

// countCommits counts the commits.
func countCommits(st *storage.Store) *atomic.Int32 {
	var n atomic.Int32
	st.SetCommit(func(tx *engine.Transaction) error { n.Add(1); return tx.Commit() })
	return &n
}

func TestUnitsThatWaitShareOneCommit(t *testing.T) {
	st := openStore(t)
	commits := countCommits(st)
	g := closeGate(t, st)
	for range 10 {
		g.queue(func() {
			if err := st.Update(context.Background(), ports.ReadSet{}, count("a", succeed)); err != nil {
				t.Error(err)
			}
		})
	}
	g.pass()
	wantCounted(t, st, map[string]int64{"a": 10})
	if n := commits.Load(); n != 2 {
		t.Errorf("%d commits, want one for the gate and one for ten units", n)
	}
}

func TestAUnitThatFailsBetweenGoodOnesHarmsItselfAlone(t *testing.T) {
	for name, bad := range map[string]func() error{
		"error":  fail,
		"panic":  func() error { panic(errUnit) },
		"goexit": func() error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			st := openStore(t)
			commits := countCommits(st)
			g := closeGate(t, st)
			var got error
			good := func() {
				if err := st.Update(context.Background(), ports.ReadSet{}, count("good", succeed)); err != nil {
					t.Error(err)
				}
			}
			g.queue(good)
			g.queue(func() {
				defer func() {
					if p := recover(); p != nil {
						got = p.(error)
					}
				}()
				got = st.Update(context.Background(), ports.ReadSet{}, count("bad", bad))
			})
			g.queue(good)
			g.pass()
			wantCounted(t, st, map[string]int64{"good": 2, "bad": 0})
			if name != "goexit" && !errors.Is(got, errUnit) {
				t.Errorf("its caller got %v", got)
			}
			if n := commits.Load(); n != 2 {
				t.Errorf("%d commits, want 2: the good ones share theirs", n)
			}
		})
	}
}

// A hundred callers of one agent are ahead of a purchase of another agent, and of a lease, by the unit whose turn it is.
func TestAStormOfOneAgentIsAheadOfOthersByAUnit(t *testing.T) {
	t.Parallel()
	const callers, most = 100, 3
	st := openStore(t)
	g := closeGate(t, st)
	var mu sync.Mutex
	var order []string
	unit := func(ctx context.Context, who string) func() {
		return func() {
			err := st.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
				mu.Lock()
				order = append(order, who)
				mu.Unlock()
				return tx.Counters().Add(ctx, who, ports.Tally{Reported: 1})
			})
			if err != nil {
				t.Error(err)
			}
		}
	}
	for range callers {
		g.units.Go(unit(ports.WithAgent(context.Background(), "agt_storm"), "storm"))
	}
	eventually(t, "the storm waits", func() bool {
		return st.AtWork("agt_storm") == callers && st.Waiting() == storage.MaxQueued
	})
	g.queue(unit(ports.WithAgent(context.Background(), "agt_other"), "purchase"))
	g.queue(unit(context.Background(), "lease")) // for all sessions of a replica
	g.pass()
	for _, who := range []string{"purchase", "lease"} {
		if at := slices.Index(order, who); at < 0 || at > most {
			t.Errorf("the %s of another has %d units before it, at most %d may be", who, at, most)
		}
	}
	if len(order) != callers+2 {
		t.Errorf("%d units ran", len(order))
	}
}

// Rows of a unit that the database refuses, when a statement of another unit of its batch has them written, are no
// fault of that unit, and nothing of them is committed.
func TestRowsThatCannotBeWrittenFailTheirUnitAlone(t *testing.T) {
	t.Parallel()
	st := openStore(t)
	addAgent(t, st, "agt_1", 10_000_000)
	book := func(n int) error {
		return st.Update(t.Context(), ports.ReadSet{Agent: "agt_1", Money: true}, func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Ledger().Post(ctx, deposit("agt_1", "once", 500_000, n))
			return err
		})
	}
	if err := book(0); err != nil {
		t.Fatal(err)
	}
	for name, last := range map[string]func(context.Context, ports.Tx) error{
		"a statement that is the last": func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Counters().Get(ctx, "agt_1")
			return err
		},
		"a statement before a change": func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Counters().Get(ctx, "agt_1")
			return errors.Join(err, tx.Counters().Add(ctx, "agt_1", ports.Tally{Reported: 1}))
		},
		"a statement whose error is ignored": func(ctx context.Context, tx ports.Tx) error {
			_, _ = tx.Counters().Get(ctx, "agt_1")
			return nil
		},
	} {
		g := closeGate(t, st)
		var twice, other error
		g.queue(func() { twice = book(1) })
		g.queue(func() { other = st.Update(t.Context(), ports.ReadSet{}, last) })
		g.pass()
		if !errors.Is(twice, ports.ErrDuplicate) || other != nil {
			t.Errorf("%s: the unit that books twice: %v, the other: %v", name, twice, other)
		}
		verify(t, st)
	}
}
