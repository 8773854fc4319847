// Package commit lets units of work that wait share one commit, and bounds how many of one agent are at
// work.
package commit

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"agentproxy/adapters/storage/engine"
	"agentproxy/domain"
	"agentproxy/ports"
)

// Committer is group commit: writers that wait share one transaction, because a commit that survives a
// power failure costs more than the writing.
//
// One goroutine begins a transaction for the first unit in the queue, runs each queued unit in it,
// commits once, and only then answers. The agents whose units wait take turns.
// A unit runs on its caller's goroutine: the committer hands it
// the transaction and waits, so a panic, a runtime.Goexit and a stack trace are the caller's own.
//
// A unit that fails before it wrote has left nothing to undo. When one fails after that, the
// transaction is rolled back and its units run again, each inside a savepoint, so that only the
// writes of the failing one are rolled back. Savepoints cost a quarter of a purchase, so they are
// not set before they are needed, but then for guardFor transactions.
//
// What joint units change of hot rows is written when they have run, together. On PostgreSQL the waiting units' rows
// are read ahead, too; see Transaction.End.
//
// When the shared transaction cannot be committed, every unit in it runs once more in a transaction
// of its own, so that one that cannot be committed fails alone; its caller gets the outcome of that
// run.
type Committer struct {
	// Commit commits a transaction, and Now is the clock by which units join one. Tests replace them.
	Commit func(*engine.Transaction) error
	Now    func() time.Time

	counts Counts
	// begin begins a transaction for units that are known to read what the list names. What they write may wait until
	// they have run if they are joint: without savepoints between them.
	begin func(list []*ports.ReadSet, joint bool) (*engine.Transaction, error)
	// single, if set, runs a unit alone. Then a transaction has the units that waited when it began: it
	// reads for all of them at once.
	single func(ctx context.Context, reads *ports.ReadSet, fn func(*engine.Transaction) error) error
	queue  *turns
	stop   chan struct{} // closed: no unit begins any more
	done   chan struct{} // closed: the goroutine has returned
	once   sync.Once
	// guarded is the number of transactions that still set savepoints. It belongs to the goroutine.
	guarded int
}

// The bounds of one transaction: MaxBatch is how many units it has, and maxJoin for how long new ones may
// join; both keep the first unit's wait short. And for how many transactions savepoints are set after
// a failure.
const (
	MaxBatch = 64
	maxJoin  = 5 * time.Millisecond
	guardFor = 32
)

// unit is one call of Do.
type unit struct {
	ctx     context.Context
	reads   *ports.ReadSet
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

// Counts are the series that a Committer adds to. The label of Units is how a unit ended: shared, or
// alone.
type Counts struct {
	Units   *prometheus.CounterVec
	Batches prometheus.Counter
}

// errAbandoned ends the run of a unit that panicked or left its goroutine, so that no caller waits
// for it.
var errAbandoned = errors.New("the unit did not return")

// New returns a Committer whose transactions begin begins, and which has single, if it is set, run the
// units that need a transaction of their own. It is closed by Close.
func New(
	counts Counts,
	begin func(list []*ports.ReadSet, joint bool) (*engine.Transaction, error),
	single func(context.Context, *ports.ReadSet, func(*engine.Transaction) error) error,
) *Committer {
	c := &Committer{
		counts: counts,
		begin:  begin,
		single: single,
		queue:  newTurns(4 * MaxBatch),
		stop:   make(chan struct{}),
		done:   make(chan struct{}),
		Commit: func(tx *engine.Transaction) error { return tx.Commit() },
		Now:    time.Now,
	}
	go c.run()
	return c
}

// Close lets the running transaction finish and refuses the units that wait.
func (c *Committer) Close() {
	c.once.Do(func() { close(c.stop) })
	<-c.done
}

// Closing reports whether Close was called.
func (c *Committer) Closing() bool {
	select {
	case <-c.stop:
		return true
	default:
		return false
	}
}

// Do runs fn as one unit, of which reads names what it reads, and returns when its effects are committed or
// rolled back. fn may run twice. If ctx ends before fn has started, it does not run at all; after that the
// outcome is that of the transaction.
func (c *Committer) Do(ctx context.Context, reads *ports.ReadSet, fn func(*engine.Transaction) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	u := &unit{ctx: ctx, reads: reads, start: make(chan *engine.Transaction), end: make(chan error, 1),
		answer: make(chan error, 1)}
	select {
	case c.queue.room <- struct{}{}:
		c.queue.push(u)
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
			if err == engine.ErrAlone {
				c.counts.Units.WithLabelValues("alone").Inc()
				return c.single(ctx, reads, fn)
			}
			c.counts.Units.WithLabelValues("shared").Inc()
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

// Waiting returns how many units wait.
func (c *Committer) Waiting() int { return c.queue.waiting() }

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
func (c *Committer) run() {
	defer close(c.done)
	for {
		select {
		case <-c.queue.ready:
		case <-c.stop:
		}
		for u := c.queue.pop(); u != nil; u = c.queue.pop() {
			if c.Closing() {
				u.refuse(domain.ErrUnavailable)
				continue
			}
			c.batch(u)
		}
		if c.Closing() {
			return
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
func (c *Committer) batch(first *unit) {
	guard := c.guarded > 0
	c.guarded = max(c.guarded-1, 0)
	c.counts.Batches.Inc()
	units, err := c.share([]*unit{first}, guard)
	if !guard && c.single == nil && errors.Is(err, engine.ErrAborted) {
		c.guarded = guardFor
		units, err = c.share(units, true)
	}
	var down error // no transaction can be begun
	for _, u := range units {
		switch {
		case c.single != nil && err != nil && !errors.Is(u.err, errAbandoned):
			u.claim()
			u.answer <- cmp.Or(Lasting(err), engine.ErrAlone)
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

// Lasting returns an error that the units of a transaction have in common; any other may be that of
// one.
func Lasting(err error) error {
	unavailable := errors.Is(err, domain.ErrUnavailable) && !errors.Is(err, engine.ErrUndone)
	if unavailable || errors.Is(err, engine.ErrUnknownOutcome) {
		return err
	}
	return nil
}

// next returns the next unit that may join, nil if none waits.
func (c *Committer) next(n int, began time.Time) *unit {
	if n >= MaxBatch || c.Now().Sub(began) > maxJoin {
		return nil
	}
	return c.queue.pop()
}

// share runs units, and those that wait and may join, in one transaction. It commits it, or rolls it
// back if there is nothing to commit, and returns all of them.
func (c *Committer) share(units []*unit, guard bool) ([]*unit, error) {
	began, written := c.Now(), false
	for c.single != nil {
		u := c.next(len(units), began)
		if u == nil {
			break
		}
		units = append(units, u)
	}
	tx, err := c.begin(aheadOf(units), !guard)
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
	return units, c.Commit(tx)
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
			u.err = engine.ErrAlone
		}
	}
	if !guard {
		if u.err != nil && tx.Wrote || !tx.Open() {
			return engine.ErrAborted
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
func (c *Committer) alone(u *unit) (outcome, down error) {
	tx, err := c.begin(nil, false)
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
	if err := c.Commit(tx); err != nil {
		return engine.Unavailable("commit", err), nil
	}
	return nil, nil
}

// aheadOf returns what is known of what units read.
func aheadOf(units []*unit) []*ports.ReadSet {
	list := make([]*ports.ReadSet, 0, len(units))
	for _, u := range units {
		if !u.reads.Empty() {
			list = append(list, u.reads)
		}
	}
	return list
}
