package payments_test

import (
	"testing"

	"agentproxy/domain/recharge"
	"agentproxy/test/fake"
)

// Orders of a network that the service was moved away from stay open, because nothing reads that
// chain. They must not use up the orders that an agent may have open.
func TestOrdersOfAnotherNetworkAreNotCounted(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	agent := b.RegisterWithWebhook()
	for range recharge.MaxOpen {
		b.order(agent, "5")
	}
	b.chain, b.keys = fake.NewChain("tron-mainnet", b.Clock.Now()), fake.NewKeys("b")
	b.restart()
	o := b.order(agent, "7")
	b.watch() // reads the chain that is empty so far
	b.pay(o.Address, "7")
	b.settle()
	b.watch()
	b.expectOrder(o, recharge.Paid, "7")
}
