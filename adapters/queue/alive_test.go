package queue_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"agentproxy/adapters/queue"
	"agentproxy/adapters/storage"
	"agentproxy/test/pg"
)

// atWork stores a job that a replica took from the queue, and when that replica stored its last heartbeat.
func (w *world) atWork(session, replica string, taken, seen time.Duration, attempt int) {
	w.Helper()
	w.exec(fmt.Sprintf(`INSERT INTO river_job (kind, args, max_attempts, attempt, state, attempted_at, attempted_by)
		VALUES ('drive-orders', '{"session_id":"%s"}', 8, %d, 'running', now() - interval '%d seconds',
			ARRAY['replica_before', '%s'])`, session, attempt, int(taken.Seconds()), replica))
	w.exec(fmt.Sprintf(`INSERT INTO replicas (id, seen_at)
		VALUES ('%s', (extract(epoch FROM clock_timestamp() - interval '%d seconds') * 1000000)::bigint)
		ON CONFLICT DO NOTHING`, replica, int(seen.Seconds())))
}

func (w *world) states() (s string) {
	w.Helper()
	ok(w.T, w.st.Writer().QueryRowContext(w.Context(), `SELECT string_agg(args->>'session_id' || ' ' || state, ', '
		ORDER BY args->>'session_id') FROM river_job WHERE kind = 'drive-orders'`).Scan(&s))
	return s
}

func TestJobsOfADeadReplicaAreTakenBack(t *testing.T) {
	w := newWorld(t, storage.Config{URL: storage.URL(pg.Database(t)), MaxConns: 4})
	w.exec(`INSERT INTO replicas (id, seen_at) VALUES ('replica_before', 0)`)
	w.atWork("dead", "replica_dead", 13*time.Second, 13*time.Second, 1)
	// However long this takes, these do not become old.
	w.atWork("live", "replica_live", 20*time.Second, -time.Hour, 1)
	w.atWork("late", "replica_dead", -time.Hour, 13*time.Second, 1)
	w.atWork("parked", "replica_dead", 13*time.Second, 13*time.Second, 8)
	q := w.queue(queue.Handlers{})
	now := time.Now()
	beat := func(after time.Duration) {
		t.Helper()
		ok(t, q.Beat(t.Context(), now.Add(after)))
	}
	same := "dead running, late running, live running, parked running"
	for _, after := range []time.Duration{0, 5 * time.Second, 10 * time.Second, 11 * time.Second} {
		beat(after)
		if s := w.states(); s != same {
			t.Fatalf("taken by one that was connected for %v: %s", after, s)
		}
	}
	beat(19 * time.Second) // the database was away for it too, so all look dead to it
	if s := w.states(); s != same {
		t.Fatalf("taken after a gap: %s", s)
	}
	for after := 24 * time.Second; after < 31*time.Second; after += 5 * time.Second {
		beat(after)
	}
	beat(31 * time.Second)
	if s := w.states(); s != "dead available, late running, live running, parked running" {
		t.Errorf("after it witnessed for long enough: %s", s)
	}
	ok(t, q.Start(t.Context()))
	w.until("the replica runs it and is listed", func() bool {
		var n int
		ok(t, w.st.Writer().QueryRow(`SELECT COUNT(*) FROM replicas r JOIN river_job j ON j.attempted_by[3] = r.id
			WHERE j.args->>'session_id' = 'dead'`).Scan(&n))
		return n == 1
	})
	ok(t, q.Stop(context.Background()))
	var left int
	ok(t, w.st.Writer().QueryRow("SELECT COUNT(*) FROM replicas WHERE id NOT LIKE 'replica_%'").Scan(&left))
	if left != 0 {
		t.Error("one that stopped left its heartbeat")
	}
}

// A file belongs to one process: what runs when it starts was run by a dead one.
func TestOnAFileJobsOfTheDeadRunAtOnce(t *testing.T) {
	w := newWorld(t, storage.Config{Path: filepath.Join(t.TempDir(), "q.db"), Readers: 2})
	w.exec(`INSERT INTO river_job (kind, args, max_attempts, attempt, state, attempted_at, attempted_by)
		VALUES ('drive-orders', '{"session_id":"sess_1"}', 8, 1, 'running', CURRENT_TIMESTAMP, '["dead"]')`)
	var ran atomic.Int32
	w.begun(queue.Handlers{DriveOrders: func(context.Context, string) error { ran.Add(1); return nil }})
	w.until("it runs", func() bool { return ran.Load() == 1 })
}

// A full disk refuses every write; what only reads has to start all the same.
func TestAQueueStartsWhenTheDatabaseCanBeWritten(t *testing.T) {
	w := newWorld(t, storage.Config{Path: filepath.Join(t.TempDir(), "q.db"), Readers: 2})
	w.exec("PRAGMA query_only = ON")
	q := w.begun(queue.Handlers{})
	if q.Leads() {
		t.Error("it leads though it cannot write")
	}
	w.until("it is logged", func() bool { return w.logged() != "" })
	w.exec("PRAGMA query_only = OFF")
	w.until("it leads", q.Leads)
}
