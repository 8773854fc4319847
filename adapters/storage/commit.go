package storage

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"agentproxy/adapters/storage/engine"
	"agentproxy/domain"
	"agentproxy/ports"
)

// committer is group commit: writers that wait share one transaction, because a commit that survives a
// power failure costs more than the writing.
//
// One goroutine begins a transaction for the first unit in the queue, runs each queued unit in it,
// commits once, and only then answers. A unit runs on its caller's goroutine: the committer hands it
// the transaction and waits, so a panic, a runtime.Goexit and a stack trace are the caller's own.
//
// A unit that fails before it wrote has left nothing to undo. When one fails after that, the
// transaction is rolled back and its units run again, each inside a savepoint, so that only the
// writes of the failing one are rolled back. Savepoints cost a quarter of a purchase, so they are
// not set before they are needed, but then for guardFor transactions.
//
// On PostgreSQL what the waiting units read is read ahead for all of them, and what they write is sent
// together; see batch.
//
// When the shared transaction cannot be committed, every unit in it runs once more in a transaction
// of its own, so that one that cannot be committed fails alone; its caller gets the outcome of that
// run.
type committer struct {
	metrics *metrics
	// begin begins a transaction for units that are known to read what the list names.
	begin func(list []*ports.Ahead) (*engine.Transaction, error)
	// single, if set, runs a unit alone. Then a transaction has the units that waited when it began: it
	// reads for all of them at once.
	single func(ctx context.Context, fn func(*engine.Transaction) error) error
	queue  chan *unit
	stop   chan struct{} // closed: no unit begins any more
	done   chan struct{} // closed: the goroutine has returned
	once   sync.Once
	// guarded is the number of transactions that still set savepoints. It belongs to the goroutine.
	guarded int
	// commit is replaced by tests that need it to fail, and now by those that count who joins.
	commit func(*engine.Transaction) error
	now    func() time.Time
}

// The bounds of one transaction: how many units it has, and for how long new ones may join; both keep
// the first unit's wait short. And for how many transactions savepoints are set after a failure.
const (
	maxBatch = 64
	maxJoin  = 5 * time.Millisecond
	guardFor = 32
)

// unit is one call of do.
type unit struct {
	ctx     context.Context
	claimed atomic.Bool // by the committer, or by a caller that gave up
	start   chan *engine.Transaction
	end     chan error // receives the error of one run
	// answer receives the outcome. It is buffered, so that the committer never waits for a caller that
	// has left by panic.
	answer chan error

	// These belong to the committer: whether it ran, and the error of the last run.
	ran bool
	err error
}

// errAbandoned ends the run of a unit that panicked or left its goroutine, so that no caller waits
// for it.
var errAbandoned = errors.New("the unit did not return")

func newCommitter(
	metrics *metrics,
	begin func([]*ports.Ahead) (*engine.Transaction, error),
	single func(context.Context, func(*engine.Transaction) error) error,
) *committer {
	c := &committer{
		metrics: metrics,
		begin:   begin,
		single:  single,
		queue:   make(chan *unit, 4*maxBatch),
		stop:    make(chan struct{}),
		done:    make(chan struct{}),
		commit:  func(tx *engine.Transaction) error { return tx.Commit() },
		now:     time.Now,
	}
	go c.run()
	return c
}

// close lets the running transaction finish and refuses the units that wait.
func (c *committer) close() {
	c.once.Do(func() { close(c.stop) })
	<-c.done
}

// do runs fn as one unit and returns when its effects are committed or rolled back. fn may run twice.
// If ctx ends before fn has started, it does not run at all; after that the outcome is that of the
// transaction.
func (c *committer) do(ctx context.Context, fn func(*engine.Transaction) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	u := &unit{ctx: ctx, start: make(chan *engine.Transaction), end: make(chan error, 1), answer: make(chan error, 1)}
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
		case tx := <-u.start:
			u.run(tx, fn)
		case err := <-u.answer:
			if err == errAlone {
				c.metrics.units.WithLabelValues("alone").Inc()
				return c.single(ctx, fn)
			}
			c.metrics.units.WithLabelValues("shared").Inc()
			return err
		case <-cancelled:
			if u.claim() {
				return ctx.Err()
			}
			cancelled = nil // too late: it runs, or ran
		case <-stopped:
			if u.claim() {
				return domain.ErrUnavailable
			}
			stopped = nil // the answer is in its channel
		}
	}
}

// claim returns true to the first caller.
func (u *unit) claim() bool { return u.claimed.CompareAndSwap(false, true) }

