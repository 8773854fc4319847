package payments_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"agentproxy/domain/recharge"
	"agentproxy/test/apptest"
	"agentproxy/test/fake"
)

// expectStable runs a test and checks that another scan changes nothing.
func expectStable(t *testing.T, fn func(t *testing.T, b *fixture)) {
	b := newFixture(t)
	b.watch()
	fn(t, b)
	b.watch()
	b.expectAllCredited()
	before := b.Dump()
	b.watch()
	apptest.Equal(t, "the database after another scan", b.Dump(), before)
}

func TestAnExactPayment(t *testing.T) {
	t.Parallel()
	expectStable(t, func(t *testing.T, b *fixture) {
		agent, o := b.payer("12.50")
		b.watch()
		b.expectOrder(o, recharge.Pending, "0")
		k := b.pay(o.Address, "12.50")
		b.mine(1)
		b.watch()
		v := b.expectOrder(o, recharge.Confirming, "0")
		if v.TxID != k.TxID || v.Confirmations != 0 || v.Required != fake.FinalBehind {
			t.Errorf("it shows %+v", v)
		}
		b.mine(7)
		b.watch()
		apptest.Equal(t, "confirmations", b.expectOrder(o, recharge.Confirming, "0").Confirmations, 7)
		b.mine(fake.FinalBehind - 8)
		b.watch()
		apptest.Equal(t, "confirmations", b.expectOrder(o, recharge.Confirming, "0").Confirmations, fake.FinalBehind-1)
		b.expectCredited(agent, "0")
		b.mine(1)
		b.watch()
		v = b.expectOrder(o, recharge.Paid, "12.50")
		apptest.Equal(t, "confirmations", v.Confirmations, fake.FinalBehind)
		apptest.Equal(t, "paid at", v.PaidAt, b.chain.Finals()[0].BlockTime)
		b.mine(100)
		b.watch()
		apptest.Equal(t, "confirmations", b.expectOrder(o, recharge.Paid, "12.50").Confirmations, fake.FinalBehind)
		b.expectCredited(agent, "12.50")
		apptest.Equal(t, "the balance", b.Balance(agent), apptest.Dollars("22.50"))
		apptest.Equal(t, "events", b.eventsOf(agent), "confirming paid")
		apptest.Equal(t, "the ledger", b.Entries(agent), "trial_grant 10000000, recharge 12500000")
		money, err := b.Wallet.Balance(t.Context(), agent)
		apptest.OK(t, err)
		apptest.Equal(t, "it is a trial", money.IsTrial, false)
	})
}

func TestSums(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		claim    string
		pay      []string
		status   recharge.Status
		received string
		credited string
		events   string
	}{
		{"too little is credited, and the order waits for the rest", []string{"4"}, recharge.Confirming, "4", "4", "confirming"},
		{"parts that make it pay it", []string{"4", "6"}, recharge.Paid, "10", "10", "confirming paid"},
		{"each part is reported once", []string{"2", "3", "5"}, recharge.Paid, "10", "10", "confirming paid"},
		{"what is over stays balance", []string{"12"}, recharge.Paid, "12", "12", "paid"},
		{"the last part may be over", []string{"4", "9"}, recharge.Paid, "13", "13", "confirming paid"},
		{"the same twice pays once", []string{"10", "10"}, recharge.Paid, "10", "20", "paid"},
		{"dust counts", []string{"0.000001", "9.999999"}, recharge.Paid, "10", "10", "confirming paid"},
	} {
		t.Run(c.claim, func(t *testing.T) {
			t.Parallel()
			expectStable(t, func(t *testing.T, b *fixture) {
				agent, o := b.payer("10")
				for _, amount := range c.pay {
					b.pay(o.Address, amount)
					b.settle()
					b.watch()
				}
				b.expectOrder(o, c.status, c.received)
				b.expectCredited(agent, c.credited)
				apptest.Equal(t, "events", b.eventsOf(agent), c.events)
			})
		})
	}
	t.Run("too little when the window closes is expired, and what is late pays it", func(t *testing.T) {
		t.Parallel()
		expectStable(t, func(t *testing.T, b *fixture) {
			agent, o := b.payer("10")
			b.pay(o.Address, "4")
			b.advance(recharge.Window + 2*time.Minute)
			b.watch()
			b.expectOrder(o, recharge.Expired, "4")
			b.advance(recharge.Late - 10*time.Minute)
			b.watch()
			b.pay(o.Address, "6")
			b.mine(1)
			b.watch()
			b.expectOrder(o, recharge.Confirming, "4")
			b.settle()
			b.watch()
			b.expectOrder(o, recharge.Paid, "10")
			apptest.Equal(t, "events", b.eventsOf(agent), "expired confirming paid")
		})
	})
	t.Run("after 72 hours money is credited and the order stays", func(t *testing.T) {
		t.Parallel()
		expectStable(t, func(t *testing.T, b *fixture) {
			agent, o := b.payer("10")
			b.advance(recharge.Window + recharge.Late + time.Minute)
			b.pay(o.Address, "10")
			b.settle()
			b.watch()
			b.expectOrder(o, recharge.Expired, "0")
			b.expectCredited(agent, "10")
		})
	})
}

