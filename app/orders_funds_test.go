package app_test

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
	"agentproxy/test/fake"
)

// purse is a seller without labels that returns what is left of 100 dollars, and
// what each purchase cost. While it hides, it shows no change that it made.
type purse struct {
	*fake.Provider
	hides atomic.Bool
	shown time.Time
}

func (p *purse) Balance(context.Context) (procurement.ProviderBalance, error) {
	spent := domain.Money(0)
	for _, b := range p.Sales() {
		spent += domain.Dollar * domain.Money(1+b.Renewals)
	}
	return procurement.ProviderBalance{Amount: 100*domain.Dollar - spent, Known: true}, nil
}

func (p *purse) Order(ctx context.Context, in procurement.Intent) (procurement.Delivery, error) {
	d, err := p.Provider.Order(ctx, in)
	d.Cost = domain.Dollar
	return d, err
}

func (p *purse) Find(ctx context.Context, in procurement.Intent) ([]procurement.Delivery, error) {
	list, err := p.Provider.Find(ctx, in)
	if p.hides.Load() {
		return nil, err
	}
	return list, err
}

func (p *purse) Read(ctx context.Context, ref string) (procurement.Delivery, error) {
	d, err := p.Provider.Read(ctx, ref)
	if p.hides.Load() {
		d.ExpiresAt = p.shown
	}
	return d, err
}

func purseWorld(t *testing.T) (*world, *purse, string) {
	p := &purse{Provider: fake.NewProvider("purse")}
	p.Can(func(c *procurement.Capabilities) { c.KeepsOrderKey = false })
	w := open(t, setup{more: []ports.Provider{p}, sell: []catalog.Product{bothOf("sta_purse", session.Static, procurement.Source{Provider: "purse", SKU: "a"}),
		bothOf("sta_other", session.Static, procurement.Source{Provider: "purse", SKU: "b"})}})
	p.SetClock(w.clock.Now)
	return w, p, w.rich(100)
}

// pass lets time go by, a minute at a time.
func (w *world) pass(minutes int) {
	w.t.Helper()
	for range minutes {
		w.clock.Advance(time.Minute)
		ok(w.t, w.work())
	}
}

// What is in no list and was paid for was bought all the same.
func TestMissingMoneyIsNoProofOfAbsence(t *testing.T) {
	t.Parallel()
	t.Run("a purchase", func(t *testing.T) {
		t.Parallel()
		w, p, agent := purseWorld(t)
		w.buy(agent, "sta_other") // what it cost is not in the balance any more
		w.clock.Advance(time.Minute)
		p.hides.Store(true)
		p.Next(fake.Provision, fake.LoseAnswer())
		v := w.buy(agent, "sta_purse")
		w.pass(30)
		same(t, "while it is hidden", w.read(agent, v.ID).Status, session.Creating)
		p.hides.Store(false)
		w.pass(15)
		same(t, "when it is shown", w.read(agent, v.ID).Status, session.Active)
		same(t, "bought", len(p.Of(v.ID)), 1)
	})
	t.Run("a renewal", func(t *testing.T) {
		t.Parallel()
		w, p, agent := purseWorld(t)
		v := w.buy(agent, "sta_purse")
		w.clock.Advance(time.Second) // what was sent before is in the balance already
		p.shown = v.ExpiresAt
		p.hides.Store(true)
		p.Next(fake.Extend, fake.LoseAnswer())
		d, err := w.sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: v.ID})
		ok(t, err)
		same(t, "the status", d.Outcome, ports.Pending)
		w.pass(40)
		same(t, "while it is hidden", w.read(agent, v.ID).Cost.Held, dollars("1"))
		p.hides.Store(false)
		w.pass(20)
		same(t, "when it is shown", w.read(agent, v.ID).ExpiresAt, v.ExpiresAt.Add(30*session.Day))
	})
}

// Money that other orders of the service took is not missing.
func TestMoneySpentOtherwiseIsNotMissing(t *testing.T) {
	t.Parallel()
	t.Run("a purchase", func(t *testing.T) {
		t.Parallel()
		w, p, agent := purseWorld(t)
		p.Next(fake.Provision, fake.LoseRequest())
		v := w.buy(agent, "sta_purse")
		w.clock.Advance(time.Second)
		w.buy(agent, "sta_other")
		w.pass(10)
		same(t, "the session", w.read(agent, v.ID).Status, session.Failed)
		same(t, "bought", len(p.Sales()), 1)
	})
	t.Run("a renewal", func(t *testing.T) {
		t.Parallel()
		w, p, agent := purseWorld(t)
		v := w.buy(agent, "sta_purse")
		p.Next(fake.Extend, fake.LoseRequest())
		_, err := w.sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: v.ID})
		ok(t, err)
		w.clock.Advance(time.Second)
		w.buy(agent, "sta_other")
		w.pass(40)
		same(t, "held", w.read(agent, v.ID).Cost.Held, 0)
		same(t, "the end", w.read(agent, v.ID).ExpiresAt, v.ExpiresAt)
	})
}
