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

	"github.com/jackc/pgx/v5"

	"agentproxy/adapters/storage"
	"agentproxy/adapters/storage/engine"
	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/eventlog"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/contract"
	"agentproxy/test/link"
	"agentproxy/test/pg"
)

// aheadStore names rows of the contract's tests ahead, so that their units run in batches.
type aheadStore struct{ jobStore }

var aheadOfContract = ports.ReadSet{Agent: "agt_1", Money: true, Sessions: []string{"sess_1", "sess_2", "sess_3"},
	Path: "/p", Key: "k"}

func (s aheadStore) Update(ctx context.Context, reads ports.ReadSet, fn func(context.Context, ports.Tx) error) error {
	return s.jobStore.Update(ctx, aheadOfContract, fn)
}

// What batches do differently is in these parts of the contract.
func TestBatchesKeepTheContract(t *testing.T) {
	contract.Store(t, func(t *testing.T) ports.Store {
		_, path, _ := strings.Cut(t.Name(), "/")
		group, claim, _ := strings.Cut(path, "/")
		if strings.HasPrefix(claim, "old_") || claim == "a_unit_sees_what_it_wrote" ||
			claim == "a_reference_is_booked_once,_whatever_the_caller_makes_of_the_refusal" {
			t.Skip("its units check each of their runs, and not the one that counts")
		}
		switch group {
		case "units", "ledger", "sessions", "health_and_events", "calls":
			return aheadStore{withJobs(t, openPostgres(t))}
		}
		t.Skip("its repositories know no batches")
		return nil
	})
}

// buyAhead is the unit of a purchase with what it reads ahead.
func buyAhead(ctx context.Context, st ports.Store, agentID string, n int64, more func(context.Context, ports.Tx) error) error {
	key := fmt.Sprintf("sess_%020d", n*7919%100_000_000_000_000_000)
	reads := ports.ReadSet{Agent: agentID, Money: true, Path: "/v1/sessions", Key: key}
	return st.Update(ctx, reads, func(ctx context.Context, tx ports.Tx) error {
		if _, found, err := tx.Idempotency().Find(ctx, agentID, "/v1/sessions", key, now); err != nil || found {
			return err
		}
		if _, err := tx.Agents().Get(ctx, agentID); err != nil {
			return err
		}
		if err := purchase(ctx, tx, agentID, n); err != nil {
			return err
		}
		if _, err := tx.Webhooks().PeekEndpoint(ctx, agentID); err != nil {
			return err
		}
		return more(ctx, tx)
	})
}

func nothing(context.Context, ports.Tx) error { return nil }

func endAhead(ctx context.Context, st ports.Store, agentID, id string) error {
	reads := ports.ReadSet{Agent: agentID, Money: true, Sessions: []string{id}}
	return st.Update(ctx, reads, func(ctx context.Context, tx ports.Tx) error {
		if err := terminate(ctx, tx, agentID, id); err != nil {
			return err
		}
		return tx.Events().Append(ctx, id, []eventlog.Event{{ID: "evt_" + id, At: now, Type: eventlog.Terminated}})
	})
}

// reportAhead is the unit of a batch of telemetry with an event for each session.
func reportAhead(ctx context.Context, st ports.Store, agentID string, ids ...string) error {
	return st.Update(ctx, ports.ReadSet{Agent: agentID, Health: ids},
		func(ctx context.Context, tx ports.Tx) error {
			reads, err := tx.Health().Get(ctx, agentID, ids)
			if err != nil {
				return err
			}
			for _, id := range ids {
				r, known := reads[id]
				if !known {
					continue
				}
				r.State.Report(health.Event{Type: health.Success, At: now})
				err := errors.Join(tx.Health().Put(ctx, id, r.State),
					tx.Events().Append(ctx, id, []eventlog.Event{{ID: "evt_1", At: now, Type: "success"}}))
				if err != nil {
					return err
				}
			}
			return tx.Counters().Add(ctx, agentID, ports.Tally{Reported: int64(len(ids))})
		})
}

