package ordering_test

import (
	"context"
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

// fundsProvider is a seller whose balance, and answer to a renewal, a test sets.
type fundsProvider struct {
	*fake.Provider
	funds  procurement.ProviderBalance
	broken error
	silent bool // it renews and names no address
}

func (p *fundsProvider) Balance(context.Context) (procurement.ProviderBalance, error) {
	return p.funds, p.broken
}

func (p *fundsProvider) Renew(ctx context.Context, ref string, in procurement.Intent) ([]procurement.Renewed, error) {
	done, err := p.Provider.Renew(ctx, ref, in)
	if p.silent {
		return nil, err
	}
	return done, err
}

// openRenewal buys a session of a fundsProvider and renews it.
func openRenewal(t *testing.T) (w *apptest.World, p *fundsProvider, v sessions.View, renew func() (sessions.Done, error)) {
	p = &fundsProvider{Provider: fake.NewProvider("teller")}
	w = apptest.Open(t, apptest.Options{Providers: []ports.Provider{p}, Products: []catalog.Product{apptest.SharedProduct("sta_teller", session.Static, procurement.Source{Provider: "teller"})}})
	p.SetClock(w.Clock.Now)
	v = w.Buy(w.RegisterFunded(10), "sta_teller")
	return w, p, v, func() (sessions.Done, error) {
		return w.Sessions.Renew(context.Background(), sessions.Renew{AgentID: v.AgentID, SessionID: v.ID})
	}
}

// A renewal whose outcome could not be proved later is not sent.
func TestARenewalThatCouldNotBeProvenIsNotSent(t *testing.T) {
	t.Parallel()
	state := func(s procurement.State) func(p *fundsProvider, id string) {
		return func(p *fundsProvider, id string) {
			p.SetAsync(1000)
			p.Change(id, func(b *fake.Purchase) { b.Delivery.State = s })
		}
	}
	no := func(op fake.Op, c procurement.Class) func(p *fundsProvider, id string) {
		return func(p *fundsProvider, _ string) { p.Always(op, fake.Refuse(c)) }
	}
	for claim, c := range map[string]struct {
		prepare func(p *fundsProvider, id string)
		sent    int
	}{
		"its addresses are gone":        {state(procurement.Gone), 0},
		"they are not there now":        {state(procurement.Pending), 0},
		"they are not listed":           {no(fake.Read, procurement.Auth), 0},
		"there is no answer":            {no(fake.Read, procurement.Ambiguous), 0},
		"there is no price":             {no(fake.Quote, procurement.Auth), 0},
		"there is no balance":           {func(p *fundsProvider, _ string) { p.broken = procurement.Refuse(procurement.Temporary, "") }, 0},
		"there are none for new orders": {no(fake.Quote, procurement.OutOfStock), 1},
		"new orders are not taken":      {no(fake.Quote, procurement.Unsupported), 1},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			w, p, v, renew := openRenewal(t)
			before := w.Balance(v.AgentID)
			c.prepare(p, v.ID)
			_, err := renew()
			apptest.Equal(t, "sent", p.Calls(fake.Extend), c.sent)
			if c.sent > 0 {
				apptest.OK(t, err)
				return
			}
			apptest.ErrorIs(t, err, ports.ErrProvider)
			apptest.Equal(t, "the balance", w.Balance(v.AgentID), before)
			apptest.Equal(t, "the order", lastOrder(w, v.ID).Status, procurement.Refused)
			list, err := w.Sessions.Events(t.Context(), v.AgentID, v.ID, domain.Page{Number: 1, Size: 20})
			apptest.OK(t, err)
			apptest.Equal(t, "the last event", list.Items[0].Type, "renewal_failed")
		})
	}
	t.Run("what was bought is not known", func(t *testing.T) {
		t.Parallel()
		w, p, v, renew := openRenewal(t)
		w.Exec(`DELETE FROM upstream_orders`)
		_, err := renew()
		apptest.ErrorIs(t, err, ports.ErrProvider)
		apptest.Equal(t, "sent", p.Calls(fake.Extend), 0)
		apptest.Equal(t, "held", w.Read(v.AgentID, v.ID).Cost.Held, 0)
	})
}

// What proves neither that a renewal was made nor that it was not leaves the money
// held.
func TestWhatProvesNoRenewal(t *testing.T) {
	t.Parallel()
	held := func(w *apptest.World, v sessions.View, want domain.Money) {
		w.T.Helper()
		w.RunMinutes(40)
		now := w.Read(v.AgentID, v.ID)
		apptest.Equal(w.T, "held", now.Cost.Held, want)
		apptest.Equal(w.T, "the end", now.ExpiresAt, v.ExpiresAt)
	}
	t.Run("every address was exchanged", func(t *testing.T) {
		w, p, v, renew := openRenewal(t)
		p.Next(fake.Extend, fake.LoseRequest())
		_, err := renew()
		apptest.OK(t, err)
		p.Change(v.ID, func(b *fake.Purchase) { b.Delivery.IPs = []procurement.IP{{Addr: fake.StaticExit(200)}} })
		held(w, v, apptest.Dollars("1"))
	})
	t.Run("the addresses are not there now", func(t *testing.T) {
		w, p, v, renew := openRenewal(t)
		p.Next(fake.Extend, fake.LoseRequest())
		_, err := renew()
		apptest.OK(t, err)
		p.SetAsync(1 << 20)
		p.Change(v.ID, func(b *fake.Purchase) { b.Delivery.State = procurement.Pending })
		held(w, v, apptest.Dollars("1"))
		p.SetAsync(0)
		held(w, v, 0)
	})
	t.Run("what money is left is unknown", func(t *testing.T) {
		w, p, v, renew := openRenewal(t)
		p.Next(fake.Extend, fake.LoseRequest())
		_, err := renew()
		apptest.OK(t, err)
		p.broken = procurement.Refuse(procurement.Temporary, "")
		held(w, v, apptest.Dollars("1"))
		p.broken = nil
		held(w, v, 0)
	})
	t.Run("the balance is not reported any more", func(t *testing.T) {
		w, p, v, renew := openRenewal(t)
		p.funds = procurement.ProviderBalance{Amount: domain.Dollar, Known: true}
		p.Next(fake.Extend, fake.LoseRequest())
		_, err := renew()
		apptest.OK(t, err)
		p.funds = procurement.ProviderBalance{}
		held(w, v, 0) // it was never listed, so none is missing
	})
	t.Run("the seller names no address that it renewed", func(t *testing.T) {
		t.Parallel()
		w, p, v, renew := openRenewal(t)
		w.Clock.Advance(time.Hour)
		p.silent = true
		d, err := renew()
		apptest.OK(t, err)
		apptest.Equal(t, "the status", d.Outcome, ports.Pending)
		w.RunMinutes(1)
		apptest.Equal(t, "the end", w.Read(v.AgentID, v.ID).ExpiresAt, v.ExpiresAt.Add(30*session.Day))
	})
}

// A renewal has nothing of its own to give up when its session ends.
func TestARenewedSessionIsGivenUpOnce(t *testing.T) {
	t.Parallel()
	w, p, v, renew := openRenewal(t)
	_, err := renew()
	apptest.OK(t, err)
	_, err = w.Sessions.Terminate(t.Context(), v.AgentID, v.ID)
	apptest.OK(t, err)
	w.RunMinutes(2)
	apptest.Equal(t, "given up", p.Calls(fake.Release), 1)
}
