package storage_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"agentproxy/adapters/storage"
	"agentproxy/domain"
	"agentproxy/ports"
	"agentproxy/test/pg"
)

// foldersOf counts by the folder of its server what each of n connections of a pool is to.
func foldersOf(t *testing.T, st *storage.Store, n int) map[string]int {
	t.Helper()
	fill(t, st, n)
	found := map[string]int{}
	for range n {
		conn, err := st.Pool().Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Release()
		var folder string
		if err := conn.QueryRow(t.Context(), "SHOW data_directory").Scan(&folder); err != nil {
			t.Fatal(err)
		}
		found[folder]++
	}
	return found
}

// A host that hangs closes no connection. Its server is given up all the same, and the standby that was promoted
// is found without waiting for it. When it comes back as it was, nothing is written there.
func TestAServerThatHangsIsGivenUp(t *testing.T) {
	t.Parallel()
	first := pg.Start(t)
	url := first.Database(t)
	second := first.Standby(t)
	either := pg.With(first.Either(second, nameOf(t, url)), "connect_timeout", "2")
	st := openURL(t, either)
	addAgent(t, st, "agt_1", domain.Dollar)
	fill(t, st, 20)
	follows(t, first, second)
	listening := make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(t.Context())
	var listener sync.WaitGroup
	listener.Go(func() {
		st.Listen(ctx, func() {
			select {
			case listening <- struct{}{}:
			default:
			}
		})
	})
	defer listener.Wait()
	defer cancel()
	<-listening

	first.Freeze(t)
	var callers sync.WaitGroup
	for name, use := range users(st) {
		callers.Go(func() {
			if err := use(); err != nil && !errors.Is(err, domain.ErrUnavailable) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	if err := second.Promote(); err != nil {
		t.Fatal(err)
	}
	callers.Wait() // no unit may take less than two hours here
	for name, use := range users(st) {
		eventually(t, name+" works on the standby that was promoted", func() bool { return use() == nil })
	}
	if n := st.Promotions(); n != 1 {
		t.Errorf("%d promotions", n)
	}

	first.Thaw(t)
	later := openURL(t, either) // it has seen neither server, and first takes writes
	for what, st := range map[string]*storage.Store{"a store that saw it promoted": st, "a new store": later} {
		found := foldersOf(t, st, 20)
		for folder := range found {
			if len(found) != 1 || !strings.HasPrefix(folder, second.Folder()) {
				t.Errorf("%s is connected to %v, want %s alone", what, found, second.Folder())
			}
		}
	}
}

// A commit that waits for a standby until its unit ends is on one disk alone: it is not reported as done.
func TestACommitWithoutItsStandbyIsNotDone(t *testing.T) {
	t.Parallel()
	first := pg.Start(t)
	url := first.Database(t)
	second := first.Standby(t)
	st := openURL(t, url)
	addAgent(t, st, "agt_1", domain.Dollar)
	follows(t, first, second)
	first.Execute(t, "ALTER SYSTEM SET synchronous_standby_names = '*'")
	first.Execute(t, "SELECT pg_reload_conf()")
	until(t, st, "SELECT COUNT(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'")
	second.Freeze(t)
	st.BoundUnits(5 * time.Second)
	var callers sync.WaitGroup
	for name, use := range map[string]func() error{
		"a unit":            func() error { return st.Update(context.Background(), ports.ReadSet{}, count("unit", succeed)) },
		"a unit of a batch": func() error { return reportAhead(context.Background(), st, "agt_1") },
	} {
		callers.Go(func() {
			if err := use(); !errors.Is(err, domain.ErrUnavailable) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	callers.Wait()
	second.Thaw(t)
	st.BoundUnits(time.Hour)
	update(t, st, count("next", succeed))
}

// A standby that does not get what is committed lacks it once it is promoted. That is noticed; that it lacks
// nothing is too.
func TestAFailoverThatLosesCommitsIsNoticed(t *testing.T) {
	t.Parallel()
	for what, lost := range map[string]int64{"all is there": 0, "commits are lost": 1, "nothing was written that is lost": 0} {
		cut := what != "all is there"
		first := pg.Start(t)
		url := first.Database(t)
		second := first.Standby(t)
		st := openURL(t, first.Either(second, nameOf(t, url)))
		addAgent(t, st, "agt_1", domain.Dollar)
		follows(t, first, second)
		if cut {
			second.Execute(t, "ALTER SYSTEM SET primary_conninfo = ''")
			second.Execute(t, "SELECT pg_reload_conf()")
			until(t, st, "SELECT COUNT(*) = 0 FROM pg_stat_replication")
			first.Execute(t, "CREATE TABLE others()")
		}
		reads := func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Agents().Get(ctx, "agt_1")
			return err
		}
		for name, use := range map[string]func() error{
			"a unit":            func() error { return st.Update(context.Background(), ports.ReadSet{}, count("unit", succeed)) },
			"a unit of a batch": func() error { return reportAhead(context.Background(), st, "agt_1") },
			"a unit that reads": func() error { return st.Update(context.Background(), ports.ReadSet{}, reads) },
			"a unit of a batch that reads": func() error {
				return st.Update(context.Background(), ports.ReadSet{Agent: "agt_1"}, reads)
			},
		} {
			if cut && lost == 0 && !strings.HasSuffix(name, "reads") {
				continue
			}
			if err := use(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if !cut {
			follows(t, first, second)
		}
		if err := errors.Join(first.Stop("immediate"), second.Promote()); err != nil {
			t.Fatal(err)
		}
		eventually(t, "a unit works on the standby that was promoted", func() bool {
			return st.Update(t.Context(), ports.ReadSet{}, count("next", succeed)) == nil
		})
		if n := st.LossyPromotions(); n != lost || st.Promotions() != 1 {
			t.Errorf("%s: %d of %d promotions were lossy, want %d", what, n, st.Promotions(), lost)
		}
	}
}
