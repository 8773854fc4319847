package gateway

import (
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"agentproxy/adapters/gateway/client"
	"agentproxy/adapters/gateway/refusal"
	"agentproxy/adapters/gateway/relay"
	"agentproxy/adapters/gateway/route"
	"agentproxy/domain/health"
	"agentproxy/domain/traffic"
)

// The types of observations in the event log.
const (
	eventTunnel   = traffic.Tunnelled
	eventRequest  = traffic.Requested
	eventRefused  = traffic.Refused
	eventFailed   = traffic.Unmet
	eventReported = traffic.Reported
)

// observeRefusal records why a connection was not made. A failed authentication is
// not an event of the session.
func (g *Gateway) observeRefusal(c *client.Conn, exit netip.Addr, host string, ref *refusal.Refusal,
	latency time.Duration) {
	e := c.Entry()
	if ref.Unobserved || e == nil {
		return
	}
	o := traffic.Observation{SessionID: e.ID, AgentID: agentOf(e), Client: clientAddr(c),
		At: g.now(), Type: eventRefused, Evidence: ref.Evidence,
		Host: host, StatusCode: ref.Status, Code: ref.Code.String(), Latency: latency, ExitIP: text(exit),
		Retryable: ref.Retryable(), HowToFix: ref.HowToFix, Worker: c.Worker.Name()}
	if ref.Failure() {
		o.Type = eventFailed
	}
	g.observer.Observe(o)
	if g.log.Enabled(g.ctx, slog.LevelDebug) {
		g.log.Debug("refused", "session_id", e.ID, "code", o.Code, "host", host)
	}
}

// observeTunnel records a tunnel that ended.
func (g *Gateway) observeTunnel(t *relay.Tunnel, why client.Cause) {
	up, down := t.Bytes()
	e := t.Conn.Entry()
	o := traffic.Observation{SessionID: e.ID, AgentID: agentOf(e), Client: clientAddr(t.Conn),
		At: g.now(), Type: eventTunnel, Host: t.Opening.Host,
		StatusCode: http.StatusOK, Bytes: up + down, Latency: t.Opening.Latency, ExitIP: text(t.Opening.Exit),
		Worker: t.Conn.Worker.Name()}
	var ref *refusal.Refusal
	switch why {
	case client.Ended:
		ref = refusal.SessionOver
	case client.Exhausted:
		ref = exhausted(t.Conn)
	case client.Looped:
		ref = refusal.TargetForbidden
	case client.Denied:
		ref = g.denialOf(t.Conn)
	case client.TargetGone:
		ref = refusal.ConnectionReset
		o.Evidence = health.HTTPError
	}
	if ref != nil {
		o.Code, o.HowToFix, o.Retryable = ref.Code.String(), ref.HowToFix, ref.Retryable()
	}
	g.observer.Observe(o)
	if g.log.Enabled(g.ctx, slog.LevelDebug) {
		g.log.Debug("tunnel", "session_id", o.SessionID, "host", o.Host, "up", up, "down", down, "code", o.Code)
	}
}

// observeRequest records a plain request that the target answered. Its status is
// evidence about the exit.
func (g *Gateway) observeRequest(e *route.Entry, o traffic.Observation) {
	o.SessionID, o.AgentID, o.At, o.Type = e.ID, agentOf(e), g.now(), eventRequest
	o.Evidence = health.Success
	if o.StatusCode >= 400 {
		o.Evidence = health.HTTPError
	}
	g.observer.Observe(o)
}

// agentOf returns the agent of a session; empty if its route was never read.
func agentOf(e *route.Entry) string {
	if r := e.Latest(); r != nil {
		return r.AgentID
	}
	return ""
}

func text(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}
