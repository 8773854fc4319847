package storage_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentproxy/adapters/storage"
	"agentproxy/domain"
	"agentproxy/ports"
	"agentproxy/test/freeport"
	"agentproxy/test/link"
	"agentproxy/test/pg"
)

func TestALostAnswerToACommitIsReadBack(t *testing.T) {
	w, url := link.New(t, pg.Database(t), 0)
	st := openURL(t, url)
	addAgent(t, st, "agt_1", 0)
	for i := range 5 {
		var runs int
		w.CutAt(link.AfterCommit)
		err := st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
			runs++
			return count(fmt.Sprint("after ", i), succeed)(ctx, tx)
		})
		if err != nil || runs != 1 || w.Armed() {
			t.Errorf("%v after %d runs: it was committed", err, runs)
		}
		wantCounted(t, st, map[string]int64{fmt.Sprint("after ", i): 1})
	}
}

func TestACommitThatNeverArrivedIsRunAgain(t *testing.T) {
	w, url := link.New(t, pg.Database(t), 0)
	st := openURL(t, url)
	var runs int
	w.CutAt(link.BeforeCommit)
	err := st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		runs++
		return count("before", succeed)(ctx, tx)
	})
	if err != nil || runs != 2 {
		t.Errorf("%v after %d runs", err, runs)
	}
	wantCounted(t, st, map[string]int64{"before": 1})
}

func TestAnUnknownOutcomeIsUnavailable(t *testing.T) {
	t.Parallel()
	w, url := link.New(t, pg.Database(t), 0)
	st := openURL(t, url)
	w.CutAt(link.AfterCommit)
	var runs int
	err := st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		runs++
		w.Close() // the outcome cannot be looked up any more
		st.SetPatience(0)
		return count("unknown", succeed)(ctx, tx)
	})
	if !errors.Is(err, domain.ErrUnavailable) || runs != 1 {
		t.Errorf("%v after %d runs", err, runs)
	}
}

func TestALostConnectionIsUnavailableAndSoonReplaced(t *testing.T) {
	t.Parallel()
	w, url := link.New(t, pg.Database(t), 0)
	st := openURL(t, url)
	err := st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		if err := count("lost", succeed)(ctx, tx); err != nil {
			return err
		}
		w.Drop()
		return count("lost", succeed)(ctx, tx)
	})
	if !errors.Is(err, domain.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	var full, open sync.WaitGroup
	open.Add(10) // as many connections as that are open in the pool
	for range 10 {
		full.Go(func() {
			view(t, st, func(context.Context, ports.Tx) error { open.Done(); open.Wait(); return nil })
		})
	}
	full.Wait()
	for range 30 { // that they are broken is no excuse
		w.Drop()
		if err := st.Update(t.Context(), ports.ReadSet{}, count("next", succeed)); err != nil {
			t.Errorf("the next unit: %v", err)
		}
		w.Drop()
		view(t, st, func(ctx context.Context, tx ports.Tx) error { return nil })
	}
	wantCounted(t, st, map[string]int64{"lost": 0, "next": 30})
}

// The server is restarted under load: meanwhile callers get ErrUnavailable, then all is well for each, and
// nothing was done twice.
func TestARestartUnderLoad(t *testing.T) {
	t.Parallel()
	server := pg.Start(t)
	st := openURL(t, server.Database(t))
	const callers = 8
	for i := range callers {
		addAgent(t, st, fmt.Sprint("agt_", i), 1_000_000*domain.Dollar)
	}
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	var up sync.RWMutex // held while the server is away
	var done [callers]atomic.Int64
	for i := range callers {
		wg.Go(func() {
			for n := int64(0); ctx.Err() == nil; {
				err := buyOnce(st, fmt.Sprint("agt_", i), int64(i)*1_000_000+n)
				switch {
				case err == nil:
					n = done[i].Add(1)
				case errors.Is(err, domain.ErrUnavailable): // the same purchase again, until its outcome is known
					func() { up.RLock(); defer up.RUnlock() }() // it waits for the server
				default:
					t.Errorf("a failure that is not retried: %v", err)
					return
				}
			}
		})
	}
	eachBuys := func(when string) {
		t.Helper()
		for i := range callers {
			before := done[i].Load()
			eventually(t, fmt.Sprintf("caller %d buys %s", i, when), func() bool { return done[i].Load() > before+5 })
		}
	}
	for _, mode := range []string{"fast", "immediate"} {
		eachBuys("before")
		up.Lock()
		if err := server.Stop(mode); err != nil {
			t.Fatal(err)
		}
		if err := st.Update(ctx, ports.ReadSet{}, count("away", succeed)); !errors.Is(err, domain.ErrUnavailable) {
			t.Errorf("%s: without the server: %v", mode, err)
		}
		if err := server.Begin(); err != nil {
			t.Fatal(err)
		}
		up.Unlock()
		eachBuys("after " + mode)
	}
	stop()
	wg.Wait()
	want := callers // deposits
	for i := range callers {
		want += int(done[i].Load())
	}
	if entries := verify(t, st); entries < want || entries > want+callers {
		t.Errorf("%d entries for %d purchases that were answered and deposits", entries, want)
	}
}

