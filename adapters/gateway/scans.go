package gateway

import (
	"time"

	"agentproxy/adapters/gateway/monotime"
	"agentproxy/adapters/gateway/quota"
	"agentproxy/adapters/gateway/refusal"
	"agentproxy/domain/policy"
	"agentproxy/domain/traffic"
)

// Scan is an agent that tried many different targets, of which most refused or failed.
type Scan struct {
	Agent   string
	Trial   bool
	Targets int
	Failed  int // of them
}

// outage is how long no connection of anybody opened when timeouts are taken for a fault of this
// host's network.
const outage = time.Minute

// tried records what came of a connection of an agent, and reports the agent if what it does looks
// like a scan.
func (g *Gateway) tried(r *traffic.Route, t quota.Target, ref *refusal.Refusal) {
	if !g.cfg.WatchScans {
		return
	}
	if ref == nil {
		g.lastOpened.Store(int64(monotime.Now()))
	} else if !g.missed(ref) {
		return
	}
	s, found := g.starts.Note(r.AgentID, t, ref == nil, g.now())
	if !found {
		return
	}
	g.metrics.scans[r.Trial].Inc()
	g.log.Warn("an account tries many targets, and most of them refuse or fail: it looks like a scan",
		"agent_id", r.AgentID, "session_id", r.SessionID, "trial", r.Trial, "targets", s.Targets, "failed", s.Failed,
		"minutes", int(quota.ScanWindow.Minutes()))
	g.deps.Scanned(Scan{Agent: r.AgentID, Trial: r.Trial, Targets: s.Targets, Failed: s.Failed})
}

// missed reports whether a refusal shows that an agent missed: a rule that is not its own session's
// denies the target, or the target itself did not answer. Faults of sellers and of this service,
// and limits, show nothing; timeouts only while other connections open.
func (g *Gateway) missed(ref *refusal.Refusal) bool {
	switch {
	case ref.Upstream:
		return false
	case ref.Code == refusal.CodeTargetRefused:
		return true
	case ref.Code == refusal.CodeTargetDenied:
		return ref.Layer != string(policy.Session)
	}
	switch ref.ProxyError {
	case refusal.ConnectionRefused.ProxyError, refusal.NameNotFound.ProxyError:
		return true
	case refusal.ConnectTimeout.ProxyError, refusal.Unreachable.ProxyError:
		last := g.lastOpened.Load()
		return last > 0 && monotime.Now()-time.Duration(last) < outage
	}
	return false
}
