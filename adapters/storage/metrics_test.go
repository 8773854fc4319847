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
	err = st.Update(t.Context(), func(context.Context, ports.Tx) error { return nil })
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
	if err := st.Update(t.Context(), func(context.Context, ports.Tx) error { return nil }); err != nil {
		t.Error(err)
	}
	if got := series(t, st); got["agentproxy_database_pool_open"] < 1 {
		t.Errorf("the pool is shown as %v", got)
	}
}

// A unit that waits for a row is seen, and so is its second try.
func TestWaitsForLocksAndRetriesAreShown(t *testing.T) {
	t.Parallel()
	url := pg.Database(t)
	st := openURL(t, url)
	addAgent(t, st, "agt_1", domain.Dollar)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), "BEGIN; SELECT * FROM wallets FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	done, tries := make(chan error, 1), 0
	go func() {
		done <- st.Update(context.Background(), func(ctx context.Context, tx ports.Tx) error {
			if tries++; tries == 2 {
				if _, err := conn.Exec(ctx, "ROLLBACK"); err != nil {
					return err
				}
			}
			return tx.Ledger().SetLive(ctx, "agt_1", 1)
		})
	}()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		n, err := st.LockWaits(t.Context())
		if err != nil || time.Now().After(end) {
			t.Fatalf("%v connections wait for a lock, %v", n, err)
		}
		if n == 1 {
			break
		}
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := series(t, st); got["agentproxy_database_retries_total lock_timeout"] != 1 {
		t.Errorf("the retries are %v", got)
	}
}
