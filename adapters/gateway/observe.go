package gateway

import (
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"agentproxy/adapters/gateway/refusal"
	"agentproxy/domain/health"
	"agentproxy/domain/traffic"
)

// The types of observations, in the words of the event feed.
const (
	sawTunnel  = "tunnel"
	sawRequest = "request"
	sawRefused = "refused" // by us
	sawFailed  = "failed"  // by the target, or on the way to it
)

// observeRefusal tells the session's feed why a connection was not made. What a
// stranger did with a wrong password is not the session's affair.
func (g *Gateway) observeRefusal(c *conn, exit netip.Addr, host string, ref *refusal.Refusal, latency time.Duration) {
	e := c.entry.Load()
	if ref.Unobserved || e == nil {
		return
	}
	o := traffic.Observation{SessionID: e.id, At: g.cfg.Now(), Type: sawRefused, Evidence: ref.Evidence, Host: host,
		StatusCode: ref.Status, Code: ref.Code.String(), Latency: latency, ExitIP: text(exit),
		Retryable: ref.Retryable(), HowToFix: ref.HowToFix}
	if ref.Failure() {
		o.Type = sawFailed
	}
	g.backend.Observe(o)
	if g.log.Enabled(g.ctx, slog.LevelDebug) {
		g.log.Debug("refused", "session_id", e.id, "code", ref.Code, "host", host)
	}
}

// observeTunnel tells of a tunnel that ended.
func (g *Gateway) observeTunnel(t *tunnel, why cause) {
	o := traffic.Observation{SessionID: t.entry.id, At: g.cfg.Now(), Type: sawTunnel, Host: t.opening.host,
		StatusCode: http.StatusOK, Bytes: t.up.total + t.down.total, Latency: t.opening.latency, ExitIP: text(t.opening.exit)}
	var ref *refusal.Refusal
	switch why {
	case ended:
		ref = refusal.SessionOver
	case exhausted:
		ref = refusal.TrafficExhausted
	case targetGone:
		ref = refusal.ConnectionReset
		o.Evidence = health.HTTPError
	}
	if ref != nil {
		o.Code, o.HowToFix, o.Retryable = ref.Code.String(), ref.HowToFix, ref.Retryable()
	}
	g.backend.Observe(o)
	if g.log.Enabled(g.ctx, slog.LevelDebug) {
		g.log.Debug("tunnel", "session_id", o.SessionID, "host", o.Host, "up", t.up.total, "down", t.down.total, "code", o.Code)
	}
}

// observeRequest tells of a plain request that the target answered: its status
// is evidence about the exit.
func (g *Gateway) observeRequest(e *entry, o traffic.Observation) {
	o.SessionID, o.At, o.Type = e.id, g.cfg.Now(), sawRequest
	o.Evidence = health.Success
	if o.StatusCode >= 400 {
		o.Evidence = health.HTTPError
	}
	g.backend.Observe(o)
}

func text(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}
