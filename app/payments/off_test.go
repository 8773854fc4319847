package payments_test

import (
	"testing"

	"agentproxy/app/payments"
	"agentproxy/domain"
	"agentproxy/domain/recharge"
	"agentproxy/test/apptest"
)

// Without payments a recharge is refused, also as a dry run, and no address is shown, not even of an
// order from before. Products sell.
func TestPaymentsThatAreOff(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	agent, o := b.payer("10")
	before := b.Dump()
	b.recharges = payments.NewOrders(payments.Config{Off: true}, b.Store, b.Clock, b.IDs, b.chain, b.keys)
	for _, dry := range []bool{false, true} {
		_, err := b.recharges.Create(t.Context(), payments.CreateOrder{AgentID: agent, Amount: apptest.Dollars("10"), DryRun: dry})
		apptest.ErrorIs(t, err, recharge.ErrOff)
	}
	apptest.Equal(t, "retryable", recharge.ErrOff.Retryable, false)
	v, err := b.recharges.Get(t.Context(), agent, o.ID)
	apptest.OK(t, err)
	list, err := b.recharges.List(t.Context(), agent, "", domain.Page{Number: 1, Size: 10})
	apptest.OK(t, err)
	if v.Address != "" || len(list.Items) != 1 || list.Items[0].Address != "" {
		t.Errorf("shown are %q and %+v", v.Address, list.Items)
	}
	apptest.Equal(t, "the database", b.Dump(), before)
	b.Buy(agent, apptest.RemoteStatic)
}
