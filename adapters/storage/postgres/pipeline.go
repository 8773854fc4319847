package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"

	"agentproxy/adapters/storage/engine"
)

// Pipeline takes a connection for a transaction that several units share. Its BEGIN is sent with the
// first statements.
func (d *Database) Pipeline() (engine.Pipeline, error) {
	p, err := d.pipeline("BEGIN ISOLATION LEVEL READ COMMITTED")
	if err != nil {
		return nil, err
	}
	p.Queue("begin", "SELECT pg_current_xact_id()::text, "+serverStarted+", set_config('lock_timeout', '"+
		strconv.Itoa(d.LockTimeout)+"', true), "+keepNumbers+" || "+planOnce, nil, func(row engine.Row) error {
		var timeout, plans string
		return row.Scan(&p.id.xid, &p.id.started, &timeout, &plans)
	})
	return p, nil
}

// Snapshot is like Pipeline for what is only read, on one snapshot.
func (d *Database) Snapshot() (engine.Pipeline, error) {
	p, err := d.pipeline("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
	if err != nil {
		return nil, err
	}
	p.Queue("begin", "SELECT "+planOnce, nil, nil)
	return p, nil
}

// planOnce has the prepared statements of a transaction planned once. The planner would plan those
// with arrays anew for each call, since it estimates that an array of one element costs less than
// the ten that it assumes, and that takes longer than to execute them. A plan that is made while a
// table is empty would scan it, and go on until the table is analyzed, so these plans use indexes:
// each of the statements has one.
const planOnce = "set_config('plan_cache_mode', 'force_generic_plan', true) || " +
	"set_config('enable_seqscan', 'off', true)"

// keepNumbers spares the trigger that keeps the numbers of events: who writes by a pipeline keeps them.
const keepNumbers = "set_config('agentproxy.numbered', 'yes', true)"

func (d *Database) pipeline(begin string) (*pipeline, error) {
	soon, cancel := context.WithTimeout(context.Background(), d.Patience)
	defer cancel()
	a, err := d.lend(context.Background(), soon)
	if err != nil {
		return nil, err
	}
	p := &pipeline{acquired: a, database: d}
	p.ctx, p.cancel = context.WithTimeout(context.Background(), d.UnitWithin)
	p.Queue("begin", begin, nil, nil)
	return p, nil
}

// pipeline implements engine.Pipeline.
type pipeline struct {
	acquired
	database *Database
	ctx      context.Context
	cancel   context.CancelFunc
	id       transactionID
	batch    pgx.Batch
	queries  []query
	ended    bool
	wrote    bool // as in conn
}

type query struct {
	what string
	scan func(engine.Row) error
}

func (p *pipeline) Queue(what, statement string, args []any, scan func(engine.Row) error) {
	p.wrote = p.wrote || changes(statement)
	p.batch.Queue(rebind(statement), arguments(args)...)
	p.queries = append(p.queries, query{what, scan})
}

func (p *pipeline) SQL() (context.Context, *sql.Conn) {
	p.wrote = true
	return p.ctx, p.conn
}

func (p *pipeline) Send() error {
	batch, queries := p.batch, p.queries
	p.batch, p.queries = pgx.Batch{}, nil
	results := p.pg.SendBatch(p.ctx, &batch)
	for _, q := range queries {
		rows, err := results.Query()
		scan := q.scan
		if scan == nil {
			scan = func(engine.Row) error { return nil }
		}
		if err = each(rows, err, scan); err != nil {
			_ = results.Close() // returns it once more
			return fmt.Errorf("%s: %w", q.what, err)
		}
	}
	return results.Close()
}

// Commit finds out whether a commit that was not answered took effect.
func (p *pipeline) Commit() error {
	var before string
	p.Queue("commit", "SELECT "+positionNow, nil, func(row engine.Row) error { return row.Scan(&before) })
	p.Queue("commit", "COMMIT", nil, nil)
	err := p.Send()
	refused := err != nil && !p.pg.IsClosed() && sqlState(err) != ""
	switch {
	case err == nil:
		p.database.servers.committed(p.pg.PgConn(), parsePosition(before), p.wrote)
	case sqlState(err) == transactionAborted:
		err = fmt.Errorf("commit: %w", engine.ErrAborted)
	case refused:
	case p.ctx.Err() != nil: // as in Database.commit
		_ = p.Rollback()
		err = unknownOutcome(err)
	default:
		// What the driver did not send at all is rolled back by that, and then known to be undone.
		_ = p.Rollback()
		err = p.database.outcome(p.ctx, p.id, err)
	}
	_ = p.Rollback()
	return err
}

func (p *pipeline) Rollback() error {
	if !p.ended {
		p.ended = true
		p.cancel()
		p.end("ROLLBACK")
	}
	return nil
}
