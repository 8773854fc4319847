package queue_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentproxy/adapters/queue"
	"agentproxy/adapters/storage"
	"agentproxy/ports"
	"agentproxy/test/pg"
)

// world is a database and a log.
type world struct {
	*testing.T
	st  *storage.Store
	log bytes.Buffer
	mu  sync.Mutex
}

func (w *world) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.Write(p)
}

func (w *world) logged() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.String()
}

// onEachStore runs a test on every database.
func onEachStore(t *testing.T, test func(w *world)) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		test(newWorld(t, storage.Config{Path: filepath.Join(t.TempDir(), "q.db"), Readers: 2}))
	})
	t.Run("postgres", func(t *testing.T) {
		test(newWorld(t, storage.Config{URL: storage.URL(pg.Database(t)), MaxConns: 8}))
	})
}

func newWorld(t *testing.T, c storage.Config) *world {
	t.Parallel()
	st, err := storage.Open(t.Context(), c)
	ok(t, err)
	t.Cleanup(func() { _ = st.Close() })
	ok(t, st.Migrate(t.Context()))
	return &world{T: t, st: st}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// queue makes one; begun starts it too, until the test ends.
func (w *world) queue(h queue.Handlers) *queue.Queue {
	w.Helper()
	log := slog.New(slog.NewTextHandler(w, nil))
	var q *queue.Queue
	var err error
	if pool := w.st.Pool(); pool != nil {
		q, err = queue.NewPostgres(pool, h, log)
	} else {
		q, err = queue.New(w.st.Writer(), h, log)
	}
	ok(w.T, err)
	w.st.SetJobInserter(func(ctx context.Context, tx storage.JobTx, jobs []ports.Job, now time.Time) error {
		return q.Insert(ctx, tx.Conn, tx.Tx, jobs, now)
	})
	return q
}

func (w *world) begun(h queue.Handlers) *queue.Queue {
	w.Helper()
	q := w.queue(h)
	ok(w.T, q.Start(w.Context()))
	w.Cleanup(func() { ok(w.T, q.Stop(context.Background())) })
	return q
}

func (w *world) insert(jobs ...ports.Job) {
	w.Helper()
	ok(w.T, w.st.Update(w.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		for _, j := range jobs {
			if err := tx.Jobs().Insert(ctx, j, time.Now()); err != nil {
				return err
			}
		}
		return nil
	}))
}

// operate runs Retry or Discard in a unit of work.
func (w *world) operate(do func(context.Context, *sql.Conn, *sql.Tx, int64) (queue.Job, error), id int64) (j queue.Job, err error) {
	err = w.st.Update(w.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		unit, err := storage.JobTxOf(tx)
		if err != nil {
			return err
		}
		j, err = do(ctx, unit.Conn, unit.Tx, id)
		return err
	})
	return j, err
}

func (w *world) exec(statement string) {
	w.Helper()
	_, err := w.st.Writer().ExecContext(w.Context(), statement)
	ok(w.T, err)
}

// poison is a job with arguments of the wrong type, in its last attempt.
const poison = `INSERT INTO river_job (kind, args, max_attempts) VALUES ('drive-orders', '{"session_id":7}', 1)`

func (w *world) list(q *queue.Queue, f queue.Filter) []queue.Job {
	w.Helper()
	f.Limit = 1000
	list, err := q.List(w.Context(), f)
	ok(w.T, err)
	return list
}

// until waits for a state.
func (w *world) until(what string, ready func() bool) {
	w.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !ready(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.Fatalf("%s: not yet; logged:\n%s", what, w.logged())
		}
	}
}

