package payments_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"agentproxy/app/payments"
	"agentproxy/domain/recharge"
	"agentproxy/ports"
	"agentproxy/test/apptest"
)

// lossyStore commits a unit and reports a failure; every later unit fails.
type lossyStore struct {
	ports.Store
	mu    sync.Mutex
	after int  // number of updates that are answered
	lost  bool // the next one is committed all the same
}

func (s *lossyStore) Update(ctx context.Context, reads ports.ReadSet, fn func(context.Context, ports.Tx) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.after--; s.after >= 0 {
		return s.Store.Update(ctx, reads, fn)
	}
	if s.after == -1 && s.lost {
		if err := s.Store.Update(ctx, reads, fn); err != nil {
			return err
		}
	}
	return apptest.ErrStore
}

// A crash before or after any unit loses nothing and credits nothing twice (F11,
// F20).
func TestCrashAtEveryUnit(t *testing.T) {
	t.Parallel()
	expectStable(t, func(t *testing.T, b *fixture) {
		one, first := b.payer("10")
		two, second := b.payer("5")
		third := b.order(b.RegisterWithWebhook(), "7")
		b.watch()
		b.pay(first.Address, "10")
		b.pay(second.Address, "5")
		b.chain.Send(first.Address, sender, apptest.Dollars("1"))
		b.advance(recharge.Window + 5*time.Minute)
		for n := range 40 {
			st := &lossyStore{Store: b.Store, after: n / 2, lost: n%2 == 1}
			p := b.watcher(st)
			if n > 10 {
				b.mine(1)
			}
			if err := p.Watch(t.Context()); err == nil && n > 30 {
				break
			}
		}
		b.watch()
		b.expectOrder(first, recharge.Paid, "10")
		b.expectOrder(second, recharge.Paid, "5")
		b.expectOrder(third, recharge.Expired, "0")
		b.expectCredited(one, "10")
		b.expectCredited(two, "5")
		apptest.Equal(t, "events", b.eventsOf(one), "paid")
		apptest.Equal(t, "events", b.eventsOf(third.AgentID), "expired")
	})
}

// Two watchers on one store: uniqueness decides.
func TestTwoWatchers(t *testing.T) {
	t.Parallel()
	b := fixtureOf(apptest.New(t))
	watchers := []*payments.Watcher{b.watcher(b.Store), b.watcher(b.Store)}
	var orders []recharge.Order
	for range 4 {
		_, o := b.payer("10")
		orders = append(orders, o)
	}
	for round := range 15 {
		b.pay(orders[round%4].Address, "2.5")
		if round%5 == 2 {
			b.chain.Fork(3, true)
		}
		apptest.Concurrently(2, func(i int) {
			for range 3 {
				if err := watchers[i].Watch(context.Background()); err != nil {
					t.Error(err)
				}
				b.chain.Mine(1)
			}
		})
	}
	b.settle()
	b.advance(3 * time.Minute)
	for _, p := range watchers {
		apptest.OK(t, p.Watch(t.Context()))
	}
	b.expectAllCredited()
	for _, o := range orders[:3] {
		b.expectOrder(o, recharge.Paid, "10")
	}
	b.expectOrder(orders[3], recharge.Confirming, "7.5")
}

// A ledger entry that existed before its transfer belongs to another: an error, and
// nothing is stored.
func TestBookedBefore(t *testing.T) {
	t.Parallel()
	expectStable(t, func(t *testing.T, b *fixture) {
		agent, o := b.payer("10")
		_, other := b.payer("4")
		b.watch()
		k := b.pay(o.Address, "10")
		b.pay(other.Address, "4")
		b.settle()
		ref := "usdt:" + k.Network + ":" + k.TxID + ":0"
		w, err := b.Wallet.Adjust(t.Context(), agent, apptest.Dollars("1"), "stray")
		apptest.OK(t, err)
		b.setReference(w.ID, ref)
		if err := b.payments.Watch(t.Context()); err == nil || !strings.Contains(err.Error(), ref) {
			t.Errorf("got %v", err)
		}
		b.expectCredited(agent, "0")
		apptest.Equal(t, "the row", strings.HasPrefix(b.row(k), "final"), false)
		b.expectOrder(other, recharge.Paid, "4") // the others go on
		b.setReference(w.ID, "adjust:"+w.ID)
		b.watch()
		b.expectOrder(o, recharge.Paid, "10")
	})
}

// setReference changes the reference of an entry with the triggers of the ledger off.
func (b *fixture) setReference(id, ref string) {
	b.T.Helper()
	if b.Postgres() {
		b.Exec(`ALTER TABLE ledger_entries DISABLE TRIGGER USER`)
		defer b.Exec(`ALTER TABLE ledger_entries ENABLE TRIGGER USER`)
		b.Exec(`UPDATE ledger_entries SET ref = ? WHERE id = ?`, ref, id)
		return
	}
	triggers := b.Column(`SELECT sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'ledger_entries'`)
	for _, name := range b.Column(`SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'ledger_entries'`) {
		b.Exec(`DROP TRIGGER ` + name)
	}
	b.Exec(`UPDATE ledger_entries SET ref = ? WHERE id = ?`, ref, id)
	for _, sql := range triggers {
		b.Exec(sql)
	}
}
