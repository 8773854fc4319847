package storage_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"testing"
	"time"

	"agentproxy/adapters/storage"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/campaign"
	"agentproxy/test/pg"
	"agentproxy/test/sqlitetest"
)

// TestMain runs many tests at the same time: they wait for databases more than they compute.
func TestMain(m *testing.M) {
	// A history costs a database some milliseconds for each of its steps.
	histories := fmt.Sprint(campaign.Rounds(25, 400))
	if err := errors.Join(flag.Set("test.parallel", "8"), flag.Set("rapid.checks", histories)); err != nil {
		panic(err)
	}
	flag.Parse()
	os.Exit(m.Run())
}

var now = time.Date(2026, 3, 14, 9, 26, 53, 589793000, time.UTC)

func openAt(t testing.TB, path string) *storage.Store {
	t.Helper()
	return openWith(t, storage.Config{Path: path})
}

// openWith opens a SQLite database at the time of the tests.
func openWith(t testing.TB, c storage.Config) *storage.Store {
	t.Helper()
	c.Now = func() time.Time { return now }
	st, err := storage.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := st.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return st
}

// openStore opens a new database. Each reader takes some milliseconds to open.
func openStore(t testing.TB) *storage.Store {
	t.Helper()
	return openWith(t, storage.Config{Path: sqlitetest.File(t), Readers: 3})
}

// openPostgres opens a database of the shared server.
func openPostgres(t testing.TB) *storage.Store {
	t.Helper()
	return openURL(t, pg.Database(t))
}

func openURL(t testing.TB, url string) *storage.Store {
	t.Helper()
	st, err := storage.Open(t.Context(), storage.Config{URL: storage.URL(url), Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return st
}

// onEachStore runs a test on every database.
func onEachStore(t *testing.T, test func(t *testing.T, open func(testing.TB) *storage.Store)) {
	t.Run("sqlite", func(t *testing.T) { t.Parallel(); test(t, openStore) })
	t.Run("postgres", func(t *testing.T) { t.Parallel(); test(t, openPostgres) })
}

// eventually waits until a condition holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it does not come that %s", what)
		}
	}
}

func update(t testing.TB, st ports.Store, fn func(ctx context.Context, tx ports.Tx) error) {
	t.Helper()
	if err := st.Update(t.Context(), ports.ReadSet{}, fn); err != nil {
		t.Fatal(err)
	}
}

func view(t testing.TB, st ports.Store, fn func(ctx context.Context, tx ports.Tx) error) {
	t.Helper()
	if err := st.View(t.Context(), ports.ReadSet{}, fn); err != nil {
		t.Fatal(err)
	}
}

// addAgent makes an agent with an own balance.
func addAgent(t testing.TB, st ports.Store, id string, balance domain.Money) {
	t.Helper()
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		referrer, err := tx.Referrers().Default(ctx)
		if err != nil {
			return err
		}
		err = tx.Agents().Insert(ctx, account.Agent{ID: id, Name: id, Status: account.Active, Referrer: referrer,
			KeyHash: []byte("key of " + id), SecretHash: []byte("secret of " + id), CreatedAt: now, UpdatedAt: now})
		if err != nil {
			return err
		}
		if err := tx.Ledger().Open(ctx, billing.Wallet{AgentID: id}); err != nil {
			return err
		}
		_, err = tx.Ledger().Post(ctx, ports.Posting{Day: billing.Day(now), Entry: billing.Entry{
			ID: "txn_fund_" + id, AgentID: id, Type: billing.Adjustment, Available: billing.Funds{Own: balance},
			Account: billing.Corrections, Counter: -balance, Ref: "fund:" + id, At: now}})
		return err
	})
}

func dynamicSession(agentID, id string) session.Session {
	return session.Session{
		ID: id, AgentID: agentID, Type: session.Dynamic, Status: session.Active, ProductNo: "dyn_fast_1",
		Provider: "embedded", Quantity: 1, Bytes: billing.GB, Price: 400_000, Protocol: session.HTTP,
		Location: session.Location{Country: "DE"}, Rotation: session.Rotation{Mode: session.OnDemand},
		Exits: []session.Exit{{IP: netip.MustParseAddr("127.0.0.2")}}, CreatedAt: now, ActivatedAt: now,
	}
}

// purchase is the unit that POST /sessions runs.
func purchase(ctx context.Context, tx ports.Tx, agentID string, n int64) error {
	id := fmt.Sprintf("sess_%020d", n*7919%100_000_000_000_000_000)
	w, err := tx.Ledger().Wallet(ctx, agentID)
	if err != nil {
		return err
	}
	hold, err := w.Hold(400_000, billing.AnyFunds)
	if err != nil {
		return err
	}
	hold.ID, hold.AgentID, hold.Ref, hold.SessionID, hold.At = "txn_"+id[5:], agentID, "hold:"+id, id, now
	if _, err := tx.Ledger().Post(ctx, ports.Posting{Entry: hold, Spent: 400_000, Day: billing.Day(now), Live: 1}); err != nil {
		return err
	}
	s := dynamicSession(agentID, id)
	s.Money.Held = hold.Held
	if err := tx.Sessions().Insert(ctx, s); err != nil {
		return err
	}
	return tx.Idempotency().Keep(ctx, ports.Call{AgentID: agentID, Path: "/v1/sessions", Key: id,
		Request: make([]byte, 32), Resource: id, Outcome: ports.Created, CreatedAt: now.Add(time.Duration(n) * time.Microsecond)})
}
