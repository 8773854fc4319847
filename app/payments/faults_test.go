package payments_test

import (
	"errors"
	"testing"
	"time"

	"agentproxy/domain/recharge"
	"agentproxy/test/apptest"
	"agentproxy/test/fake"
)

var errChain = errors.New("the chain failed on purpose")

// failCalls makes some calls of the chain fail.
func (b *fixture) failCalls(calls ...string) {
	b.chain.OnCall(func(call string) error {
		for _, c := range calls {
			if c == call {
				return errChain
			}
		}
		return nil
	})
}

// An error of the chain proves nothing and changes nothing (F15).
func TestAnErrorMovesNothing(t *testing.T) {
	t.Parallel()
	expectStable(t, func(t *testing.T, b *fixture) {
		_, o := b.payer("10")
		b.watch()
		b.pay(o.Address, "10")
		b.settle()
		for _, call := range []string{"heads", "incoming"} {
			before := b.Dump()
			b.failCalls(call)
			err := b.payments.Watch(t.Context())
			b.failCalls()
			if err == nil {
				continue // this way of reading does not need the call
			}
			apptest.ErrorIs(t, err, errChain)
			apptest.Equal(t, "the database after "+call, b.Dump(), before)
		}
		b.watch()
		b.expectOrder(o, recharge.Paid, "10")
	})
}

// What became final after the heads were read waits: what is before it may
// not be stored yet.
func TestFinalAboveTheHeads(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	agent, o := b.payer("10")
	b.pay(o.Address, "10")
	b.mine(fake.FinalBehind)
	b.chain.OnCall(func(call string) error {
		if call == "incoming" {
			b.chain.Mine(1)
		}
		return nil
	})
	b.watch()
	b.expectOrder(o, recharge.Confirming, "0")
	b.expectCredited(agent, "0")
	b.watch()
	b.expectOrder(o, recharge.Paid, "10")
}

// A transfer that is final waits too while its address
// cannot be read.
func TestSeenWaitsForItsAddress(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	agent, o := b.payer("10")
	k := b.pay(o.Address, "10")
	b.mine(1)
	b.watch()
	b.mine(100)
	b.failCalls("incoming")
	apptest.ErrorIs(t, b.payments.Watch(t.Context()), errChain)
	apptest.Equal(t, "the row", b.row(k), "seen "+o.ID)
	b.expectCredited(agent, "0")
	b.failCalls()
	b.watch()
	b.expectOrder(o, recharge.Paid, "10")
}

// Blocks are read without a gap, however often that fails.
func TestFlakyBlocks(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	_, o := b.payer("100")
	b.watch()
	for range 20 {
		for range 50 { // most of them are final before they are seen
			b.pay(o.Address, "0.1")
			b.mine(1)
		}
		b.failCalls("incoming")
		apptest.ErrorIs(t, b.payments.Watch(t.Context()), errChain)
		b.failCalls()
		b.watch()
	}
	b.settle()
	b.watch()
	b.expectOrder(o, recharge.Paid, "100")
	b.expectAllCredited()
}

// In an outage no window closes, however late it gets; after it the chain
// decides, by block time.
func TestOutageAcrossAnExpiry(t *testing.T) {
	t.Parallel()
	expectStable(t, func(t *testing.T, b *fixture) {
		_, paid := b.payer("10")
		_, unpaid := b.payer("10")
		b.watch()
		b.failCalls("heads")
		b.advance(20 * time.Minute)
		b.pay(paid.Address, "10")
		for range 3 {
			b.advance(time.Hour)
			apptest.ErrorIs(t, b.payments.Watch(t.Context()), errChain)
		}
		b.failCalls("incoming")
		apptest.ErrorIs(t, b.payments.Watch(t.Context()), errChain)
		b.expectOrder(paid, recharge.Pending, "0")
		b.expectOrder(unpaid, recharge.Pending, "0")
		b.failCalls()
		b.watch()
		b.expectOrder(paid, recharge.Paid, "10")
		b.expectOrder(unpaid, recharge.Expired, "0")
		apptest.Equal(t, "events", b.eventsOf(paid.AgentID), "paid")
	})
}

