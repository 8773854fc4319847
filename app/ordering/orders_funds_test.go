package ordering_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/catalog"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/apptest"
	"agentproxy/test/fake"
)

// balanceProvider is a seller without labels that returns what is left of 100 dollars, and
// what each purchase cost. While it hides, it shows no change that it made.
type balanceProvider struct {
	*fake.Provider
	hides atomic.Bool
	shown time.Time
	after func() // runs once, while the next answer to Balance is on its way
}

func (p *balanceProvider) Balance(context.Context) (procurement.ProviderBalance, error) {
	spent := domain.Money(0)
	for _, b := range p.Sales() {
		spent += domain.Dollar * domain.Money(1+b.Renewals)
	}
	if after := p.after; after != nil {
		p.after = nil
		after()
	}
	return procurement.ProviderBalance{Amount: 100*domain.Dollar - spent, Known: true}, nil
}

func (p *balanceProvider) Order(ctx context.Context, in procurement.Intent) (procurement.Delivery, error) {
	d, err := p.Provider.Order(ctx, in)
	d.Cost = domain.Dollar
	return d, err
}

func (p *balanceProvider) Find(ctx context.Context, in procurement.Intent) ([]procurement.Delivery, error) {
	list, err := p.Provider.Find(ctx, in)
	if p.hides.Load() {
		return nil, err
	}
	return list, err
}

func (p *balanceProvider) Read(ctx context.Context, ref string) (procurement.Delivery, error) {
	d, err := p.Provider.Read(ctx, ref)
	if p.hides.Load() {
		d.ExpiresAt = p.shown
	}
	return d, err
}

func openWithBalance(t *testing.T) (*apptest.World, *balanceProvider, string) {
	p := &balanceProvider{Provider: fake.NewProvider("purse")}
	p.Can(func(c *procurement.Capabilities) { c.KeepsOrderKey = false })
	w := apptest.Open(t, apptest.Options{Providers: []ports.Provider{p}, Products: []catalog.Product{apptest.SharedProduct("sta_purse", session.Static, procurement.Source{Provider: "purse", SKU: "a"}),
		apptest.SharedProduct("sta_other", session.Static, procurement.Source{Provider: "purse", SKU: "b"})}})
	p.SetClock(w.Clock.Now)
	return w, p, w.RegisterFunded(100)
}

// What is in no list and was paid for was bought all the same.
func TestMissingMoneyIsNoProofOfAbsence(t *testing.T) {
	t.Parallel()
	t.Run("a purchase", func(t *testing.T) {
		t.Parallel()
		w, p, agent := openWithBalance(t)
		w.Buy(agent, "sta_other") // what it cost is not in the balance any more
		w.Clock.Advance(time.Minute)
		p.hides.Store(true)
		p.Next(fake.Provision, fake.LoseAnswer())
		v := w.Buy(agent, "sta_purse")
		w.RunMinutes(30)
		apptest.Equal(t, "while it is hidden", w.Read(agent, v.ID).Status, session.Creating)
		p.hides.Store(false)
		w.RunMinutes(15)
		apptest.Equal(t, "when it is shown", w.Read(agent, v.ID).Status, session.Active)
		apptest.Equal(t, "bought", len(p.Of(v.ID)), 1)
	})
	t.Run("a renewal", func(t *testing.T) {
		t.Parallel()
		w, p, agent := openWithBalance(t)
		v := w.Buy(agent, "sta_purse")
		w.Clock.Advance(time.Second) // what was sent before is in the balance already
		p.shown = v.ExpiresAt
		p.hides.Store(true)
		p.Next(fake.Extend, fake.LoseAnswer())
		d, err := w.Sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: v.ID})
		apptest.OK(t, err)
		apptest.Equal(t, "the status", d.Outcome, ports.Pending)
		w.RunMinutes(40)
		apptest.Equal(t, "while it is hidden", w.Read(agent, v.ID).Cost.Held, apptest.Dollars("1"))
		p.hides.Store(false)
		w.RunMinutes(20)
		apptest.Equal(t, "when it is shown", w.Read(agent, v.ID).ExpiresAt, v.ExpiresAt.Add(30*session.Day))
	})
}

// An order that is charged after the balance was read does not account for what is missing in it.
func TestAnOrderDuringTheReadingOfTheBalanceHidesNoMissingMoney(t *testing.T) {
	t.Parallel()
	t.Run("a purchase", func(t *testing.T) {
		t.Parallel()
		w, p, agent := openWithBalance(t)
		p.hides.Store(true)
		p.Next(fake.Provision, fake.LoseAnswer())
		v := w.Buy(agent, "sta_purse")
		w.RunMinutes(30)
		p.after = func() { w.Buy(agent, "sta_other") }
		w.RunMinutes(15)
		apptest.Equal(t, "bought meanwhile", len(p.Sales()), 2)
		apptest.Equal(t, "while it is hidden", w.Read(agent, v.ID).Status, session.Creating)
	})
	t.Run("a renewal", func(t *testing.T) {
		t.Parallel()
		w, p, agent := openWithBalance(t)
		v := w.Buy(agent, "sta_purse")
		w.Clock.Advance(time.Second)
		p.shown = v.ExpiresAt
		p.hides.Store(true)
		p.Next(fake.Extend, fake.LoseAnswer())
		_, err := w.Sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: v.ID})
		apptest.OK(t, err)
		w.RunMinutes(30)
		p.after = func() { w.Buy(agent, "sta_other") }
		w.RunMinutes(15)
		apptest.Equal(t, "bought meanwhile", len(p.Sales()), 2)
		apptest.Equal(t, "while it is hidden", w.Read(agent, v.ID).Cost.Held, apptest.Dollars("1"))
	})
}

// Money that other orders of the service took is not missing.
func TestMoneySpentOtherwiseIsNotMissing(t *testing.T) {
	t.Parallel()
	t.Run("a purchase", func(t *testing.T) {
		t.Parallel()
		w, p, agent := openWithBalance(t)
		p.Next(fake.Provision, fake.LoseRequest())
		v := w.Buy(agent, "sta_purse")
		w.Clock.Advance(time.Second)
		w.Buy(agent, "sta_other")
		w.RunMinutes(10)
		apptest.Equal(t, "the session", w.Read(agent, v.ID).Status, session.Failed)
		apptest.Equal(t, "bought", len(p.Sales()), 1)
	})
	t.Run("a renewal", func(t *testing.T) {
		t.Parallel()
		w, p, agent := openWithBalance(t)
		v := w.Buy(agent, "sta_purse")
		p.Next(fake.Extend, fake.LoseRequest())
		_, err := w.Sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: v.ID})
		apptest.OK(t, err)
		w.Clock.Advance(time.Second)
		w.Buy(agent, "sta_other")
		w.RunMinutes(40)
		apptest.Equal(t, "held", w.Read(agent, v.ID).Cost.Held, 0)
		apptest.Equal(t, "the end", w.Read(agent, v.ID).ExpiresAt, v.ExpiresAt)
	})
}
