package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"agentproxy/adapters/storage/engine"
	"agentproxy/domain"
)

// How many runs of a unit fail so before its failure counts. Of units that insert the same row one finds it
// when it runs again, unless it does not look for it.
const (
	maxTries       = 8
	maxUniqueTries = 3
)

// failures counts the runs of a unit that failed, by how many there may be of their kind: a unit that others blocked
// runs again if it then inserts what one of them has inserted.
type failures [maxTries + 1]int

// retry counts a failure, and reports whether the unit runs again.
func (f *failures) retry(err error) bool {
	most := triesOf(err)
	f[most]++
	return f[most] < most
}

// triesOf returns how many runs of a unit may fail with an error, 1 for one that a further run does not change.
func triesOf(err error) int {
	switch sqlState(err) {
	case serializationFailure, deadlockDetected, lockNotAvailable:
		return maxTries
	case uniqueViolation, planChanged:
		return maxUniqueTries
	}
	if errors.Is(err, engine.ErrUndone) {
		return maxUniqueTries
	}
	return 1
}

// retryLockWithin is how long after the first try a unit that a lock timed out is tried again.
const retryLockWithin = 5 * time.Second

// Update runs fn in a transaction. It retries after a serialization failure, a deadlock, a lock
// timeout, and a lost connection whose transaction did not take effect.
func (d *Database) Update(ctx context.Context, fn func(*engine.Transaction) error) error {
	began := time.Now()
	var failed failures
	for try := 1; ; try++ {
		err := d.once(ctx, fn)
		if !failed.retry(err) || ctx.Err() != nil {
			return err
		}
		if sqlState(err) == lockNotAvailable && time.Since(began) > retryLockWithin {
			return err
		}
		if d.Retried != nil {
			d.Retried(retryReason(err))
		}
		// The backoff is random and doubles with each try.
		pause := time.Duration(rand.Int64N(int64(2*time.Millisecond) << try))
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
}

// retryReason names why a unit is tried again.
func retryReason(err error) string {
	if sqlState(err) == "" {
		return "lost_commit"
	}
	return causeOf(err)
}

// once runs fn in one transaction.
func (d *Database) once(ctx context.Context, fn func(*engine.Transaction) error) error {
	tx, err := d.begin(ctx)
	if err != nil {
		return err
	}
	// Also after a panic and runtime.Goexit.
	defer func() { _ = tx.Rollback() }()
	if err = fn(tx); err == nil {
		err = tx.Flush()
	}
	if err == nil {
		return tx.Commit()
	}
	// A unit that went on after a failed statement returns a later error than the one to retry.
	fault := tx.Fault()
	aborted := sqlState(err) == transactionAborted
	if fault != nil && (aborted || sqlState(err) == "" && triesOf(fault) > 1) {
		return fmt.Errorf("%w, and then: %w", fault, err)
	}
	return err
}

// transactionID identifies a transaction after its connection was lost. A server that crashed hands out
// again the ids of transactions whose log it had not written, so the id alone may be that of another.
type transactionID struct {
	xid     string
	started string // when the server started, in seconds since 1970
}

const serverStarted = "extract(epoch from pg_postmaster_start_time())::text"

// begin begins a transaction. BEGIN and the transaction's id share one round trip, so that the outcome
// can be looked up when the connection is lost during the commit.
func (d *Database) begin(ctx context.Context) (*engine.Transaction, error) {
	a, results, err := d.acquire(ctx, "BEGIN ISOLATION LEVEL READ COMMITTED; SELECT pg_current_xact_id(), "+serverStarted)
	if err != nil {
		return nil, err
	}
	if len(results) != 2 || len(results[1].Rows) != 1 {
		a.end("ROLLBACK")
		return nil, errors.New("begin: the server returned no transaction id")
	}
	row := results[1].Rows[0]
	id := transactionID{xid: string(row[0]), started: string(row[1])}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.UnitWithin)
	c := &conn{acquired: a, ctx: bounded}
	tx := &engine.Transaction{Conn: c}
	c.fail = tx.Fail
	tx.Commit = func() error { return d.commit(bounded, a, id, c.wrote, tx.Fault()) }
	tx.Rollback = func() error {
		cancel()
		a.end("ROLLBACK")
		return nil
	}
	return tx, nil
}

// commit commits and finds out whether that took effect. The fault is that of an earlier statement.
//
// At the end of its time the driver cancels the commit. A server that waited for its synchronous standby then
// has it as committed, on its own disk alone, so that a failover would lose it: its outcome is unknown.
func (d *Database) commit(ctx context.Context, a acquired, id transactionID, wrote bool, fault error) error {
	before, err := sendCommit(ctx, a.pg.PgConn())
	switch {
	case err == nil:
		d.servers.committed(a.pg.PgConn(), before, wrote)
		return nil
	case sqlState(err) == transactionAborted:
		return errors.Join(fmt.Errorf("commit: %w", engine.ErrAborted), fault)
	case !a.pg.IsClosed() && sqlState(err) != "":
		return fmt.Errorf("commit: %w", err) // refused, and so rolled back
	}
	d.losses.look(ctx, a.pg)
	if ctx.Err() != nil {
		return unknownOutcome(err)
	}
	return d.outcome(ctx, id, err)
}

// sendCommit returns where the log ended just before the commit. In an aborted transaction it does not commit.
func sendCommit(ctx context.Context, c *pgconn.PgConn) (before position, err error) {
	results, err := c.Exec(ctx, "SELECT "+positionNow+"; COMMIT").ReadAll()
	if err != nil {
		return 0, err
	}
	if len(results) != 2 || len(results[0].Rows) != 1 {
		return 0, pgconn.ErrConnClosed
	}
	return parsePosition(string(results[0].Rows[0][0])), nil
}

// outcomeWithin is how long the outcome of a commit is looked up; a restarted server is back by then.
const outcomeWithin = 6 * time.Second

// outcome looks up whether a transaction was committed when the answer to COMMIT was lost. Running
// the unit again instead might do everything twice. It returns ErrUnavailable, with the outcome unknown,
// if the server was started again since and has the id as committed: that may be another transaction.
func (d *Database) outcome(ctx context.Context, id transactionID, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), max(outcomeWithin, d.Patience))
	defer cancel()
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, 200*time.Millisecond) {
		var status *string
		var started string
		err := d.pool.QueryRow(ctx, "SELECT pg_xact_status($1::text::xid8), "+serverStarted, id.xid).Scan(&status, &started)
		switch {
		case err == nil && status != nil && *status == "committed" && started != id.started:
			return unknownOutcome(cause)
		case err == nil && status != nil && *status == "committed":
			return nil
		case err == nil && status != nil && *status == "aborted":
			return fmt.Errorf("commit: %w: %w: %w", domain.ErrUnavailable, engine.ErrUndone, cause)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return unknownOutcome(errors.Join(cause, err))
		}
	}
}

func unknownOutcome(cause error) error {
	return engine.Unavailable("commit", fmt.Errorf("%w: %w", engine.ErrUnknownOutcome, cause))
}
