package storage

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"agentproxy/domain"
)

// committer is group commit: writers that wait share one transaction, because a
// commit that survives a power failure costs more than the writing.
//
// One goroutine owns the writing connection. It begins a transaction for the
// first unit in the queue, gives each queued unit its turn as a savepoint,
// commits once, and only then answers. A unit runs on its caller's goroutine:
// the committer hands it the transaction and waits, so a panic, a
// runtime.Goexit and a stack trace are the caller's own. What a unit that fails
// has written is rolled back to its savepoint, and the others never notice.
//
// When the shared transaction cannot be committed, every unit in it runs once
// more in a transaction of its own, so that one that cannot be committed harms
// itself alone; the caller gets the outcome of that second run.
type committer struct {
	db    *sql.DB
	queue chan *unit
	stop  chan struct{} // closed: no more turns
	done  chan struct{} // closed: the goroutine has returned
	once  sync.Once
	// commit is replaced by tests that need it to fail.
	commit func(*sql.Tx) error
}

// The bounds of one transaction: how many units, and for how long new ones may
// join. Both keep the first unit's wait short.
const (
	maxBatch = 64
	maxJoin  = 5 * time.Millisecond
)

// unit is one call of do.
type unit struct {
	ctx   context.Context
	taken atomic.Bool // by the committer, or by a caller who gave up
	turn  chan *shared
	back  chan error // ends the turn
	// answer tells the outcome. It has room, so that the committer never waits
	// for a caller that has left by panic.
	answer chan error

	err error // of the last turn, kept by the committer
}

// shared is a transaction and the connection it is on. A query on the connection
// is inside the transaction as well, and saves the goroutine that database/sql
// starts for each query of a *sql.Tx.
type shared struct {
	conn *sql.Conn
	tx   *sql.Tx
}

// begin takes the connection for one transaction; River has it in between.
func (c *committer) begin() (*shared, error) {
	ctx := context.Background()
	conn, err := c.db.Conn(ctx)
	if err != nil {
		return nil, unavailable("begin", err)
	}
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		_ = conn.Close()
		return nil, unavailable("begin", err)
	}
	return &shared{conn, tx}, nil
}

// rollback cannot be helped when it fails: an unusable transaction has ended.
func (s *shared) rollback() {
	_ = s.tx.Rollback()
	_ = s.conn.Close()
}

func (s *shared) commit(how func(*sql.Tx) error) error {
	err := how(s.tx)
	_ = s.conn.Close()
	return err
}

// errAbandoned ends the turn of a unit that panicked or left its goroutine. Its
// caller is gone.
var errAbandoned = errors.New("the unit did not return")

func newCommitter(db *sql.DB) *committer {
	c := &committer{
		db:     db,
		queue:  make(chan *unit, 4*maxBatch),
		stop:   make(chan struct{}),
		done:   make(chan struct{}),
		commit: (*sql.Tx).Commit,
	}
	go c.run()
	return c
}

// close lets the running transaction finish and refuses the units that wait.
func (c *committer) close() {
	c.once.Do(func() { close(c.stop) })
	<-c.done
}

// do runs fn as one unit and returns when its effects are committed or undone.
// fn may run twice. When ctx ends before its turn fn does not run at all; after
// that the outcome is the transaction's.
func (c *committer) do(ctx context.Context, fn func(*shared) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	u := &unit{ctx: ctx, turn: make(chan *shared), back: make(chan error, 1), answer: make(chan error, 1)}
	select {
	case c.queue <- u:
	case <-ctx.Done():
		return ctx.Err()
	case <-c.stop:
		return domain.ErrUnavailable
	}
	cancelled, stopped := ctx.Done(), c.done
	for {
		select {
		case s := <-u.turn:
			u.run(s, fn)
		case err := <-u.answer:
			return err
		case <-cancelled:
			if u.take() {
				return ctx.Err()
			}
			cancelled = nil // too late: it has its turn, or had it
		case <-stopped:
			if u.take() {
				return domain.ErrUnavailable
			}
			stopped = nil // the answer lies there already
		}
	}
}

// take is true for the first who asks.
func (u *unit) take() bool { return u.taken.CompareAndSwap(false, true) }

// run is one turn, on the caller's goroutine. The turn ends however fn ends.
func (u *unit) run(s *shared, fn func(*shared) error) {
	err := errAbandoned
	defer func() { u.back <- err }()
	if cancelled := u.ctx.Err(); cancelled != nil {
		err = cancelled
		return
	}
	err = fn(s)
}

// run is the committer's goroutine.
func (c *committer) run() {
	defer close(c.done)
	for {
		select {
		case u := <-c.queue:
			c.batch(u)
		case <-c.stop:
			for {
				select {
				case u := <-c.queue:
					u.refuse(domain.ErrUnavailable)
				default:
					return
				}
			}
		}
	}
}

// refuse answers a unit that had no turn.
func (u *unit) refuse(err error) {
	if u.take() {
		u.answer <- err
	}
}

// batch runs the units that wait in one transaction.
func (c *committer) batch(first *unit) {
	s, err := c.begin()
	if err != nil {
		first.refuse(err)
		return
	}
	began := time.Now()
	var ran []*unit
	written := false
	for u := first; u != nil; u = c.next(len(ran), began) {
		if !u.take() {
			continue
		}
		ran = append(ran, u)
		if err = turn(s, u); err != nil {
			break // the transaction itself failed
		}
		written = written || u.err == nil
	}
	switch {
	case err != nil, !written:
		s.rollback()
	default:
		err = s.commit(c.commit)
	}
	for _, u := range ran {
		switch {
		case errors.Is(u.err, errAbandoned):
		case err != nil:
			u.answer <- c.alone(u)
		default:
			u.answer <- u.err
		}
	}
}

// next is the next unit that may join, nil when none waits.
func (c *committer) next(n int, began time.Time) *unit {
	if n >= maxBatch || time.Since(began) > maxJoin {
		return nil
	}
	select {
	case u := <-c.queue:
		return u
	default:
		return nil
	}
}

// turn runs one unit as a savepoint and keeps its error in u.err. An error of
// turn itself says that the transaction is of no more use: SQLite rolls it back
// by itself when the disk is full, and then there is no savepoint to return to.
func turn(s *shared, u *unit) error {
	ctx := context.Background()
	if _, err := s.conn.ExecContext(ctx, "SAVEPOINT unit"); err != nil {
		u.err = err
		return err
	}
	u.turn <- s
	if u.err = <-u.back; u.err != nil {
		if _, err := s.conn.ExecContext(ctx, "ROLLBACK TO unit"); err != nil {
			return err
		}
	}
	_, err := s.conn.ExecContext(ctx, "RELEASE unit")
	return err
}

// alone runs a unit once more, in a transaction of its own.
func (c *committer) alone(u *unit) error {
	s, err := c.begin()
	if err != nil {
		return err
	}
	if err := turn(s, u); err != nil {
		s.rollback()
		return unavailable("write", errors.Join(u.err, err))
	}
	if u.err != nil {
		s.rollback()
		return u.err
	}
	if err := s.commit(c.commit); err != nil {
		return unavailable("commit", err)
	}
	return nil
}
