package ordering_test

import (
	"context"
	"testing"
	"time"

	"agentproxy/app/idempotency"
	"agentproxy/app/sessions"
	"agentproxy/domain/catalog"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/apptest"
	"agentproxy/test/fake"
)

// partialProvider is a seller that renews address by address, and answers for each.
type partialProvider struct {
	*fake.Provider
	answers []error       // by address; nil: renewed
	uneven  time.Duration // the second address ends so much earlier
}

func (p *partialProvider) Renew(_ context.Context, ref string, in procurement.Intent) (done []procurement.Renewed, err error) {
	d, err := p.Read(context.Background(), ref)
	if err != nil {
		return nil, err
	}
	for i, ip := range d.IPs {
		r := procurement.Renewed{Addr: ip.Addr, Err: p.answers[i]}
		if r.Err == nil {
			r.ExpiresAt = d.ExpiresAt.Add(time.Duration(in.Days)*session.Day - time.Duration(i)*p.uneven)
			p.Change(in.SessionID, func(b *fake.Purchase) { b.Delivery.IPs[i].ExpiresAt = r.ExpiresAt })
		}
		done = append(done, r)
	}
	return done, nil
}

func TestRenewalsOfManyAddresses(t *testing.T) {
	t.Parallel()
	no := func(c procurement.Class) error { return procurement.Refuse(c, "not this one") }
	for _, c := range []struct {
		claim   string
		answers []error
		outcome ports.Outcome // InFlight: refused at once
		then    string        // what becomes of it: paid, back, frozen
	}{
		{"all are renewed", []error{nil, nil}, ports.Completed, "paid"},
		{"none is renewed", []error{no(procurement.Temporary), no(procurement.Conflict)}, ports.InFlight, "back"},
		{"one is unknown, the others are refused", []error{no(procurement.Ambiguous), no(procurement.Temporary)}, ports.Pending, "back"},
		{"the last is unknown", []error{no(procurement.Temporary), no(procurement.Ambiguous)}, ports.Pending, "back"},
		{"some are renewed", []error{nil, no(procurement.Temporary)}, ports.Pending, "frozen"},
		{"some are renewed, the last of them", []error{no(procurement.Temporary), nil}, ports.Pending, "frozen"},
	} {
		t.Run(c.claim, func(t *testing.T) {
			t.Parallel()
			p := &partialProvider{Provider: fake.NewProvider("partly"), answers: c.answers, uneven: time.Hour}
			w := apptest.Open(t, apptest.Options{Providers: []ports.Provider{p}, Products: []catalog.Product{apptest.SharedProduct("sta_partly", session.Static, procurement.Source{Provider: "partly"})}})
			p.SetClock(w.Clock.Now)
			agent := w.RegisterFunded(100)
			f := apptest.Form("sta_partly")
			f.Quantity = new(2)
			bought, err := w.Sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: f})
			apptest.OK(t, err)
			v, before := bought.View, w.Balance(agent)
			d, err := w.Sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: v.ID, Call: apptest.Call("k"), Days: "90"})
			if c.outcome == ports.InFlight {
				apptest.ErrorIs(t, err, ports.ErrProvider)
			} else {
				apptest.OK(t, err)
				apptest.Equal(t, "the outcome", d.Outcome, c.outcome)
			}
			if c.outcome == ports.Pending {
				w.RunMinutes(10)
				apptest.Equal(t, "too early to decide, held", w.Read(agent, v.ID).Cost.Held, apptest.Dollars("5"))
			}
			for range 200 {
				w.Clock.Advance(10 * time.Minute)
				apptest.OK(t, w.RunOrders())
			}
			now := w.Read(agent, v.ID)
			o := lastOrder(w, v.ID)
			switch c.then {
			case "paid":
				apptest.Equal(t, "the end", now.ExpiresAt, v.ExpiresAt.Add(90*session.Day))
				apptest.Equal(t, "the balance", w.Balance(agent), before-apptest.Dollars("5"))
				apptest.Equal(t, "the earliest end at the seller", o.ExpiresAt, v.ExpiresAt.Add(90*session.Day-time.Hour))
				apptest.Equal(t, "its time", o.NextAt, time.Time{})
			case "back":
				apptest.Equal(t, "the end", now.ExpiresAt, v.ExpiresAt)
				apptest.Equal(t, "the balance", w.Balance(agent), before)
			case "frozen":
				apptest.Equal(t, "held", now.Cost.Held, apptest.Dollars("5"))
				if o.Status != procurement.Unknown || o.FrozenAt.IsZero() || o.Reason == "" {
					t.Errorf("the order is %+v", o)
				}
				_, err := w.Desk.Adopt(t.Context(), o.ID, "")
				apptest.OK(t, err)
				apptest.Equal(t, "adopted, the end", w.Read(agent, v.ID).ExpiresAt, v.ExpiresAt.Add(90*session.Day))
			}
		})
	}
}

