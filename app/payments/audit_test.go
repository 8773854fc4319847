package payments_test

import (
	"strings"
	"testing"
	"time"

	"agentproxy/domain/recharge"
	"agentproxy/test/apptest"
	"agentproxy/test/fake"
)

func (b *fixture) drift() string {
	return strings.Join(b.Column(`SELECT drift FROM recharge_addresses WHERE drift <> 0`), " ")
}

// An audit finds what no reading found, credits it and leaves no difference.
func TestAuditRepairs(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	agent, o := b.payer("10")
	b.advance(recharge.Window + recharge.Late + time.Hour)
	b.watch()
	k := b.pay(o.Address, "10")
	b.chain.Hide(k, 1000) // a node leaves it out until nothing is read there any more
	b.advance(time.Hour)
	b.watch()
	b.chain.Hide(k, 0)
	b.advance(time.Hour)
	b.watch()
	b.expectCredited(agent, "0")
	apptest.OK(t, b.payments.Audit(t.Context(), 5))
	b.expectCredited(agent, "10")
	apptest.Equal(t, "drift", b.drift(), "")
	apptest.Equal(t, "it is logged as an error", b.logged("level=ERROR"), false)
	b.expectAllCredited()
	calls := b.chain.Calls()["history"]
	apptest.OK(t, b.payments.Audit(t.Context(), 5))
	apptest.Equal(t, "histories of an address that agrees", b.chain.Calls()["history"], calls)
}

// What left no trace in a balance is found too, although no order waits for it.
func TestAuditFindsWhatLeavesNoDifference(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		credited string
		pay      func(b *fixture, to string)
	}{
		"it came and left again": {"17", func(b *fixture, to string) {
			b.pay(to, "7")
			b.mine(1)
			b.chain.Send(to, sender, apptest.Dollars("7"))
		}},
		"it went from the address to itself": {"10", func(b *fixture, to string) {
			b.chain.Send(to, to, apptest.Dollars("7"))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFixture(t)
			agent, o := b.payer("10")
			b.pay(o.Address, "10")
			b.settle()
			b.watch()
			b.advance(recharge.Window + recharge.Late + time.Hour)
			b.watch()
			c.pay(b, o.Address)
			b.advance(time.Hour)
			b.watch()
			b.expectCredited(agent, c.credited)
			apptest.OK(t, b.payments.Audit(t.Context(), 5))
			apptest.Equal(t, "drift", b.drift(), "")
			b.expectAllCredited()
			_, drifts, err := b.payments.AuditAll(t.Context())
			apptest.OK(t, err)
			apptest.Equal(t, "drifts", len(drifts), 0)
		})
	}
}

// Without an answer of the chain no address is passed over.
func TestAuditInAnOutage(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.payer("10")
	b.failCalls("balances")
	apptest.ErrorIs(t, b.payments.Audit(t.Context(), 1), errChain)
	b.failCalls()
	apptest.OK(t, b.payments.Audit(t.Context(), 1))
	apptest.Equal(t, "audited", len(b.Column(`SELECT 1 FROM recharge_addresses WHERE audited_at > 0`)), 1)
}

// What becomes final during an audit is no difference.
func TestAuditWhileTheChainMoves(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"balance", "final", "history"} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			b := newFixture(t)
			agent, o := b.payer("10")
			b.pay(o.Address, "10")
			for range 30 {
				b.pay(o.Address, "1")
				b.mine(1)
			}
			left := 6
			b.chain.OnCall(func(c string) error {
				if c == call && left > 0 {
					left--
					b.chain.Mine(1)
				}
				return nil
			})
			if err := b.payments.Audit(t.Context(), 5); err != nil && call != "balance" {
				t.Error(err)
			}
			apptest.Equal(t, "drift", b.drift(), "")
			apptest.Equal(t, "it is logged as an error", b.logged("level=ERROR"), false)
			apptest.OK(t, b.payments.Audit(t.Context(), 5))
			b.settle()
			b.watch()
			apptest.OK(t, b.payments.Audit(t.Context(), 5))
			apptest.Equal(t, "drift", b.drift(), "")
			b.expectCredited(agent, "40")
		})
	}
}

// What another watcher credits meanwhile, above the head that the balance was
// readTables at, is no difference either.
func TestAuditBesideAWatcher(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	agent, o := b.payer("10")
	b.chain.Hide(b.pay(o.Address, "10"), 1) // so that the balance differs
	b.settle()
	b.pay(o.Address, "1")
	b.mine(fake.FinalBehind)
	other := b.watcher(b.Store)
	histories := 0
	b.chain.OnCall(func(call string) error {
		if call == "history" {
			if histories++; histories == 3 {
				b.chain.Mine(1)
				return other.Watch(t.Context())
			}
		}
		return nil
	})
	apptest.OK(t, b.payments.Audit(t.Context(), 5))
	b.expectCredited(agent, "11")
	apptest.Equal(t, "drift", b.drift(), "")
}

