package payments_test

import (
	"testing"

	"agentproxy/test/apptest"
)

func TestHoldingsAreWhatTheChainHasOnEachAddress(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	first, o := b.payer("10")
	second, _ := b.payer("20")
	b.pay(o.Address, "10")
	b.settle()
	b.watch()
	list, err := b.payments.Holdings(t.Context())
	apptest.OK(t, err)
	if len(list) != 2 || list[0].AgentID != first || list[0].Index != 1 || list[0].Address.Address != o.Address || list[1].AgentID != second {
		t.Fatalf("the addresses are %+v", list)
	}
	apptest.Equal(t, "the first holds", list[0].Balance, apptest.Dollars("10"))
	apptest.Equal(t, "the second holds", list[1].Balance, 0)
}
