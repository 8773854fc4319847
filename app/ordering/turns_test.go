package ordering_test

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"agentproxy/app/accounts"
	"agentproxy/app/ordering"
	money "agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/catalog"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/apptest"
	"agentproxy/test/fake"
)

// Where like orders are sent one after the other, an agent with many delays a single order
// of another by the one that is on its way, whichever replica sends them, and none of those
// that wait asks the seller for anything.
func TestAnAgentWithManyOrdersDelaysOneOfAnotherByOne(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	w.Seller.Can(func(c *procurement.Capabilities) { c.KeepsOrderKey = false })
	replicas := []*ordering.Driver{w.Driver, ordering.NewDriver(w.Base(), w.Catalog, w.Hub, w.Transitions,
		w.Fulfilment, 0, nil)}
	many, one := w.RegisterFunded(100), w.RegisterFunded(10)
	reached, on := pauseCall(w, fake.Provision, fake.Step{})
	var wg sync.WaitGroup
	wg.Go(func() { w.Buy(many, apptest.RemoteStatic) })
	reached()
	for range 30 {
		w.Buy(many, apptest.RemoteStatic)
	}
	single := w.Buy(one, apptest.RemoteStatic)
	apptest.Equal(t, "the state of the single one", single.Status, session.Creating)
	apptest.Equal(t, "asked for those that wait", w.Seller.Calls(fake.Quote), 1)
	on()
	wg.Wait()
	for turn := 0; len(w.Seller.Sales()) < 32; turn++ {
		if turn > 32*30 {
			t.Fatalf("after %d s %d are sold", turn, len(w.Seller.Sales()))
		}
		w.Clock.Advance(time.Second)
		apptest.OK(t, replicas[turn%2].DriveDue(t.Context()))
	}
	for i, sale := range w.Seller.Sales() {
		if sale.SessionID == single.ID && i != 1 {
			t.Errorf("it was sold as number %d, want 1", i)
		}
	}
	apptest.Equal(t, "the single one", w.Read(one, single.ID).Status, session.Active)
	w.ExpectReconciled()
}

// registerFrom opens an account from an address, with whole dollars of own money.
func registerFrom(w *apptest.World, addr string, dollars money.Money) string {
	w.T.Helper()
	r, err := w.Accounts.Register(context.Background(), accounts.Register{Profile: account.Profile{Name: "agent"},
		Origin: account.Origin{Addr: netip.MustParseAddr(addr)}})
	apptest.OK(w.T, err)
	if dollars > 0 {
		_, err = w.Wallet.Adjust(context.Background(), r.Agent.ID, dollars*money.Dollar, "for the test")
		apptest.OK(w.T, err)
	}
	return r.Agent.ID
}

// 31 accounts of one stranger, an order each, delay one of another by the order that is on its way
// if they registered from one network, or if they are on trial and the other has paid.
func TestAStrangerWithManyAccountsDelaysAnotherByOne(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		address string
		dollars money.Money
	}{
		"of one network": {"198.51.100.%d", 10},
		"on trial":       {"203.0.%d.1", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := apptest.Open(t, apptest.Options{Accounts: func(c *accounts.Config) { c.KeepOriginDays = 90 }})
			w.Seller.Can(func(c *procurement.Capabilities) { c.KeepsOrderKey = false })
			reached, on := pauseCall(w, fake.Provision, fake.Step{})
			stranger := func(n int) { w.Buy(registerFrom(w, fmt.Sprintf(c.address, n), c.dollars), apptest.RemoteStatic) }
			var wg sync.WaitGroup
			wg.Go(func() { stranger(1) })
			reached()
			for n := range 30 {
				stranger(n + 2)
			}
			single := w.Buy(registerFrom(w, "192.0.2.1", 10), apptest.RemoteStatic)
			on()
			wg.Wait()
			for range 60 {
				w.Clock.Advance(time.Second)
				apptest.OK(t, w.RunOrders())
				if len(w.Seller.Sales()) > 1 {
					break
				}
			}
			apptest.Equal(t, "the second sale", w.Seller.Sales()[1].SessionID, single.ID)
		})
	}
}

// Agents that come again and again do not keep one from its turn.
func TestAgentsTakeTurns(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	w.Seller.Can(func(c *procurement.Capabilities) { c.KeepsOrderKey = false })
	// No two sales have the same time, as with a real clock.
	w.Seller.SetClock(func() time.Time { w.Clock.Advance(time.Millisecond); return w.Clock.Now() })
	agents := map[string]string{}
	reached, on := pauseCall(w, fake.Provision, fake.Step{})
	var wg sync.WaitGroup
	first := w.RegisterFunded(10)
	wg.Go(func() { w.Buy(first, apptest.RemoteStatic) })
	reached()
	for _, name := range []string{"a", "b", "c"} {
		agent := w.RegisterFunded(10)
		for range 3 {
			agents[w.Buy(agent, apptest.RemoteStatic).ID] = name
		}
	}
	on()
	wg.Wait()
	for range 60 {
		w.Clock.Advance(time.Second)
		apptest.OK(t, w.RunOrders())
	}
	sold := ""
	for _, sale := range w.Seller.Sales()[1:] {
		sold += agents[sale.SessionID]
	}
	apptest.Equal(t, "sold to", sold, "abcabcabc")
}

// buyers notes for whom its orders are made.
type buyers struct {
	*fake.Provider
	agents []string
}

func (b *buyers) Order(ctx context.Context, in procurement.Intent) (procurement.Delivery, error) {
	b.agents = append(b.agents, ports.PartyOf(ctx).Key)
	return b.Provider.Order(ctx, in)
}

// A provider gets the agent that it is called for, so that its calls can take turns.
func TestAProviderIsCalledOnBehalfOfAnAgent(t *testing.T) {
	t.Parallel()
	p := &buyers{Provider: fake.NewProvider("known")}
	product := apptest.SharedProduct("sta_known", session.Static, procurement.Source{Provider: "known"})
	w := apptest.Open(t, apptest.Options{Providers: []ports.Provider{p}, Products: []catalog.Product{product}})
	p.SetClock(w.Clock.Now)
	one, two := w.RegisterFunded(10), w.RegisterFunded(10)
	w.Buy(one, "sta_known")
	w.Buy(two, "sta_known")
	apptest.Equal(t, "called for", strings.Join(p.agents, " "), one+" "+two)
}
