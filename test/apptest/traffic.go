package apptest

import (
	"context"
	"time"

	"agentproxy/app/telemetry"
	"agentproxy/domain/health"
	"agentproxy/domain/traffic"
)

// RenewLease renews one lease and returns its grant.
func (w *World) RenewLease(ask traffic.LeaseRequest) traffic.Grant {
	w.T.Helper()
	grants, err := w.Traffic.Renew(context.Background(), "replica", []traffic.LeaseRequest{ask})
	OK(w.T, err)
	if len(grants) != 1 || grants[0].SessionID != ask.SessionID || grants[0].Lease != ask.Lease {
		w.T.Fatalf("asked for %s, granted %+v", ask.SessionID, grants)
	}
	return grants[0]
}

// UseBytes reports bytes of a session on a lease that it opens and closes.
func (w *World) UseBytes(id, lease string, bytes int64) traffic.Grant {
	w.T.Helper()
	g := traffic.Grant{}
	for used := int64(0); used < bytes; used = min(g.Granted, bytes) {
		g = w.RenewLease(traffic.LeaseRequest{SessionID: id, Lease: lease, Up: used / 3, Down: used - used/3, Want: bytes - used})
		if g.Outcome != traffic.Open {
			w.T.Fatalf("after %d of %d bytes the outcome is %d", used, bytes, g.Outcome)
		}
	}
	return w.RenewLease(traffic.LeaseRequest{SessionID: id, Lease: lease, Up: bytes / 3, Down: bytes - bytes/3, Close: true})
}

// Report sends one event of a type as an agent.
func (w *World) Report(agent, id, kind string) telemetry.Reported {
	w.T.Helper()
	r, err := w.Telemetry.Report(context.Background(), agent, telemetry.ReportedEvent{SessionID: id, Report: health.Report{Type: kind}})
	OK(w.T, err)
	return r
}

// Observe records an observation of the gateway about a host that a session connected to.
func (w *World) Observe(id, host string, evidence health.Type) {
	w.Observer.Observe(traffic.Observation{SessionID: id, At: w.Clock.Now(), Type: "tunnel", Evidence: evidence, Host: host,
		Bytes: 10, ExitIP: "10.0.0.1", Latency: 5 * time.Millisecond})
}
