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
		err := st.Update(t.Context(), func(ctx context.Context, tx ports.Tx) error {
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
	err := st.Update(t.Context(), func(ctx context.Context, tx ports.Tx) error {
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
	err := st.Update(t.Context(), func(ctx context.Context, tx ports.Tx) error {
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
	err := st.Update(t.Context(), func(ctx context.Context, tx ports.Tx) error {
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
		if err := st.Update(t.Context(), count("next", succeed)); err != nil {
			t.Errorf("the next unit: %v", err)
		}
		w.Drop()
		view(t, st, func(ctx context.Context, tx ports.Tx) error { return nil })
	}
	wantCounted(t, st, map[string]int64{"lost": 0, "next": 30})
}

// The server is restarted under load: meanwhile every caller gets ErrUnavailable,
// soon after all is well, and nothing was done twice.
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
	var done, unavailable atomic.Int64
	var last [callers]atomic.Int64 // when each last succeeded
	for i := range callers {
		wg.Go(func() {
			for n := int64(0); ctx.Err() == nil; n++ {
				for ctx.Err() == nil { // one purchase under one reference, until it is known
					err := st.Update(context.Background(), func(ctx context.Context, tx ports.Tx) error {
						key := fmt.Sprint(i, "-", n)
						_, found, err := tx.Idempotency().Find(ctx, fmt.Sprint("agt_", i), "/v1/sessions", key, time.Time{})
						if err != nil || found {
							return err
						}
						if err := purchase(ctx, tx, fmt.Sprint("agt_", i), int64(i)*1_000_000+n); err != nil {
							return err
						}
						return tx.Idempotency().Put(ctx, ports.Call{AgentID: fmt.Sprint("agt_", i), Path: "/v1/sessions", Key: key, CreatedAt: now})
					})
					if err == nil {
						done.Add(1)
						last[i].Store(time.Now().UnixNano())
						break
					}
					if !errors.Is(err, domain.ErrUnavailable) {
						t.Errorf("a failure that is not retried: %v", err)
						return
					}
					unavailable.Add(1)
					time.Sleep(50 * time.Millisecond)
				}
			}
		})
	}
	for _, mode := range []string{"fast", "immediate"} {
		rises(t, &done, 10*callers)
		if err := server.Stop(mode); err != nil {
			t.Fatal(err)
		}
		rises(t, &unavailable, callers)
		if err := server.Begin(); err != nil {
			t.Fatal(err)
		}
		back := time.Now()
		for i := range callers {
			for last[i].Load() < back.UnixNano() {
				// Promised are 5 s, of a machine that does nothing else.
				if time.Since(back) > 20*time.Second {
					t.Fatalf("%s: caller %d is not back after 20 s", mode, i)
				}
				time.Sleep(10 * time.Millisecond)
			}
		}
		t.Logf("%s: all are back after %v", mode, time.Since(back))
	}
	stop()
	wg.Wait()
	if unavailable.Load() == 0 {
		t.Error("the loss was not noticed")
	}
	if entries, want := verify(t, st), int(done.Load())+callers; entries < want || entries > want+callers {
		t.Errorf("%d entries for %d purchases that were answered and %d deposits", entries, done.Load(), callers)
	}
}

// rises waits until a count is by n higher than it was.
func rises(t *testing.T, count *atomic.Int64, n int64) {
	t.Helper()
	end := time.Now().Add(time.Minute)
	for from := count.Load(); count.Load() < from+n; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it rose by %d, want %d", count.Load()-from, n)
		}
	}
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
		err := there.Update(t.Context(), func(ctx context.Context, tx ports.Tx) error {
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
	heard := make(chan time.Time, 100)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { here.Listen(ctx, func() { heard <- time.Now() }) })
	wait := func(what string) {
		t.Helper()
		select {
		case <-heard:
		case <-time.After(time.Minute):
			t.Fatalf("%s: no notification", what)
		}
	}
	wait("the beginning")
	began := time.Now()
	put(nil)
	wait("a change")
	if took := time.Since(began); took > time.Second {
		t.Errorf("the notification came after %v", took)
	}
	put(errUnit)
	select {
	case <-heard:
		t.Error("a change that was rolled back was notified")
	case <-time.After(200 * time.Millisecond):
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
		"a silent server": "postgres://eve:hunter2@" + silent.Addr().String() + "/db",
		"no such host":    "postgres://eve:hunter2@nowhere.invalid/db",
		"no URL":          "postgres://eve:hunter2@host:port/db",
		"no database":     unknown.String(),
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			st, err := storage.Open(t.Context(), storage.Config{URL: storage.URL(dsn)})
			if err == nil {
				_ = st.Close()
				t.Fatal("it was opened")
			}
			text := err.Error()
			if strings.Contains(text, "hunter2") || strings.Contains(text, "eve") || strings.Contains(text, "\n") {
				t.Errorf("the error is %q", text)
			}
			if took := time.Since(began); took > 12*time.Second {
				t.Errorf("it took %v", took)
			}
			t.Log(text)
		})
	}
}
