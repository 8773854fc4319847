package contract

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"agentproxy/domain/billing"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
	"agentproxy/domain/worker"
	"agentproxy/ports"
)

var archiveClaims = []claim{
	{"an archived session reads as it did before", archiveReads},
	{"what is archived by a unit that fails is not archived", archiveFails},
	{"an archived session is archived once", archiveOnce},
	{"a write to an archived worker finds it, and loses no other", archiveWritten},
	{"an archived session takes no more workers", archiveClosed},
	{"only sessions that ended and hold nothing are due, page by page", archiveDue},
}

// endedWithWorkers stores a session that ended, with workers that differ in everything that is kept of them.
func endedWithWorkers(t *testing.T, st ports.Store, id string) {
	t.Helper()
	addSessions(t, st, endedAt(dynamicSession("agt_1", id), storeNow))
	var bad health.State
	bad.Observe(health.Event{Type: health.Block, At: storeNow})
	for _, name := range []string{"z", "a", "M_1"} {
		w := storedWorker(id, name)
		if name != "a" {
			w.Settings = worker.Settings{Location: session.Location{Country: "US", City: "New-York"}, TTL: 90 * time.Second,
				Strict: true, Unique: true, MaxBytes: 1 << 40}
			w.Exit, w.Turn, w.Lost, w.Changeable, w.Rotations = session.Exit{IP: netip.MustParseAddr("2001:db8::7")}, 3, true, true, 2
		}
		w.ID = insertWorker(t, st, w)
		update(t, st, func(ctx context.Context, tx ports.Tx) error {
			if name == "a" {
				return nil
			}
			return errors.Join(tx.Workers().Count(ctx, w.ID, worker.Usage{Up: w.ID, Down: 2, Connections: 3}, storeNow.Add(time.Hour)),
				tx.Workers().PutHealth(ctx, w.ID, bad, worker.Failure{At: storeNow, Code: "TARGET_TIMEOUT"}))
		})
	}
}

func endedAt(s session.Session, at time.Time) session.Session {
	s.Status, s.Reason, s.EndedAt = session.Terminated, session.AgentRequest, at
	s.Money.Held = billing.Funds{}
	return s
}

// workerAnswers is everything that is read of the workers of a session.
type workerAnswers struct {
	Of        []worker.Worker
	Named     map[string]worker.Worker
	Health    []ports.WorkerHealth
	Some      []ports.WorkerHealth
	HealthOf  map[string][]ports.WorkerHealth
	Shared    map[string][]ports.WorkerHealth // read ahead
	Summaries []ports.SessionSummary
}

func readWorkers(t *testing.T, st ports.Store, id string) (got workerAnswers) {
	t.Helper()
	read := func(ctx context.Context, tx ports.Tx) (err error) {
		got.Shared, err = tx.Workers().HealthOf(ctx, []string{id})
		return err
	}
	if err := st.View(t.Context(), ports.ReadSet{Agent: "agt_1", Health: []string{id}}, read); err != nil {
		t.Fatal(err)
	}
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		var errs [6]error
		got.Of, errs[0] = tx.Workers().Of(ctx, id)
		got.Named = map[string]worker.Worker{}
		for _, w := range got.Of {
			got.Named[w.Name], errs[1] = tx.Workers().Get(ctx, id, w.Name)
		}
		if _, err := tx.Workers().Get(ctx, id, "missing"); !errors.Is(err, worker.ErrNotFound) {
			t.Errorf("a worker that is not there: %v", err)
		}
		got.Health, errs[2] = tx.Workers().Health(ctx, id)
		got.Some, errs[3] = tx.Workers().Health(ctx, id, "z", "missing", "a")
		got.HealthOf, errs[4] = tx.Workers().HealthOf(ctx, []string{id, "sess_live"})
		got.Summaries, errs[5] = tx.Health().Summaries(ctx, "agt_1", 10)
		return errors.Join(errs[:]...)
	})
	return got
}

// sameWorkers fails unless the answers are equal field by field.
func sameWorkers(t *testing.T, what string, want, got workerAnswers) {
	t.Helper()
	equalStates := cmp.Comparer(func(a, b health.State) bool { return a == b })
	equalSummaries := cmp.Comparer(func(a, b health.Summary) bool { return a == b })
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{}), equalStates, equalSummaries); diff != "" {
		t.Errorf("%s:\n%s", what, diff)
	}
}

func archive(t *testing.T, st ports.Store, id string) {
	t.Helper()
	update(t, st, func(ctx context.Context, tx ports.Tx) error { return archiveLocked(ctx, tx, id) })
}

