// Package queue runs durable work on River, with its tables in the service's
// own database: a job is inserted in the unit of work that makes it necessary.
package queue

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivertype"

	"agentproxy/ports"
)

// Handler runs one job of a session. It may run twice, and again after an error.
type Handler func(ctx context.Context, id string) error

// Handlers run the jobs, by kind. A job whose handler returns ports.RequeueAfter runs again after that
// time.
type Handlers struct {
	DriveOrders Handler
	Deliver     func(ctx context.Context, deliveryID string, due time.Time) error
	// AbandonCreation is called for a session that DriveOrders failed for every time.
	AbandonCreation Handler
	Tasks           []PeriodicTask
	// Observe is called after each run of a job, if it is not nil.
	Observe Observer
	// Trace is called before each run of a job that was inserted with a traceparent, if it is not
	// nil. It returns the context of the run, and what is called after it.
	Trace func(ctx context.Context, kind, traceparent string) (context.Context, func(error))
}

// Observer measures a run of a job. The kind of a periodic task is its name. The result is ok,
// later for one that was put off, or failed.
type Observer func(kind, result string, took time.Duration)

// Queue inserts and runs jobs.
type Queue struct {
	client   client
	alone    bool       // a file belongs to this process
	behind   background // of a start that is tried again
	term     *term
	stopping *atomic.Bool
	log      *slog.Logger
}

// runner is what River's client does without a transaction.
type runner interface {
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
	StopAndCancel(ctx context.Context) error
	JobList(ctx context.Context, params *river.JobListParams) (*river.JobListResult, error)
}

// client is River's client in the transactions of units: tx is that of SQLite, and of PostgreSQL the transaction is
// the one that is open on the connection.
type client interface {
	runner
	insert(ctx context.Context, conn *sql.Conn, tx *sql.Tx, jobs []river.InsertManyParams) error
	retry(ctx context.Context, conn *sql.Conn, tx *sql.Tx, id int64) (*rivertype.JobRow, error)
	discard(ctx context.Context, conn *sql.Conn, tx *sql.Tx, id int64) (*rivertype.JobRow, error)
}

// txClient is River's client with the type of its transactions.
type txClient[T any] interface {
	runner
	InsertManyTx(ctx context.Context, tx T, params []river.InsertManyParams) ([]*rivertype.JobInsertResult, error)
	JobRetryTx(ctx context.Context, tx T, id int64) (*rivertype.JobRow, error)
	JobDeleteTx(ctx context.Context, tx T, id int64) (*rivertype.JobRow, error)
}

// unitClient is a client whose transactions are those of units.
type unitClient[T any] struct {
	txClient[T]
	transaction func(*sql.Conn, *sql.Tx) (T, error)
}

func (c unitClient[T]) insert(ctx context.Context, conn *sql.Conn, tx *sql.Tx, jobs []river.InsertManyParams) error {
	unit, err := c.transaction(conn, tx)
	if err == nil {
		_, err = c.InsertManyTx(ctx, unit, jobs)
	}
	return err
}

func (c unitClient[T]) retry(
	ctx context.Context, conn *sql.Conn, tx *sql.Tx, id int64,
) (row *rivertype.JobRow, err error) {
	unit, err := c.transaction(conn, tx)
	if err == nil {
		row, err = c.JobRetryTx(ctx, unit, id)
	}
	return row, err
}

func (c unitClient[T]) discard(
	ctx context.Context, conn *sql.Conn, tx *sql.Tx, id int64,
) (row *rivertype.JobRow, err error) {
	unit, err := c.transaction(conn, tx)
	if err == nil {
		row, err = c.JobDeleteTx(ctx, unit, id)
	}
	return row, err
}

// deliveries is the queue of webhooks, so that slow receivers do not delay other jobs.
const deliveries = "webhooks"

const (
	workers     = 8
	deliverers  = 128
	maxAttempts = 8 // over two minutes; then a job is parked
	jobTimeout  = 30 * time.Second
	taskTimeout = time.Minute
	// River takes back what ran for so long: ten seconds after it was canceled, so its process died or was cut off. Its
	// leader looks for them each 30 s and at its election, and makes what is due available each 5 s.
	rescueAfter  = jobTimeout + 10*time.Second
	pollInterval = 250 * time.Millisecond
	longestRetry = time.Minute
	stopWithin   = 20 * time.Second
	keepDone     = time.Hour
	keepParked   = 30 * 24 * time.Hour
)

// New returns a queue over the writing pool of a SQLite database.
func New(db *sql.DB, h Handlers, log *slog.Logger) (*Queue, error) {
	q := &Queue{alone: true, term: new(term), stopping: new(atomic.Bool), log: log}
	c, err := newClient(riversqlite.New(db), h, q.stopping, log)
	q.client = unitClient[*sql.Tx]{c, func(_ *sql.Conn, tx *sql.Tx) (*sql.Tx, error) { return tx, nil }}
	return q, err
}

// NewPostgres returns a queue over the pool of a PostgreSQL database. While it runs it has one more
// connection, which listens for jobs.
func NewPostgres(pool *pgxpool.Pool, h Handlers, log *slog.Logger) (*Queue, error) {
	q := &Queue{term: new(term), stopping: new(atomic.Bool), log: log}
	c, err := newClient(riverpgxv5.New(pool), h, q.stopping, log, q.term.hook())
	q.client = unitClient[pgx.Tx]{c, func(conn *sql.Conn, _ *sql.Tx) (pgx.Tx, error) { return unitOf(conn) }}
	return q, err
}

