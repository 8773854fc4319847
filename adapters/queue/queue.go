// Package queue runs durable work on River, with its tables in the service's
// own database: a job is inserted in the unit of work that makes it necessary.
package queue

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivertype"

	"agentproxy/ports"
)

// Handler does one job. It may run twice, and again after an error.
type Handler func(ctx context.Context, sessionID string) error

// Handlers do the jobs, by kind. One that answers ports.Later runs again then.
type Handlers struct {
	Provision Handler
	Release   Handler
	Deliver   func(ctx context.Context, deliveryID string, due time.Time) error
}

// Queue inserts and works jobs.
type Queue struct {
	client worker
	insert inserter
}

// worker is River's client, whatever its transactions are.
type worker interface {
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
	StopAndCancel(ctx context.Context) error
}

// inserter stores a job in the transaction of a unit: tx on SQLite, and on
// PostgreSQL what the connection is in.
type inserter func(ctx context.Context, conn *sql.Conn, tx *sql.Tx, args river.JobArgs, opts *river.InsertOpts) error

// deliveries is the queue of webhooks: they wait for receivers, and nothing else
// waits for them.
const deliveries = "webhooks"

const (
	workers      = 8
	deliverers   = 128
	maxAttempts  = 8
	jobTimeout   = 30 * time.Second
	rescueAfter  = 2 * time.Minute // jobs of a process that died
	pollInterval = 250 * time.Millisecond
	longestRetry = time.Minute
	stopWithin   = 20 * time.Second
)

// New makes a queue over the writing handle of a SQLite database.
func New(db *sql.DB, h Handlers, log *slog.Logger) (*Queue, error) {
	client, err := newClient(riversqlite.New(db), h, log)
	if err != nil {
		return nil, err
	}
	return &Queue{client, func(ctx context.Context, _ *sql.Conn, tx *sql.Tx, args river.JobArgs, opts *river.InsertOpts) error {
		_, err := client.InsertTx(ctx, tx, args, opts)
		return err
	}}, nil
}

// NewPostgres makes a queue over the pool of a PostgreSQL database. While it
// works it has one connection more, to listen on.
func NewPostgres(pool *pgxpool.Pool, h Handlers, log *slog.Logger) (*Queue, error) {
	client, err := newClient(riverpgxv5.New(pool), h, log)
	if err != nil {
		return nil, err
	}
	return &Queue{client, func(ctx context.Context, conn *sql.Conn, _ *sql.Tx, args river.JobArgs, opts *river.InsertOpts) error {
		var tx unitTx
		err := conn.Raw(func(c any) error {
			tx.conn = c.(*stdlib.Conn).Conn()
			return nil
		})
		if err == nil {
			_, err = client.InsertTx(ctx, tx, args, opts)
		}
		return err
	}}, nil
}

func newClient[T any](driver riverdriver.Driver[T], h Handlers, log *slog.Logger) (*river.Client[T], error) {
	all := river.NewWorkers()
	if err := river.AddWorkerSafely(all, river.WorkFunc(func(ctx context.Context, j *river.Job[provision]) error {
		return h.Provision(ctx, j.Args.SessionID)
	})); err != nil {
		return nil, err
	}
	if err := river.AddWorkerSafely(all, river.WorkFunc(func(ctx context.Context, j *river.Job[release]) error {
		return h.Release(ctx, j.Args.SessionID)
	})); err != nil {
		return nil, err
	}
	if err := river.AddWorkerSafely(all, river.WorkFunc(func(ctx context.Context, j *river.Job[deliver]) error {
		return snoozed(h.Deliver(ctx, j.Args.DeliveryID, time.UnixMicro(j.Args.Due).UTC()))
	})); err != nil {
		return nil, err
	}
	client, err := river.NewClient(driver, &river.Config{
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: workers},
			deliveries: {MaxWorkers: deliverers}},
		Workers:              all,
		MaxAttempts:          maxAttempts,
		JobTimeout:           jobTimeout,
		RescueStuckJobsAfter: rescueAfter,
		FetchPollInterval:    pollInterval,
		RetryPolicy:          backoff{},
		Logger:               slog.New(quiet{log.Handler()}),
	})
	if err != nil {
		return nil, fmt.Errorf("make the job queue: %w", err)
	}
	return client, nil
}

// Insert stores a job in the transaction of a unit: it runs after the commit.
// On PostgreSQL tx is nil.
func (q *Queue) Insert(ctx context.Context, conn *sql.Conn, tx *sql.Tx, j ports.Job, now time.Time) error {
	var args river.JobArgs
	opts := &river.InsertOpts{}
	if j.After > 0 {
		opts.ScheduledAt = now.Add(j.After)
	}
	switch j.Kind {
	case provision{}.Kind():
		args = provision{SessionID: j.SessionID}
	case release{}.Kind():
		args = release{SessionID: j.SessionID}
	case deliver{}.Kind():
		args = deliver{DeliveryID: j.DeliveryID, Due: j.Due.UnixMicro()}
		opts.Queue, opts.UniqueOpts = deliveries, river.UniqueOpts{ByArgs: true, ByState: unfinished}
		if j.Due.After(now) {
			opts.ScheduledAt = j.Due
		}
	default:
		return fmt.Errorf("no job of kind %q", j.Kind)
	}
	if err := q.insert(ctx, conn, tx, args, opts); err != nil {
		return fmt.Errorf("insert a job of kind %s: %w", j.Kind, err)
	}
	return nil
}

// Start begins to work jobs and returns; they go on until Stop.
func (q *Queue) Start(context.Context) error {
	return q.client.Start(context.Background())
}

// Stop waits for the jobs at work, then cancels them.
func (q *Queue) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopWithin)
	defer cancel()
	if err := q.client.Stop(ctx); err == nil {
		return nil
	}
	return q.client.StopAndCancel(context.WithoutCancel(ctx))
}

type provision struct {
	SessionID string `json:"session_id"`
}

// Kind names the job in the database.
func (provision) Kind() string { return "provision" }

type release struct {
	SessionID string `json:"session_id"`
}

// Kind names the job in the database.
func (release) Kind() string { return "release" }

type deliver struct {
	DeliveryID string `json:"delivery_id"`
	Due        int64  `json:"due"` // microseconds
}

// Kind names the job in the database.
func (deliver) Kind() string { return "deliver" }

// unfinished are the states of a job that will run.
var unfinished = []rivertype.JobState{rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning,
	rivertype.JobStateRetryable, rivertype.JobStateScheduled}

// snoozed says in River's words that a job runs again later.
func snoozed(err error) error {
	if later, ok := errors.AsType[ports.Later](err); ok {
		return river.JobSnooze(max(time.Duration(later), time.Millisecond))
	}
	return err
}

// backoff tries again after 1, 2, 4 ... seconds, at most a minute.
type backoff struct{}

// NextRetry is when a job that failed is tried again.
func (backoff) NextRetry(j *rivertype.JobRow) time.Time {
	return time.Now().UTC().Add(min(time.Second<<min(len(j.Errors), 10), longestRetry))
}

// quiet passes on River's warnings and errors; what it says of its own life is
// of no use to an operator.
type quiet struct{ slog.Handler }

// Enabled is true from warnings upwards.
func (quiet) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }

// WithAttrs keeps the filter.
func (q quiet) WithAttrs(a []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(a)} }

// WithGroup keeps the filter.
func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name)} }