// run runs fn once, on the caller's goroutine. It sends an error even if fn panics.
func (u *unit) run(tx *engine.Transaction, fn func(*engine.Transaction) error) {
	err := errAbandoned
	defer func() { u.end <- err }()
	if cancelled := u.ctx.Err(); cancelled != nil {
		err = cancelled
		return
	}
	err = fn(tx)
}

// run commits batches until the committer is closed; it runs in a goroutine of its own.
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

// refuse answers a unit that did not run.
func (u *unit) refuse(err error) {
	if u.claim() {
		u.answer <- err
	}
}

// batch runs the waiting units and answers them.
func (c *committer) batch(first *unit) {
	guard := c.guarded > 0
	c.guarded = max(c.guarded-1, 0)
	c.metrics.batches.Inc()
	units, err := c.share([]*unit{first}, guard)
	if !guard && c.single == nil && errors.Is(err, engine.ErrSpoiled) {
		c.guarded = guardFor
		units, err = c.share(units, true)
	}
	var down error // no transaction can be begun
	for _, u := range units {
		switch {
		case c.single != nil && err != nil && !errors.Is(u.err, errAbandoned):
			u.claim()
			u.answer <- cmp.Or(lasting(err), errAlone)
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

// lasting returns an error that the units of a transaction have in common; any other may be that of
// one.
func lasting(err error) error {
	unavailable := errors.Is(err, domain.ErrUnavailable) && !errors.Is(err, engine.ErrUndone)
	if unavailable || errors.Is(err, engine.ErrUnknownOutcome) {
		return err
	}
	return nil
}

// next returns the next unit that may join, nil if none waits.
func (c *committer) next(n int, began time.Time) *unit {
	if n >= maxBatch || c.now().Sub(began) > maxJoin {
		return nil
	}
	select {
	case u := <-c.queue:
		return u
	default:
		return nil
	}
}

// share runs units, and those that wait and may join, in one transaction. It commits it, or rolls it
// back if there is nothing to commit, and returns all of them.
func (c *committer) share(units []*unit, guard bool) ([]*unit, error) {
	began, written := c.now(), false
	for c.single != nil {
		u := c.next(len(units), began)
		if u == nil {
			break
		}
		units = append(units, u)
	}
	tx, err := c.begin(aheadOf(units))
	if err != nil {
		return units, err
	}
	for n := 0; err == nil; n++ {
		if n == len(units) {
			var u *unit
			if c.single == nil {
				u = c.next(n, began)
			}
			if u == nil {
				break
			}
			units = append(units, u)
		}
		u := units[n]
		if !u.ran && !u.claim() || errors.Is(u.err, errAbandoned) {
			continue
		}
		err = runIn(tx, u, guard)
		written = written || u.err == nil && tx.Wrote
	}
	if err != nil || !written {
		_ = tx.Rollback() // a transaction that cannot be rolled back has ended
		return units, err
	}
	return units, c.commit(tx)
}

// runIn runs one unit and keeps its error in u.err. An error of runIn itself means that the
// transaction can no longer be used.
func runIn(tx *engine.Transaction, u *unit, guard bool) error {
	tx.Wrote, u.ran = false, true
	if guard {
		if _, err := tx.Exec("SAVEPOINT unit", nil); err != nil {
			u.err = err
			return err
		}
	}
	u.start <- tx
	u.err = <-u.end
	if tx.End != nil {
		if alone := tx.End(u.err != nil); alone && !errors.Is(u.err, errAbandoned) {
			u.err = errAlone
		}
		return nil
	}
	if !guard {
		if u.err != nil && tx.Wrote || !tx.Open() {
			return engine.ErrSpoiled
		}
		return nil
	}
	if u.err != nil {
		if _, err := tx.Exec("ROLLBACK TO unit", nil); err != nil {
			return err
		}
	}
	_, err := tx.Exec("RELEASE unit", nil)
	return err
}

// alone runs a unit once more, in a transaction of its own. Its second error means that none can be
// begun.
func (c *committer) alone(u *unit) (outcome, down error) {
	tx, err := c.begin(nil)
	if err != nil {
		return err, err
	}
	err = runIn(tx, u, false)
	switch {
	case u.err != nil:
		_ = tx.Rollback()
		return u.err, nil
	case err != nil:
		_ = tx.Rollback()
		return engine.Unavailable("write", err), nil
	}
	if err := c.commit(tx); err != nil {
		return engine.Unavailable("commit", err), nil
	}
	return nil, nil
}

// aheadOf returns what is known of what units read.
func aheadOf(units []*unit) []*ports.Ahead {
	list := make([]*ports.Ahead, 0, len(units))
	for _, u := range units {
		if a := ports.AheadOf(u.ctx); a != nil {
			list = append(list, a)
		}
	}
	return list
}
