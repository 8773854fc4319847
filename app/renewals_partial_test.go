package app_test

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
	"agentproxy/test/fake"
)

// partly is a seller that renews address by address, and answers for each.
type partly struct {
	*fake.Provider
	answers []error       // by address; nil: renewed
	uneven  time.Duration // the second address ends so much earlier
}

func (p *partly) Renew(_ context.Context, ref string, in procurement.Intent) (done []procurement.Renewed, err error) {
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
		{"nobody knows of one, the others are refused", []error{no(procurement.Ambiguous), no(procurement.Temporary)}, ports.Pending, "back"},
		{"nobody knows of the last", []error{no(procurement.Temporary), no(procurement.Ambiguous)}, ports.Pending, "back"},
		{"some are renewed", []error{nil, no(procurement.Temporary)}, ports.Pending, "frozen"},
		{"some are renewed, the last of them", []error{no(procurement.Temporary), nil}, ports.Pending, "frozen"},
	} {
		t.Run(c.claim, func(t *testing.T) {
			t.Parallel()
			p := &partly{Provider: fake.NewProvider("partly"), answers: c.answers, uneven: time.Hour}
			w := open(t, setup{more: []ports.Provider{p}, sell: []catalog.Product{bothOf("sta_partly", session.Static, procurement.Source{Provider: "partly"})}})
			p.SetClock(w.clock.Now)
			agent := w.rich(100)
			f := form("sta_partly")
			f.Quantity = new(2)
			bought, err := w.sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: f})
			ok(t, err)
			v, before := bought.View, w.balance(agent)
			d, err := w.sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: v.ID, Call: key("k"), Days: "90"})
			if c.outcome == ports.InFlight {
				refused(t, err, ports.ErrProvider)
			} else {
				ok(t, err)
				same(t, "the outcome", d.Outcome, c.outcome)
			}
			if c.outcome == ports.Pending {
				w.pass(10)
				same(t, "too early to tell, held", w.read(agent, v.ID).Cost.Held, dollars("5"))
			}
			for range 200 {
				w.clock.Advance(10 * time.Minute)
				ok(t, w.work())
			}
			now := w.read(agent, v.ID)
			o := w.order(v.ID)
			switch c.then {
			case "paid":
				same(t, "the end", now.ExpiresAt, v.ExpiresAt.Add(90*session.Day))
				same(t, "the balance", w.balance(agent), before-dollars("5"))
				same(t, "the earliest end at the seller", o.ExpiresAt, v.ExpiresAt.Add(90*session.Day-time.Hour))
				same(t, "its time", o.NextAt, time.Time{})
			case "back":
				same(t, "the end", now.ExpiresAt, v.ExpiresAt)
				same(t, "the balance", w.balance(agent), before)
			case "frozen":
				same(t, "held", now.Cost.Held, dollars("5"))
				if o.Status != procurement.Unknown || o.FrozenAt.IsZero() || o.Reason == "" {
					t.Errorf("the order is %+v", o)
				}
				_, err := w.desk.Adopt(t.Context(), o.ID, "")
				ok(t, err)
				same(t, "adopted, the end", w.read(agent, v.ID).ExpiresAt, v.ExpiresAt.Add(90*session.Day))
			}
		})
	}
}

// A renewal of what the seller lost goes on being asked about while the session
// lives.
func TestARenewalOfWhatIsGoneWaitsForTheSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.rich(100)
	v := w.buy(agent, remoteStatic)
	before := w.balance(agent)
	w.seller.Next(fake.Extend, fake.LoseAnswer())
	_, err := w.sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: v.ID})
	ok(t, err)
	w.seller.Change(v.ID, func(p *fake.Purchase) { p.Gone = true })
	w.pass(20)
	same(t, "held", w.read(agent, v.ID).Cost.Held, dollars("1"))
	same(t, "the order", w.order(v.ID).Status, procurement.Unknown)
	w.pass(60 + int((procurement.LostAfter+procurement.LookAgainAfter)/time.Minute)) // the order is looked at every hour
	now := w.read(agent, v.ID)
	same(t, "the session", now.Reason, session.ProviderLost)
	same(t, "held after all", now.Cost.Held, 0)
	same(t, "refunded", now.Cost.Refunded > 0, true)
	same(t, "the balance", w.balance(agent), before+now.Cost.Refunded)
	same(t, "the order after all", w.order(v.ID).Status, procurement.Refused)
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
		{"nothing is told", nil, true},
		{"it has it", []procurement.Offer{offer(st, "r", "DE", procurement.StockYes)}, true},
		{"it has none", []procurement.Offer{offer(st, "r", "DE", procurement.StockNo)}, false},
		{"it has none anywhere", []procurement.Offer{offer(st, "", "", procurement.StockNo)}, false},
		{"none of another type", []procurement.Offer{offer(dy, "r", "DE", procurement.StockNo)}, true},
		{"none of another product", []procurement.Offer{offer(st, "q", "DE", procurement.StockNo)}, true},
		{"none in another country", []procurement.Offer{offer(st, "r", "FR", procurement.StockNo)}, true},
		{"none here and some there", []procurement.Offer{offer(st, "r", "DE", procurement.StockNo), offer(st, "r", "DE", procurement.StockYes)}, true},
		{"some here and none there", []procurement.Offer{offer(st, "r", "DE", procurement.StockYes), offer(st, "r", "DE", procurement.StockNo)}, true},
		{"not told here and none there", []procurement.Offer{offer(st, "r", "DE", ""), offer(st, "r", "DE", procurement.StockNo)}, true},
		{"none here and not told there", []procurement.Offer{offer(st, "r", "DE", procurement.StockNo), offer(st, "r", "DE", procurement.StockUnknown)}, true},
	} {
		t.Run(c.claim, func(t *testing.T) {
			t.Parallel()
			w, _ := pair(t)
			agent := w.register()
			w.seller.SetOffers(c.offers...)
			ok(t, w.catalog.RefreshStock(t.Context()))
			d, err := w.createWith(agent, "sta_both", idempotency.Call{})
			ok(t, err)
			same(t, "bought of the first", d.View.Provider == "remote", c.asked)
		})
	}
	t.Run("who is certain comes before who does not tell", func(t *testing.T) {
		second := fake.NewProvider("second")
		w := open(t, setup{more: []ports.Provider{second}, sell: []catalog.Product{bothOf("sta_equal", session.Static,
			procurement.Source{Provider: "remote", SKU: "r"}, procurement.Source{Provider: "second", SKU: "s"})}})
		second.SetOffers(offer(st, "s", "DE", procurement.StockYes), offer(st, "s", "DE", procurement.StockUnknown))
		ok(t, w.catalog.RefreshStock(t.Context()))
		d, err := w.createWith(w.register(), "sta_equal", idempotency.Call{})
		ok(t, err)
		same(t, "bought of", d.View.Provider, "second")
	})
	t.Run("a product is refused whose provider nobody knows", func(t *testing.T) {
		t.Parallel()
		w, _ := pair(t)
		if err := w.catalog.Replace([]catalog.Product{bothOf("sta_new", session.Static, procurement.Source{Provider: "nobody"})}); err == nil {
			t.Error("sold")
		}
		_, err := w.createWith(w.register(), "sta_both", idempotency.Call{})
		ok(t, err)
	})
}
