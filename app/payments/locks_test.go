package payments_test

import (
	"context"
	"sync"
	"testing"

	"agentproxy/app/payments"
	"agentproxy/test/apptest"
)

// One agent buys and orders recharges at once. Both lock its account and then its wallet.
func TestPurchasesAndRechargesDoNotDeadlock(t *testing.T) {
	t.Parallel()
	w := apptest.OpenPostgres(t)
	b := fixtureOf(w)
	agent := w.RegisterFunded(10_000)
	b.order(agent, "5")
	for range 150 {
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := w.Create(agent, apptest.Local)
			if err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			// Past the ten that an agent may have open it is refused, after it took its locks.
			_, _ = b.recharges.Create(context.Background(), payments.CreateOrder{AgentID: agent, Amount: apptest.Dollars("5")})
		})
		wg.Wait()
	}
}
