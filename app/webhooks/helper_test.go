package webhooks_test

import (
	"context"
	"errors"
	"strings"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/webhook"
	"agentproxy/ports"
	"agentproxy/test/apptest"
)

// try is the job of one attempt.
type try struct {
	n   string
	id  string
	due time.Time
}

// deliveryJobs lists the jobs of deliveries that are not done yet.
func deliveryJobs(w *apptest.World) (list []try) {
	w.T.Helper()
	rows, err := w.DB.Writer().Query(`SELECT n, session, due FROM test_jobs WHERE kind = $1 ORDER BY due, n`, ports.DeliverJob)
	apptest.OK(w.T, err)
	defer rows.Close()
	for rows.Next() {
		var t try
		var due int64
		apptest.OK(w.T, rows.Scan(&t.n, &t.id, &due))
		t.due = time.UnixMicro(due).UTC()
		list = append(list, t)
	}
	apptest.OK(w.T, rows.Err())
	return list
}

// runDeliveries does every delivery job that is due; one that is put off stays.
func runDeliveries(w *apptest.World) error {
	w.T.Helper()
	var faults []error
	for _, t := range deliveryJobs(w) {
		if t.due.After(w.Clock.Now()) {
			continue
		}
		err := w.Webhooks.Deliver(context.Background(), t.id, t.due)
		if err == nil {
			w.Exec(`DELETE FROM test_jobs WHERE n = ?`, t.n)
		}
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

// listDeliveries lists an agent's deliveries, newest first.
func listDeliveries(w *apptest.World, agent string) []webhook.Delivery {
	w.T.Helper()
	list, err := w.Webhooks.Deliveries(context.Background(), agent, "", domain.Page{Number: 1, Size: 100})
	apptest.OK(w.T, err)
	return list.Items
}

// eventList lists the webhook events of an agent, oldest first: the type and the
// data but for the ids.
func eventList(w *apptest.World, agent string) string {
	w.T.Helper()
	query := `SELECT o.type || COALESCE((SELECT group_concat(' ' || key || '=' || value, '') FROM json_each(o.data)
		WHERE key NOT LIKE '%_id'), '') FROM outbox o JOIN webhook_deliveries d ON d.event_id = o.id
		WHERE o.agent_id = ? ORDER BY o.seq`
	if w.Postgres() {
		query = strings.NewReplacer("group_concat(", "string_agg(", "json_each(o.data)", "json_each_text(o.data::json)").Replace(query)
	}
	return strings.Join(w.Column(query, agent), "; ")
}

// deleteEvents deletes the events, after a look at their data.
func deleteEvents(w *apptest.World) {
	w.T.Helper()
	w.CheckEvents()
	w.Exec(`DELETE FROM outbox`)
	w.Exec(`DELETE FROM webhook_deliveries`)
}

// expectEvents checks the webhook events of an agent since the last call.
func expectEvents(w *apptest.World, agent, want string) {
	w.T.Helper()
	apptest.Equal(w.T, "notified", eventList(w, agent), want)
	deleteEvents(w)
}
