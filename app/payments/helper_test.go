package payments_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"agentproxy/app/payments"
	"agentproxy/domain"
	"agentproxy/domain/recharge"
	"agentproxy/ports"
	"agentproxy/test/apptest"
	"agentproxy/test/fake"
)

// till is a world with a chain that money comes from. The clock and the chain
// run together unless a test lets them part.
type till struct {
	*apptest.World
	chain     *fake.Chain
	keys      *fake.Keys
	recharges *payments.Orders
	payments  *payments.Watcher
	logs      *logged
}

// logged keeps what was logged.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) has(what string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), what)
}

func newTill(t testing.TB) *till {
	return tillOf(apptest.Open(t, apptest.Options{RepeatUpdates: true}))
}

func tillOf(w *apptest.World) *till {
	b := &till{World: w, chain: fake.NewChain("tron-test", fake.Start), keys: fake.NewKeys("a"), logs: &logged{}}
	b.restart()
	return b
}

// restart forgets what processes remember.
func (b *till) restart() {
	b.recharges = payments.NewOrders(payments.Config{}, b.Store, b.Clock, b.IDs, b.chain, b.keys)
	b.payments = b.watcher(b.Store)
}

func (b *till) watcher(st ports.Store) *payments.Watcher {
	return payments.NewWatcher(st, b.Clock, b.IDs, b.chain, slog.New(slog.NewTextHandler(b.logs, nil)))
}

// order creates a recharge order over an amount of dollars.
func (b *till) order(agent, amount string) recharge.Order {
	b.T.Helper()
	d, err := b.recharges.Create(b.T.Context(), payments.CreateOrder{AgentID: agent, Amount: apptest.Dollars(amount)})
	apptest.OK(b.T, err)
	return d.View.Order
}

// payer registers an agent with a webhook, and creates an order for it.
func (b *till) payer(amount string) (agent string, o recharge.Order) {
	b.T.Helper()
	agent = b.RegisterWithWebhook()
	return agent, b.order(agent, amount)
}

var stranger = fake.ChainAddress(1)

// pay sends money from a stranger in the next block.
func (b *till) pay(address, amount string) recharge.Key {
	return b.chain.Send(stranger, address, apptest.Dollars(amount))
}

// mine mines n blocks and advances the clock by their time.
func (b *till) mine(n int) {
	b.chain.Mine(n)
	b.Clock.Advance(time.Duration(n) * fake.BlockEvery)
}

// pass lets time pass on both.
func (b *till) pass(d time.Duration) { b.mine(int(d / fake.BlockEvery)) }

// settle makes what was sent final.
func (b *till) settle() { b.mine(1 + fake.FinalBehind) }

func (b *till) watch() {
	b.T.Helper()
	apptest.OK(b.T, b.payments.Watch(context.Background()))
}

// expectOrder checks the status of an order and the sum that it received.
func (b *till) expectOrder(o recharge.Order, status recharge.Status, received string) payments.OrderView {
	b.T.Helper()
	v, err := b.recharges.Get(context.Background(), o.AgentID, o.ID)
	apptest.OK(b.T, err)
	if v.Status != status || v.Received != apptest.Dollars(received) {
		b.T.Errorf("order over %s is %s with %s, want %s with %s", o.Amount, v.Status, v.Received, status, received)
	}
	return v
}

// credited checks the sum that recharges added to the balance.
func (b *till) credited(agent, amount string) {
	b.T.Helper()
	got := strings.Join(b.Column(`SELECT CAST(COALESCE(SUM(own), 0) AS TEXT) FROM ledger_entries WHERE agent_id = ? AND type = 'recharge'`, agent), "")
	if want := fmt.Sprint(int64(apptest.Dollars(amount))); got != want {
		b.T.Errorf("credited %s, want %s", got, want)
	}
}

// rechargeEvents lists the webhook events of an agent about orders, oldest first.
func (b *till) rechargeEvents(agent string) string {
	return strings.Join(b.Column(`SELECT SUBSTR(type, 10) FROM outbox WHERE agent_id = ? AND type LIKE 'recharge.%' ORDER BY seq`, agent), " ")
}

// row is "state order" of a transfer.
func (b *till) row(k recharge.Key) string {
	return strings.Join(b.Column(`SELECT state || ' ' || order_id FROM recharge_transfers WHERE tx_id = ? AND log_index = ?`, k.TxID, k.LogIndex), ",")
}

// complete checks that each final transfer to an address of the service
// is credited once, and nothing else is.
func (b *till) complete() {
	b.T.Helper()
	ours := map[string]bool{}
	for _, a := range b.Column(`SELECT address FROM recharge_addresses`) {
		ours[a] = true
	}
	want := map[string]domain.Money{}
	for _, f := range b.chain.Finals() {
		if ours[f.To] {
			want[fmt.Sprintf("usdt:%s:%s:%d", f.Network, f.TxID, f.LogIndex)] = f.Amount
		}
	}
	got := b.Column(`SELECT ref || ' ' || own FROM ledger_entries WHERE type = 'recharge'`)
	for _, g := range got {
		ref, amount, _ := strings.Cut(g, " ")
		if w, known := want[ref]; !known || fmt.Sprint(int64(w)) != amount {
			b.T.Errorf("%s is credited, the chain says %s %v", g, w, known)
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
