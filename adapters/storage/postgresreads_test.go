package storage_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"agentproxy/adapters/storage"
	"agentproxy/domain"
	"agentproxy/domain/session"
	"agentproxy/domain/worker"
	"agentproxy/ports"
	"agentproxy/test/link"
	"agentproxy/test/pg"
)

// readAhead reads what the page of a session shows.
func readAhead(ctx context.Context, st ports.Store, agentID, id string) (read ports.SessionRead, err error) {
	reads := ports.ReadSet{Agent: agentID, Sessions: []string{id}}
	err = st.View(ctx, reads, func(ctx context.Context, tx ports.Tx) error {
		if read, err = tx.Sessions().Read(ctx, agentID, id); err != nil {
			return err
		}
		_, err := tx.Workers().HealthOf(ctx, []string{id})
		return err
	})
	return read, err
}

// moneyAhead reads what the balance and the account show, and returns what is not charged yet.
func moneyAhead(ctx context.Context, st ports.Store, agentID string) (due domain.Money, err error) {
	reads := ports.ReadSet{Agent: agentID, Money: true, Holding: true}
	err = st.View(ctx, reads, func(ctx context.Context, tx ports.Tx) error {
		if _, err := tx.Agents().Get(ctx, agentID); err != nil {
			return err
		}
		if _, err := tx.Ledger().Wallet(ctx, agentID); err != nil {
			return err
		}
		hours, err := tx.Sessions().Unbooked(ctx, agentID)
		due = 0
		for _, h := range hours {
			due += h.Charged
		}
		return err
	})
	return due, err
}

func TestAViewThatIsReadAheadTakesOneRoundTrip(t *testing.T) {
	t.Parallel()
	w, url := link.New(t, pg.Database(t), 0)
	st := openURL(t, url)
	addAgent(t, st, "agt_1", domain.Dollar)
	for n := range int64(2) {
		if err := buyAhead(t.Context(), st, "agt_1", n, nothing); err != nil {
			t.Fatal(err)
		}
	}
	_, err := st.Writer().Exec(`UPDATE sessions SET bytes = 1000, price = 1000000000, up = 900, charged_trial = 0, charged_own = 0,
		held_trial = 2, held_own = 3, settle_at = 1 WHERE agent_id = 'agt_1'`)
	if err != nil {
		t.Fatal(err)
	}
	const usedUp = 2 * (2 + 3)
	for what, read := range map[string]func() error{
		"a session": func() error {
			read, err := readAhead(t.Context(), st, "agt_1", sessionID(1))
			if read.ID != sessionID(1) || read.AgentID != "agt_1" {
				t.Errorf("read %q", read.ID)
			}
			return err
		},
		"none of the agent": func() error {
			for _, agentID := range []string{"agt_2", ""} {
				if _, err := readAhead(t.Context(), st, agentID, sessionID(1)); !errors.Is(err, session.ErrNotFound) {
					t.Errorf("the session of agt_1 read by %q: %v", agentID, err)
				}
			}
			_, err := readAhead(t.Context(), st, "agt_1", "sess_none")
			if errors.Is(err, session.ErrNotFound) {
				err = nil
			}
			return err
		},
		"a list": func() error { return sameList(t, st, ports.SessionPage{Page: domain.Page{Number: 1, Size: 1}}) },
		"money": func() error {
			due, err := moneyAhead(t.Context(), st, "agt_1")
			if due != usedUp || due == 0 {
				t.Errorf("%v is not charged yet, want %v", due, usedUp)
			}
			return err
		},
	} {
		if err := read(); err != nil { // prepares its statements
			t.Fatal(what, err)
		}
		before := w.Asked()
		if err := read(); err != nil {
			t.Fatal(what, err)
		}
		want := int64(1)
		if what == "none of the agent" {
			want = 3
		}
		if asked := w.Asked() - before; asked != want {
			t.Errorf("%s: the server was asked %d times, want %d", what, asked, want)
		}
	}
}

