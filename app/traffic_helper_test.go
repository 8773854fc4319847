package app_test

import (
	"context"

	"agentproxy/domain/traffic"
)

// renew asks for one lease.
func (w *world) renew(ask traffic.Ask) traffic.Grant {
	w.t.Helper()
	grants, err := w.traffic.Renew(context.Background(), "replica", []traffic.Ask{ask})
	ok(w.t, err)
	if len(grants) != 1 || grants[0].SessionID != ask.SessionID || grants[0].Lease != ask.Lease {
		w.t.Fatalf("asked for %s, granted %+v", ask.SessionID, grants)
	}
	return grants[0]
}

// use lets bytes pass through a session, on a lease that is opened for
// them and closed behind them.
func (w *world) use(id, lease string, bytes int64) traffic.Grant {
	w.t.Helper()
	g := traffic.Grant{}
	for used := int64(0); used < bytes; used = min(g.Granted, bytes) {
		g = w.renew(traffic.Ask{SessionID: id, Lease: lease, Up: used / 3, Down: used - used/3, Want: bytes - used})
		if g.Outcome != traffic.Open {
			w.t.Fatalf("after %d of %d bytes the gateway is told %d", used, bytes, g.Outcome)
		}
	}
	return w.renew(traffic.Ask{SessionID: id, Lease: lease, Up: bytes / 3, Down: bytes - bytes/3, Close: true})
}
