package storage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"agentproxy/adapters/storage/engine"
	"agentproxy/ports"
)

var _ ports.Tx = (*tx)(nil)

// tx is one unit of work. Statements on hot paths are written by hand, with parameters numbered as
// ?1, ?2; the others go through GORM.
type tx struct {
	engine.Conn
	store *Store
	in    *engine.Transaction // nil in View
	// touched are the sessions that a unit changed outside a batch; nil in View.
	touched *[]string
	batch   *batch // nil for a unit with a transaction of its own, and on SQLite
	// packed are the workers that a unit which writes has read in archives, with their sessions.
	packed map[int64]string
}

func (t *tx) Agents() ports.Agents                   { return agents{t} }
func (t *tx) Referrers() ports.Referrers             { return referrers{t} }
func (t *tx) Ledger() ports.Ledger                   { return ledger{t} }
func (t *tx) Sessions() ports.Sessions               { return sessions{t} }
func (t *tx) Traffic() ports.Traffic                 { return usages{t} }
func (t *tx) Health() ports.Health                   { return healths{t} }
func (t *tx) Events() ports.Events                   { return events{t} }
func (t *tx) Counters() ports.Counters               { return counters{t} }
func (t *tx) Idempotency() ports.Idempotency         { return calls{t} }
func (t *tx) Addresses() ports.Addresses             { return addresses{t} }
func (t *tx) Changes() ports.Changes                 { return changes{t} }
func (t *tx) Jobs() ports.Jobs                       { return jobs{t} }
func (t *tx) Recharges() ports.Recharges             { return recharges{t} }
func (t *tx) Outbox() ports.Outbox                   { return outbox{t} }
func (t *tx) Webhooks() ports.Webhooks               { return webhooks{t} }
func (t *tx) Devchain() ports.Devchain               { return devchain{t} }
func (t *tx) Orders() ports.Orders                   { return orders{t} }
func (t *tx) Reconciliations() ports.Reconciliations { return reconciliations{t} }
func (t *tx) UsageCounts() ports.UsageCounts         { return usageCounts{t} }
func (t *tx) Claims() ports.Claims                   { return claims{t} }
func (t *tx) Trials() ports.Trials                   { return trials{t} }
func (t *tx) Policies() ports.Policies               { return policies{t} }
func (t *tx) Workers() ports.Workers                 { return workers{t} }
func (t *tx) Peers() ports.Peers                     { return peers{t} }
func (t *tx) ExitLog() ports.ExitLog                 { return exits{t} }
func (t *tx) Keys() ports.Keys                       { return keys{t} }
func (t *tx) AuditTrail() ports.AuditTrail           { return auditTrail{t} }
func (t *tx) Overview() ports.Overview               { return overview{t} }
func (t *tx) Folds() ports.Folds                     { return folds{t} }

// errReadOnly refuses a write inside View before the database does.
var errReadOnly = errors.New("a view cannot write")

// listContext returns the context for a query that may take long. In View the caller's ends it.
func (t *tx) listContext(ctx context.Context) context.Context {
	if t.in != nil {
		return t.Context()
	}
	return ctx
}

// locks reports whether the rows that are read must be locked.
func (t *tx) locks() bool { return t.in != nil && t.Concurrent() }

// row returns a query for one row. One of a row that the unit may change ends with t.lock.
func (t *tx) row(query string, args ...any) engine.Row { return t.Row(query, args) }

// rowLock is the strength of the locks on rows that a unit reads and may change.
const rowLock = "NO KEY UPDATE"

// lock returns the end of a query whose rows of a table, by its name in the query, stay locked until
// the end of the unit. The lock is that of an UPDATE which changes no key: FOR UPDATE would block the
// foreign key checks of other units too, which lock rows in an order of their own, and so deadlock.
func (t *tx) lock(table string) string {
	if !t.locks() {
		return ""
	}
	return " FOR " + rowLock + " OF " + table
}

// serialize takes an advisory lock on a name until the end of the unit, for what has no row yet. The
// next statement reads what units that held it before have committed.
func (t *tx) serialize(parts ...string) {
	if !t.locks() {
		return
	}
	// The next statement returns its error.
	_ = t.Queue("take the advisory lock", "SELECT pg_advisory_xact_lock(hashtextextended(?1, 0))",
		[]any{strings.Join(parts, "\n")})
}