// A process that was down longer than money may be late reads what was late.
func TestDownForDays(t *testing.T) {
	t.Parallel()
	expectStable(t, func(t *testing.T, b *fixture) {
		agent, o := b.payer("10")
		b.watch()
		b.advance(time.Hour)
		b.watch()
		b.expectOrder(o, recharge.Expired, "0")
		b.advance(24 * time.Hour)
		b.pay(o.Address, "10")
		b.advance(120 * time.Hour)
		b.restart()
		b.watch()
		b.expectOrder(o, recharge.Paid, "10")
		b.expectCredited(agent, "10")
	})
}

// The clock of the server decides nothing of the money (F17).
func TestClockSkew(t *testing.T) {
	t.Parallel()
	for name, skew := range map[string]time.Duration{"ahead": time.Hour, "behind": -time.Hour, "far ahead": 20 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expectStable(t, func(t *testing.T, b *fixture) {
				b.Clock.Advance(skew)
				agent, o := b.payer("10")
				b.watch()
				b.pay(o.Address, "10")
				b.settle()
				b.watch()
				b.expectOrder(o, recharge.Paid, "10")
				b.expectCredited(agent, "10")
				apptest.Equal(t, "a warning", b.logged("clock"), true)
			})
		})
	}
	t.Run("no warning without", func(t *testing.T) {
		t.Parallel()
		b := newFixture(t)
		b.watch()
		apptest.Equal(t, "a warning", b.logged("clock"), false)
	})
}

// An index that lags behind while it claims to be complete (F3): the overlap
// finds what it left out.
func TestLaggingIndex(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	agent, o := b.payer("10")
	k := b.pay(o.Address, "10")
	b.chain.Hide(k, 5)
	b.mine(1)
	for range 8 {
		b.watch()
		b.mine(20)
	}
	b.expectOrder(o, recharge.Paid, "10")
	b.expectCredited(agent, "10")
	t.Run("what was seen and is then left out is asked for by itself", func(t *testing.T) {
		agent, o := b.payer("10")
		k := b.pay(o.Address, "10")
		b.mine(1)
		b.watch()
		b.chain.Hide(k, 1000)
		b.mine(100)
		b.watch()
		b.expectOrder(o, recharge.Paid, "10")
		b.expectCredited(agent, "10")
	})
	b.expectAllCredited()
}

// A transaction that cannot be looked up stays undecided.
func TestSeenWhileTheChainIsSilent(t *testing.T) {
	t.Parallel()
	expectStable(t, func(t *testing.T, b *fixture) {
		_, o := b.payer("10")
		k := b.pay(o.Address, "10")
		b.mine(1)
		b.watch()
		b.chain.Fork(5, false)
		b.advance(time.Hour)
		b.failCalls("transaction")
		apptest.ErrorIs(t, b.payments.Watch(t.Context()), errChain)
		apptest.Equal(t, "the row", b.row(k), "seen "+o.ID)
		b.expectOrder(o, recharge.Confirming, "0")
		b.failCalls()
		b.watch()
		b.expectOrder(o, recharge.Failed, "0")
	})
}

// What another watcher found in a later block while the chain was asked is not
// given up.
func TestItCameBackMeanwhile(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	_, o := b.payer("10")
	k := b.pay(o.Address, "10")
	b.mine(1)
	b.watch()
	b.chain.Fork(5, false)
	b.advance(3 * time.Minute)
	b.chain.OnCall(func(call string) error {
		if call == "transaction" {
			b.Exec(`UPDATE recharge_transfers SET block = block + 1000`)
		}
		return nil
	})
	b.watch()
	apptest.Equal(t, "the row", b.row(k), "seen "+o.ID)
	b.expectOrder(o, recharge.Confirming, "0")
}
