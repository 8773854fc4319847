package playmoney_test

import (
	"log/slog"
	"strings"
	"testing"

	"agentproxy/app/payments"
	"agentproxy/app/playmoney"
	"agentproxy/domain/recharge"
	"agentproxy/test/apptest"
	"agentproxy/test/fake"
)

// What was paid on a test network, or the development chain, is no money where payments are real: the start is refused
// until it is written off, and what was really paid stays.
func TestPlayMoneyBuysNothingReal(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	player, spent := w.Register(), w.Register()
	chains := map[string]*fake.Chain{}
	pay := func(network, agent, amount string) {
		t.Helper()
		chain := chains[network]
		if chain == nil {
			chain = fake.NewChain(network, w.Clock.Now())
			chains[network] = chain
		}
		orders := payments.NewOrders(payments.Config{}, w.Store, w.Clock, w.IDs, chain, fake.NewKeys("a"))
		done, err := orders.Create(t.Context(), payments.CreateOrder{AgentID: agent, Amount: apptest.Dollars(amount)})
		apptest.OK(t, err)
		chain.Send(fake.ChainAddress(1), done.View.Address, apptest.Dollars(amount))
		chain.Mine(1 + fake.FinalBehind)
		w.Clock.Advance((1 + fake.FinalBehind) * fake.BlockEvery)
		apptest.OK(t, payments.NewWatcher(w.Store, w.Clock, w.IDs, chain, slog.New(slog.DiscardHandler)).Watch(t.Context()))
	}
	pay("tron-nile", player, "50")
	pay("tron-nile", spent, "20")
	_, err := w.Wallet.Adjust(t.Context(), spent, -apptest.Dollars("25"), "used")
	apptest.OK(t, err)
	_, err = w.Wallet.Adjust(t.Context(), spent, apptest.Dollars("3"), "a gift")
	apptest.OK(t, err)
	play := func(network playmoney.Network) *playmoney.Service {
		return playmoney.New(network, w.Store, w.Clock, w.IDs)
	}
	apptest.OK(t, play("tron-nile").Check(t.Context())) // nothing is real here
	real := play(recharge.MainNetwork)
	if err := real.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "1 wallets have 50 USD") {
		t.Errorf("real payments begin: %v", err)
	}
	pay(recharge.MainNetwork, player, "30") // by a service that runs already
	wallets, taken, held, err := real.WriteOff(t.Context(), "play money")
	apptest.OK(t, err)
	if wallets != 1 || taken != apptest.Dollars("50") || held != 0 {
		t.Errorf("written off are %s of %d wallets, held %s", taken, wallets, held)
	}
	apptest.Equal(t, "the balance of who paid 30", w.Balance(player), apptest.Dollars("40")) // and the trial
	apptest.Equal(t, "of who had a gift", w.Balance(spent), apptest.Dollars("8"))
	apptest.OK(t, real.Check(t.Context()))
	wallets, taken, _, err = real.WriteOff(t.Context(), "again")
	apptest.OK(t, err)
	if wallets != 0 || taken != 0 {
		t.Errorf("the second time %s of %d wallets are written off", taken, wallets)
	}
	faults, _, err := w.DB.Verify(t.Context())
	if len(faults) > 0 || err != nil {
		t.Errorf("verify finds %v, %v", faults, err)
	}
}
