package payments_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"agentproxy/domain/recharge"
	"agentproxy/test/apptest"
	"agentproxy/test/fake"
)

var errChain = errors.New("the chain failed on purpose")

// failing makes some calls of the chain fail.
func (b *till) failing(calls ...string) {
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
	eachWay(t, func(t *testing.T, b *till) {
		_, o := b.payer("10")
		b.watch()
		b.pay(o.Address, "10")
		b.settle()
		for _, call := range []string{"heads", "history", "block"} {
			before := b.Dump()
			b.failing(call)
			err := b.payments.Watch(t.Context())
			b.failing()
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

// One address that cannot be read does not stop the others, and nothing of it
// moves (F16).
func TestOneAddressFails(t *testing.T) {
	t.Parallel()
	b := newTill(t)
	_, bad := b.payer("5")
	_, good := b.payer("6")
	b.watch()
	b.pass(recharge.Window + 2*time.Minute)
	b.pay(good.Address, "6")
	b.settle()
	n := 0
	b.chain.OnCall(func(call string) error {
		if call == "history" {
			if n++; n == 1 { // the least recently read, which are equal, by address
				return errChain
			}
		}
		return nil
	})
	if bad.Address > good.Address {
		bad, good = good, bad
	}
	read := func(o recharge.Order) string {
		return strings.Join(b.Column(`SELECT read_through FROM recharge_addresses WHERE address = ?`, o.Address), "")
	}
	before, status := read(bad), b.expectOrder(bad, recharge.Pending, "0").Status
	apptest.ErrorIs(t, b.payments.Watch(t.Context()), errChain)
	apptest.Equal(t, "the failed one", read(bad), before)
	b.expectOrder(bad, status, "0")
	if read(good) == before {
		t.Error("the other one was not read")
	}
	b.chain.OnCall(nil)
	b.watch()
	b.complete()
}

// What became final after the heads were read waits: what is before it may
// not be known yet.
func TestFinalAboveTheHeads(t *testing.T) {
	t.Parallel()
	b := newTill(t)
	agent, o := b.payer("10")
	b.pay(o.Address, "10")
	b.mine(fake.FinalBehind)
	b.chain.OnCall(func(call string) error {
		if call == "history" {
			b.chain.Mine(1)
		}
		return nil
	})
	b.watch()
	b.expectOrder(o, recharge.Confirming, "0")
	b.credited(agent, "0")
	b.watch()
	b.expectOrder(o, recharge.Paid, "10")
}

// A transfer listed at one address for another that cannot be read waits for the other.
func TestItsOwnTurn(t *testing.T) {
	t.Parallel()
	b := newTill(t)
	_, one := b.payer("5")
	_, two := b.payer("6")
	if one.Address > two.Address {
		one, two = two, one
	}
	b.chain.Send(stranger, two.Address, apptest.Dollars("1"))
	b.mine(1)
	b.chain.Send(one.Address, two.Address, apptest.Dollars("6"))
	b.settle()
	n := 0
	b.chain.OnCall(func(call string) error {
		if call == "history" {
			if n++; n == 2 {
				return errChain
			}
		}
		return nil
	})
	apptest.ErrorIs(t, b.payments.Watch(t.Context()), errChain)
	b.expectOrder(two, recharge.Pending, "0")
	b.chain.OnCall(nil)
	b.watch()
	b.credited(two.AgentID, "7")
	b.complete()
}

// A transfer that is known to be final by itself waits too while its address
// cannot be read.
func TestSeenWaitsForItsAddress(t *testing.T) {
	t.Parallel()
	b := newTill(t)
	agent, o := b.payer("10")
	k := b.pay(o.Address, "10")
	b.mine(1)
	b.watch()
	b.mine(100)
	b.failing("history")
	apptest.ErrorIs(t, b.payments.Watch(t.Context()), errChain)
	apptest.Equal(t, "the row", b.row(k), "seen "+o.ID)
	b.credited(agent, "0")
	b.failing()
	b.watch()
	b.expectOrder(o, recharge.Paid, "10")
}

// Blocks are read without a gap, whichever of them fails.
func TestFlakyBlocks(t *testing.T) {
	t.Parallel()
	b := newTill(t).few(0)
	_, o := b.payer("100")
	b.watch()
	for round := range 20 {
		for range 50 { // most of them are final before they are seen
			b.pay(o.Address, "0.1")
			b.mine(1)
		}
		n := 0
		b.chain.OnCall(func(call string) error {
			if call == "block" {
				if n++; n == 20+round {
					return errChain
				}
			}
			return nil
		})
		apptest.ErrorIs(t, b.payments.Watch(t.Context()), errChain)
		b.chain.OnCall(nil)
		b.watch()
	}
	b.settle()
	b.watch()
	b.expectOrder(o, recharge.Paid, "100")
	b.complete()
}

// In an outage no window closes, however late it gets; after it the chain
// decides, by block time.
func TestOutageAcrossAnExpiry(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, b *till) {
		_, paid := b.payer("10")
		_, unpaid := b.payer("10")
		b.watch()
		b.failing("heads")
		b.pass(20 * time.Minute)
		b.pay(paid.Address, "10")
		for range 3 {
			b.pass(time.Hour)
			apptest.ErrorIs(t, b.payments.Watch(t.Context()), errChain)
		}
		b.failing("history", "block")
		apptest.ErrorIs(t, b.payments.Watch(t.Context()), errChain)
		b.expectOrder(paid, recharge.Pending, "0")
		b.expectOrder(unpaid, recharge.Pending, "0")
		b.failing()
		for range 25 { // by blocks it comes in parts
			b.watch()
		}
		b.expectOrder(paid, recharge.Paid, "10")
		b.expectOrder(unpaid, recharge.Expired, "0")
		apptest.Equal(t, "told", b.rechargeEvents(paid.AgentID), "paid")
	})
}

// A process that was down longer than money may be late reads what was late.
func TestDownForDays(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, b *till) {
		agent, o := b.payer("10")
		b.watch()
		b.pass(time.Hour)
		b.watch()
		b.expectOrder(o, recharge.Expired, "0")
		b.pass(24 * time.Hour)
		b.pay(o.Address, "10")
		b.pass(120 * time.Hour)
		b.restart()
		b.watch()
		b.expectOrder(o, recharge.Paid, "10")
		b.credited(agent, "10")
	})
}

