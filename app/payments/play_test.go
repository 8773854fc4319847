package payments_test

import (
	"strings"
	"testing"

	"agentproxy/domain/recharge"
	"agentproxy/test/apptest"
	"agentproxy/test/fake"
)

// What was paid on a test network, or the development chain, is no money where payments are real: the start is refused
// until it is written off, and what was really paid stays.
func TestPlayMoneyBuysNothingReal(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	player, o := b.payer("50")
	b.pay(o.Address, "50")
	spent, p := b.payer("20")
	b.pay(p.Address, "20")
	b.settle()
	b.watch()
	_, err := b.Wallet.Adjust(t.Context(), spent, -apptest.Dollars("25"), "used")
	apptest.OK(t, err)
	_, err = b.Wallet.Adjust(t.Context(), spent, apptest.Dollars("3"), "a gift")
	apptest.OK(t, err)
	apptest.OK(t, b.recharges.CheckPlay(t.Context())) // nothing is real here

	b.chain = fake.NewChain(recharge.MainNetwork, b.Clock.Now())
	b.restart()
	if err := b.recharges.CheckPlay(t.Context()); err == nil || !strings.Contains(err.Error(), "1 wallets have 50 USD") {
		t.Errorf("real payments begin: %v", err)
	}
	real := b.order(player, "30") // by a service that runs already
	b.pay(real.Address, "30")
	b.settle()
	b.watch()
	b.expectCredited(player, "80")
	wallets, taken, held, err := b.recharges.WriteOffPlay(t.Context(), "play money")
	apptest.OK(t, err)
	if wallets != 1 || taken != apptest.Dollars("50") || held != 0 {
		t.Errorf("written off are %s of %d wallets, held %s", taken, wallets, held)
	}
	apptest.Equal(t, "the balance of who paid 30", b.Balance(player), apptest.Dollars("40")) // and the trial
	apptest.Equal(t, "of who had a gift", b.Balance(spent), apptest.Dollars("8"))
	apptest.OK(t, b.recharges.CheckPlay(t.Context()))
	wallets, taken, _, err = b.recharges.WriteOffPlay(t.Context(), "again")
	apptest.OK(t, err)
	if wallets != 0 || taken != 0 {
		t.Errorf("the second time %s of %d wallets are written off", taken, wallets)
	}
	faults, _, err := b.DB.Verify(t.Context())
	if len(faults) > 0 || err != nil {
		t.Errorf("verify finds %v, %v", faults, err)
	}
}
