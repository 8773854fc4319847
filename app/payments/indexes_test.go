package payments_test

import (
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"agentproxy/app/payments"
	"agentproxy/domain/recharge"
	"agentproxy/test/apptest"
)

// marks is a mark of indexes that outlives databases.
type marks map[string]uint32

func (m marks) Next(key string) (next uint32, kept bool, err error) {
	next, kept = m[key]
	return next, kept, nil
}

func (m marks) Raise(key string, next uint32) error {
	m[key] = max(m[key], next)
	return nil
}

// older returns a service on a database from before that of another one, with its chain and account key.
func (b *fixture) older(mark marks) *fixture {
	old := newFixture(b.T)
	old.chain, old.keys = b.chain, b.keys
	old.Clock.Advance(b.Clock.Now().Sub(old.Clock.Now()))
	old.restart()
	old.keep(mark)
	return old
}

// keep lets the orders keep a mark, as after a restart.
func (b *fixture) keep(mark marks) {
	cfg := payments.Config{Log: slog.New(slog.NewTextHandler(b.logs, nil))}
	if mark != nil {
		cfg.Mark = mark
	}
	b.recharges = payments.NewOrders(cfg, b.Store, b.Clock, b.IDs, b.chain, b.keys)
	apptest.OK(b.T, b.recharges.Indexes.Resume(b.T.Context()))
}

// indexOf returns the index of the address of an order.
func (b *fixture) indexOf(o recharge.Order) int {
	b.T.Helper()
	d, err := b.recharges.Show(b.T.Context(), o.ID)
	apptest.OK(b.T, err)
	return int(d.Wallet.Index)
}

// An address that was paid before a copy of the database was restored, or by another database with the same account key, is
// given to no agent.
func TestAUsedAddressIsGivenToNoAgent(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]time.Duration{"at once": 0, "once the service caught up": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFixture(t)
			first, o := b.payer("25")
			b.pay(o.Address, "25")
			b.settle()
			b.watch()
			b.expectCredited(first, "25")

			old := b.older(nil)
			if wait > 0 {
				old.watch()
				old.advance(wait)
				old.watch()
			}
			second, p := old.payer("10")
			if p.Address == o.Address || !old.logged("is used on the chain") {
				t.Errorf("the first has %s, the second %s; the log %s", o.Address, p.Address, old.logs.String())
			}
			old.pay(o.Address, "40")
			old.settle()
			old.watch()
			apptest.OK(t, old.payments.Audit(t.Context(), 10))
			old.expectCredited(second, "0")
			skipped, err := old.recharges.Indexes.Skipped(t.Context())
			apptest.OK(t, err)
			apptest.Equal(t, "skipped", skipped, 1)
		})
	}
}

// A database that went back in time gives out no index that it may have given out since, used or not.
func TestAnOlderDatabaseLeavesIndexesOut(t *testing.T) {
	t.Parallel()
	mark := marks{}
	b := newFixture(t)
	b.keep(mark)
	_, first := b.payer("10")
	_, second := b.payer("10")
	apptest.Equal(t, "the second index", b.indexOf(second), b.indexOf(first)+1)
	b.keep(mark)
	_, third := b.payer("10")
	apptest.Equal(t, "after a restart", b.indexOf(third), b.indexOf(second)+1)

	old := b.older(mark)
	_, o := old.payer("10")
	apptest.Equal(t, "of the older database", old.indexOf(o), b.indexOf(third)+1+recharge.IndexJump)
	old.keep(mark)
	_, o = old.payer("10")
	apptest.Equal(t, "it jumps once", old.indexOf(o), b.indexOf(third)+2+recharge.IndexJump)

	b.keep(marks{}) // the file was lost with the disk
	_, o = b.payer("10")
	apptest.Equal(t, "without the file", b.indexOf(o), b.indexOf(third)+1+recharge.IndexJump)
	from, next, err := b.recharges.Indexes.Restored(t.Context())
	apptest.OK(t, err)
	_, o = b.payer("10")
	apptest.Equal(t, "what the operator leaves out", int(next-from), recharge.IndexJump)
	apptest.Equal(t, "after his command", b.indexOf(o), int(next))
	faults, _, err := b.DB.Verify(t.Context())
	if len(faults) > 0 || err != nil {
		t.Errorf("verify finds %v, %v", faults, err)
	}
}

// While the chain does not answer no new agent gets an address, who has one goes on, and no index is lost.
func TestTheChainIsAskedBeforeAnAddressIsGiven(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.keep(nil)
	old, first := b.payer("10")
	b.Clock.Advance(time.Hour) // the answer of the chain is old
	b.chain.OnCall(func(string) error { return errors.New("away") })
	fresh := b.Register()
	before := b.Dump()
	for range 3 {
		_, err := b.recharges.Create(t.Context(), payments.CreateOrder{AgentID: fresh, Amount: apptest.Dollars("5")})
		apptest.ErrorIs(t, err, recharge.ErrNoAddress)
	}
	apptest.Equal(t, "the database", b.Dump(), before)
	apptest.Equal(t, "who has one", b.order(old, "5").Address, first.Address)
	b.chain.OnCall(nil)
	apptest.Equal(t, "the next index", b.indexOf(b.order(fresh, "5")), b.indexOf(first)+1)
}

// Who opens accounts without end has the chain asked once for fifty addresses.
func TestNewAddressesCostFewCalls(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	for range 120 {
		b.payer("10")
	}
	if n := b.chain.Calls()["used"]; n != 3 {
		t.Errorf("120 addresses asked the chain %d times, want 3", n)
	}
}

// After a failover that lost rows the next index is beyond all that may have been given out in them, once for each.
func TestLostRowsLeaveIndexesOut(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	var lost atomic.Int64
	b.recharges = payments.NewOrders(payments.Config{Lost: lost.Load, Log: slog.New(slog.NewTextHandler(b.logs, nil))},
		b.Store, b.Clock, b.IDs, b.chain, b.keys)
	next := func() int {
		_, o := b.payer("10")
		return b.indexOf(o)
	}
	first := next()
	apptest.Equal(t, "before", next(), first+1)
	lost.Add(1)
	apptest.Equal(t, "after the first failover", next(), first+2+recharge.IndexJump)
	if !b.logged("rows of the database were lost") {
		t.Errorf("the log: %s", b.logs.String())
	}
	apptest.Equal(t, "it jumps once", next(), first+3+recharge.IndexJump)
	lost.Add(1)
	apptest.Equal(t, "after the second", next(), first+4+2*recharge.IndexJump)
}