// One round trip reads, one writes and commits, however much it is.
func TestAUnitThatIsReadAheadTakesTwoRoundTrips(t *testing.T) {
	w, url := link.New(t, pg.Database(t), 0)
	st := openURL(t, url)
	addAgent(t, st, "agt_1", 100*domain.Dollar)
	trips := func(what string, run func(n int64) error) {
		t.Helper()
		for n := range int64(3) { // the first two prepare its statements: health is inserted, and then updated
			before := w.Asked()
			if err := run(n); err != nil {
				t.Fatal(what, err)
			}
			if asked := w.Asked() - before; asked != 2 && n > 1 {
				t.Errorf("%s: the server was asked %d times, want 2", what, asked)
			}
		}
	}
	trips("a purchase", func(n int64) error { return buyAhead(t.Context(), st, "agt_1", n, nothing) })
	trips("a report", func(int64) error {
		return reportAhead(t.Context(), st, "agt_1", sessionID(0), sessionID(1), sessionID(2))
	})
	trips("an end", func(n int64) error { return endAhead(t.Context(), st, "agt_1", sessionID(n)) })
	verify(t, st)
}

var ofAgent = ports.ReadSet{Agent: "agt_1"}

// want returns a unit that is to end with an error.
func want(t *testing.T, what string, want error, run func() error) func() {
	return func() {
		if err := run(); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
}

// Units of one agent see what those before them in the batch did, and all take one commit. One that
// fails leaves nothing.
func TestUnitsShareATransaction(t *testing.T) {
	t.Parallel()
	w, url := link.New(t, pg.Database(t), 0)
	st := openURL(t, url)
	addAgent(t, st, "agt_1", 900_000) // for two sessions
	ctx := context.Background()
	buy := func(n int64, more func(context.Context, ports.Tx) error) func() error {
		return func() error { return buyAhead(ctx, st, "agt_1", n, more) }
	}
	if err := reportAhead(ctx, st, "agt_1"); err != nil {
		t.Fatal(err)
	}
	g := closeGateFor(ctx, ofAgent, t, st)
	g.queue(want(t, "one that fails", errUnit, buy(1, func(context.Context, ports.Tx) error { return errUnit })))
	g.queue(want(t, "the first", nil, buy(2, nothing)))
	g.queue(want(t, "the same again", nil, buy(2, nothing)))
	g.queue(want(t, "the second", nil, buy(3, nothing)))
	g.queue(want(t, "a third", billing.ErrInsufficientBalance, buy(4, nothing)))
	before := w.Asked()
	g.pass()
	// The commit of the gate, what is read ahead, the preparation of its statements on a new
	// connection, the same of what is written.
	if asked := w.Asked() - before; asked > 6 {
		t.Errorf("the server was asked %d times", asked)
	}
	if entries := verify(t, st); entries != 3 {
		t.Errorf("%d entries, want those of the deposit and of two purchases", entries)
	}
}

// What the database refuses is run again alone, the one that it refuses and the others of its batch.
func TestAUnitThatSpoilsItsBatchFailsAlone(t *testing.T) {
	t.Parallel()
	st := openPostgres(t)
	addAgent(t, st, "agt_1", domain.Dollar*10)
	ctx := context.Background()
	twice := func(ctx context.Context, tx ports.Tx) error {
		_, err := tx.Ledger().Post(ctx, deposit("agt_1", "fund:agt_1", 1, 1)) // the reference of addAgent
		return err
	}
	g := closeGateFor(ctx, ofAgent, t, st)
	g.queue(want(t, "one before", nil, func() error { return buyAhead(ctx, st, "agt_1", 1, nothing) }))
	g.queue(want(t, "a reference that is booked", ports.ErrDuplicate, func() error { return buyAhead(ctx, st, "agt_1", 2, twice) }))
	g.queue(want(t, "one after", nil, func() error { return buyAhead(ctx, st, "agt_1", 3, nothing) }))
	g.pass()
	if entries := verify(t, st); entries != 3 {
		t.Errorf("%d entries, want those of the deposit and of two purchases", entries)
	}
}

// What units of one batch do to one session adds up.
func TestABatchAddsUp(t *testing.T) {
	t.Parallel()
	st := openPostgres(t)
	addAgent(t, st, "agt_1", domain.Dollar)
	ctx := context.Background()
	for n := range int64(2) {
		if err := buyAhead(ctx, st, "agt_1", n, nothing); err != nil {
			t.Fatal(err)
		}
	}
	first, second := sessionID(0), sessionID(1)
	if err := reportAhead(ctx, st, "agt_1", first, second); err != nil {
		t.Fatal(err)
	}
	report := func(ids ...string) func() error {
		return func() error { return reportAhead(ctx, st, "agt_1", ids...) }
	}
	g := closeGateFor(ctx, ofAgent, t, st)
	g.queue(want(t, "a report", nil, report(first, second, "sess_unknown")))
	g.queue(want(t, "an end", nil, func() error { return endAhead(ctx, st, "agt_1", first) }))
	g.queue(want(t, "a report", nil, report(second)))
	g.queue(want(t, "a report", nil, report(second)))
	g.pass()
	verify(t, st)
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		reads, err := tx.Health().Get(ctx, "agt_1", []string{first, second})
		for id, reports := range map[string]int{first: 2, second: 4} {
			list, listErr := tx.Events().Page(ctx, id, domain.Page{Number: 1, Size: 10})
			err = errors.Join(err, listErr)
			// The first has the event of its end too.
			if len(list.Items) != list.Total || list.Total != map[string]int{first: 3, second: 4}[id] {
				t.Errorf("%s has %d events: %+v", id, list.Total, list.Items)
			}
			state := reads[id].State
			if got := state.Stats().Session.Reported.TotalEvents; got != int64(reports) {
				t.Errorf("%s has %d reports, want %d", id, got, reports)
			}
		}
		if s := reads[first].Status; s != session.Terminated {
			t.Errorf("the session that was ended is %s", s)
		}
		tally, tallyErr := tx.Counters().Get(ctx, "agt_1")
		if tally.Reported != 2+3+1+1 {
			t.Errorf("%d reports are counted", tally.Reported)
		}
		return errors.Join(err, tallyErr)
	})
}