// unitOf returns the transaction that is open on a connection.
func unitOf(conn *sql.Conn) (tx unitTx, err error) {
	err = conn.Raw(func(c any) error {
		tx.conn = c.(*stdlib.Conn).Conn()
		return nil
	})
	return tx, err
}

func newClient[T any](
	driver riverdriver.Driver[T], h Handlers, stopping *atomic.Bool, log *slog.Logger, hooks ...rivertype.Hook,
) (*river.Client[T], error) {
	all := river.NewWorkers()
	if err := addWorkers(all, h, log); err != nil {
		return nil, err
	}
	client, err := river.NewClient(driver, &river.Config{
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: workers},
			deliveries: {MaxWorkers: deliverers}},
		Workers:                     all,
		PeriodicJobs:                periodic(h.Tasks),
		Hooks:                       hooks,
		MaxAttempts:                 maxAttempts,
		JobTimeout:                  jobTimeout,
		RescueStuckJobsAfter:        rescueAfter,
		FetchPollInterval:           pollInterval,
		RetryPolicy:                 backoff{},
		ErrorHandler:                failures{log, h.AbandonCreation},
		CompletedJobRetentionPeriod: keepDone,
		DiscardedJobRetentionPeriod: keepParked,
		Logger:                      slog.New(newQuiet(log.Handler(), stopping)),
		TestOnly:                    testOnly,
	})
	if err != nil {
		return nil, fmt.Errorf("create the job queue: %w", err)
	}
	return client, nil
}

// testOnly makes River start its maintenance without the random delay that spreads replicas. Tests
// set it.
var testOnly bool

func addWorkers(all *river.Workers, h Handlers, log *slog.Logger) error {
	return errors.Join(
		addWorker(all, log, 0, h, func(ctx context.Context, a driveOrders) error {
			return requeued(h.DriveOrders(ctx, a.SessionID))
		}),
		addWorker(all, log, 0, h, func(context.Context, retired) error { return nil }),
		addWorker(all, log, 0, h, func(ctx context.Context, a deliver) error {
			return requeued(h.Deliver(ctx, a.DeliveryID, time.UnixMicro(a.Due).UTC()))
		}),
		addWorker(all, log, taskTimeout, h, func(ctx context.Context, a runPass) error {
			for _, p := range h.Tasks {
				if p.Name == a.Name {
					return p.Run(ctx)
				}
			}
			return fmt.Errorf("no pass %q", a.Name)
		}),
	)
}

func addWorker[T river.JobArgs](
	all *river.Workers, log *slog.Logger, timeout time.Duration, h Handlers, do func(context.Context, T) error,
) error {
	return river.AddWorkerSafely(all, worker[T]{do: do, timeout: timeout, observe: h.Observe, trace: h.Trace, log: log})
}

// Insert stores a job in the transaction of a unit, after whose commit it runs. On PostgreSQL tx is
// nil.
func (q *Queue) Insert(ctx context.Context, conn *sql.Conn, tx *sql.Tx, jobs []ports.Job, now time.Time) error {
	params := make([]river.InsertManyParams, len(jobs))
	for i, j := range jobs {
		args, err := argsOf(j)
		if err != nil {
			return err
		}
		opts := &river.InsertOpts{}
		if j.Traceparent != "" {
			opts.Metadata = []byte(`{"traceparent":` + strconv.Quote(j.Traceparent) + `}`)
		}
		if j.DeliveryID != "" {
			opts.Queue, opts.UniqueOpts = deliveries, river.UniqueOpts{ByArgs: true, ByState: unfinished}
		}
		if at := cmp.Or(j.At, now.Add(j.After)); at.After(now) {
			// SQLite keeps milliseconds: rounded down, the job would run too early.
			opts.ScheduledAt = at.Add(time.Millisecond - time.Nanosecond).Truncate(time.Millisecond)
		}
		params[i] = river.InsertManyParams{Args: args, InsertOpts: opts}
	}
	if err := q.client.insert(ctx, conn, tx, params); err != nil {
		return fmt.Errorf("insert %d jobs: %w", len(jobs), err)
	}
	return nil
}

// Start begins to run jobs, until Stop, and returns. A file that can be read and not written, as on a full disk, is
// tried again in the background: what only reads need not wait for it.
func (q *Queue) Start(ctx context.Context) error {
	err := q.start()
	if err == nil || !q.alone || ctx.Err() != nil {
		return err
	}
	q.log.Error("no job runs, because the database cannot be written; it is tried again each second", "err", err)
	q.behind.start(q.startLater)
	return nil
}

func (q *Queue) start() error {
	if err := q.client.Start(context.Background()); err != nil {
		return fmt.Errorf("start the job queue: %w", err)
	}
	if q.alone {
		q.term.begin(context.Background())
	}
	return nil
}

// startLater tries to start each second until it succeeds or the context ends.
func (q *Queue) startLater(ctx context.Context) {
	for {
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return
		}
		if q.start() == nil {
			q.log.Info("the database can be written again: jobs run")
			return
		}
	}
}

// background runs a function until stop. The zero value runs none.
type background struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
}

func (b *background) start(run func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	b.cancel = cancel
	b.done.Go(func() { run(ctx) })
}

func (b *background) stop() {
	if b.cancel != nil {
		b.cancel()
	}
	b.done.Wait()
}

// Stop waits for the running jobs for stopWithin, then cancels them.
func (q *Queue) Stop(ctx context.Context) error {
	q.behind.stop() // so that it does not start any more
	q.stopping.Store(true)
	q.term.resign()
	ctx, cancel := context.WithTimeout(ctx, stopWithin)
	defer cancel()
	if err := q.client.Stop(ctx); err == nil {
		return nil
	}
	return q.client.StopAndCancel(context.WithoutCancel(ctx))
}
