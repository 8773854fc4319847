package storage_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"agentproxy/adapters/storage"
	"agentproxy/domain"
	"agentproxy/domain/ratelimit"
	"agentproxy/ports"
	"agentproxy/test/link"
	"agentproxy/test/pg"
)

// users are those of the connections of a store that has the agent agt_1.
func users(st *storage.Store) map[string]func() error {
	ctx := context.Background()
	return map[string]func() error{
		"a unit":            func() error { return st.Update(ctx, ports.ReadSet{}, count("unit", succeed)) },
		"a unit of a batch": func() error { return reportAhead(ctx, st, "agt_1") },
		"a view":            func() error { return st.View(ctx, ports.ReadSet{}, addressesOf) },
		"a view of a batch": func() error { _, err := moneyAhead(ctx, st, "agt_1"); return err },
		"a read":            func() error { return st.Read(ctx, addressesOf) },
		"a rate limit": func() error {
			_, err := st.RateLimits().Take(ctx, "agent:a", ratelimit.Limit{PerMinute: 600}.NewRequest(1))
			return err
		},
		"a purge": func() error { _, err := st.RateLimits().Purge(ctx, 10); return err },
		"a ping":  func() error { return st.Ping(ctx) },
	}
}

// fill has n connections open, none of which is in use.
func fill(t *testing.T, st *storage.Store, n int) {
	t.Helper()
	st.Pool().Reset()
	var list []*pgxpool.Conn
	for range n {
		c, err := st.Pool().Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, c)
	}
	for _, c := range list {
		c.Release()
	}
}

// However many connections are lost together, what follows has one that was opened later, at once, and the
// others are closed once.
func TestWhatFollowsALossHasANewConnection(t *testing.T) {
	t.Parallel()
	w, url := link.New(t, pg.Database(t), 0)
	st := openURL(t, url)
	addAgent(t, st, "agt_1", domain.Dollar)
	for name, use := range users(st) {
		t.Run(name, func(t *testing.T) {
			for _, open := range []int{1, 10, 20} {
				fill(t, st, open)
				before := st.Losses()
				w.Drop()
				if err := use(); err != nil {
					t.Errorf("after the loss of %d connections: %v", open, err)
				}
				if n := st.Losses() - before; n != 1 {
					t.Errorf("the loss of %d connections counted as %d", open, n)
				}
			}
		})
	}
}

// So has each of a burst of callers, which find that their connections are lost at the same time.
func TestABurstOfCallersFindsOneLoss(t *testing.T) {
	t.Parallel()
	w, url := link.New(t, pg.Database(t), 0)
	st := openURL(t, url)
	addAgent(t, st, "agt_1", domain.Dollar)
	all := users(st)
	for range 3 {
		fill(t, st, 20)
		before := st.Losses()
		w.Drop()
		var callers sync.WaitGroup
		for name, use := range all {
			for range 12 {
				callers.Go(func() {
					if err := use(); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				})
			}
		}
		callers.Wait()
		if n := st.Losses() - before; n != 1 {
			t.Errorf("one loss counted as %d", n)
		}
	}
}

// Units whose connections are lost under them are unavailable, and are one loss too.
func TestUnitsThatLoseTheirConnectionsAreOneLoss(t *testing.T) {
	t.Parallel()
	w, url := link.New(t, pg.Database(t), 0)
	st := openURL(t, url)
	before := st.Losses()
	var begun, ended sync.WaitGroup
	begun.Add(st.Slots())
	dropped := make(chan struct{})
	for i := range st.Slots() {
		ended.Go(func() {
			err := st.Update(context.Background(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
				begun.Done()
				<-dropped
				err := count("lost", succeed)(ctx, tx)
				if i%2 == 0 {
					return err
				}
				return errors.Join(err, addressesOf(ctx, tx)) // asks once more
			})
			if !errors.Is(err, domain.ErrUnavailable) {
				t.Errorf("got %v", err)
			}
		})
	}
	begun.Wait()
	w.Drop()
	close(dropped)
	ended.Wait()
	if n := st.Losses() - before; n != 1 {
		t.Errorf("one loss counted as %d", n)
	}
	update(t, st, count("next", succeed))
	wantCounted(t, st, map[string]int64{"lost": 0, "next": 1})
}