func TestPoisonedJobsDelayNoOther(t *testing.T) {
	onEachStore(t, func(w *world) {
		var done, failed atomic.Int32
		q := w.begun(queue.Handlers{
			DriveOrders: func(_ context.Context, id string) error {
				if strings.HasPrefix(id, "good_") {
					done.Add(1)
					return nil
				}
				failed.Add(1)
				if strings.HasSuffix(id, "0") {
					panic("the password is hunter2")
				}
				return errors.New("never")
			},
		})
		var jobs []ports.Job
		for n := range 20 {
			jobs = append(jobs, ports.Job{Kind: ports.DriveOrdersJob, SessionID: fmt.Sprint("sess_", n)})
		}
		for n := range 50 {
			jobs = append(jobs, ports.Job{Kind: ports.DriveOrdersJob, SessionID: fmt.Sprint("good_", n)})
		}
		w.insert(jobs...)
		w.until("the good ones are done", func() bool { return done.Load() == 50 })
		w.until("the poisoned ones are tried again", func() bool { return failed.Load() >= 40 })
		w.until("a panic is a failure", func() bool {
			for _, j := range w.list(q, queue.Filter{Kind: ports.DriveOrdersJob}) {
				if j.Subject == "sess_10" && strings.Contains(j.Error, "panicked") {
					return true
				}
			}
			return false
		})
		if text := w.logged(); !strings.Contains(text, "kind=drive-orders") || !strings.Contains(text, "id=") ||
			strings.Contains(text, "hunter2") {
			w.Errorf("logged:\n%s", text)
		}
		if done.Load() != 50 {
			w.Errorf("%d good ones ran", done.Load())
		}
	})
}

func TestAParkedJobIsKeptAndReplayed(t *testing.T) {
	onEachStore(t, func(w *world) {
		var runs atomic.Int32
		q := w.begun(queue.Handlers{DriveOrders: func(_ context.Context, id string) error {
			if runs.Add(1); id != "sess_7" {
				return errors.New("no such session")
			}
			return nil
		}})
		w.exec(poison)
		parked := func() []queue.Job { return w.list(q, queue.Filter{State: "discarded", Kind: ports.DriveOrdersJob}) }
		w.until("it is parked", func() bool { return len(parked()) == 1 })
		j := parked()[0]
		if j.Error == "" || j.Attempt != 1 || !strings.Contains(w.logged(), "job parked") {
			w.Errorf("it is %+v; logged:\n%s", j, w.logged())
		}
		if s, err := q.Status(w.Context()); err != nil || s.Parked != 1 {
			w.Errorf("the status is %+v, %v", s, err)
		}
		_, err := w.operate(q.Retry, j.ID)
		ok(w.T, err)
		w.until("it failed once more", func() bool { p := parked(); return len(p) == 1 && p[0].Attempt == 2 })
		w.exec(`UPDATE river_job SET args = '{"session_id":"sess_7"}' WHERE kind = 'drive-orders'`)
		_, err = w.operate(q.Retry, j.ID)
		ok(w.T, err)
		w.until("it is done", func() bool { return len(w.list(q, queue.Filter{State: "completed"})) == 1 })
		if runs.Load() != 1 {
			w.Errorf("the handler ran %d times", runs.Load())
		}
		w.exec(poison)
		w.until("another is parked", func() bool { return len(parked()) == 1 })
		id := parked()[0].ID
		_, err = w.operate(q.Discard, id)
		ok(w.T, err)
		if _, err := w.operate(q.Discard, id); !errors.Is(err, queue.ErrNoJob) {
			w.Errorf("discarding it twice: %v", err)
		}
		if _, err := w.operate(q.Retry, id); !errors.Is(err, queue.ErrNoJob) {
			w.Errorf("replaying what is gone: %v", err)
		}
	})
}

func TestAJobAtWorkIsLeftAlone(t *testing.T) {
	onEachStore(t, func(w *world) {
		at, finish := make(chan struct{}), make(chan struct{})
		q := w.begun(queue.Handlers{DriveOrders: func(context.Context, string) error {
			close(at)
			<-finish
			return nil
		}})
		w.insert(ports.Job{Kind: ports.DriveOrdersJob, SessionID: "sess_1"})
		<-at
		id := w.list(q, queue.Filter{State: "running", Kind: ports.DriveOrdersJob})[0].ID
		if _, err := w.operate(q.Retry, id); !errors.Is(err, queue.ErrRunning) {
			w.Errorf("retry: %v", err)
		}
		if _, err := w.operate(q.Discard, id); !errors.Is(err, queue.ErrRunning) {
			w.Errorf("discard: %v", err)
		}
		close(finish)
		w.until("it is done", func() bool { return len(w.list(q, queue.Filter{State: "completed", Kind: ports.DriveOrdersJob})) == 1 })
	})
}

