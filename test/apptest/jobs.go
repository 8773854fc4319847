package apptest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"agentproxy/domain/procurement"
	"agentproxy/ports"
)

// OrderJobs lists the jobs of orders that were inserted and did not run yet.
func (w *World) OrderJobs() []ports.Job { return w.Jobs("kind = 'drive-orders'") }

// Jobs lists the jobs that an SQL condition matches, oldest first. After is what is left
// until their time.
func (w *World) Jobs(where string) (jobs []ports.Job) {
	w.T.Helper()
	rows, err := w.DB.Writer().Query(`SELECT kind, session, due FROM test_jobs WHERE ` + where + ` ORDER BY n`)
	OK(w.T, err)
	defer rows.Close()
	for rows.Next() {
		var j ports.Job
		var due int64
		OK(w.T, rows.Scan(&j.Kind, &j.SessionID, &due))
		j.After = time.UnixMicro(due).Sub(w.Clock.Now())
		jobs = append(jobs, j)
	}
	OK(w.T, rows.Err())
	return jobs
}

// RunOrders runs every order job that is due and every order whose next attempt is due,
// once, and returns their errors.
func (w *World) RunOrders() error {
	w.T.Helper()
	return errors.Join(w.RunJobs(w.OrderJobs()), w.Driver.DriveDue(context.Background()))
}

// RunJobs runs those of the jobs that are due, once, and returns their errors. A job that
// succeeds is deleted.
func (w *World) RunJobs(jobs []ports.Job) error {
	w.T.Helper()
	var faults []error
	for _, j := range jobs {
		if j.After > 0 {
			continue
		}
		err := w.runJob(j)
		if _, later := errors.AsType[ports.RequeueAfter](err); later {
			continue // the job stays
		}
		if err == nil {
			w.Exec(`DELETE FROM test_jobs WHERE n = (SELECT MIN(n) FROM test_jobs WHERE kind = ? AND session = ?)`, j.Kind, j.SessionID)
		}
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

func (w *World) runJob(j ports.Job) error {
	if j.Kind != ports.DriveOrdersJob {
		return fmt.Errorf("no job of kind %q", j.Kind)
	}
	return w.Driver.DriveSession(context.Background(), j.SessionID)
}

// RunMinutes advances the clock by minutes and runs the orders after each.
func (w *World) RunMinutes(minutes int) {
	w.T.Helper()
	for range minutes {
		w.Clock.Advance(time.Minute)
		OK(w.T, w.RunOrders())
	}
}

// ExpectReconciled runs the orders for as long as an unknown one may stay so, and then
// expects that none is open and that the seller has sold exactly what live sessions use.
func (w *World) ExpectReconciled() {
	w.T.Helper()
	for range 4 * procurement.ListingDelay / time.Minute {
		w.Clock.Advance(time.Minute)
		if err := w.RunOrders(); err != nil {
			w.T.Error(err)
		}
	}
	if jobs := w.OrderJobs(); len(jobs) > 0 {
		w.T.Errorf("jobs are left: %+v", jobs)
	}
	if creating := w.Column(`SELECT id FROM upstream_orders WHERE status IN ('planned', 'sent', 'unknown')`); len(creating) > 0 {
		w.T.Errorf("orders without an outcome: %v", creating)
	}
	if due := w.Column(`SELECT id FROM upstream_orders WHERE closed_at > 0 AND next_at > 0`); len(due) > 0 {
		w.T.Errorf("closed orders with a next attempt: %v", due)
	}
	live := w.Column(`SELECT id FROM sessions WHERE provider = 'remote' AND status = 'active' ORDER BY id`)
	if sold := w.Seller.Live(); !slices.Equal(sold, live) {
		w.T.Errorf("the seller sold %v, active sessions are %v", sold, live)
	}
	if creating := w.Column(`SELECT id FROM sessions WHERE status = 'creating'`); len(creating) > 0 {
		w.T.Errorf("sessions are still creating: %v", creating)
	}
}
