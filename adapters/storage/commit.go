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
// first unit in the queue, gives each queued unit its turn, commits once, and
// only then answers. A unit runs on its caller's goroutine: the committer hands
// it the transaction and waits, so a panic, a runtime.Goexit and a stack trace
// are the caller's own.
//
// A unit that fails before it wrote has left nothing to undo. When one fails
// after that, the transaction is rolled back and its units run again, each
// inside a savepoint: what the failing one writes is rolled back to it, and the
// others never notice. Savepoints cost a quarter of a purchase, so they are not
// set before they are needed, but then for a while.
//
// When the shared transaction cannot be committed, every unit in it runs once
// more in a transaction of its own, so that one that cannot be committed harms
// itself alone; the caller gets the outcome of that run.
type committer struct {
	db    *sql.DB
	queue chan *unit
	stop  chan struct{} // closed: no more turns
	done  chan struct{} // closed: the goroutine has returned
	once  sync.Once
	// guarded is how many transactions more set savepoints. Only the goroutine
	// touches it.
	guarded int
	// commit is replaced by tests that need it to fail.
	commit func(*sql.Tx) error
}

// The bounds of one transaction: how many units, and for how long new ones may
// join; both keep the first unit's wait short. And for how many transactions
// savepoints are set after they were needed.
const (
	maxBatch = 64
	maxJoin  = 5 * time.Millisecond
	guardFor = 32
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

	// Kept by the committer: whether it had a turn, and the error of the last.
	ran bool
	err error
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

// batch runs the units that wait and answers them.
func (c *committer) batch(first *unit) {
	guard := c.guarded > 0
	c.guarded = max(c.guarded-1, 0)
	units, err := c.share([]*unit{first}, guard)
	if !guard && errors.Is(err, errSpoiled) {
		c.guarded = guardFor
		units, err = c.share(units, true)
	}
	var down error // no transaction can be begun
	for _, u := range units {
		switch {
		case !u.ran: // the caller gave up, or there was nothing to run in
			u.refuse(err)
		case errors.Is(u.err, errAbandoned):
		case err == nil:
			u.answer <- u.err
		case down != nil:
			u.answer <- down
		default:
			var outcome error
			outcome, down = c.alone(u)
			u.answer <- outcome
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

// share runs units, and those that wait and may join, in one transaction. It
// commits it, or rolls it back when there is nothing to commit, and returns all
// of them.
func (c *committer) share(units []*unit, guard bool) ([]*unit, error) {
	s, err := c.begin()
	if err != nil {
		return units, err
	}
	began, written := time.Now(), false
	for n := 0; err == nil; n++ {
		if n == len(units) {
			u := c.next(n, began)
			if u == nil {
				break
			}
			units = append(units, u)
		}
		u := units[n]
		if !u.ran && !u.take() || errors.Is(u.err, errAbandoned) {
			continue
		}
		err = turn(s, u, guard)
		written = written || u.err == nil && s.wrote
	}
	if err != nil || !written {
		s.rollback()
		return units, err
	}
	return units, s.commit(c.commit)
}

// turn runs one unit and keeps its error in u.err. An error of turn itself says
// that the transaction is of no more use.
func turn(s *shared, u *unit, guard bool) error {
	ctx := context.Background()
	s.wrote, u.ran = false, true
	if guard {
		if _, err := s.conn.ExecContext(ctx, "SAVEPOINT unit"); err != nil {
			u.err = err
			return err
		}
	}
	u.turn <- s
	u.err = <-u.back
	if !guard {
		if u.err != nil && s.wrote || s.ended() {
			return errSpoiled
		}
		return nil
	}
	if u.err != nil {
		if _, err := s.conn.ExecContext(ctx, "ROLLBACK TO unit"); err != nil {
			return err
		}
	}
	_, err := s.conn.ExecContext(ctx, "RELEASE unit")
	return err
}

// alone runs a unit once more, in a transaction of its own. Its second error
// says that none can be begun.
func (c *committer) alone(u *unit) (outcome, down error) {
	s, err := c.begin()
	if err != nil {
		return err, err
	}
	err = turn(s, u, false)
	switch {
	case u.err != nil:
		s.rollback()
		return u.err, nil
	case err != nil:
		s.rollback()
		return unavailable("write", err), nil
	}
	if err := s.commit(c.commit); err != nil {
		return unavailable("commit", err), nil
	}
	return nil, nil
}
