package rows

import (
	"database/sql"
	"errors"

	"agentproxy/adapters/storage/engine"
)

// Set holds rows in memory. It is used by one goroutine at a time.
type Set struct {
	conn   engine.Conn
	in     *engine.Transaction // nil in a view, and where rows are read ahead
	shared bool                // by units, or by views
	ahead  bool                // rows were read ahead, and no others are read
	before func(*Set)          // is called before rows are written
	named  bool                // the running unit named what it reads
	frozen bool                // shared by views, which change nothing
	alone  bool                // the running unit needs a transaction of its own
	wrote  bool                // the running unit changed something in memory
	dirty  bool                // something is to be flushed
	fault  error               // of a flush, after which rows may be written in part
	tables [maxTables]table
}

// maxTables bounds the orders of tables.
const maxTables = 24

// table is what a Set holds of one.
type table interface {
	// end keeps or drops what the running unit changed.
	end(keep bool)
	// flush writes what was changed.
	flush(s *Set, w Writer) error
	// forget drops the rows that were read.
	forget()
	// next drops what units of the next transaction do not find in memory.
	next()
}

// New returns the Set of a unit in a transaction, or of a view if in is nil, which keeps nothing.
func New(conn engine.Conn, in *engine.Transaction) Set { return Set{conn: conn, in: in} }

// NewShared returns the Set of units that share a transaction, in which they read what is not in memory. It calls
// before whenever it writes.
func NewShared(conn engine.Conn, in *engine.Transaction, before func(*Set)) *Set {
	return &Set{conn: conn, in: in, shared: true, before: before}
}

// Next returns the Set of units that share the next transaction of the connection, as NewShared does, with the rows
// that tables keep: no other connection may have changed them. What s had was flushed and committed; now it has none.
func (s *Set) Next(conn engine.Conn, in *engine.Transaction, before func(*Set)) *Set {
	next := NewShared(conn, in, before)
	next.tables, s.tables = s.tables, next.tables
	for _, t := range next.tables {
		if t != nil {
			t.next()
		}
	}
	return next
}

// NewAhead returns the Set of units that share a transaction, or of views that share a snapshot, whose rows are read
// ahead.
func NewAhead() *Set { return &Set{shared: true, ahead: true, named: true} }

// Use has statements run on a connection, that of the running unit. named is whether that named what it reads, so that
// it may take rows for absent by Unread of a Table.
func (s *Set) Use(conn engine.Conn, named bool) { s.conn, s.named = conn, named }

// Frozen returns a Set with the rows of a shared one, for a view that runs beside others.
func (s *Set) Frozen() Set {
	own := *s
	own.frozen, own.alone, own.wrote = true, false, false
	return own
}

// Escape has a unit that shares a transaction run again in one of its own.
func (s *Set) Escape() error {
	s.alone = true
	return engine.ErrAlone
}

// Alone reports whether the running unit needs a transaction of its own.
func (s *Set) Alone() bool { return s.alone }

// Shared reports whether units, or views, share the rows.
func (s *Set) Shared() bool { return s.shared }

// Ahead reports whether the rows were read ahead.
func (s *Set) Ahead() bool { return s.ahead }

// Wrote reports whether the running unit of a shared Set changed something.
func (s *Set) Wrote() bool { return s.wrote }

// change notes that the running unit changes something.
func (s *Set) change() error {
	switch {
	case s.frozen:
		return s.Escape()
	case s.ahead:
	case s.in == nil:
		return engine.ErrReadOnly
	case s.in.Ended():
		return engine.ErrAborted
	}
	s.wrote, s.dirty = true, true
	return nil
}

// End keeps or drops what a unit that shares the rows changed.
func (s *Set) End(keep bool) {
	s.alone, s.wrote = false, false
	s.end(keep)
}

func (s *Set) end(keep bool) {
	for _, t := range s.tables {
		if t != nil {
			t.end(keep)
		}
	}
}

// Flush writes what the unit has changed, and what units before it have that share its transaction. What failed once
// fails again: rows may be written in part, of units that have returned, so the transaction must not be committed.
func (s *Set) Flush() error {
	switch {
	case s == nil || s.ahead:
		return nil
	case s.fault != nil || !s.dirty:
		return s.fault
	}
	s.dirty = false
	s.in.Wrote = s.in.Wrote || s.wrote
	if s.shared {
		s.end(true)
		s.before(s)
	}
	if s.fault = s.write(s.conn); s.fault != nil {
		s.in.Wrote = true // also where the rows are of other units
		return s.in.Fail(s.fault)
	}
	return nil
}

// WriteTo sends what the units that share the rows have changed.
func (s *Set) WriteTo(w Writer) error { return s.write(w) }

func (s *Set) write(w Writer) error {
	for _, t := range s.tables {
		if t == nil {
			continue
		}
		if err := t.flush(s, w); err != nil {
			return err
		}
	}
	return nil
}

// Forget flushes, and drops the rows that were read, before a statement that may change them.
func (s *Set) Forget() error {
	if s == nil || s.ahead {
		return nil
	}
	err := s.Flush()
	for _, t := range s.tables {
		if t != nil {
			t.forget()
		}
	}
	return err
}

// Serialize takes an advisory lock on a name until the end of the unit, for what has no row yet. The next
// statement reads what units that held it before have committed.
func (s *Set) Serialize(name string) {
	if s.in == nil || !s.conn.Concurrent() {
		return
	}
	// The next statement returns its error.
	_ = s.conn.Queue("take the advisory lock", "SELECT pg_advisory_xact_lock(hashtextextended(?1, 0))", []any{name})
}

// View reports whether the Set is that of a view, which changes nothing.
func (s *Set) View() bool { return s.frozen || !s.ahead && s.in == nil }

// Changed notes that a query of Find changed something.
func (s *Set) Changed() { s.in.Wrote = true }

// Find scans the row of a query into targets, as One does.
func (s *Set) Find(into []any, query, table string, args ...any) (bool, error) {
	return s.One(query, table, func(row engine.Row) error { return row.Scan(into...) }, args...)
}

// One scans the row of a query. In a unit it locks the row of a table, by its name in the query, where
// others write at the same time; without a name it locks nothing. It returns false if there is none.
func (s *Set) One(query, table string, scan func(engine.Row) error, args ...any) (bool, error) {
	if s.in != nil && table != "" && s.conn.Concurrent() {
		query += " FOR NO KEY UPDATE OF " + table
	}
	err := scan(s.conn.Row(query, args))
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}