// buyOnce buys a session under a reference of its own, unless that was done.
func buyOnce(st *storage.Store, agent string, n int64) error {
	return st.Update(context.Background(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		key := fmt.Sprint("once ", n)
		_, found, err := tx.Idempotency().Find(ctx, agent, "/v1/sessions", key, time.Time{})
		if err != nil || found {
			return err
		}
		if err := purchase(ctx, tx, agent, n); err != nil {
			return err
		}
		return tx.Idempotency().Keep(ctx, ports.Call{AgentID: agent, Path: "/v1/sessions", Key: key, CreatedAt: now})
	})
}

// A process is notified of the changes of another at once, also after the server was
// gone, and nothing that was rolled back.
func TestAnotherProcessIsWoken(t *testing.T) {
	url := pg.Database(t)
	w, cut := link.New(t, url, 0)
	here, there := openURL(t, cut), openURL(t, url)
	addAgent(t, there, "agt_1", 0)
	put := func(end error) {
		t.Helper()
		err := there.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
			if err := tx.Sessions().Insert(ctx, dynamicSession("agt_1", fmt.Sprint("sess_", time.Now().UnixNano()))); err != nil {
				return err
			}
			a, err := tx.Agents().Get(ctx, "agt_1")
			if err != nil {
				return err
			}
			return errors.Join(tx.Agents().Put(ctx, a), end)
		})
		if !errors.Is(err, end) {
			t.Fatal(err)
		}
	}
	heard := make(chan struct{}, 100)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { here.Listen(ctx, func() { heard <- struct{}{} }) })
	wait := func(what string) {
		t.Helper()
		select {
		case <-heard:
		case <-time.After(5 * time.Minute):
			t.Fatalf("%s: no notification", what)
		}
	}
	wait("the beginning")
	put(nil)
	wait("a change")
	put(errUnit)
	for range 10 { // what the server sent before its answers has come
		view(t, here, addressesOf)
	}
	if len(heard) > 0 {
		t.Error("a change that was rolled back was notified")
	}
	w.Drop()
	wait("after the connection was lost")
	put(nil)
	wait("a change after that")
	stop()
	wg.Wait()
}

func TestAServerThatCannotBeReachedIsOneLine(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	closed := freeport.Address(t)
	here, err := url.Parse(pg.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	unknown := *here
	unknown.Path = "/nothing"
	for name, dsn := range map[string]string{
		"a closed port":   "postgres://eve:hunter2@" + closed + "/db",
		"a silent server": "postgres://eve:hunter2@" + silent.Addr().String() + "/db?connect_timeout=1",
		"no such host":    "postgres://eve:hunter2@nowhere.invalid/db",
		"no URL":          "postgres://eve:hunter2@host:port/db",
		"no database":     unknown.String(),
	} {
		t.Run(name, func(t *testing.T) {
			st, err := storage.Open(t.Context(), storage.Config{URL: storage.URL(dsn)})
			if err == nil {
				_ = st.Close()
				t.Fatal("it was opened")
			}
			text := err.Error()
			if strings.Contains(text, "hunter2") || strings.Contains(text, "eve") || strings.Contains(text, "\n") {
				t.Errorf("the error is %q", text)
			}
			t.Log(text)
		})
	}
}
