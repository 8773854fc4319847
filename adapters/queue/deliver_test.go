package queue_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"agentproxy/adapters/queue"
	"agentproxy/adapters/storage"
	"agentproxy/ports"
)

// ran is one run of a job.
type ran struct {
	kind, id string
	due, at  time.Time
}

// courier is a queue on a store, with what it ran.
type courier struct {
	t     *testing.T
	store *storage.Store
	mu    sync.Mutex
	runs  []ran
	does  func(r ran, n int) error // n: of this id, from 1
}

func newCourier(t *testing.T, does func(ran, int) error) *courier {
	t.Helper()
	t.Parallel()
	w := &courier{t: t, does: does}
	var err error
	if w.store, err = storage.Open(t.Context(), storage.Config{Path: filepath.Join(t.TempDir(), "q.db")}); err != nil {
		t.Fatal(err)
	}
	if err := w.store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	plain := func(kind string) queue.Handler {
		return func(_ context.Context, id string) error { return w.run(kind, id, time.Time{}) }
	}
	q, err := queue.New(w.store.Writer(), queue.Handlers{DriveOrders: plain("drive-orders"),
		Deliver: func(_ context.Context, id string, due time.Time) error { return w.run("deliver", id, due) }}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	w.store.SetJobInserter(func(ctx context.Context, tx storage.JobTx, jobs []ports.Job, now time.Time) error {
		return q.Insert(ctx, tx.Conn, tx.Tx, jobs, now)
	})
	if err := q.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.store.Close() })
	t.Cleanup(func() {
		if err := q.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *courier) run(kind, id string, due time.Time) error {
	r := ran{kind, id, due, time.Now()}
	w.mu.Lock()
	w.runs = append(w.runs, r)
	n := 0
	for _, other := range w.runs {
		if other.id == id {
			n++
		}
	}
	w.mu.Unlock()
	return w.does(r, n)
}

func (w *courier) insert(jobs ...ports.Job) {
	w.t.Helper()
	err := w.store.Update(w.t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		for _, j := range jobs {
			if err := tx.Jobs().Insert(ctx, j, time.Now().UTC()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// until waits for n runs of an id, and returns them.
func (w *courier) until(id string, n int) (of []ran) {
	w.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		w.mu.Lock()
		of = nil
		for _, r := range w.runs {
			if r.id == id {
				of = append(of, r)
			}
		}
		w.mu.Unlock()
		if len(of) >= n {
			return of
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("%s ran %d times, want %d", id, len(of), n)
		}
	}
}

func due(id string, at time.Time) ports.Job {
	return ports.Job{Kind: "deliver", DeliveryID: id, At: at}
}

func TestADeliveryIsTriedWhenItIsDue(t *testing.T) {
	w := newCourier(t, func(ran, int) error { return nil })
	now := time.Now().UTC().Truncate(time.Microsecond)
	w.insert(due("dlv_now", now), due("dlv_then", now.Add(time.Second)))
	if r := w.until("dlv_now", 1)[0]; !r.due.Equal(now) {
		t.Errorf("snoozed %s, want %s", r.due, now)
	}
	if r := w.until("dlv_then", 1)[0]; r.at.Before(r.due) {
		t.Errorf("tried at %s, due at %s", r.at, r.due)
	}
}

// A search for lost jobs may insert one that waits already: it stays one. A later
// attempt is another job, also while the first is at work.
func TestAnAttemptHasOneJob(t *testing.T) {
	at := time.Now().UTC().Truncate(time.Microsecond)
	hold := make(chan struct{})
	w := newCourier(t, func(r ran, _ int) error {
		if r.due.Equal(at) {
			<-hold
		}
		return nil
	})
	w.insert(due("dlv_1", at), due("dlv_1", at))
	w.until("dlv_1", 1)
	w.insert(due("dlv_1", at), due("dlv_1", at.Add(time.Microsecond)))
	if r := w.until("dlv_1", 2)[1]; r.due.Equal(at) {
		t.Error("the same attempt has two jobs")
	}
	close(hold)
	w.insert(due("dlv_end", at))
	w.until("dlv_end", 1)
	if n := len(w.until("dlv_1", 2)); n != 2 {
		t.Errorf("there were %d runs, want 2", n)
	}
}

func TestAJobThatIsPutOffRunsThen(t *testing.T) {
	const pause = 700 * time.Millisecond
	w := newCourier(t, func(r ran, n int) error {
		switch {
		case r.id == "dlv_off" && n <= 10: // more often than a job may fail
			return ports.RequeueAfter(map[bool]time.Duration{true: pause, false: time.Millisecond}[n == 1])
		case r.id == "dlv_fails" && n == 1:
			return errors.New("on purpose")
		}
		return nil
	})
	w.insert(due("dlv_off", time.Now()), due("dlv_fails", time.Now()))
	runs := w.until("dlv_off", 11)
	if waited := runs[1].at.Sub(runs[0].at); waited < pause {
		t.Errorf("it ran again after %s", waited)
	}
	w.until("dlv_fails", 2)
}

// Receivers that do not answer take nothing from the other jobs.
func TestDeliveriesDelayNoOtherJob(t *testing.T) {
	hold := make(chan struct{})
	w := newCourier(t, func(r ran, _ int) error {
		if r.kind == "deliver" {
			<-hold
		}
		return nil
	})
	defer close(hold)
	var jobs []ports.Job
	for i := range 200 {
		jobs = append(jobs, due("dlv", time.Now().Add(time.Duration(i)*time.Microsecond)))
	}
	w.insert(jobs...)
	w.until("dlv", 100)
	w.insert(ports.Job{Kind: ports.DriveOrdersJob, SessionID: "sess_1"})
	w.until("sess_1", 1) // those before it are held until it has run
}