// sameList compares a list that is read ahead with the same read alone.
func sameList(t *testing.T, st ports.Store, p ports.SessionPage) error {
	var reads, alone listed
	read := func(into *listed) func(context.Context, ports.Tx) error {
		return func(ctx context.Context, tx ports.Tx) (err error) {
			if into.List, err = tx.Sessions().List(ctx, "agt_1", p.Filter, p.Page); err != nil {
				return err
			}
			var ids []string
			for _, r := range into.Items {
				ids = append(ids, r.ID)
			}
			into.workers, err = tx.Workers().HealthOf(ctx, ids)
			return err
		}
	}
	err := st.View(t.Context(), ports.ReadSet{Agent: "agt_1", List: &p}, read(&reads))
	if p.Page.Size > 1 {
		err = errors.Join(err, st.View(t.Context(), ports.ReadSet{}, read(&alone)))
		if diff := cmp.Diff(shown(alone), shown(reads)); diff != "" {
			t.Errorf("%+v (-alone +reads):\n%s", p, diff)
		}
	}
	return err
}

// listed is a list with the health of the workers of its sessions.
type listed struct {
	domain.List[ports.SessionRead]
	workers map[string][]ports.WorkerHealth
}

// shown is the text of a list: its sessions with their workers, and the next page.
func shown(list listed) (text []string) {
	text = append(text, fmt.Sprintf("%+v %d %d", list.Page, list.Total, list.Next))
	for _, r := range list.Items {
		text = append(text, fmt.Sprintf("%+v %+v %+v", r.Session, r.Usage, *r.Health))
		for _, w := range list.workers[r.ID] {
			text = append(text, fmt.Sprintf("%d %s %+v", w.ID, w.Name, w.State))
		}
	}
	return text
}