func TestASessionIsGivenUpAfterTheLastAttempt(t *testing.T) {
	onEachStore(t, func(w *world) {
		var given atomic.Pointer[string]
		w.begun(queue.Handlers{
			DriveOrders:     func(context.Context, string) error { panic(errors.New("bug")) },
			AbandonCreation: func(_ context.Context, id string) error { given.Store(&id); return nil },
		})
		w.insert(ports.Job{Kind: ports.DriveOrdersJob, SessionID: "sess_patient"})
		w.until("it failed", func() bool { return strings.Contains(w.logged(), "sess_patient") })
		if id := given.Load(); id != nil {
			w.Errorf("%s was given up after its first attempt", *id)
		}
		// A job that an earlier version stored.
		w.exec(`INSERT INTO river_job (kind, args, max_attempts) VALUES ('provision', '{"session_id":"sess_1"}', 1)`)
		w.until("it is given up", func() bool { id := given.Load(); return id != nil && *id == "sess_1" })
	})
}

func TestAJobRunsAtItsTime(t *testing.T) {
	onEachStore(t, func(w *world) {
		ran := make(chan time.Time, 1)
		q := w.begun(queue.Handlers{DriveOrders: func(context.Context, string) error { ran <- time.Now(); return nil }})
		w.until("it leads", q.Leads)
		at := time.Now().Add(6*time.Second + 300*time.Microsecond)
		w.insert(ports.Job{Kind: ports.DriveOrdersJob, SessionID: "sess_1", At: at})
		select {
		case got := <-ran:
			if got.Before(at) {
				w.Errorf("it ran %v before its time", at.Sub(got))
			}
		case <-time.After(5 * time.Minute):
			w.Error("it did not run")
		}
	})
}

// A job with a time waits for the leader, which looks for those that are due every few seconds: one that is due at once
// has none, whether its unit has a transaction of its own or shares one.
func TestAJobThatIsDueRunsWithoutALeader(t *testing.T) {
	onEachStore(t, func(w *world) {
		w.queue(queue.Handlers{}) // it does not run
		now := time.Now()
		for _, reads := range []ports.ReadSet{{}, {Agent: "agt_1"}} {
			ok(w.T, w.st.Update(w.Context(), reads, func(ctx context.Context, tx ports.Tx) error {
				for _, j := range []ports.Job{{}, {At: now}, {At: now.Add(-time.Minute)}, {At: now.Add(time.Hour)}, {After: time.Hour}} {
					j.Kind, j.SessionID = ports.DriveOrdersJob, "sess_1"
					if err := tx.Jobs().Insert(ctx, j, now); err != nil {
						return err
					}
				}
				return nil
			}))
		}
		states := map[string]int{}
		rows, err := w.st.Writer().QueryContext(w.Context(), "SELECT state, COUNT(*) FROM river_job GROUP BY state")
		ok(w.T, err)
		defer rows.Close()
		for rows.Next() {
			var state string
			var n int
			ok(w.T, rows.Scan(&state, &n))
			states[state] = n
		}
		ok(w.T, rows.Err())
		if states["available"] != 6 || states["scheduled"] != 4 {
			w.Errorf("jobs are %v, want 6 available and 4 scheduled", states)
		}
	})
}

func TestAJobOfARetiredKindIsDone(t *testing.T) {
	onEachStore(t, func(w *world) {
		q := w.begun(queue.Handlers{})
		w.exec(`INSERT INTO river_job (kind, args, max_attempts) VALUES ('expire-session', '{"session_id":"sess_1"}', 8),
			('settle-session', '{"session_id":"sess_1"}', 8), ('expire-trial', '{"agent_id":"agt_1"}', 8)`)
		w.until("they are done", func() bool { return len(w.list(q, queue.Filter{State: "completed"})) == 3 })
	})
}