// A renewal of what the seller lost goes on being asked about while the session
// lives.
func TestARenewalOfWhatIsGoneWaitsForTheSession(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.RegisterFunded(100)
	v := w.Buy(agent, apptest.RemoteStatic)
	before := w.Balance(agent)
	w.Seller.Next(fake.Extend, fake.LoseAnswer())
	_, err := w.Sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: v.ID})
	apptest.OK(t, err)
	w.Seller.Change(v.ID, func(p *fake.Purchase) { p.Gone = true })
	w.RunMinutes(20)
	apptest.Equal(t, "held", w.Read(agent, v.ID).Cost.Held, apptest.Dollars("1"))
	apptest.Equal(t, "the order", lastOrder(w, v.ID).Status, procurement.Unknown)
	w.RunMinutes(60 + int((procurement.LostAfter+procurement.RereadAfter)/time.Minute)) // the order is looked at every hour
	now := w.Read(agent, v.ID)
	apptest.Equal(t, "the session", now.Reason, session.ProviderLost)
	apptest.Equal(t, "held after all", now.Cost.Held, 0)
	apptest.Equal(t, "refunded", now.Cost.Refunded > 0, true)
	apptest.Equal(t, "the balance", w.Balance(agent), before+now.Cost.Refunded)
	apptest.Equal(t, "the order after all", lastOrder(w, v.ID).Status, procurement.Refused)
}

// A provider's offers decide which provider is asked.
func TestStockOfASource(t *testing.T) {
	t.Parallel()
	offer := func(typ session.Type, sku, country string, s procurement.Stock) procurement.Offer {
		return procurement.Offer{Type: typ, SKU: sku, Location: session.Location{Country: country}, Stock: s}
	}
	st, dy := session.Static, session.Dynamic
	for _, c := range []struct {
		claim  string
		offers []procurement.Offer
		asked  bool
	}{
		{"nothing is reported", nil, true},
		{"it has it", []procurement.Offer{offer(st, "r", "DE", procurement.StockYes)}, true},
		{"it has none", []procurement.Offer{offer(st, "r", "DE", procurement.StockNo)}, false},
		{"it has none anywhere", []procurement.Offer{offer(st, "", "", procurement.StockNo)}, false},
		{"none of another type", []procurement.Offer{offer(dy, "r", "DE", procurement.StockNo)}, true},
		{"none of another product", []procurement.Offer{offer(st, "q", "DE", procurement.StockNo)}, true},
		{"none in another country", []procurement.Offer{offer(st, "r", "FR", procurement.StockNo)}, true},
		{"none here and some there", []procurement.Offer{offer(st, "r", "DE", procurement.StockNo), offer(st, "r", "DE", procurement.StockYes)}, true},
		{"some here and none there", []procurement.Offer{offer(st, "r", "DE", procurement.StockYes), offer(st, "r", "DE", procurement.StockNo)}, true},
		{"not reported here and none there", []procurement.Offer{offer(st, "r", "DE", ""), offer(st, "r", "DE", procurement.StockNo)}, true},
		{"none here and not reported there", []procurement.Offer{offer(st, "r", "DE", procurement.StockNo), offer(st, "r", "DE", procurement.StockUnknown)}, true},
	} {
		t.Run(c.claim, func(t *testing.T) {
			t.Parallel()
			w, _ := apptest.TwoSellers(t)
			agent := w.Register()
			w.Seller.SetOffers(c.offers...)
			apptest.OK(t, w.Catalog.RefreshStock(t.Context()))
			d, err := w.CreateWith(agent, "sta_both", idempotency.Call{})
			apptest.OK(t, err)
			apptest.Equal(t, "bought of the first", d.View.Provider == "remote", c.asked)
		})
	}
	t.Run("a source with stock comes before one that does not report it", func(t *testing.T) {
		second := fake.NewProvider("second")
		w := apptest.Open(t, apptest.Options{Providers: []ports.Provider{second}, Products: []catalog.Product{apptest.SharedProduct("sta_equal", session.Static,
			procurement.Source{Provider: "remote", SKU: "r"}, procurement.Source{Provider: "second", SKU: "s"})}})
		second.SetOffers(offer(st, "s", "DE", procurement.StockYes), offer(st, "s", "DE", procurement.StockUnknown))
		apptest.OK(t, w.Catalog.RefreshStock(t.Context()))
		d, err := w.CreateWith(w.Register(), "sta_equal", idempotency.Call{})
		apptest.OK(t, err)
		apptest.Equal(t, "bought of", d.View.Provider, "second")
	})
	t.Run("a product is refused whose provider is unknown", func(t *testing.T) {
		t.Parallel()
		w, _ := apptest.TwoSellers(t)
		if err := w.Catalog.Replace([]catalog.Product{apptest.SharedProduct("sta_new", session.Static, procurement.Source{Provider: "unknown"})}); err == nil {
			t.Error("sold")
		}
		_, err := w.CreateWith(w.Register(), "sta_both", idempotency.Call{})
		apptest.OK(t, err)
	})
}