// A statement that its caller leaves costs its connection, and no other.
func TestWhoLeavesAStatementLosesNoOtherConnection(t *testing.T) {
	t.Parallel()
	st := openPostgres(t)
	fill(t, st, 10)
	before := st.Pool().Stat().NewConnsCount()
	for _, next := range []string{"SELECT 1", ""} {
		conn, err := st.Pool().Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error)
		go func() {
			_, err := conn.Exec(ctx, "SELECT pg_sleep(600)")
			left <- err
		}()
		// It is active while it is parsed too, before which the caller leaves without costs.
		until(t, st, "SELECT COUNT(*) = 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'")
		cancel()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if _, err := conn.Exec(t.Context(), next); err == nil || !conn.Conn().IsClosed() {
			t.Errorf("the connection is open: %v", err)
		}
		conn.Release()
	}
	update(t, st, count("next", succeed))
	if n := st.Losses(); n != 0 {
		t.Errorf("the connections were replaced %d times", n)
	}
	if n := st.Pool().Stat().NewConnsCount() - before; n != 0 {
		t.Errorf("%d connections were opened", n)
	}
}

// until waits until a condition on a database holds.
func until(t *testing.T, st *storage.Store, condition string) {
	t.Helper()
	eventually(t, condition, func() (holds bool) {
		if err := st.Pool().QueryRow(context.Background(), condition).Scan(&holds); err != nil {
			t.Fatal(err)
		}
		return holds
	})
}

// When a standby takes the place of a server, the callers have it as soon as it takes writes, and are
// refused until then.
func TestAStandbyTakesTheServersPlace(t *testing.T) {
	t.Parallel()
	first := pg.Start(t)
	url := first.Database(t)
	second := first.Standby(t)
	st := openURL(t, first.Either(second, nameOf(t, url)))
	addAgent(t, st, "agt_1", domain.Dollar)
	fill(t, st, 20)
	follows(t, first, second)
	before := st.Losses()
	if err := first.Stop("immediate"); err != nil {
		t.Fatal(err)
	}
	for name, use := range users(st) {
		if err := use(); !errors.Is(err, domain.ErrUnavailable) {
			t.Errorf("%s without a server that takes writes: %v", name, err)
		}
	}
	if err := second.Promote(); err != nil {
		t.Fatal(err)
	}
	for name, use := range users(st) {
		if err := use(); err != nil {
			t.Errorf("%s on the standby that was promoted: %v", name, err)
		}
	}
	if n := st.Losses() - before; n != 1 {
		t.Errorf("one loss counted as %d", n)
	}
	wantCounted(t, st, map[string]int64{"unit": 1})
	if entries := verify(t, st); entries != 1 {
		t.Errorf("%d entries, want that of the deposit", entries)
	}
}

// nameOf returns the name of the database of a URL.
func nameOf(t *testing.T, dsn string) string {
	t.Helper()
	c, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return c.ConnConfig.Database
}

// follows waits until a standby has what its server committed.
func follows(t *testing.T, first, second *pg.Server) {
	t.Helper()
	ask := func(s *pg.Server, query string, args ...any) (answer string) {
		pool, err := pgxpool.New(t.Context(), s.URL("postgres"))
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		if err := pool.QueryRow(t.Context(), query, args...).Scan(&answer); err != nil {
			t.Fatal(err)
		}
		return answer
	}
	written := ask(first, "SELECT pg_current_wal_lsn()::text")
	eventually(t, "the standby follows", func() bool {
		return ask(second, fmt.Sprintf("SELECT (COALESCE(pg_last_wal_replay_lsn(), '0/0') >= '%s'::pg_lsn)::text", written)) == "true"
	})
}
