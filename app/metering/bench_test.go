package metering_test

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
	requests := make([]traffic.LeaseRequest, 100)
	for i := range requests {
		f := apptest.Form(apptest.Local)
		f.Bytes = apptest.Gigabytes("10")
		d, err := w.Sessions.Create(b.Context(), sessions.Create{AgentID: agent, Form: f})
		apptest.OK(b, err)
		requests[i] = traffic.LeaseRequest{SessionID: d.View.ID, Lease: "l" + d.View.ID, Want: 1 << 20}
	}
	renew := func() {
		grants, err := w.Traffic.Renew(b.Context(), "r", requests)
		if apptest.OK(b, err); len(grants) != len(requests) {
			b.Fatalf("%d grants", len(grants))
		}
	}
	renew()
	for b.Loop() {
		for i := range requests {
			requests[i].Up += 10_000
		}
		renew()
	}
}
