package gateway

import (
	"fmt"
	"net"
	"net/netip"

	"agentproxy/adapters/gateway/client"
	"agentproxy/adapters/gateway/hostport"
	"agentproxy/adapters/gateway/monotime"
	"agentproxy/adapters/gateway/quota"
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

// handshakePlaces is how many of a listener's places agents leave to connections that have not shown
// a credential yet: as many as the table may exceed its bound by.
func handshakePlaces(connections int) int { return min(connections/16, 32) + 1 }

// enter counts a connection for its agent, and records that it is being served. It returns
// a refusal if the agent has too many.
func (g *Gateway) enter(c *client.Conn, r *traffic.Route) *refusal.Refusal {
	g.table.Serve(&c.Slot)
	if c.Carrier != nil {
		g.table.Serve(&c.Carrier.Slot)
	}
	e := quota.Entry{Agent: r.AgentID, Trial: r.Trial, Limit: g.cfg.Agent, Owner: c, Spare: g.cfg.Timing.Spare,
		Now: monotime.Now()}
	if r.Trial {
		e.Limit = g.cfg.TrialAgent
	}
	switch g.agents.Enter(&c.Place, e) {
	case quota.TooMany:
		return refusal.TooManyOfAgent
	case quota.Full:
		return refusal.ShareTaken
	}
	return nil
}

// warnScarce logs who has most connections when three quarters of the places are taken.
func (g *Gateway) warnScarce() {
	if !g.agents.Scarce() {
		return
	}
	u := g.agents.Usage(5)
	g.warn(&g.warnedScarce, "three quarters of the gateway's places are taken", "places", u.Places, "taken", u.Taken,
		"agents", u.Agents, "of_trials", u.Trial, "largest", fmt.Sprint(u.Largest), "closed_for_others", u.Closed)
}

// start counts a new connection of an agent, whatever comes of it, and returns what counts as its
// target. It returns a refusal if the agent makes too many, or has too many targets.
func (g *Gateway) start(r *traffic.Route, target hostport.Target) (quota.Target, *refusal.Refusal) {
	if r.Trial && g.deps.StoredAll(r.AgentID) {
		return 0, refusal.StorageLimit
	}
	l := quota.StartLimits{PerSecond: g.cfg.ConnectionRate, Targets: g.cfg.Targets, Trial: r.Trial}
	if r.Trial {
		l.PerSecond, l.Targets = g.cfg.TrialConnectionRate, g.cfg.TrialTargets
	}
	if l.PerSecond <= 0 && l.Targets <= 0 && g.targetRate(r) <= 0 && !g.cfg.WatchScans {
		return 0, nil
	}
	t := g.rates.Of(target.Host)
	switch why, wait := g.starts.Take(r.AgentID, t, l, g.now()); why {
	case quota.TooOften:
		return t, refusal.TooManyStarts.After(wait)
	case quota.TooWide:
		return t, refusal.TooManyTargets.After(wait)
	}
	return t, nil
}

// targetRate returns how many new connections a minute an agent may make to one target; 0 is
// unlimited.
func (g *Gateway) targetRate(r *traffic.Route) int {
	if r.Trial {
		return g.cfg.TrialTargetRate
	}
	return g.cfg.TargetRate
}

// paced counts a new connection of an agent to a target, and returns a refusal if the agent
// makes too many.
func (g *Gateway) paced(r *traffic.Route, t quota.Target) *refusal.Refusal {
	if wait := g.rates.Take(r.AgentID, t, g.targetRate(r), g.now()); wait > 0 {
		return refusal.TooFast.After(wait)
	}
	return nil
}

// leave undoes enter for a connection that is not served any more and may linger.
func (g *Gateway) leave(c *client.Conn) {
	g.agents.Leave(&c.Place)
	g.table.Wait(&c.Slot)
}
