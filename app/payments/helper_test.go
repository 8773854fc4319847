package payments_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"agentproxy/app/payments"
	"agentproxy/domain"
	"agentproxy/domain/recharge"
	"agentproxy/ports"
	"agentproxy/test/apptest"
	"agentproxy/test/fake"
	"agentproxy/test/syncbuffer"
)

// fixture is a world with a chain on which recharges arrive. The clock and the chain
// advance together unless a test sets one of them.
type fixture struct {
	*apptest.World
	chain     *fake.Chain
	keys      *fake.Keys
	recharges *payments.Orders
	payments  *payments.Watcher
	logs      *syncbuffer.Buffer
}

// logged reports whether a text is in the log.
func (b *fixture) logged(what string) bool { return strings.Contains(b.logs.String(), what) }

func newFixture(t testing.TB) *fixture {
	return fixtureOf(apptest.Open(t, apptest.Options{RepeatUpdates: true}))
}

func fixtureOf(w *apptest.World) *fixture {
	b := &fixture{World: w, chain: fake.NewChain("tron-test", fake.Start), keys: fake.NewKeys("a"), logs: &syncbuffer.Buffer{}}
	b.restart()
	return b
}

// restart creates the use cases anew, as a restart of the program does.
func (b *fixture) restart() {
	b.recharges = payments.NewOrders(payments.Config{}, b.Store, b.Clock, b.IDs, b.chain, b.keys)
	b.payments = b.watcher(b.Store)
}

func (b *fixture) watcher(st ports.Store) *payments.Watcher {
	return payments.NewWatcher(st, b.Clock, b.IDs, b.chain, slog.New(slog.NewTextHandler(b.logs, nil)))
}

// order creates a recharge order over an amount of dollars.
func (b *fixture) order(agent, amount string) recharge.Order {
	b.T.Helper()
	d, err := b.recharges.Create(b.T.Context(), payments.CreateOrder{AgentID: agent, Amount: apptest.Dollars(amount)})
	apptest.OK(b.T, err)
	return d.View.Order
}

// payer registers an agent with a webhook, and creates an order for it.
func (b *fixture) payer(amount string) (agent string, o recharge.Order) {
	b.T.Helper()
	agent = b.RegisterWithWebhook()
	return agent, b.order(agent, amount)
}

var sender = fake.ChainAddress(1)

// pay sends a transfer from sender in the next block.
func (b *fixture) pay(address, amount string) recharge.Key {
	return b.chain.Send(sender, address, apptest.Dollars(amount))
}

// mine mines n blocks and advances the clock by their time.
func (b *fixture) mine(n int) {
	b.chain.Mine(n)
	b.Clock.Advance(time.Duration(n) * fake.BlockEvery)
}

// advance moves the chain and the clock on.
func (b *fixture) advance(d time.Duration) { b.mine(int(d / fake.BlockEvery)) }

// settle mines blocks until everything sent is final.
func (b *fixture) settle() { b.mine(1 + fake.FinalBehind) }

func (b *fixture) watch() {
	b.T.Helper()
	apptest.OK(b.T, b.payments.Watch(context.Background()))
}

// expectOrder checks the status of an order and the sum that it received.
func (b *fixture) expectOrder(o recharge.Order, status recharge.Status, received string) payments.OrderView {
	b.T.Helper()
	v, err := b.recharges.Get(context.Background(), o.AgentID, o.ID)
	apptest.OK(b.T, err)
	if v.Status != status || v.Received != apptest.Dollars(received) {
		b.T.Errorf("order over %s is %s with %s, want %s with %s", o.Amount, v.Status, v.Received, status, received)
	}
	return v
}

// expectCredited checks the sum that recharges added to the balance.
func (b *fixture) expectCredited(agent, amount string) {
	b.T.Helper()
	got := strings.Join(b.Column(`SELECT CAST(COALESCE(SUM(own), 0) AS TEXT) FROM ledger_entries WHERE agent_id = ? AND type = 'recharge'`, agent), "")
	if want := fmt.Sprint(int64(apptest.Dollars(amount))); got != want {
		b.T.Errorf("credited %s, want %s", got, want)
	}
}

// eventsOf lists the webhook events of an agent about orders, oldest first.
func (b *fixture) eventsOf(agent string) string {
	return strings.Join(b.Column(`SELECT SUBSTR(type, 10) FROM outbox WHERE agent_id = ? AND type LIKE 'recharge.%' ORDER BY seq`, agent), " ")
}

// row is "state order" of a transfer.
func (b *fixture) row(k recharge.Key) string {
	return strings.Join(b.Column(`SELECT state || ' ' || order_id FROM recharge_transfers WHERE tx_id = ? AND log_index = ?`, k.TxID, k.LogIndex), ",")
}

// expectAllCredited checks that each final transfer to an address of the service from
// elsewhere is credited once, and nothing else is.
func (b *fixture) expectAllCredited() {
	b.T.Helper()
	ours := map[string]bool{}
	for _, a := range b.Column(`SELECT address FROM recharge_addresses`) {
		ours[a] = true
	}
	want := map[string]domain.Money{}
	for _, f := range b.chain.Finals() {
		if ours[f.To] && !ours[f.From] {
			want[fmt.Sprintf("usdt:%s:%s:%d", f.Network, f.TxID, f.LogIndex)] = f.Amount
		}
	}
	got := b.Column(`SELECT ref || ' ' || own FROM ledger_entries WHERE type = 'recharge'`)
	for _, g := range got {
		ref, amount, _ := strings.Cut(g, " ")
		if w, known := want[ref]; !known || fmt.Sprint(int64(w)) != amount {
			b.T.Errorf("%s is credited, the chain has %s %v", g, w, known)
		}
		delete(want, ref)
	}
	for ref, amount := range want {
		b.T.Errorf("%s over %s is not credited", ref, amount)
	}
	for _, bad := range b.Column(`SELECT tx_id FROM recharge_transfers WHERE state = 'final' AND agent_id <> '' AND NOT EXISTS
		(SELECT 1 FROM ledger_entries WHERE ref = 'usdt:' || network || ':' || tx_id || ':' || log_index)`) {
		b.T.Errorf("%s is final and not booked", bad)
	}
}