// A batch answers none of its units before its commit.
func TestNoUnitOfABatchReturnsBeforeItsCommit(t *testing.T) {
	t.Parallel()
	st := openPostgres(t)
	addAgent(t, st, "agt_1", domain.Dollar)
	committing, proceed := make(chan struct{}), make(chan struct{})
	st.SetCommit(func(tx *engine.Transaction) error {
		close(committing)
		<-proceed
		return tx.Commit()
	})
	answered := make(chan error, 1)
	go func() { answered <- buyAhead(context.Background(), st, "agt_1", 1, nothing) }()
	<-committing
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		if _, err := tx.Sessions().Load(ctx, sessionID(1)); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("the session before the commit: %v", err)
		}
		return nil
	})
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

// The outcome of a batch whose commit was not answered is looked up, and what was undone is run again.
func TestALostCommitOfABatchHappensOnce(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]link.Cut{"before": link.BeforeCommit, "after": link.AfterCommit} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, url := link.New(t, pg.Database(t), 0)
			st := openURL(t, url)
			addAgent(t, st, "agt_1", 10*domain.Dollar)
			ctx := context.Background()
			if err := buyAhead(ctx, st, "agt_1", 0, nothing); err != nil {
				t.Fatal(err)
			}
			g := closeGateFor(ctx, ofAgent, t, st)
			var runs atomic.Int32
			for n := range int64(3) {
				g.queue(want(t, "a purchase", nil, func() error {
					return buyAhead(ctx, st, "agt_1", n+1, func(context.Context, ports.Tx) error {
						if runs.Add(1) == 1 {
							w.CutAt(cut)
						}
						return nil
					})
				}))
			}
			g.pass()
			if entries := verify(t, st); entries != 5 || w.Armed() {
				t.Errorf("%d entries, want those of the deposit and of four purchases", entries)
			}
			if wanted := map[link.Cut]int32{link.BeforeCommit: 6, link.AfterCommit: 3}[cut]; runs.Load() != wanted {
				t.Errorf("the units ran %d times, want %d", runs.Load(), wanted)
			}
		})
	}
}

