package storage_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"agentproxy/adapters/storage"
	"agentproxy/domain"
	"agentproxy/ports"
	"agentproxy/test/pg"
)

// series reads what a store shows; a series with a label is its name and the label's value.
func series(t *testing.T, st *storage.Store) map[string]float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	if err := registry.Register(st); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			all[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return all
}

// cause returns the kind of failure that an error of the store names.
func cause(err error) string {
	var known interface {
		error
		Cause() string
	}
	if !errors.Is(err, domain.ErrUnavailable) || !errors.As(err, &known) {
		return ""
	}
	return known.Cause()
}

// The two connections of a pool of four that are not kept for shared reads are in use: a third unit waits
// and is refused with that cause.
func TestWaitsForThePoolAreShown(t *testing.T) {
	t.Parallel()
	st, err := storage.Open(t.Context(), storage.Config{URL: storage.URL(pg.Database(t)), MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	began, proceed := make(chan struct{}), make(chan struct{})
	ended := make(chan error, 2)
	for range 2 {
		go func() {
			ended <- st.Read(context.Background(), func(context.Context, ports.Tx) error {
				began <- struct{}{}
				<-proceed
				return nil
			})
		}()
		<-began
	}
	before := series(t, st)
	if before["agentproxy_database_pool_used"] != 2 || before["agentproxy_database_pool_limit"] != 4 {
		t.Errorf("the pool is shown as %v", before)
	}
	st.SetPatience(time.Millisecond)
	err = st.Update(t.Context(), ports.ReadSet{}, func(context.Context, ports.Tx) error { return nil })
	st.SetPatience(time.Hour)
	if cause(err) != "pool" {
		t.Errorf("the cause is %q of %v", cause(err), err)
	}
	after := series(t, st)
	for _, name := range []string{"agentproxy_database_pool_waits_total", "agentproxy_database_pool_wait_seconds_total"} {
		if after[name] <= before[name] {
			t.Errorf("%s is %v before a wait and %v after it", name, before[name], after[name])
		}
	}
	close(proceed)
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if err := st.Update(t.Context(), ports.ReadSet{}, func(context.Context, ports.Tx) error { return nil }); err != nil {
		t.Error(err)
	}
	if got := series(t, st); got["agentproxy_database_pool_open"] < 1 {
		t.Errorf("the pool is shown as %v", got)
	}
}

// A unit that waits for a row is seen.
func TestWaitsForLocksAreShown(t *testing.T) {
	t.Parallel()
	url := pg.Database(t)
	st := openURL(t, url)
	addAgent(t, st, "agt_1", domain.Dollar)
	free := holdWallets(t, url)
	done := make(chan error, 1)
	go func() { done <- st.Update(context.Background(), ports.ReadSet{}, setLive) }()
	awaitLock(t, st)
	if n, err := st.LockWaits(t.Context()); n != 1 || err != nil {
		t.Errorf("%v connections wait for a lock, %v", n, err)
	}
	free()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A lock that is released after one lock timeout costs the unit a second try, which is shown, and does not fail it.
func TestALockTimeoutIsRetried(t *testing.T) {
	t.Parallel()
	url := pg.Database(t)
	st := openURL(t, pg.With(url, "lock_timeout", "100ms"))
	addAgent(t, st, "agt_1", domain.Dollar)
	free := holdWallets(t, url)
	tries := 0
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		if tries++; tries == 2 {
			free()
		}
		return setLive(ctx, tx)
	})
	if tries != 2 {
		t.Errorf("the unit ran %d times", tries)
	}
	if got := series(t, st); got["agentproxy_database_retries_total lock_timeout"] != 1 {
		t.Errorf("the retries are %v", got)
	}
}

// One that is not released refuses it.
func TestALockThatTakesTooLongIsUnavailable(t *testing.T) {
	t.Parallel()
	url := pg.Database(t)
	st := openURL(t, pg.With(url, "lock_timeout", "100ms"))
	addAgent(t, st, "agt_1", domain.Dollar)
	holdWallets(t, url)
	if err := st.Update(t.Context(), ports.ReadSet{}, setLive); cause(err) != "lock_timeout" {
		t.Errorf("got %v", err)
	}
}

// setLive is a unit that locks a wallet.
func setLive(ctx context.Context, tx ports.Tx) error { return tx.Ledger().SetLive(ctx, "agt_1", "", 1) }

// holdWallets locks the wallets of a database, until the test ends or frees them.
func holdWallets(t *testing.T, url string) (free func()) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	run := func(statement string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	run("BEGIN; SELECT * FROM wallets FOR UPDATE")
	return func() { t.Helper(); run("ROLLBACK") }
}