func TestMatching(t *testing.T) {
	t.Parallel()
	expectStable(t, func(t *testing.T, b *fixture) {
		agent := b.Register()
		five, seven := b.order(agent, "5"), b.order(agent, "7")
		apptest.Equal(t, "one address", five.Address, seven.Address)
		b.pay(seven.Address, "7")
		b.settle()
		b.watch()
		b.expectOrder(seven, recharge.Paid, "7")
		b.expectOrder(five, recharge.Pending, "0")
		b.pay(five.Address, "5")
		b.settle()
		b.watch()
		b.expectOrder(five, recharge.Paid, "5")
		b.expectCredited(agent, "12")
	})
}

func TestWindows(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		claim  string
		blocks int // after the window closed, the block of the payment has this distance
	}{{"in the last block before it closes", 0}, {"one block after", 1}} {
		t.Run(c.claim, func(t *testing.T) {
			t.Parallel()
			expectStable(t, func(t *testing.T, b *fixture) {
				agent, o := b.payer("10")
				b.mine(int(recharge.Window/fake.BlockEvery) - 1 + c.blocks)
				b.watch()
				b.pay(o.Address, "10")
				b.mine(1)
				apptest.Equal(t, "late", b.chain.Now().After(o.ExpiresAt), c.blocks > 0)
				b.mine(40) // it is detected two minutes later
				b.watch()
				b.expectOrder(o, recharge.Paid, "10")
				apptest.Equal(t, "events", b.eventsOf(agent), "paid")
			})
		})
	}
	t.Run("a window closes when the final head is past it", func(t *testing.T) {
		t.Parallel()
		expectStable(t, func(t *testing.T, b *fixture) {
			_, o := b.payer("10")
			b.mine(int(recharge.Window/fake.BlockEvery) + fake.FinalBehind)
			b.watch()
			b.expectOrder(o, recharge.Pending, "0")
			b.mine(1)
			b.watch()
			b.expectOrder(o, recharge.Expired, "0")
			_, o = b.payer("10") // and the same, followed block by block
			left := int(recharge.Window/fake.BlockEvery) + fake.FinalBehind
			for ; left > 0; left -= 19 {
				b.mine(min(left, 19))
				b.watch()
			}
			b.expectOrder(o, recharge.Pending, "0")
			b.mine(1)
			b.watch()
			b.expectOrder(o, recharge.Expired, "0")
		})
	})
	t.Run("what was seen and is final is not waited for any more", func(t *testing.T) {
		t.Parallel()
		expectStable(t, func(t *testing.T, b *fixture) {
			_, o := b.payer("10")
			b.advance(recharge.Window - time.Minute)
			b.watch()
			b.pay(o.Address, "4")
			b.mine(1)
			b.watch()
			b.expectOrder(o, recharge.Confirming, "0")
			b.advance(5 * time.Minute)
			b.watch()
			b.expectOrder(o, recharge.Expired, "4")
		})
	})
}

func TestSeveralTransfersInOneTransaction(t *testing.T) {
	t.Parallel()
	expectStable(t, func(t *testing.T, b *fixture) {
		one, first := b.payer("10")
		two, second := b.payer("5")
		move := func(to, amount string) fake.Move {
			return fake.Move{From: sender, To: to, Amount: apptest.Dollars(amount)}
		}
		b.chain.SendTx(move(first.Address, "5"), move(first.Address, "5"), move(second.Address, "5"), move(fake.ChainAddress(7), "9"))
		b.settle()
		b.watch()
		b.expectOrder(first, recharge.Paid, "10")
		b.expectOrder(second, recharge.Paid, "5")
		b.expectCredited(one, "10")
		b.expectCredited(two, "5")
	})
}