func archiveLocked(ctx context.Context, tx ports.Tx, id string) error {
	if err := tx.Sessions().Lock(ctx, []string{id}); err != nil {
		return err
	}
	return tx.Workers().Archive(ctx, id, storeNow)
}

// isArchived reports whether a session is: of its workers nothing is stored by their numbers.
func isArchived(t *testing.T, st ports.Store, list []worker.Worker) bool {
	t.Helper()
	var stored map[int64]int64
	view(t, st, func(ctx context.Context, tx ports.Tx) (err error) {
		var ids []int64
		for _, w := range list {
			ids = append(ids, w.ID)
		}
		stored, err = tx.Workers().Bytes(ctx, ids)
		return err
	})
	if len(stored) > 0 && len(stored) < len(list) {
		t.Errorf("of %d workers %d are stored by themselves", len(list), len(stored))
	}
	return len(stored) == 0
}

func archiveReads(t *testing.T, st ports.Store) {
	endedWithWorkers(t, st, "sess_1")
	addSessions(t, st, dynamicSession("agt_1", "sess_live"), endedAt(dynamicSession("agt_1", "sess_plain"), storeNow))
	insertWorker(t, st, storedWorker("sess_live", "a"))
	want, live, plain := readWorkers(t, st, "sess_1"), readWorkers(t, st, "sess_live"), readWorkers(t, st, "sess_plain")
	if len(want.Of) != 3 || len(want.Named) != 3 || len(want.Health) != 3 || len(want.Some) != 2 ||
		len(want.HealthOf["sess_1"]) != 3 || len(want.Shared["sess_1"]) != 3 || len(want.Summaries) != 3 {
		t.Fatalf("%+v", want)
	}
	archive(t, st, "sess_1")
	archive(t, st, "sess_plain")
	if !isArchived(t, st, want.Of) {
		t.Error("it is not archived")
	}
	sameWorkers(t, "the archived session", want, readWorkers(t, st, "sess_1"))
	sameWorkers(t, "the live one", live, readWorkers(t, st, "sess_live"))
	sameWorkers(t, "one without workers", plain, readWorkers(t, st, "sess_plain"))
}

func archiveFails(t *testing.T, st ports.Store) {
	endedWithWorkers(t, st, "sess_1")
	want := readWorkers(t, st, "sess_1")
	failed := errors.New("killed")
	err := st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		return errors.Join(archiveLocked(ctx, tx, "sess_1"), failed)
	})
	if !errors.Is(err, failed) {
		t.Fatal(err)
	}
	if isArchived(t, st, want.Of) {
		t.Error("it is archived")
	}
	sameWorkers(t, "afterwards", want, readWorkers(t, st, "sess_1"))
}

func archiveOnce(t *testing.T, st ports.Store) {
	endedWithWorkers(t, st, "sess_1")
	want := readWorkers(t, st, "sess_1")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			err := st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error { return archiveLocked(ctx, tx, "sess_1") })
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if !isArchived(t, st, want.Of) {
		t.Error("it is not archived")
	}
	sameWorkers(t, "archived by eight", want, readWorkers(t, st, "sess_1"))
}

func archiveWritten(t *testing.T, st ports.Store) {
	for i, write := range []struct {
		what  string
		do    func(ctx context.Context, tx ports.Tx, w worker.Worker) error
		apply func(*worker.Worker, *health.State)
	}{
		{"usage", func(ctx context.Context, tx ports.Tx, w worker.Worker) error {
			return tx.Workers().Count(ctx, w.ID, worker.Usage{Up: 5}, storeNow.Add(time.Minute))
		}, func(w *worker.Worker, _ *health.State) {
			w.Usage.Up, w.LastUsedAt = w.Usage.Up+5, storeNow.Add(time.Minute)
		}},
		{"settings", func(ctx context.Context, tx ports.Tx, w worker.Worker) error {
			w.Rotations = 9
			return tx.Workers().Put(ctx, w)
		}, func(w *worker.Worker, _ *health.State) { w.Rotations = 9 }},
		{"health", func(ctx context.Context, tx ports.Tx, w worker.Worker) error {
			var seen health.State
			seen.Observe(health.Event{Type: health.Timeout, At: storeNow})
			return tx.Workers().PutHealth(ctx, w.ID, seen, worker.Failure{At: storeNow, Code: "LATE"})
		}, func(w *worker.Worker, h *health.State) {
			*h = health.State{}
			h.Observe(health.Event{Type: health.Timeout, At: storeNow})
			w.LastError = worker.Failure{At: storeNow, Code: "LATE"}
		}},
		{"removal", func(ctx context.Context, tx ports.Tx, w worker.Worker) error { return tx.Workers().Delete(ctx, w.ID) }, nil},
	} {
		id := fmt.Sprint("sess_", i)
		endedWithWorkers(t, st, id)
		before := readWorkers(t, st, id)
		archive(t, st, id)
		update(t, st, func(ctx context.Context, tx ports.Tx) error {
			if err := tx.Sessions().Lock(ctx, []string{id}); err != nil {
				return err
			}
			w, err := tx.Workers().Get(ctx, id, "a")
			return errors.Join(err, write.do(ctx, tx, w))
		})
		wantWorkers, wantHealth := before.Of, before.Health
		if write.apply == nil {
			wantWorkers, wantHealth = without(wantWorkers, func(w worker.Worker) bool { return w.Name == "a" }),
				without(wantHealth, func(h ports.WorkerHealth) bool { return h.Name == "a" })
		} else {
			write.apply(&wantWorkers[1], &wantHealth[1].State)
		}
		for range 2 { // as it is written, and archived again
			got := readWorkers(t, st, id)
			sameWorkers(t, write.what, workerAnswers{Of: wantWorkers, Health: wantHealth}, workerAnswers{Of: got.Of, Health: got.Health})
			archive(t, st, id)
		}
		if !isArchived(t, st, wantWorkers) {
			t.Errorf("%s: it is not archived again", write.what)
		}
	}
}