func TestAuditReports(t *testing.T) {
	t.Parallel()
	t.Run("an outgoing transfer that no history lists", func(t *testing.T) {
		t.Parallel()
		b := newFixture(t)
		agent, o := b.payer("10")
		b.pay(o.Address, "10")
		b.settle()
		b.watch()
		k := b.chain.Send(o.Address, sender, apptest.Dollars("3"))
		b.chain.Hide(k, 1000)
		b.settle()
		checked, drifts, err := b.payments.AuditAll(t.Context())
		apptest.OK(t, err)
		if checked != 1 || len(drifts) != 1 || drifts[0].Chain != apptest.Dollars("7") || drifts[0].Known != apptest.Dollars("10") || drifts[0].Fault != "" {
			t.Errorf("of %d there differ %+v", checked, drifts)
		}
		apptest.Equal(t, "drift", b.drift(), "-3000000")
		apptest.Equal(t, "it is logged as an error", b.logged("level=ERROR"), true)
		b.expectCredited(agent, "10")
		st, err := b.payments.Status(t.Context())
		apptest.OK(t, err)
		if st.Drifting != 1 || st.Drift != apptest.Dollars("3") || st.ReadAt.IsZero() {
			t.Errorf("the status is %+v", st)
		}
		b.chain.Hide(k, 0)
		apptest.OK(t, b.payments.Audit(t.Context(), 5))
		apptest.Equal(t, "drift", b.drift(), "")
		st, err = b.payments.Status(t.Context())
		apptest.OK(t, err)
		apptest.Equal(t, "drifting", st.Drifting, 0)
	})
	t.Run("an outgoing transfer that the history lists is no drift", func(t *testing.T) {
		t.Parallel()
		b := newFixture(t)
		_, o := b.payer("10")
		b.pay(o.Address, "10")
		b.mine(1)
		b.chain.Send(o.Address, sender, apptest.Dollars("10"))
		b.settle()
		b.advance(100 * time.Hour)
		apptest.OK(t, b.payments.Audit(t.Context(), 5))
		apptest.Equal(t, "drift", b.drift(), "")
		b.watch()
	})
	t.Run("a final transfer that is gone, or another one, is a fault and stays credited", func(t *testing.T) {
		t.Parallel()
		b := newFixture(t)
		agent, o := b.payer("10")
		k := b.pay(o.Address, "10")
		b.settle()
		b.watch()
		// Another chain under the same name does not have the transfer.
		b.chain = fake.NewChain("tron-test", fake.Start.Add(time.Hour))
		b.restart()
		b.mine(100)
		_, drifts, err := b.payments.AuditAll(t.Context())
		apptest.OK(t, err)
		if len(drifts) != 1 || !strings.Contains(drifts[0].Fault, k.TxID) {
			t.Errorf("there differ %+v", drifts)
		}
		apptest.Equal(t, "drift", b.drift(), "-10000000")
		// And one where it has another amount: the first transaction of a chain has
		// the same id.
		b.chain = fake.NewChain("tron-test", fake.Start.Add(time.Hour))
		b.restart()
		apptest.Equal(t, "its id", b.pay(o.Address, "9"), k)
		b.settle()
		_, drifts, err = b.payments.AuditAll(t.Context())
		apptest.OK(t, err)
		if len(drifts) != 1 || !strings.Contains(drifts[0].Fault, k.TxID) || drifts[0].Chain-drifts[0].Known != -apptest.Dollars("1") {
			t.Errorf("there differ %+v", drifts)
		}
		b.expectCredited(agent, "10")
		b.expectOrder(o, recharge.Paid, "10")
		apptest.Equal(t, "it is logged as an error", b.logged("is gone"), true)
	})
}

// An error is no finding, and an address that cannot be read does not keep the
// others waiting.
func TestAuditThatFails(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	for range 4 {
		b.payer("10")
	}
	first := b.Column(`SELECT address FROM recharge_addresses ORDER BY address`)[0]
	b.pay(first, "1") // so that more is asked of it than its balance
	b.settle()
	audited := func() int {
		return len(b.Column(`SELECT address FROM recharge_addresses WHERE audited_at > 0`))
	}
	n := 0
	b.chain.OnCall(func(call string) error {
		if call == "balance" {
			if n++; n == 1 {
				return errChain
			}
		}
		return nil
	})
	apptest.ErrorIs(t, b.payments.Audit(t.Context(), 1), errChain)
	apptest.Equal(t, "audited", audited(), 0)
	apptest.OK(t, b.payments.Audit(t.Context(), 1))
	apptest.Equal(t, "audited", audited(), 1)
	apptest.Equal(t, "the first one waits", len(b.Column(`SELECT 1 FROM recharge_addresses WHERE address = ? AND audited_at = 0`, first)), 1)
	for range 3 {
		apptest.OK(t, b.payments.Audit(t.Context(), 1))
	}
	apptest.Equal(t, "audited", audited(), 4)
}

func TestRescan(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	var agents []string
	var orders []recharge.Order
	for range 12 {
		a, o := b.payer("10")
		agents, orders = append(agents, a), append(orders, o)
	}
	b.advance(recharge.Window + recharge.Late + time.Hour)
	b.watch()
	var missed []recharge.Key
	for _, o := range orders {
		missed = append(missed, b.pay(o.Address, "3"))
	}
	b.mine(1)
	missed = append(missed, b.chain.Send(orders[0].Address, orders[11].Address, apptest.Dollars("2")))
	hide := func(reads int) {
		for _, k := range missed {
			b.chain.Hide(k, reads)
		}
	}
	hide(1000)
	b.advance(time.Hour)
	b.watch()
	hide(0)
	b.advance(time.Hour)
	b.watch()
	addresses, credited, err := b.payments.Rescan(t.Context(), b.chain.Now())
	apptest.OK(t, err)
	apptest.Equal(t, "addresses", addresses, 12)
	apptest.Equal(t, "credited", credited, 0)
	addresses, credited, err = b.payments.Rescan(t.Context(), fake.Start)
	apptest.OK(t, err)
	apptest.Equal(t, "addresses", addresses, 12)
	apptest.Equal(t, "credited", credited, 12)
	b.expectCredited(agents[11], "3") // the operator moved the rest
	_, credited, err = b.payments.Rescan(t.Context(), time.Time{})
	apptest.OK(t, err)
	apptest.Equal(t, "credited again", credited, 0)
	b.expectAllCredited()
	_, drifts, err := b.payments.AuditAll(t.Context())
	apptest.OK(t, err)
	apptest.Equal(t, "drifts", len(drifts), 0)
}
