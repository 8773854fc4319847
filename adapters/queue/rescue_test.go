package queue_test

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"agentproxy/adapters/queue"
	"agentproxy/adapters/storage"
)

// River's leader takes back what has run for longer than a job may, at its election first. What runs still, or may
// not be tried again, does not run.
func TestJobsOfTheDeadRunAgain(t *testing.T) {
	onEachStore(t, func(w *world) {
		ago, now, by := "now() - interval '41 seconds'", "now() + interval '1 hour'", "ARRAY['dead']"
		if w.st.Pool() == nil {
			ago, now, by = "datetime('now', '-41 seconds')", "datetime('now', '1 hour')", `'["dead"]'`
		}
		w.exec(`INSERT INTO river_job (kind, args, max_attempts, attempt, state, attempted_at, attempted_by) VALUES
			('drive-orders', '{"session_id":"sess_dead"}', 8, 1, 'running', ` + ago + `, ` + by + `),
			('drive-orders', '{"session_id":"sess_live"}', 8, 1, 'running', ` + now + `, ` + by + `),
			('drive-orders', '{"session_id":"sess_last"}', 8, 8, 'running', ` + ago + `, ` + by + `)`)
		ran := make(chan string, 3)
		q := w.begun(queue.Handlers{DriveOrders: func(_ context.Context, id string) error { ran <- id; return nil }})
		w.until("one runs", func() bool { return len(ran) > 0 })
		if id := <-ran; id != "sess_dead" {
			t.Errorf("%s ran", id)
		}
		subjects := func(state string) (list []string) {
			for _, j := range w.list(q, queue.Filter{State: state, Kind: "drive-orders"}) {
				list = append(list, j.Subject)
			}
			return list
		}
		w.until("the last attempt is parked", func() bool { return slices.Contains(subjects("discarded"), "sess_last") })
		w.until("the first is done", func() bool { return slices.Contains(subjects("completed"), "sess_dead") })
		if left := subjects("running"); !slices.Equal(left, []string{"sess_live"}) {
			t.Errorf("running are %v", left)
		}
	})
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
