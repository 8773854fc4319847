package gateway

import (
	"context"
	"net/netip"
	"slices"

	"agentproxy/adapters/gateway/client"
	"agentproxy/adapters/gateway/dial"
	"agentproxy/adapters/gateway/hostport"
	"agentproxy/adapters/gateway/refusal"
	"agentproxy/domain/policy"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
)

// targetCheck is the check of one target by the policies: its name and port are checked
// before it is looked up, its addresses after.
type targetCheck struct {
	client.CheckedTarget
	g        *Gateway
	c        *client.Conn
	route    *traffic.Route
	layers   policy.Layers
	product  string
	reported policy.Denial // what the session's policy would refuse
	inline   [2]netip.Addr // where Addrs begins
}

var _ dial.Policy = (*targetCheck)(nil)

// begin checks a target before it is looked up.
func (v *targetCheck) begin(g *Gateway, c *client.Conn, p path, t hostport.Target) *refusal.Refusal {
	r := p.route
	v.g, v.c, v.route, v.product = g, c, r, r.ProductNo
	v.Port, v.Shared, v.Own, v.Reports = t.Port, g.deps.Policy(), r.Policy, r.PolicyReports
	v.Cuts, v.Exit = r.Cuts, p.exit.IP
	v.layers = layersOf(&v.CheckedTarget, r)
	addr, err := netip.ParseAddr(t.Host)
	if err != nil {
		v.Host = policy.Canonical(t.Host)
	}
	d := v.layers.Name(v.Host, t.Port)
	if d.Layer == "" && addr.IsValid() {
		d = g.denied.denialOf(addr, v.layers, v.product, c.Entry().ID)
	}
	if d.Refuses() {
		g.remember(v, d.Layer)
	}
	return v.denied(t.Host, d)
}

// renewed returns the check of the same target to another connection. What was published
// of v belongs to the goroutine of recheckOpen.
func (v *targetCheck) renewed(key targetKey) *targetCheck {
	return &targetCheck{CheckedTarget: client.CheckedTarget{Host: v.Host, Port: v.Port, Shared: key.shared, Own: key.own,
		Reports: v.layers.Reports, Cuts: v.Cuts, Exit: v.Exit},
		g: v.g, c: v.c, route: v.route, layers: v.layers, product: v.product, reported: v.reported}
}

// Address implements dial.Policy.
func (v *targetCheck) Address(addr netip.Addr) *refusal.Refusal {
	if v.Addrs == nil {
		v.Addrs = v.inline[:0]
	}
	v.Addrs = append(v.Addrs, addr)
	if v.reported.Layer != "" && v.layers.Session.DeniedBy(v.Host) != "" {
		v.g.denied.add(v.scope(policy.Session), v.Host, addr)
	}
	return v.denied(v.Host, v.layers.Address(v.Host, addr))
}

// Attempt implements dial.Policy: names of one address, and addresses of one network, share a
// part of the limit to one target.
func (v *targetCheck) Attempt(addr netip.Addr) *refusal.Refusal {
	r := v.route
	wait := v.g.rates.TakeAddress(r.AgentID, addr, v.Host != "", r.Trial, v.g.targetRate(r), v.g.now())
	if wait > 0 {
		return refusal.TooFastShared.After(wait)
	}
	return nil
}

// denied returns the refusal that a denial means, nil for none. What is reported only is
// recorded, once.
func (v *targetCheck) denied(host string, d policy.Denial) *refusal.Refusal {
	switch {
	case d.Layer == "":
		return nil
	case d.Refuses():
		return refusal.Denied(d)
	case v.reported.Layer == "":
		v.reported = d
		ref := refusal.Denied(d)
		if e := v.c.Entry(); e != nil {
			if host == "" && len(v.Addrs) > 0 {
				host = v.Addrs[len(v.Addrs)-1].String()
			}
			v.g.observer.Observe(traffic.Observation{SessionID: e.ID, AgentID: agentOf(e), At: v.g.now(), Type: eventReported,
				Host: host, Code: ref.Code.String(), ExitIP: text(v.Exit), HowToFix: ref.HowToFix})
		}
	}
	return nil
}

// scope returns whose addresses of denied names those of a layer are.
func (v *targetCheck) scope(l policy.Layer) scope {
	switch l {
	case policy.Operator:
		return scope{layer: l}
	case policy.Product:
		return scope{l, v.product}
	}
	return scope{l, v.c.Entry().ID}
}

// remember resolves a denied name, so that its addresses are denied too.
func (g *Gateway) remember(v *targetCheck, layer policy.Layer) {
	if v.layers.Of(layer).DeniedBy(v.Host) == "" {
		return
	}
	in := v.scope(layer)
	if !g.denied.beginLookup(in, v.Host) {
		return
	}
	defer g.denied.endLookup()
	ctx, cancel := context.WithTimeout(g.ctx, g.cfg.Timing.Resolve)
	defer cancel()
	answers, err := g.deps.Resolver.LookupNetIP(ctx, "ip", dial.Absolute(v.Host))
	if err != nil {
		return
	}
	for _, addr := range answers {
		g.denied.add(in, v.Host, addr)
	}
}

// recheckOpen interrupts the connections whose targets the rules deny now. What was checked by
// the rules that still hold is passed over, so it costs little unless they changed.
func (g *Gateway) recheckOpen() {
	shared := g.deps.Policy()
	g.conns.InterruptIf(client.Denied, func(c *client.Conn) bool {
		j, e := c.CheckedTarget.Load(), c.Entry()
		if j == nil || e == nil {
			return false
		}
		r := e.Latest()
		if !c.Attached() {
			if r != nil {
				j.Cuts = r.Cuts // between requests: the next one is not of before
			}
			return false
		}
		if r != nil && (r.Cuts > j.Cuts || lost(r, j.Exit)) {
			c.Interrupt(client.Cut)
			return false
		}
		if r == nil || j.Shared == shared && j.Own == r.Policy && j.Reports == r.PolicyReports {
			return false
		}
		j.Shared, j.Own, j.Reports = shared, r.Policy, r.PolicyReports
		return recheck(j, r).Refuses()
	})
}

// lost reports whether an address is none of a static session any more: another session may have it.
func lost(r *traffic.Route, exit netip.Addr) bool {
	return r.Type == session.Static && exit.IsValid() && !slices.Contains(r.Exits, session.Exit{IP: exit})
}

// layersOf returns the rules by which a target of a session is checked.
func layersOf(j *client.CheckedTarget, r *traffic.Route) policy.Layers {
	layers := j.Shared.Layers(r.ProductNo, j.Own, j.Reports)
	if r.Trial {
		return layers.OnTrial(j.Shared)
	}
	return layers
}

// recheck checks the target of an open connection.
func recheck(j *client.CheckedTarget, r *traffic.Route) policy.Denial {
	layers := layersOf(j, r)
	d := layers.Name(j.Host, j.Port)
	for _, addr := range j.Addrs {
		if d.Refuses() {
			break
		}
		d = layers.Address(j.Host, addr)
	}
	return d
}

// denialOf returns why a connection was interrupted by recheckOpen.
func (g *Gateway) denialOf(c *client.Conn) *refusal.Refusal {
	if j, r := c.CheckedTarget.Load(), c.Entry().Latest(); j != nil && r != nil {
		if d := recheck(j, r); d.Refuses() {
			return refusal.Denied(d)
		}
	}
	return refusal.Denied(policy.Denial{Layer: policy.Session})
}
