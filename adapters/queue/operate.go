package queue

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"agentproxy/domain"
)

// The errors of Retry and Discard.
var (
	ErrNoJob   = &domain.Error{Kind: domain.NotFound, Code: "JOB_NOT_FOUND", Message: "no such job"}
	ErrRunning = &domain.Error{Kind: domain.Conflict, Code: "JOB_RUNNING", Message: "the job is running"}
)

// Job is a job for the operator.
type Job struct {
	ID          int64
	Kind        string
	State       string
	Subject     string // the id of a session, an agent or a delivery, or the name of a periodic task
	Attempt     int
	MaxAttempts int
	CreatedAt   time.Time
	ScheduledAt time.Time // when it runs, or ran last
	Error       string    // of the last attempt that failed
}

// Filter narrows a list of jobs; empty fields do not.
type Filter struct {
	State string
	Kind  string
	Limit int
}

// List lists jobs, newest first.
func (q *Queue) List(ctx context.Context, f Filter) ([]Job, error) {
	params := river.NewJobListParams().First(f.Limit).OrderBy(river.JobListOrderByID, river.SortOrderDesc)
	if f.State != "" {
		params = params.States(rivertype.JobState(f.State))
	}
	if f.Kind != "" {
		params = params.Kinds(f.Kind)
	}
	found, err := q.client.JobList(ctx, params)
	if err != nil {
		return nil, fmt.Errorf("list jobs: %w", err)
	}
	list := make([]Job, len(found.Jobs))
	for i, row := range found.Jobs {
		list[i] = fromRow(row)
	}
	return list, nil
}

func fromRow(r *rivertype.JobRow) Job {
	j := Job{ID: r.ID, Kind: r.Kind, State: string(r.State), Subject: subject(r.EncodedArgs), Attempt: r.Attempt,
		MaxAttempts: r.MaxAttempts, CreatedAt: r.CreatedAt.UTC(), ScheduledAt: r.ScheduledAt.UTC()}
	if n := len(r.Errors); n > 0 {
		j.Error = r.Errors[n-1].Error
	}
	return j
}

// Retry runs a job again at once, also if it has no attempt left, in the transaction of a unit. On
// PostgreSQL tx is nil. It returns ErrNoJob for an unknown id and ErrRunning for a running job.
func (q *Queue) Retry(ctx context.Context, conn *sql.Conn, tx *sql.Tx, id int64) (Job, error) {
	row, err := q.client.retry(ctx, conn, tx, id)
	if err != nil {
		return Job{}, refusal("retry", id, err)
	}
	if row.State == rivertype.JobStateRunning {
		return Job{}, ErrRunning.Msgf("job %d is running", id)
	}
	return fromRow(row), nil
}

// Discard removes a job in the transaction of a unit. Its errors are those of Retry.
func (q *Queue) Discard(ctx context.Context, conn *sql.Conn, tx *sql.Tx, id int64) (Job, error) {
	row, err := q.client.discard(ctx, conn, tx, id)
	if err != nil {
		return Job{}, refusal("discard", id, err)
	}
	return fromRow(row), nil
}

func refusal(what string, id int64, err error) error {
	switch {
	case errors.Is(err, rivertype.ErrNotFound):
		return ErrNoJob.Msgf("no job %d", id)
	case errors.Is(err, rivertype.ErrJobRunning):
		return ErrRunning.Msgf("job %d is running", id)
	}
	return fmt.Errorf("%s job %d: %w", what, id, err)
}

// mostParked bounds the parked jobs that are counted: River's client has a list of jobs and no count.
const mostParked = 1_000

// Status is the state of the queue, for gauges.
type Status struct {
	Waiting time.Duration // how long the oldest job that could run has waited
	Parked  int           // jobs that failed in every attempt, of which at most mostParked are counted
	LedAt   time.Time     // when a periodic task last ended, on any replica; zero if none did within keepDone
	Leads   bool          // this process
}

// Status runs three short queries, each of which uses an index.
func (q *Queue) Status(ctx context.Context) (Status, error) {
	s := Status{Leads: q.Leads()}
	oldest, err := q.client.JobList(ctx, river.NewJobListParams().First(1).States(rivertype.JobStateAvailable).
		OrderBy(river.JobListOrderByScheduledAt, river.SortOrderAsc))
	if err != nil {
		return s, fmt.Errorf("status of jobs: %w", err)
	}
	if len(oldest.Jobs) > 0 {
		s.Waiting = max(time.Since(oldest.Jobs[0].ScheduledAt), 0)
	}
	parked, err := q.client.JobList(ctx, river.NewJobListParams().First(mostParked).States(rivertype.JobStateDiscarded).
		OrderBy(river.JobListOrderByFinalizedAt, river.SortOrderDesc))
	if err != nil {
		return s, fmt.Errorf("status of jobs: %w", err)
	}
	s.Parked = len(parked.Jobs)
	last, err := q.client.JobList(ctx, river.NewJobListParams().First(1).Kinds(runPass{}.Kind()).
		States(rivertype.JobStateCompleted).OrderBy(river.JobListOrderByFinalizedAt, river.SortOrderDesc))
	if err != nil {
		return s, fmt.Errorf("status of jobs: %w", err)
	}
	if len(last.Jobs) > 0 && last.Jobs[0].FinalizedAt != nil {
		s.LedAt = last.Jobs[0].FinalizedAt.UTC()
	}
	return s, nil
}