// The clock of the server decides nothing of the money (F17).
func TestClockSkew(t *testing.T) {
	t.Parallel()
	for name, skew := range map[string]time.Duration{"ahead": time.Hour, "behind": -time.Hour, "far ahead": 20 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachWay(t, func(t *testing.T, b *till) {
				b.Clock.Advance(skew)
				agent, o := b.payer("10")
				b.watch()
				b.pay(o.Address, "10")
				b.settle()
				b.watch()
				b.expectOrder(o, recharge.Paid, "10")
				b.credited(agent, "10")
				apptest.Equal(t, "a warning", b.logs.has("clock"), true)
			})
		})
	}
	t.Run("no warning without", func(t *testing.T) {
		t.Parallel()
		b := newTill(t)
		b.watch()
		apptest.Equal(t, "a warning", b.logs.has("clock"), false)
	})
}

// An index that lags behind while it claims to be complete (F3): the overlap
// finds what it left out.
func TestLaggingIndex(t *testing.T) {
	t.Parallel()
	b := newTill(t)
	agent, o := b.payer("10")
	k := b.pay(o.Address, "10")
	b.chain.HideFromHistory(k, 5)
	b.mine(1)
	for range 8 {
		b.watch()
		b.mine(20)
	}
	b.expectOrder(o, recharge.Paid, "10")
	b.credited(agent, "10")
	t.Run("what was seen and is then left out is asked for by itself", func(t *testing.T) {
		agent, o := b.payer("10")
		k := b.pay(o.Address, "10")
		b.mine(1)
		b.watch()
		b.chain.HideFromHistory(k, 1000)
		b.mine(100)
		b.watch()
		b.expectOrder(o, recharge.Paid, "10")
		b.credited(agent, "10")
	})
	b.complete()
}

// A transaction that cannot be looked up stays undecided.
func TestSeenWhileTheChainIsSilent(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, b *till) {
		_, o := b.payer("10")
		k := b.pay(o.Address, "10")
		b.mine(1)
		b.watch()
		b.chain.Fork(5, false)
		b.pass(time.Hour)
		b.failing("transaction")
		apptest.ErrorIs(t, b.payments.Watch(t.Context()), errChain)
		apptest.Equal(t, "the row", b.row(k), "seen "+o.ID)
		b.expectOrder(o, recharge.Confirming, "0")
		b.failing()
		b.watch()
		b.expectOrder(o, recharge.Failed, "0")
	})
}

// What another watcher found in a later block while the chain was asked is not
// given up.
func TestItCameBackMeanwhile(t *testing.T) {
	t.Parallel()
	b := newTill(t)
	_, o := b.payer("10")
	k := b.pay(o.Address, "10")
	b.mine(1)
	b.watch()
	b.chain.Fork(5, false)
	b.pass(3 * time.Minute)
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
