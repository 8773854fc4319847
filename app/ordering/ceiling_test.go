package ordering_test

import (
	"bytes"
	"log/slog"
	"strings"
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

// An order that costs more than its agent pays is not sent, whether its cost is
// configured or not, and neither is a renewal.
func TestNothingIsBoughtAboveItsPrice(t *testing.T) {
	t.Parallel()
	for _, product := range []string{apptest.Remote, apptest.RemoteStatic} {
		t.Run(product, func(t *testing.T) {
			t.Parallel()
			w := apptest.New(t)
			agent := w.RegisterFunded(10)
			v := w.Buy(agent, product)
			before, sold := w.Balance(agent), len(w.Seller.Sales())
			w.Seller.SetQuote("", procurement.Quote{Cost: 500 * domain.Dollar, Stock: procurement.StockYes})
			_, err := w.Create(agent, product)
			apptest.ErrorIs(t, err, ports.ErrProvider)
			apptest.Equal(t, "sold", len(w.Seller.Sales()), sold)
			if v.Type == session.Static {
				_, err = w.Sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: v.ID})
				apptest.ErrorIs(t, err, ports.ErrProvider)
				apptest.Equal(t, "renewals that were sent", w.Seller.Calls(fake.Extend), 0)
			}
			apptest.Equal(t, "the balance", w.Balance(agent), before)
		})
	}
}

// What costs exactly its price is bought and renewed; what may be sold below its cost is
// bought at any cost that is not configured.
func TestWhatIsBoughtAtItsCost(t *testing.T) {
	t.Parallel()
	loss := apptest.SharedProduct("sta_loss", session.Static, procurement.Source{Provider: "remote", SKU: "l", BelowCost: true})
	for name, cost := range map[string]domain.Money{apptest.RemoteStatic: domain.Dollar, "sta_loss": 500 * domain.Dollar} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := apptest.Open(t, apptest.Options{Products: []catalog.Product{loss}})
			agent := w.RegisterFunded(10)
			for _, sku := range []string{"", "l"} {
				w.Seller.SetQuote(sku, procurement.Quote{Cost: cost, Stock: procurement.StockYes})
			}
			v := w.Buy(agent, name)
			d, err := w.Sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: v.ID})
			apptest.OK(t, err)
			apptest.Equal(t, "the outcome", d.Outcome, ports.Completed)
		})
	}
}

// The cost that a delivery shows is checked once more: it cannot be undone, but the
// operator is notified, once.
func TestACostAboveThePriceIsReported(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	var log bytes.Buffer
	w.Connect(0, w.Clock, nil, slog.New(slog.NewTextHandler(&log, nil)))
	var excess domain.Money
	w.Driver.CountExcess(func(provider string, x domain.Money) {
		apptest.Equal(t, "the provider", provider, "remote")
		excess += x
	}, nil)
	w.Seller.SetAsync(2)
	agent := w.Register()
	v := w.Buy(agent, apptest.RemoteStatic)
	w.Seller.Change(v.ID, func(p *fake.Purchase) { p.Delivery.Cost = domain.Dollar + domain.Dollar/4 })
	w.RunMinutes(3)
	apptest.Equal(t, "the session", w.Read(agent, v.ID).Status, session.Active)
	apptest.Equal(t, "the excess", lastOrder(w, v.ID).Excess(), domain.Dollar/4)
	w.Clock.Advance(time.Hour)
	apptest.OK(t, w.RunOrders()) // it is read once more
	apptest.Equal(t, "counted", excess, domain.Dollar/4)
	apptest.Equal(t, "warnings", strings.Count(log.String(), "charged more for an order"), 1)
}
