package payments_test

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	"agentproxy/domain/recharge"
	"agentproxy/ports"
	"agentproxy/test/apptest"
)

// way demands the way of reading.
func (b *till) way(byBlocks bool) {
	b.T.Helper()
	apptest.Equal(b.T, "it reads by blocks", b.payments.ByBlocks(), byBlocks)
}

// Many addresses, few again and many again: each way takes over where the other
// ended, and nothing is lost in between, not even at addresses that were not
// watched meanwhile.
func TestSwitchingTheWay(t *testing.T) {
	t.Parallel()
	for name, pause := range map[string]time.Duration{"soon": 0, "after long": 4 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newTill(t)
			var orders []recharge.Order
			more := func(n int) {
				for range n {
					_, o := b.payer("10")
					orders = append(orders, o)
				}
			}
			payAll := func() {
				for _, o := range orders {
					b.pay(o.Address, "1")
					b.mine(1)
				}
			}
			more(5)
			b.watch()
			b.way(false)
			payAll()
			b.watch()
			more(25) // before their first look there is money of all
			payAll()
			b.pass(pause)
			b.watch()
			b.way(true)
			payAll()
			b.settle()
			b.watch()
			b.way(true)
			b.complete()
			payAll()
			b.pass(recharge.Window + recharge.Late + time.Hour)
			kept := orders
			orders = nil
			more(5)
			b.failing("block") // the last blocks before the change are not read
			_ = b.payments.Watch(t.Context())
			b.failing()
			for range 20 {
				b.watch()
			}
			orders = append(orders, kept...)
			payAll() // also what is not watched any more, which waits for the jump
			b.settle()
			for range 20 {
				b.watch()
			}
			for _, o := range orders[:5] {
				b.credited(o.AgentID, "1")
			}
			b.restart()
			b.few(10)
			b.pass(pause)
			b.watch()
			payAll()
			b.settle()
			b.watch()
			b.way(false)
			more(20)
			b.pass(pause)
			payAll()
			b.settle()
			for range 5 {
				b.watch()
			}
			b.way(true)
			b.complete()
		})
	}
}

// A jump that is cut short goes on where it was, or begins again, and until it
// has landed what is watched is read one by one.
func TestAJumpInParts(t *testing.T) {
	t.Parallel()
	b := newTill(t)
	var orders []recharge.Order
	for range 15 {
		_, o := b.payer("10")
		orders = append(orders, o)
		b.pay(o.Address, "10")
	}
	b.settle()
	n := 0
	b.chain.OnCall(func(call string) error {
		if call == "history" {
			if n++; n%7 == 3 {
				return errChain
			}
		}
		return nil
	})
	if b.payments.Watch(t.Context()) == nil {
		t.Error("an address that fails is no error")
	}
	apptest.Equal(t, "blocks read", b.chain.Calls()["block"], 0)
	apptest.Equal(t, "the mark", fmt.Sprint(b.Column(`SELECT final_number FROM recharge_marks`)), "[0]")
	b.chain.OnCall(nil)
	for range 3 {
		b.mine(1)
		b.watch()
	}
	for _, o := range orders {
		b.expectOrder(o, recharge.Paid, "10")
	}
	if b.chain.Calls()["block"] == 0 {
		t.Error("it never landed")
	}
	b.complete()
}

// A gap in the blocks is read block by block or skipped, a bounded number a pass; the
// mark never passes what was not read.
func TestCatchingUp(t *testing.T) {
	t.Parallel()
	b := newTill(t).few(0)
	agent, o := b.payer("10")
	for range 30 { // with more addresses blocks are cheaper
		for range 10 {
			b.payer("1")
		}
	}
	for range 3 {
		b.watch()
	}
	b.mine(450)
	b.pay(o.Address, "10")
	b.settle()
	calls := b.chain.Calls()
	b.watch()
	if n := b.chain.Calls()["block"] - calls["block"]; n > 240 || n < 200 {
		t.Errorf("a pass read %d blocks", n)
	}
	apptest.Equal(t, "histories", b.chain.Calls()["history"]-calls["history"], 0)
	b.credited(agent, "0")
	b.expectOrder(o, recharge.Pending, "0")
	for range 3 {
		b.watch()
	}
	b.expectOrder(o, recharge.Paid, "10")
	b.complete()
}

// Blocks that were read before the process began are read again: what was left
// out of them then is found.
func TestOverlapAtTheStart(t *testing.T) {
	t.Parallel()
	b := newTill(t).few(0)
	agent, o := b.payer("10")
	b.watch()
	b.pay(o.Address, "10")
	b.settle()
	b.mine(100)
	// As if a block had been answered empty.
	apptest.OK(t, b.Store.Update(t.Context(), func(ctx context.Context, tx ports.Tx) error {
		m, _, err := tx.Recharges().ScanCursor(ctx, "tron-test")
		if err != nil {
			return err
		}
		h, err := b.chain.Heads(ctx)
		m.Final = h.Final
		return firstOf(err, tx.Recharges().PutScanCursor(ctx, "tron-test", m, false))
	}))
	b.watch()
	b.credited(agent, "0")
	b.restart()
	b.few(0)
	b.watch()
	b.credited(agent, "10")
	b.expectOrder(o, recharge.Paid, "10")
	calls := b.chain.Calls()["block"]
	b.watch()
	apptest.Equal(t, "blocks read when nothing is new", b.chain.Calls()["block"], calls)
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// However many addresses there are, a pass needs the same calls.
func TestCallsDoNotGrowWithAddresses(t *testing.T) {
	t.Parallel()
	steady := func(n int) map[string]int {
		b := tillOf(apptest.New(t))
		var last recharge.Order
		for range n {
			_, last = b.payer("10")
		}
		for range n/200 + 2 {
			b.watch()
		}
		before := b.chain.Calls()
		for range 10 {
			b.pay(last.Address, "1")
			b.mine(2)
			b.watch()
		}
		after := b.chain.Calls()
		maps.DeleteFunc(after, func(call string, n int) bool { return n == before[call] })
		for call := range after {
			after[call] -= before[call]
		}
		b.credited(last.AgentID, "1")
		return after
	}
	few, many := steady(100), steady(1500)
	if !maps.Equal(few, many) || few["history"] > 0 || few["heads"] != 10 || few["block"] > 45 {
		t.Errorf("100 addresses need %v, 1500 need %v", few, many)
	}
}

// With few addresses a pass reads the watched ones, and no others.
func TestOnlyTheWatchedAreRead(t *testing.T) {
	t.Parallel()
	b := newTill(t)
	for range 8 {
		b.payer("10")
	}
	b.pass(recharge.Window + recharge.Late + time.Hour)
	b.watch()
	_, o := b.payer("10")
	b.pay(o.Address, "10")
	b.settle()
	b.watch()
	calls := b.chain.Calls()["history"]
	b.mine(1)
	b.watch()
	apptest.Equal(t, "histories", b.chain.Calls()["history"]-calls, 1)
	b.expectOrder(o, recharge.Paid, "10")
}
