package wire

import (
	"log/slog"
	"testing"

	"agentproxy/app/reconcile"
	"agentproxy/domain/procurement"
	"agentproxy/test/apptest"
	"agentproxy/test/fake"
)

// What a seller has counted and no agent is charged for is a series.
func TestUnchargedBytesAreASeries(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	providers := reconcile.New(w.Store, w.Clock, w.Catalog, w.Desk, func(string, string, procurement.Class) {},
		slog.New(slog.DiscardHandler))
	v := w.Buy(w.RegisterFunded(10), apptest.Remote)
	w.UseBytes(v.ID, "lease", 150_000_000)
	w.Seller.Change(v.ID, func(p *fake.Purchase) { p.Used = 160_000_000 })
	apptest.OK(t, providers.CountDue(t.Context()))
	for _, g := range orderGauges(w.Desk, nil, providers, w.Clock) {
		if g.Name != "agentproxy_upstream_uncharged_bytes" {
			continue
		}
		values, err := g.ByProvider(t.Context())
		apptest.OK(t, err)
		apptest.Equal(t, "uncharged at the seller", values["remote"], 10_000_000)
		return
	}
	t.Error("there is no such series")
}