func TestListsThatAreReadAheadAreTheSame(t *testing.T) {
	t.Parallel()
	st := openPostgres(t)
	addAgent(t, st, "agt_1", 100*domain.Dollar)
	for n := range int64(7) {
		if err := buyAhead(t.Context(), st, "agt_1", n, nothing); err != nil {
			t.Fatal(err)
		}
	}
	if err := endAhead(t.Context(), st, "agt_1", sessionID(3)); err != nil {
		t.Fatal(err)
	}
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		id, err := tx.Workers().Insert(ctx, worker.Worker{SessionID: sessionID(5), Name: "w01", CreatedAt: now})
		if err != nil {
			return err
		}
		return tx.Workers().PutHealth(ctx, id, busyState(), worker.Failure{})
	})
	for _, f := range []ports.SessionFilter{{}, {Status: session.Active}, {ProductNo: "none"}, {Status: session.Active,
		Type: session.Dynamic, From: now.Add(-1), To: now.Add(1), LabelKey: "a", LabelValue: "b"}} {
		for _, page := range []domain.Page{{Number: 1, Size: 3}, {Number: 3, Size: 3}, {Number: 9, Size: 3},
			{Number: 1, Size: 50}, {Number: 1, Size: 3, After: 5}} {
			if err := sameList(t, st, ports.SessionPage{Filter: f, Page: page}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Views and batches go on while units have every connection that units may have.
func TestUnitsThatHoldTheirConnectionsHoldUpNoReads(t *testing.T) {
	t.Parallel()
	st := openPostgres(t)
	addAgent(t, st, "agt_1", domain.Dollar)
	if err := buyAhead(t.Context(), st, "agt_1", 1, nothing); err != nil {
		t.Fatal(err)
	}
	open, held := make(chan struct{}), make(chan struct{}, 100)
	var units sync.WaitGroup
	for n := range st.Slots() {
		units.Go(func() {
			err := st.Update(context.Background(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
				if err := tx.Counters().Add(ctx, fmt.Sprint("agt_", n), ports.Tally{Reported: 1}); err != nil {
					return err
				}
				held <- struct{}{}
				<-open
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	for range st.Slots() {
		<-held
	}
	if _, err := readAhead(t.Context(), st, "agt_1", sessionID(1)); err != nil {
		t.Errorf("a session: %v", err)
	}
	if _, err := moneyAhead(t.Context(), st, "agt_1"); err != nil {
		t.Errorf("money: %v", err)
	}
	if err := buyAhead(t.Context(), st, "agt_1", 2, nothing); err != nil {
		t.Errorf("a purchase: %v", err)
	}
	close(open)
	units.Wait()
}

// The units of one agent leave connections to those of others.
func TestAnAgentHasItsShareOfTheConnections(t *testing.T) {
	t.Parallel()
	st := openPostgres(t)
	addAgent(t, st, "agt_1", domain.Dollar)
	open, held := make(chan struct{}), make(chan struct{}, 100)
	many := ports.WithAgent(context.Background(), "agt_1")
	var units sync.WaitGroup
	for range 2 * st.Slots() {
		units.Go(func() {
			err := st.Update(many, ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
				if _, err := tx.Sessions().Live(ctx, "agt_1"); err != nil {
					return err
				}
				held <- struct{}{}
				<-open
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	for range st.Slots() / 2 {
		<-held
	}
	err := st.Update(ports.WithAgent(t.Context(), "agt_2"), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		return tx.Counters().Add(ctx, "agt_2", ports.Tally{Reported: 1})
	})
	if err != nil {
		t.Errorf("a unit of another agent: %v", err)
	}
	if n := len(held); n > 0 {
		t.Errorf("the agent has %d connections more than its share", n)
	}
	close(open)
	units.Wait()
}

// The units that wait take turns by agent: however many one agent has, a unit of another waits for one of them. And
// an agent has at most half of a batch in the queue.
func TestAnAgentHasItsShareOfABatch(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *storage.Store) { sharesABatch(t, open(t)) })
}

func sharesABatch(t *testing.T, st *storage.Store) {
	const beyond = 10
	other := "agt_2"
	for n := 3; st.Shard(other) != st.Shard("agt_1"); n++ {
		other = fmt.Sprint("agt_", n)
	}
	var mu sync.Mutex
	var order []string
	unit := func(agentID string) func() {
		return want(t, agentID, nil, func() error {
			return st.Update(context.Background(), ports.ReadSet{Agent: agentID},
				func(ctx context.Context, tx ports.Tx) error {
					mu.Lock()
					defer mu.Unlock()
					order = append(order, agentID)
					return tx.Counters().Add(ctx, agentID, ports.Tally{Reported: 1})
				})
		})
	}
	g := closeGateFor(context.Background(), ofAgent, t, st) // the first of the share
	for range storage.MaxQueued - 1 {
		g.queue(unit("agt_1"))
	}
	for range beyond {
		g.units.Go(unit("agt_1"))
	}
	eventually(t, "the units beyond wait", func() bool { return st.AtWork("agt_1") == storage.MaxQueued+beyond })
	g.queue(unit(other))
	g.pass()
	if len(order) != storage.MaxQueued+beyond || slices.Index(order, other) > 1 {
		t.Errorf("the units ran in the order %v", order)
	}
}

// The views of one agent that are at work are bounded too, and those of others go on.
func TestAnAgentHasItsShareOfTheReaders(t *testing.T) {
	t.Parallel()
	const beyond = 10
	st := openPostgres(t)
	addAgent(t, st, "agt_1", domain.Dollar)
	open, held := make(chan struct{}), make(chan struct{}, 100)
	var views sync.WaitGroup
	for range storage.MaxQueued + beyond {
		views.Go(func() {
			err := st.View(context.Background(), ofAgent, func(context.Context, ports.Tx) error {
				held <- struct{}{}
				<-open
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	for range storage.MaxQueued {
		<-held
	}
	for st.AtWork("agt_1") < storage.MaxQueued+beyond {
		runtime.Gosched()
	}
	if _, err := readAhead(t.Context(), st, "agt_2", sessionID(1)); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("a view of another agent: %v", err)
	}
	if n := len(held); n > 0 {
		t.Errorf("the agent has %d views more than its share", n)
	}
	close(open)
	views.Wait()
}

// Calls that repeat one with an Idempotency-Key are answered by the batch of the first, and by others.
func TestRepeatedCallsShareATransaction(t *testing.T) {
	t.Parallel()
	w, url := link.New(t, pg.Database(t), 0)
	st := openURL(t, url)
	addAgent(t, st, "agt_1", domain.Dollar)
	again := func(ctx context.Context) error {
		reads := ports.ReadSet{Agent: "agt_1", Money: true, Path: "/v1/sessions", Key: sessionID(1)}
		var runs, found int
		err := st.Update(ctx, reads, func(ctx context.Context, tx ports.Tx) error {
			runs++
			c, replay, err := tx.Idempotency().Find(ctx, "agt_1", "/v1/sessions", sessionID(1), now)
			if err != nil || !replay {
				return errors.Join(err, errors.New("the call is not known"))
			}
			found++
			_, err = tx.Sessions().Read(ctx, "agt_1", c.Resource)
			return err
		})
		if err == nil && runs != 1 {
			err = fmt.Errorf("it ran %d times", runs)
		}
		return err
	}
	if err := reportAhead(t.Context(), st, "agt_1"); err != nil {
		t.Fatal(err)
	}
	for round := range 2 {
		g := closeGateFor(context.Background(), ofAgent, t, st)
		if round == 0 {
			g.queue(want(t, "the first", nil, func() error { return buyAhead(t.Context(), st, "agt_1", 1, nothing) }))
		}
		for range 30 {
			g.queue(want(t, "a repeated call", nil, func() error { return again(t.Context()) }))
		}
		before := w.Asked()
		g.pass()
		if asked := w.Asked() - before; asked > 6 {
			t.Errorf("round %d: the server was asked %d times", round, asked)
		}
	}
}

// The plans of what is read and written together are made once, on tables that may be empty then.
// None of them scans a table.
func TestBatchesScanNoTable(t *testing.T) {
	t.Parallel()
	url := pg.Database(t)
	scans := func(st *storage.Store) map[string]int64 {
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		deadlocks(t, url) // waits until the connections of the store have ended, and their counts are known
		conn, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.Background())
		found := map[string]int64{}
		rows, err := conn.Query(t.Context(), `SELECT relname, COALESCE(seq_scan, 0) FROM pg_stat_user_tables WHERE relname
			IN ('sessions', 'session_health', 'wallets', 'agents', 'idempotency_keys', 'ledger_entries', 'workers',
			'worker_health', 'usage_hours', 'counters', 'webhook_marks', 'webhook_deliveries') OR relname LIKE 'event_chunks%'`)
		if err != nil {
			t.Fatal(err)
		}
		var name string
		var n int64
		if _, err := pgx.ForEachRow(rows, []any{&name, &n}, func() error { found[name] = n; return nil }); err != nil {
			t.Fatal(err)
		}
		return found
	}
	setup := openURL(t, url)
	addAgent(t, setup, "agt_1", 100*domain.Dollar)
	if _, err := setup.Writer().Exec("UPDATE agents SET webhook_url = 'https://agent.example'"); err != nil {
		t.Fatal(err)
	}
	before := scans(setup)
	st := openURL(t, url)
	for n := range int64(8) {
		err := errors.Join(buyAhead(t.Context(), st, "agt_1", n, nothing), reportAhead(t.Context(), st, "agt_1", sessionID(n)))
		if _, readErr := readAhead(t.Context(), st, "agt_1", sessionID(n)); err == nil {
			err = readErr
		}
		if _, moneyErr := moneyAhead(t.Context(), st, "agt_1"); err == nil {
			err = moneyErr
		}
		err = errors.Join(err, sameList(t, st, ports.SessionPage{Page: domain.Page{Number: 1, Size: 1}}),
			planAhead(t.Context(), st, sessionID(n), now), settleAhead(t.Context(), st, sessionID(n), now))
		if err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(before, scans(st)); diff != "" {
		t.Errorf("scans of tables (-before +after):\n%s", diff)
	}
}
