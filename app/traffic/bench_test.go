package traffic_test

import (
	"testing"

	"agentproxy/app/sessions"
	"agentproxy/domain/traffic"
	"agentproxy/test/apptest"
)

// BenchmarkRenew renews the leases of 100 sessions that all moved bytes, in one call.
func BenchmarkRenew(b *testing.B) {
	w, done := apptest.Start(b, apptest.Options{System: true})
	defer done()
	agent := w.RegisterFunded(1000)
	asks := make([]traffic.Ask, 100)
	for i := range asks {
		f := apptest.Form(apptest.Local)
		f.Bytes = apptest.Gigabytes("10")
		d, err := w.Sessions.Create(b.Context(), sessions.Create{AgentID: agent, Form: f})
		apptest.OK(b, err)
		asks[i] = traffic.Ask{SessionID: d.View.ID, Lease: "l" + d.View.ID, Want: 1 << 20}
	}
	renew := func() {
		grants, err := w.Traffic.Renew(b.Context(), "r", asks)
		if apptest.OK(b, err); len(grants) != len(asks) {
			b.Fatalf("%d grants", len(grants))
		}
	}
	renew()
	for b.Loop() {
		for i := range asks {
			asks[i].Up += 10_000
		}
		renew()
	}
}
