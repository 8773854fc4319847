package payments_test

import (
	"testing"
	"time"

	"agentproxy/domain/recharge"
	"agentproxy/test/apptest"
	"agentproxy/test/fake"
)

func TestOrphans(t *testing.T) {
	t.Parallel()
	t.Run("while the window is open the order waits again", func(t *testing.T) {
		t.Parallel()
		expectStable(t, func(t *testing.T, b *fixture) {
			agent, o := b.payer("10")
			k := b.pay(o.Address, "10")
			b.mine(3)
			b.watch()
			b.expectOrder(o, recharge.Confirming, "0")
			b.chain.Fork(10, false)
			b.mine(fake.FinalBehind + 37)
			b.watch()
			b.expectOrder(o, recharge.Confirming, "0") // it may yet be found
			b.mine(10)
			b.watch()
			b.expectOrder(o, recharge.Pending, "0")
			apptest.Equal(t, "the row", b.row(k), "orphaned ")
			b.expectCredited(agent, "0")
			b.pay(o.Address, "10")
			b.settle()
			b.watch()
			b.expectOrder(o, recharge.Paid, "10")
			apptest.Equal(t, "events", b.eventsOf(agent), "confirming paid")
		})
	})
	t.Run("when it is closed the order failed", func(t *testing.T) {
		t.Parallel()
		expectStable(t, func(t *testing.T, b *fixture) {
			agent, o := b.payer("10")
			b.advance(recharge.Window - time.Minute)
			b.pay(o.Address, "10")
			b.mine(3)
			b.watch()
			b.chain.Fork(10, false)
			b.advance(5 * time.Minute)
			b.watch()
			b.watch()
			b.expectOrder(o, recharge.Failed, "0")
			apptest.Equal(t, "events", b.eventsOf(agent), "confirming failed")
			b.pay(o.Address, "10")
			b.settle()
			b.watch()
			b.expectOrder(o, recharge.Failed, "0")
			b.expectCredited(agent, "10")
		})
	})
	t.Run("what comes back in another block is credited once", func(t *testing.T) {
		t.Parallel()
		expectStable(t, func(t *testing.T, b *fixture) {
			agent, o := b.payer("10")
			b.pay(o.Address, "10")
			b.mine(3)
			b.watch()
			b.chain.Fork(10, true)
			b.mine(2)
			b.watch()
			b.settle()
			b.watch()
			b.expectOrder(o, recharge.Paid, "10")
			b.expectCredited(agent, "10")
			apptest.Equal(t, "events", b.eventsOf(agent), "confirming paid")
		})
	})
	t.Run("and even when it was given up", func(t *testing.T) {
		t.Parallel()
		expectStable(t, func(t *testing.T, b *fixture) {
			agent, o := b.payer("10")
			b.pay(o.Address, "10")
			b.mine(3)
			b.watch()
			b.chain.Fork(10, true)
			// As if the chain had not had it when it was asked.
			b.Exec(`UPDATE recharge_transfers SET state = 'orphaned', order_id = ''`)
			b.settle()
			b.watch()
			b.expectOrder(o, recharge.Paid, "10")
			b.expectCredited(agent, "10")
		})
	})
}