func TestAPassDoesNotOverlapItself(t *testing.T) {
	onEachStore(t, func(w *world) {
		var at, most, runs, ticks atomic.Int32
		var over atomic.Bool
		defer over.Store(true)
		tick := func(context.Context) error { ticks.Add(1); return nil }
		slow := func(context.Context) error { // it takes longer than its period
			most.Store(max(most.Load(), at.Add(1)))
			before := ticks.Load()
			w.until("two periods pass", func() bool { return over.Load() || ticks.Load() >= before+2 })
			at.Add(-1)
			runs.Add(1)
			return nil
		}
		q := w.begun(queue.Handlers{Tasks: []queue.PeriodicTask{{Name: "slow", Every: time.Second, Run: slow},
			{Name: "tick", Every: time.Second, Run: tick}}})
		w.until("it ran twice", func() bool { return runs.Load() >= 2 })
		if most.Load() != 1 {
			w.Errorf("%d ran at once", most.Load())
		}
		slowJobs := 0
		for _, j := range w.list(q, queue.Filter{Kind: "pass"}) {
			if j.Subject == "slow" && j.State != "completed" {
				slowJobs++
			}
		}
		if slowJobs > 1 {
			w.Errorf("%d more wait", slowJobs)
		}
		if s, err := q.Status(w.Context()); err != nil || s.LedAt.IsZero() {
			w.Errorf("the status is %+v, %v", s, err)
		}
	})
}

func TestOneLeadsAndAnotherTakesOver(t *testing.T) {
	w := newWorld(t, storage.Config{URL: storage.URL(pg.Database(t)), MaxConns: 12})
	var passes atomic.Int32
	tick := func(context.Context) error { passes.Add(1); return nil }
	all := queue.Handlers{Tasks: []queue.PeriodicTask{{Name: "tick", Every: time.Second, Run: tick}}}
	first, second := w.begun(all), w.queue(all)
	w.until("the first leads", first.Leads)
	ok(t, second.Start(t.Context()))
	defer func() { ok(t, second.Stop(context.Background())) }()
	before := passes.Load()
	w.until("two passes run", func() bool {
		if first.Leads() && second.Leads() {
			t.Error("both lead")
		}
		return passes.Load() > before+1
	})
	ok(t, first.Stop(t.Context()))
	if first.Leads() {
		t.Error("one that stopped leads on")
	}
	w.until("the second leads", second.Leads)
}

// A file belongs to one process, so a killed one does not delay the next.
func TestOnAFileTheDeadDoNotLead(t *testing.T) {
	w := newWorld(t, storage.Config{Path: filepath.Join(t.TempDir(), "q.db"), Readers: 2})
	w.exec(`INSERT INTO river_leader (leader_id, elected_at, expires_at)
		VALUES ('dead', datetime('now', 'subsec'), datetime('now', 'subsec', '60 seconds'))`)
	q := w.begun(queue.Handlers{})
	w.until("it leads", q.Leads)
}

func TestRunsOfJobsAreObserved(t *testing.T) {
	w := newWorld(t, storage.Config{Path: filepath.Join(t.TempDir(), "q.db"), Readers: 2})
	var mu sync.Mutex
	seen := map[string]int{}
	w.begun(queue.Handlers{
		DriveOrders: func(_ context.Context, id string) error {
			switch id {
			case "sess_later":
				return ports.RequeueAfter(time.Hour)
			case "sess_failed":
				panic("on purpose")
			}
			return nil
		},
		Tasks: []queue.PeriodicTask{{Name: "look", Every: time.Second, Run: func(context.Context) error { return nil }}},
		Observe: func(kind, result string, took time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			if took < 0 {
				t.Errorf("a job took %v", took)
			}
			seen[kind+" "+result]++
		},
	})
	for _, id := range []string{"sess_ok", "sess_later", "sess_failed"} {
		w.insert(ports.Job{Kind: ports.DriveOrdersJob, SessionID: id})
	}
	w.until("all are observed", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return seen["drive-orders ok"] > 0 && seen["drive-orders later"] > 0 && seen["drive-orders failed"] > 0 && seen["look ok"] > 0
	})
}