// attempt runs a statement that a unique index may refuse, in a savepoint where the database would
// refuse every statement after that.
func (t *tx) attempt(run func() error) error {
	if !t.locks() {
		return run()
	}
	if _, err := t.Exec("SAVEPOINT attempt", nil); err != nil {
		return t.failed(err)
	}
	err, end := run(), "RELEASE attempt"
	if err != nil {
		end = "ROLLBACK TO attempt"
	}
	if _, endErr := t.Exec(end, nil); endErr != nil {
		return errors.Join(err, t.failed(endErr))
	}
	return err
}

// rows runs a query and calls scan for each row.
func (t *tx) rows(ctx context.Context, query string, args []any, scan func(engine.Row) error) error {
	return t.Rows(t.listContext(ctx), query, args, scan)
}

// mayWrite returns an error in a view, and after the transaction has ended.
func (t *tx) mayWrite() error {
	switch {
	case t.in == nil:
		return errReadOnly
	case t.in.Ended():
		return engine.ErrSpoiled
	}
	return nil
}

// failed records a failed statement of a unit that writes.
func (t *tx) failed(err error) error {
	if t.in == nil {
		return err
	}
	return t.in.Fail(err)
}

// exec runs a statement and returns how many rows it changed.
func (t *tx) exec(statement string, args ...any) (int64, error) {
	if err := t.mayWrite(); err != nil {
		return 0, err
	}
	n, err := t.Exec(statement, args)
	if err != nil {
		return 0, t.failed(err)
	}
	t.in.Wrote = t.in.Wrote || n > 0
	return n, nil
}

// touch has views of this process read a session anew, once the unit has ended.
func (t *tx) touch(sessionID string) {
	if t.touched != nil && t.store.recent != nil && sessionID != "" {
		*t.touched = append(*t.touched, sessionID)
	}
}

// later runs a statement whose result is not needed before the end of the unit: it changes something,
// or the unit fails. What it does is part of its error, which the next statement or the end of the
// unit may return.
func (t *tx) later(what, statement string, args ...any) error {
	if err := t.mayWrite(); err != nil {
		return err
	}
	if err := t.Queue(what, statement, args); err != nil {
		return t.failed(err)
	}
	t.in.Wrote = true
	return nil
}

// returning runs a statement that changes one row, and scans what it returns. It returns
// sql.ErrNoRows if no row was changed.
func (t *tx) returning(statement string, args []any, into ...any) error {
	if err := t.mayWrite(); err != nil {
		return err
	}
	err := t.row(statement, args...).Scan(into...)
	if errors.Is(err, sql.ErrNoRows) {
		return err
	}
	t.in.Wrote = true
	if err != nil {
		return t.failed(err)
	}
	return nil
}

// texts runs a query for one column of text.
func (t *tx) texts(ctx context.Context, query string, args ...any) ([]string, error) {
	var found []string
	err := t.rows(ctx, query, args, func(rows engine.Row) error {
		var s string
		err := rows.Scan(&s)
		found = append(found, s)
		return err
	})
	return found, err
}

type jobs struct{ *tx }

func (r jobs) Insert(ctx context.Context, j ports.Job, now time.Time) error {
	if err := r.mayWrite(); err != nil {
		return err
	}
	if tracer := r.store.config.Trace; tracer != nil {
		j.Traceparent = tracer.Traceparent(ctx)
	}
	if r.batch != nil {
		r.batch.insertJob(j, now)
		return nil
	}
	insert := r.store.jobs.Load()
	if insert == nil {
		return errors.New("insert job: no job inserter is set")
	}
	in, err := JobTxOf(r.tx)
	if err != nil {
		return err
	}
	if err := (*insert)(r.Context(), in, []ports.Job{j}, now); err != nil {
		return fmt.Errorf("insert job %s: %w", j.Kind, r.failed(err))
	}
	return nil
}

// JobTxOf returns the transaction of a running unit, for what changes jobs. It ends with the unit.
func JobTxOf(unit ports.Tx) (JobTx, error) {
	t, ok := unit.(*tx)
	if !ok {
		return JobTx{}, errors.New("the unit is not of this store")
	}
	if err := t.mayWrite(); err != nil {
		return JobTx{}, err
	}
	if err := t.Flush(); err != nil {
		return JobTx{}, t.failed(err)
	}
	t.in.Wrote = true
	return JobTx{Conn: t.SQL(), Tx: t.in.Tx}, nil
}