// Units whose outcome cannot be looked up are not run again.
func TestABatchOfUnknownOutcomeIsUnavailable(t *testing.T) {
	t.Parallel()
	w, url := link.New(t, pg.Database(t), 0)
	st := openURL(t, url)
	addAgent(t, st, "agt_1", domain.Dollar)
	runs := 0
	w.CutAt(link.AfterCommit)
	err := buyAhead(t.Context(), st, "agt_1", 1, func(context.Context, ports.Tx) error {
		runs++
		w.Close() // the outcome cannot be looked up any more
		st.SetPatience(0)
		return nil
	})
	if !errors.Is(err, domain.ErrUnavailable) || runs != 1 {
		t.Errorf("%v after %d runs", err, runs)
	}
}

// A row that another transaction has does not hold up a batch: who needs it waits for it alone.
func TestABusyRowHoldsUpItsUnitAlone(t *testing.T) {
	t.Parallel()
	url := pg.Database(t)
	st := openURL(t, url)
	addAgent(t, st, "agt_1", domain.Dollar)
	addAgent(t, st, "agt_2", domain.Dollar)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), "BEGIN; SELECT * FROM wallets WHERE agent_id = 'agt_1' FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	waits := make(chan error, 1)
	go func() { waits <- buyAhead(context.Background(), st, "agt_1", 1, nothing) }()
	awaitLock(t, st)
	if err := buyAhead(t.Context(), st, "agt_2", 2, nothing); err != nil {
		t.Error(err)
	}
	select {
	case err := <-waits:
		t.Errorf("it did not wait: %v", err)
	default:
	}
	if _, err := conn.Exec(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if err := <-waits; err != nil {
		t.Error(err)
	}
}

// Batches of two processes and units that run alone need the same rows.
func TestBatchesAndUnitsAloneDoNotDeadlock(t *testing.T) {
	t.Parallel()
	const callers, each = 12, 6
	url := pg.Database(t)
	before := deadlocks(t, url)
	var stores []*storage.Store
	for range 2 {
		st, err := storage.Open(t.Context(), storage.Config{URL: storage.URL(url), Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		stores = append(stores, st)
	}
	for i := range 3 {
		addAgent(t, stores[0], fmt.Sprint("agt_", i), 1000*domain.Dollar)
	}
	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() {
			st, agent := stores[caller%2], fmt.Sprint("agt_", caller%3)
			for n := range each {
				number := int64(caller*each + n)
				err := buyAhead(t.Context(), st, agent, number, nothing)
				err = errors.Join(err, reportAhead(t.Context(), st, agent, sessionID(number)))
				if n%2 == 0 {
					err = errors.Join(err, endAhead(t.Context(), st, agent, sessionID(number)))
				} else {
					err = errors.Join(err, st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
						return terminate(ctx, tx, agent, sessionID(number))
					}))
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if entries := verify(t, stores[0]); entries != 3+2*callers*each {
		t.Errorf("%d entries of %d purchases", entries, callers*each)
	}
	for _, st := range stores {
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if n := deadlocks(t, url) - before; n != 0 {
		t.Errorf("%d deadlocks", n)
	}
}
