package payments_test

import (
	"context"
	"testing"
	"time"

	"agentproxy/domain/recharge"
	"agentproxy/ports"
	"agentproxy/test/apptest"
)

// calls returns how often each call of the chain was made by fn.
func (b *fixture) calls(fn func()) map[string]int {
	before := b.chain.Calls()
	fn()
	made := map[string]int{}
	for call, n := range b.chain.Calls() {
		if n > before[call] {
			made[call] = n - before[call]
		}
	}
	return made
}

// An address is read in every pass, whether an order waits for it or not.
func TestADepositWithoutAnOrder(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	agent, o := b.payer("10")
	b.advance(recharge.Window + recharge.Late + time.Hour)
	b.watch()
	b.expectOrder(o, recharge.Expired, "0")
	b.pay(o.Address, "10")
	b.settle()
	b.watch()
	b.expectCredited(agent, "0") // the address is read each hour
	b.advance(time.Hour)
	b.watch()
	b.expectCredited(agent, "10")
	b.expectOrder(o, recharge.Expired, "0")
	b.pay(o.Address, "5")
	b.settle()
	b.watch()
	b.expectCredited(agent, "15") // and in every scan once it was paid
	b.expectAllCredited()
}

// A pass reads the addresses with an order, whatever others there are.
func TestCallsOfAPass(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ addresses, calls int }{{0, 0}, {1, 1}, {1000, 1}, {1001, 1}} {
		b := fixtureOf(apptest.New(t))
		var last recharge.Order
		for n := range c.addresses {
			b.addAddress(n)
		}
		if c.addresses > 0 {
			b.Exec(`DELETE FROM recharge_addresses WHERE idx = 1`)
			_, last = b.payer("10") // the one with an order
			b.pay(last.Address, "1")
		}
		b.settle()
		b.watch()
		b.mine(2)
		made := b.calls(b.watch)
		if made["incoming"] != c.calls || made["history"] != 0 || made["heads"]+made["final"] != 1 || (made["heads"] == 1) != (c.addresses > 0) {
			t.Errorf("a pass over %d addresses calls %v", c.addresses, made)
		}
		if c.addresses > 0 {
			b.expectCredited(last.AgentID, "1")
		}
	}
}

// What was settled is not settled again while its block is read again.
func TestASettledTransferIsLeftAlone(t *testing.T) {
	t.Parallel()
	b := fixtureOf(apptest.New(t))
	_, o := b.payer("10")
	b.pay(o.Address, "4")
	b.settle()
	b.watch()
	b.pay(o.Address, "6") // seen, and then seen as before
	b.mine(1)
	b.watch()
	b.mine(1)
	b.Store.FailUpdates(2) // the first stores how far the pass came
	b.watch()
	b.Store.FailUpdates()
	b.settle()
	b.watch()
	b.expectOrder(o, recharge.Paid, "10")
}

// addAddress stores an address of an agent that orders nothing.
func (b *fixture) addAddress(n int) {
	apptest.OK(b.T, b.Store.Update(context.Background(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		address, err := b.keys.Address(uint32(n + 100_000))
		if err != nil {
			return err
		}
		index, err := tx.PayAddresses().NextIndex(ctx, "tron-test", "c")
		if err != nil {
			return err
		}
		return tx.PayAddresses().InsertAddress(ctx, recharge.Address{Network: "tron-test", Fingerprint: "c", Index: index,
			AgentID: "agt_" + address, Address: address, CreatedAt: b.Clock.Now(), ReadThrough: b.Clock.Now()})
	}))
}

// While no order is open the chain is read less often, and its newest blocks
// not at all; an order ends that at once.
func TestAnIdleWatcher(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.payments.SetIdle(30 * time.Second)
	b.watch()
	pass := func() map[string]int {
		b.mine(3) // 9 s
		return b.calls(b.watch)
	}
	for _, want := range []int{0, 0, 0, 1, 0, 0, 0, 1} {
		if made := pass(); made["final"] != want || made["heads"] > 0 {
			t.Errorf("it calls %v, want the final head %d times", made, want)
		}
	}
	_, o := b.payer("10")
	b.pay(o.Address, "10")
	if made := pass(); made["heads"] != 1 || made["incoming"] != 1 {
		t.Errorf("with an order it calls %v", made)
	}
	b.expectOrder(o, recharge.Confirming, "0")
	b.settle()
	b.watch()
	b.expectOrder(o, recharge.Paid, "10")
	if made := pass(); len(made) > 0 {
		t.Errorf("after it was paid it calls %v", made)
	}
}

// A long gap is read in ranges, some in each pass, and the cursor never passes what
// was not read.
func TestCatchingUp(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	agent, o := b.payer("10")
	b.watch()
	b.mine(60_000)
	b.pay(o.Address, "3")
	b.mine(80_000)
	b.pay(o.Address, "7")
	b.settle()
	failed := false
	b.chain.OnCall(func(call string) error {
		if call == "incoming" && !failed && b.chain.Calls()["incoming"]%7 == 0 {
			failed = true
			return errChain
		}
		return nil
	})
	if b.payments.Watch(t.Context()) == nil || !failed {
		t.Fatal("a range that fails is no error")
	}
	if scanned := b.scanned(); scanned == 0 || scanned >= 30_000 {
		t.Errorf("with a range that failed the cursor is at %d", scanned)
	}
	made := b.calls(b.watch)
	b.expectCredited(agent, "3")
	if made["incoming"] != 20 || made["history"] != 0 {
		t.Errorf("a pass calls %v", made)
	}
	b.watch()
	b.expectCredited(agent, "10")
	b.expectAllCredited()
}

func (b *fixture) scanned() (n int64) {
	apptest.OK(b.T, b.Store.View(context.Background(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		m, _, err := tx.Transfers().ScanCursor(ctx, "tron-test")
		n = m.Final.Number
		return err
	}))
	return n
}

// What a source left out, although it reported the block to be complete, is found
// while the block is read again.
func TestTheLastBlocksAreReadAgain(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	agent, o := b.payer("10")
	b.watch()
	b.chain.Hide(b.pay(o.Address, "10"), 3)
	b.settle()
	for range 3 {
		b.watch()
		b.expectCredited(agent, "0")
		b.mine(30)
	}
	b.watch()
	b.expectCredited(agent, "10")
	b.expectOrder(o, recharge.Paid, "10")
}

// Earlier versions had a read-through time for each address and no cursor, or
// an old one. Nothing is lost, and what was read is not read again.
func TestADatabaseThatWasReadByAddress(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	agent, o := b.payer("10")
	other, _ := b.payer("10")
	through := b.chain.Now().Add(30 * time.Hour)
	b.advance(20 * time.Hour)
	b.pay(o.Address, "1") // before the read-through time: it was credited then
	b.advance(11 * time.Hour)
	b.pay(o.Address, "2")
	b.settle()
	b.Exec(`UPDATE recharge_addresses SET read_through = ?`, through.UnixMicro())
	b.Exec(`UPDATE recharge_addresses SET read_through = ? WHERE agent_id = ?`, through.Add(time.Hour).UnixMicro(), other)
	made := b.calls(b.watch)
	b.expectCredited(agent, "2")
	if made["incoming"] != 1 { // 1,200 blocks and the overlap
		t.Errorf("it calls %v", made)
	}
	apptest.Equal(t, "there is a cursor", b.scanned() > 0, true)
}
