package storage_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"agentproxy/adapters/storage"
	"agentproxy/adapters/storage/engine"
	"agentproxy/domain"
	"agentproxy/ports"
)

func TestWhenACommitFailsEachUnitRunsAgainAlone(t *testing.T) {
	st := openStore(t)
	var commits atomic.Int32
	st.SetCommit(func(tx *engine.Transaction) error {
		if commits.Add(1) == 2 { // that of the three, after the gate's
			return errors.Join(tx.Rollback(), errors.New("disk full"))
		}
		return tx.Commit()
	})
	g := closeGate(t, st)
	var runs atomic.Int32
	for _, end := range []func() error{succeed, fail, succeed} {
		g.queue(func() {
			err := st.Update(context.Background(), ports.ReadSet{}, count("a", func() error { runs.Add(1); return end() }))
			if want := end(); !errors.Is(err, want) {
				t.Errorf("the outcome is %v, want %v", err, want)
			}
		})
	}
	g.pass()
	wantCounted(t, st, map[string]int64{"gate": 1, "a": 2})
	if runs, commits := runs.Load(), commits.Load(); runs < 6 || commits != 4 {
		t.Errorf("%d runs and %d commits, want two runs of each and 4", runs, commits)
	}
}

func TestACommitThatAlwaysFailsIsUnavailableAndLeavesNothing(t *testing.T) {
	st := openStore(t)
	st.SetCommit(func(tx *engine.Transaction) error { return errors.Join(tx.Rollback(), errors.New("disk full")) })
	err := st.Update(t.Context(), ports.ReadSet{}, count("a", succeed))
	if !errors.Is(err, domain.ErrUnavailable) || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("the outcome is %v", err)
	}
	if err := st.Update(t.Context(), ports.ReadSet{}, count("a", fail)); !errors.Is(err, errUnit) {
		t.Errorf("a refusal is %v", err)
	}
	wantCounted(t, st, map[string]int64{"a": 0})
}

func TestATransactionThatEndsUnderItsUnitsIsRunAgain(t *testing.T) {
	st := openStore(t)
	// SQLite does this by itself when the disk is full.
	st.SetJobInserter(func(ctx context.Context, tx storage.JobTx, _ []ports.Job, _ time.Time) error {
		_, err := tx.Tx.ExecContext(ctx, "ROLLBACK")
		return err
	})
	g := closeGate(t, st)
	good := func() {
		if err := st.Update(context.Background(), ports.ReadSet{}, count("good", succeed)); err != nil {
			t.Error(err)
		}
	}
	g.queue(good)
	g.queue(func() {
		err := st.Update(context.Background(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
			return errors.Join(count("bad", succeed)(ctx, tx), tx.Jobs().Insert(ctx, ports.Job{}, now))
		})
		if !errors.Is(err, domain.ErrUnavailable) {
			t.Errorf("its caller got %v", err)
		}
	})
	g.queue(good)
	g.queue(func() { // fails after it wrote, so that all of them run with savepoints
		if err := st.Update(context.Background(), ports.ReadSet{}, count("bad", fail)); !errors.Is(err, errUnit) {
			t.Errorf("one that fails got %v", err)
		}
	})
	g.queue(good)
	g.pass()
	wantCounted(t, st, map[string]int64{"good": 3, "bad": 0})
}

func TestUnitsRunInTheOrderOfTheirArrival(t *testing.T) {
	st := openStore(t)
	g := closeGate(t, st)
	var order []int
	for i := range 20 {
		g.queue(func() {
			_ = st.Update(context.Background(), ports.ReadSet{}, count("a", func() error { order = append(order, i); return nil }))
		})
	}
	g.pass()
	if len(order) != 20 || !slices.IsSorted(order) {
		t.Errorf("the order is %v", order)
	}
}

func TestACallerWhoGivesUpBeforeItsTurnIsNotRun(t *testing.T) {
	st := openStore(t)
	g := closeGate(t, st)
	ctx, cancel := context.WithCancel(t.Context())
	answered := make(chan error, 1)
	g.queue(func() {
		answered <- st.Update(ctx, ports.ReadSet{}, count("a", func() error { t.Error("it ran"); return nil }))
	})
	cancel()
	if err := <-answered; !errors.Is(err, context.Canceled) { // although the gate is closed
		t.Errorf("the outcome is %v", err)
	}
	g.pass()
	wantCounted(t, st, map[string]int64{"a": 0, "gate": 1})
}

func TestACallerWhoGivesUpAfterItsTurnGetsTheTrueOutcome(t *testing.T) {
	st := openStore(t)
	ctx, cancel := context.WithCancel(t.Context())
	err := st.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		cancel()
		if ctx.Err() != nil {
			t.Error("the unit's own context has ended")
		}
		return count("a", succeed)(ctx, tx)
	})
	if err != nil {
		t.Errorf("the outcome is %v", err)
	}
	wantCounted(t, st, map[string]int64{"a": 1})
}

func TestNoUnitReturnsBeforeItsCommit(t *testing.T) {
	st := openStore(t)
	committing, proceed := make(chan struct{}), make(chan struct{})
	st.SetCommit(func(tx *engine.Transaction) error {
		close(committing)
		<-proceed
		return tx.Commit()
	})
	answered := make(chan error, 1)
	go func() { answered <- st.Update(context.Background(), ports.ReadSet{}, count("a", succeed)) }()
	<-committing
	wantCounted(t, st, map[string]int64{"a": 0})
	select {
	case err := <-answered:
		t.Errorf("answered %v while the commit was running", err)
	default:
	}
	close(proceed)
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

func TestCloseFinishesTheRunningUnitAndRefusesThoseThatWait(t *testing.T) {
	path := t.TempDir() + "/test.db"
	st := openAt(t, path)
	g := closeGate(t, st)
	for range 3 {
		g.queue(func() {
			if err := st.Update(context.Background(), ports.ReadSet{}, count("a", succeed)); err != nil && !errors.Is(err, domain.ErrUnavailable) {
				t.Errorf("one that waited got %v", err)
			}
		})
	}
	closed := make(chan error, 1)
	go func() { closed <- st.Close() }()
	eventually(t, "the store is closing", st.Closing)
	g.pass()
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if err := st.Update(t.Context(), ports.ReadSet{}, count("a", succeed)); !errors.Is(err, domain.ErrUnavailable) {
		t.Errorf("after Close: %v", err)
	}
	if err := st.View(t.Context(), ports.ReadSet{}, func(context.Context, ports.Tx) error { return nil }); !errors.Is(err, domain.ErrUnavailable) {
		t.Errorf("a view after Close: %v", err)
	}
	wantCounted(t, openAt(t, path), map[string]int64{"gate": 1})
}
