package storage

import (
	"context"
	"database/sql"
	"maps"
	"time"

	"gorm.io/gorm"

	"agentproxy/adapters/storage/accounts"
	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/rows"
	"agentproxy/adapters/storage/work"
	"agentproxy/domain"
	"agentproxy/ports"
)

// batch is what the units of one transaction on PostgreSQL share: the rows that were read and locked
// ahead for all of them, and what they write, which is sent by one statement a table when they have
// run. A unit that fails has sent nothing, so what it wrote is just dropped.
//
// The repositories whose methods begin with a check of tx.batch, or of Unit.Batch, use it. Every
// other statement of a unit is refused by batchConn, and the unit runs again alone.
type batch struct {
	pipe engine.Pipeline
	rows *rows.Set
	now  func() time.Time // at which changes are noted
	// alone is whether the running unit needs what a batch does not do, wrote whether it changed
	// something.
	alone, wrote bool

	looked  map[string]bool // sessions whose health was looked for, and locked
	whole   map[string]bool // sessions that were looked for as a whole
	workers map[string][]ports.WorkerHealth
	holding map[string][]dueRow // of agents
	lists   map[listKey]*sessionPage

	restricted *accounts.RestrictedAgents
	readsKeys  bool // the money of the keys of all agents that pay is read

	health   overlay[string, batchHealth]
	sessions overlay[string, batchSession]

	writes overlayWrites
}

// batchHealth is a row of the health of a session, or its absence.
type batchHealth struct {
	seq                 int64
	lastNo              int64 // of its last event as it was read; 0 if it is not known
	owner, kind, status string
	state               []byte
	stored, dirty       bool // stored: the table has it
}

// batchSession is a row of sessions.
type batchSession struct {
	row           sessionRow
	usage         usageRow
	settleAt      int64
	locked, dirty bool
	// planned is whether settleAt changed.
	planned bool
}

// overlay is a map whose changes by the running unit can be dropped.
type overlay[K comparable, V any] struct{ base, own map[K]V }

func (o *overlay[K, V]) get(k K) (V, bool) {
	if v, ok := o.own[k]; ok {
		return v, true
	}
	v, ok := o.base[k]
	return v, ok
}

func (o *overlay[K, V]) put(k K, v V) {
	if o.own == nil {
		o.own = map[K]V{}
	}
	o.own[k] = v
}

// load adds a row that was read ahead.
func (o *overlay[K, V]) load(k K, v V) {
	if o.base == nil {
		o.base = map[K]V{}
	}
	o.base[k] = v
}

// end keeps or drops what the unit changed.
func (o *overlay[K, V]) end(keep bool) {
	if keep && len(o.own) > 0 {
		if o.base == nil {
			o.base = map[K]V{}
		}
		maps.Copy(o.base, o.own)
	}
	clear(o.own)
}

func newBatch(pipe engine.Pipeline, now func() time.Time) *batch {
	return &batch{pipe: pipe, rows: rows.NewShared(), now: now, looked: map[string]bool{}, whole: map[string]bool{}}
}

// end keeps or drops what the running unit did.
func (b *batch) end(keep bool) {
	b.alone, b.wrote = false, false
	b.rows.End(keep)
	b.health.end(keep)
	b.sessions.end(keep)
	b.writes.end(keep)
}

// escape has the running unit run again alone.
func (b *batch) escape() error {
	b.alone = true
	return engine.ErrAlone
}

// batchConn is the connection of a unit in a batch: it takes no statement.
type batchConn struct{ *batch }

var _ engine.Conn = batchConn{}

func (c batchConn) Context() context.Context          { return context.Background() }
func (c batchConn) Concurrent() bool                  { return true }
func (c batchConn) Arrays() bool                      { return true }
func (c batchConn) Open() bool                        { return true }
func (c batchConn) Flush() error                      { return c.escape() }
func (c batchConn) SQL() *sql.Conn                    { c.alone = true; return nil }
func (c batchConn) ORM() gorm.ConnPool                { c.alone = true; return batchPool{} }
func (c batchConn) Row(string, []any) engine.Row      { return batchRow{c.escape()} }
func (c batchConn) Exec(string, []any) (int64, error) { return 0, c.escape() }
func (c batchConn) Queue(string, string, []any) error { return c.escape() }
func (c batchConn) Rows(context.Context, string, []any, func(engine.Row) error) error {
	return c.escape()
}

type batchRow struct{ err error }

func (r batchRow) Scan(...any) error { return r.err }

// batchPool refuses the statements of GORM.
type batchPool struct{}

func (batchPool) PrepareContext(context.Context, string) (*sql.Stmt, error) {
	return nil, engine.ErrAlone
}
func (batchPool) ExecContext(context.Context, string, ...any) (sql.Result, error) {
	return nil, engine.ErrAlone
}
func (batchPool) QueryContext(context.Context, string, ...any) (*sql.Rows, error) {
	return nil, engine.ErrAlone
}
func (batchPool) QueryRowContext(context.Context, string, ...any) *sql.Row { return &sql.Row{} }

// pipeWriter sends what the units of a batch have changed.
type pipeWriter struct{ engine.Pipeline }

// Queue implements rows.Writer.
func (w pipeWriter) Queue(what, statement string, args []any) error {
	w.Pipeline.Queue(what, statement, args, nil)
	return nil
}

// Arrays implements rows.Writer.
func (pipeWriter) Arrays() bool { return true }

func queueRows[Row any](b *batch, what string, s work.BulkStatement, rows []Row) {
	s.Queue(b.pipe, what, len(rows), func(i int) []any { return column.Values(&rows[i]) })
}

// listKey is a list that views ask for.
type listKey struct {
	agentID string
	ports.SessionPage
}

// sessionPage is a page under way: one session more than it has, and the number of each.
type sessionPage struct {
	domain.List[ports.SessionRead]
	ords []int64
}

// behind is a row whose first columns go elsewhere.
type behind struct {
	engine.Row
	first []any
}

// Scan reads the columns behind the first ones.
func (r behind) Scan(into ...any) error { return r.Row.Scan(append(r.first, into...)...) }