// without returns the values that drop does not report.
func without[T any](list []T, drop func(T) bool) (kept []T) {
	for _, v := range list {
		if !drop(v) {
			kept = append(kept, v)
		}
	}
	return kept
}

func archiveClosed(t *testing.T, st ports.Store) {
	endedWithWorkers(t, st, "sess_1")
	archive(t, st, "sess_1")
	err := st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		_, err := tx.Workers().Insert(ctx, storedWorker("sess_1", "late"))
		return err
	})
	if !errors.Is(err, session.ErrNotFound) {
		t.Errorf("a worker is added to an archived session: %v", err)
	}
}

func archiveDue(t *testing.T, st ports.Store) {
	const days = 24 * time.Hour
	held := endedAt(dynamicSession("agt_1", "sess_held"), storeNow)
	held.Money.Held.Own = 1
	for _, s := range []session.Session{endedAt(dynamicSession("agt_1", "sess_1"), storeNow), held,
		endedAt(dynamicSession("agt_1", "sess_settle"), storeNow), dynamicSession("agt_1", "sess_live"),
		endedAt(dynamicSession("agt_1", "sess_young"), storeNow.Add(time.Microsecond)), endedAt(dynamicSession("agt_1", "sess_2"), storeNow)} {
		addSessions(t, st, s)
		insertWorker(t, st, storedWorker(s.ID, "a"))
		insertWorker(t, st, storedWorker(s.ID, "b"))
	}
	addSessions(t, st, endedAt(dynamicSession("agt_1", "sess_plain"), storeNow))
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		return tx.Traffic().SetSettleAt(ctx, "sess_settle", storeNow)
	})
	// The database lets programs archive a week after it was made.
	now := time.Now().Add(8 * days)
	look := func(now, endedBy time.Time, after int64, limit int) (due []string, last int64) {
		t.Helper()
		view(t, st, func(ctx context.Context, tx ports.Tx) (err error) {
			due, last, err = tx.Workers().ArchiveDue(ctx, now, endedBy, after, limit)
			return err
		})
		return due, last
	}
	want := func(what string, due, want []string) {
		t.Helper()
		if diff := cmp.Diff(want, due, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s:\n%s", what, diff)
		}
	}
	due, last := look(now, storeNow, 0, 100)
	want("all", due, []string{"sess_1", "sess_2"})
	if last != 0 {
		t.Errorf("behind the end the place is %d", last)
	}
	due, _ = look(now, storeNow.Add(-time.Microsecond), 0, 100)
	want("before the time", due, nil)
	due, _ = look(time.Now().Add(6*days), storeNow, 0, 100)
	want("before the database lets it", due, nil)
	var paged []string
	pages := 0
	for last = -1; last != 0 && pages < 10; pages++ {
		due, last = look(now, storeNow, max(last, 0), 2)
		paged = append(paged, due...)
	}
	want("page by page", paged, []string{"sess_1", "sess_2"})
	if pages != 4 {
		t.Errorf("%d pages of two for six sessions", pages)
	}
	archive(t, st, "sess_1")
	due, _ = look(now, storeNow, 0, 100)
	want("without what is archived", due, []string{"sess_2"})
}