// Money from one recharge address to another was moved by the operator, who alone has the keys: it is not credited, is
// listed and logged, and what is known of both addresses follows.
func TestBetweenOurs(t *testing.T) {
	t.Parallel()
	expectStable(t, func(t *testing.T, b *fixture) {
		one, first := b.payer("10")
		two, second := b.payer("4")
		b.pay(first.Address, "10")
		b.mine(1)
		b.chain.Send(first.Address, second.Address, apptest.Dollars("4"))
		b.chain.Send(first.Address, fake.ChainAddress(9), apptest.Dollars("1"))
		b.mine(1)
		b.watch()
		_, _, err := b.payments.AuditAll(t.Context()) // which reads what left the addresses too
		apptest.OK(t, err)
		apptest.Equal(t, "rows of what may still come back", len(b.Column(`SELECT 1 FROM recharge_transfers WHERE agent_id = ''`)), 0)
		b.settle()
		b.watch()
		b.expectCredited(one, "10")
		b.expectCredited(two, "0")
		b.expectOrder(second, recharge.Pending, "0")
		moves, err := b.payments.OwnMoves(t.Context())
		apptest.OK(t, err)
		status, err := b.payments.Status(t.Context())
		apptest.OK(t, err)
		if len(moves) != 1 || status.OwnMoves != 1 || moves[0].Amount != apptest.Dollars("4") || moves[0].To != second.Address ||
			!b.logged("is not credited") {
			t.Errorf("the moves are %+v, %d; the log %s", moves, status.OwnMoves, b.logs.String())
		}
		faults, _, err := b.DB.Verify(t.Context())
		if len(faults) > 0 || err != nil {
			t.Errorf("verify finds %v, %v", faults, err)
		}
		checked, drifts, err := b.payments.AuditAll(t.Context())
		apptest.OK(t, err)
		if checked != 2 || len(drifts) != 0 {
			t.Errorf("of %d there differ %+v", checked, drifts)
		}
	})
}

// What is no money leaves no credit: F5, F8, F9, and amounts beyond counting.
func TestWhatIsNoMoney(t *testing.T) {
	t.Parallel()
	expectStable(t, func(t *testing.T, b *fixture) {
		agent, o := b.payer("10")
		ten := fake.Move{From: sender, To: o.Address, Amount: apptest.Dollars("10")}
		foreign, failed, absurd, none := ten, ten, ten, ten
		foreign.Foreign, failed.Failed, absurd.Absurd, none.Amount = true, true, true, 0
		b.chain.SendTx(foreign)
		b.chain.SendTx(failed)
		keys := b.chain.SendTx(absurd, none)
		b.settle()
		b.watch()
		b.expectOrder(o, recharge.Pending, "0")
		b.expectCredited(agent, "0")
		apptest.Equal(t, "the row", b.row(keys[0]), "ignored ")
		apptest.Equal(t, "rows", len(b.Column(`SELECT tx_id FROM recharge_transfers`)), 1)
		b.pay(o.Address, "10")
		b.settle()
		b.watch()
		b.expectOrder(o, recharge.Paid, "10")
	})
}

// A final transfer is never changed, whether the chain returns it again or no longer.
func TestFinalIsNeverReversed(t *testing.T) {
	t.Parallel()
	expectStable(t, func(t *testing.T, b *fixture) {
		agent, o := b.payer("10")
		k := b.pay(o.Address, "10")
		b.settle()
		b.watch()
		row := b.row(k)
		for _, reads := range []int{0, 1000} {
			b.chain.Hide(k, reads)
			b.mine(200)
			b.restart()
			b.watch()
			_, _, err := b.payments.Rescan(t.Context(), fake.Start)
			apptest.OK(t, err)
			apptest.Equal(t, "the row", b.row(k), row)
			b.expectCredited(agent, "10")
		}
	})
}

// The result does not depend on how often the chain is read (F1, F19).
func TestLateDetection(t *testing.T) {
	t.Parallel()
	expectStable(t, func(t *testing.T, b *fixture) {
		agent := b.Register()
		orders := []recharge.Order{b.order(agent, "5"), b.order(agent, "6"), b.order(agent, "5")}
		for _, amount := range []string{"5", "6", "2", "3", "1"} {
			b.pay(orders[0].Address, amount)
			b.mine(100)
		}
		b.advance(time.Hour)
		b.watch()
		for i, o := range slices.Backward(orders) {
			b.expectOrder(o, recharge.Paid, fmt.Sprint([]int{5, 6, 5}[i]))
		}
		b.expectCredited(agent, "17")
	})
}
