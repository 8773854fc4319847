package gateway

import (
	"net"
	"net/netip"
	"time"

	"agentproxy/adapters/gateway/client"
	"agentproxy/adapters/gateway/hostport"
	"agentproxy/adapters/gateway/monotime"
	"agentproxy/adapters/gateway/refusal"
	"agentproxy/domain/traffic"
)

// remote returns the address of a client.
func remote(c *net.TCPConn) netip.Addr {
	if a, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		return a.AddrPort().Addr()
	}
	return netip.Addr{}
}

// roomEvery bounds how often the quietest tunnels are searched: it looks at all of them.
const roomEvery = 100 * time.Millisecond

// makeRoom closes the quietest tunnels when the listener is full of authenticated
// connections. It reports whether some were closed now or a moment ago.
func (g *Gateway) makeRoom() bool {
	now, before := monotime.Now(), g.madeRoom.Load()
	if before != 0 && now-time.Duration(before) < roomEvery {
		return true
	}
	if g.conns.InterruptQuietest(max(g.cfg.Connections/64, 4), g.cfg.Timing.Spare, now) == 0 {
		return false
	}
	g.madeRoom.Store(int64(now))
	return true
}

// enter counts a connection for its agent, and records that it is being served. It returns
// a refusal if the agent has too many.
func (g *Gateway) enter(c *client.Conn, r *traffic.Route) *refusal.Refusal {
	g.table.Serve(&c.Slot)
	limit := g.cfg.Agent
	if r.Trial {
		limit = g.cfg.TrialAgent
	}
	if !g.agents.Enter(&c.Agent, r.AgentID, limit) {
		return refusal.TooManyOfAgent
	}
	return nil
}

// paced counts a new connection of an agent to a target, and returns a refusal if the agent
// makes too many.
func (g *Gateway) paced(r *traffic.Route, target hostport.Target) *refusal.Refusal {
	limit := g.cfg.TargetRate
	if r.Trial {
		limit = g.cfg.TrialTargetRate
	}
	if wait := g.rates.Take(r.AgentID, target.Host, limit, g.now()); wait > 0 {
		return refusal.TooFast.After(wait)
	}
	return nil
}

// leave undoes enter for a connection that is not served any more and may linger.
func (g *Gateway) leave(c *client.Conn) {
	g.agents.Leave(&c.Agent)
	g.table.Wait(&c.Slot)
}
