package gateway

import (
	"context"
	"errors"
	"net/url"
	"strconv"

	"agentproxy/adapters/gateway/client"
	"agentproxy/adapters/gateway/hostport"
	"agentproxy/adapters/gateway/http1"
	"agentproxy/adapters/gateway/lease"
	"agentproxy/adapters/gateway/refusal"
	"agentproxy/adapters/gateway/route"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/exit"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/domain/worker"
)

// findWorker decides from which exit the connection of a worker leaves.
func (g *Gateway) findWorker(ctx context.Context, c *client.Conn, u credential, p path) (path, *refusal.Refusal) {
	words, err := worker.Parse(u.words)
	if bad, ok := errors.AsType[*worker.ParameterError](err); ok {
		setWorker(c, nil)
		return p, wrongWords(bad.HowToFix())
	}
	if u.Static {
		setWorker(c, nil)
		return p, wrongWords("a static session takes its user names as they are, without words behind them")
	}
	w := g.routes.PinWorker(c.Entry(), words)
	setWorker(c, w)
	p.worker = w
	r, err := g.routes.WorkerRoute(ctx, w, words, false)
	if err == nil && g.outdated(r, words) {
		r, err = g.routes.WorkerRoute(ctx, w, words, true)
	}
	if err != nil {
		return p, g.noWorker(c, err)
	}
	if words.Name == "" {
		return g.another(w, r, p)
	}
	p.found, p.exit, p.proxy, p.token = r, r.Worker.Exit, r.Upstream, r.Token
	if r.Worker.Exhausted() || c.Entry().Pool.ShareExhausted(w.Account()) {
		return p, refusal.WorkerExhausted
	}
	return p, nil
}

// outdated reports whether a route that was just read is not for these words: another connection with
// other words read it.
func (g *Gateway) outdated(r *traffic.WorkerRoute, words worker.Parameters) bool {
	return words.Name != "" && r.Worker.Differs(words) != ""
}

// another gives a connection the exit after that of the last connection.
func (g *Gateway) another(w *route.Worker, r *traffic.WorkerRoute, p path) (path, *refusal.Refusal) {
	p.once = true
	if r.Fresh == nil {
		if len(r.Exits) == 0 {
			return p, refusal.NoCapacity.Because("there is no exit in this place right now")
		}
		p.exit, p.proxy = w.NextExit(r), nil
		return p, nil
	}
	e, token, err := w.NextUpstream(r)
	if err != nil {
		return p, refusal.NoCapacity.Because("there is no exit in this place right now")
	}
	p.exit, p.proxy, p.token = session.Exit{}, &e, token
	return p, nil
}

// setWorker makes a connection one of another worker, nil for the session itself.
func setWorker(c *client.Conn, w *route.Worker) {
	if c.Worker == w {
		if w != nil {
			w.Unpin() // it was pinned already
		}
		return
	}
	if e := c.Entry(); e != nil {
		e.Pool.Leave(&c.Member)
	}
	if c.Worker != nil {
		c.Worker.Unpin()
	}
	c.Worker = w
}

// admit takes a place in the pool of the session, and of the worker.
func (g *Gateway) admit(c *client.Conn, p path) *refusal.Refusal {
	most := lease.Limits{Session: g.cfg.Tunnels, Worker: worker.MaxTunnels, Ceiling: g.cfg.SessionTunnels}
	return admitted(c, c.Entry().Pool.Admit(&c.Member, p.worker.Account(), most, g.cfg.Timing.Admit))
}

// exhausted returns the refusal for a connection whose traffic is used up: the worker's, or the
// session's.
func exhausted(c *client.Conn) *refusal.Refusal {
	e := c.Entry()
	if e == nil {
		return refusal.TrafficExhausted
	}
	if c.Worker != nil && e.Pool.ShareExhausted(c.Worker.Account()) {
		return refusal.WorkerExhausted
	}
	if r := e.Latest(); r != nil && r.Type == session.Static {
		return refusal.FairUseReached
	}
	return refusal.TrafficExhausted
}

// exitOf looks at the refusal of a connection from an exit of this host. If the worker's exit is gone,
// it is reported to the core, and the worker gets another exit with its next connection.
func (g *Gateway) exitOf(p path, ref *refusal.Refusal) *refusal.Refusal {
	if ref != refusal.OutOfSockets || p.found == nil {
		return ref
	}
	return g.lost(p, ref)
}

// sellersExitOf looks at the refusal of a seller's proxy. If it is how the seller reports that the
// exit of the worker is gone, which may be the target's fault after all, the service's own echo is
// tried. If that is refused alike, the exit is reported to the core.
func (g *Gateway) sellersExitOf(p path, ref *refusal.Refusal) *refusal.Refusal {
	if ref == nil || p.found == nil || p.proxy.LostStatus == 0 || ref.UpstreamStatus != p.proxy.LostStatus ||
		!p.worker.Suspect() {
		return ref
	}
	if again := g.tryEcho(p.proxy); again == nil || again.UpstreamStatus != p.proxy.LostStatus {
		return ref
	}
	return g.lost(p, ref)
}

// tryEcho connects to the service's echo through a seller's proxy. It returns nil if that opens, or if
// there is no echo.
func (g *Gateway) tryEcho(proxy *procurement.Endpoint) *refusal.Refusal {
	echo, err := url.Parse(g.cfg.PublicEchoURL)
	if err != nil || echo.Hostname() == "" {
		return nil
	}
	target := hostport.Target{Host: echo.Hostname(), Port: 443}
	if port, err := strconv.ParseUint(echo.Port(), 10, 16); err == nil {
		target.Port = uint16(port)
	} else if echo.Scheme == "http" {
		target.Port = 80
	}
	in := http1.NewReader(nil)
	defer in.Free()
	tcp, _, ref := g.dialer.Through(g.ctx, target, proxy, in)
	if ref == nil {
		_ = tcp.Close()
	}
	return ref
}

// lost reports to the core that the exit of a worker is gone. It returns the refusal that follows.
func (g *Gateway) lost(p path, ref *refusal.Refusal) *refusal.Refusal {
	err := g.routes.LostExit(g.ctx, p.worker, p.found.Worker)
	if de, ok := errors.AsType[*domain.Error](err); ok && errors.Is(de, worker.ErrExitLost) {
		return refusal.ExitLost
	}
	return ref
}

// ownerOf returns whose kept connections to targets a request may use.
func ownerOf(p path) string {
	if p.worker == nil {
		return p.route.SessionID
	}
	return p.route.SessionID + "-" + p.worker.Name()
}

func wrongWords(how string) *refusal.Refusal {
	ref := *refusal.UserNameParameter
	ref.HowToFix = how
	return &ref
}

// noWorker returns the refusal for an error of the core.
func (g *Gateway) noWorker(c *client.Conn, err error) *refusal.Refusal {
	de, ok := errors.AsType[*domain.Error](err)
	switch {
	case !ok:
		return g.noRoute(c, err)
	case errors.Is(de, worker.ErrParameter):
		setWorker(c, nil) // a name that no worker has is in no event
		return wrongWords(de.Message)
	case errors.Is(de, worker.ErrDiffers):
		return refusal.WorkerDiffers.Because(de.Message)
	case errors.Is(de, worker.ErrLimit):
		setWorker(c, nil)
		return refusal.WorkerLimit
	case errors.Is(de, worker.ErrExitLost):
		return refusal.ExitLost
	case errors.Is(de, account.ErrRateLimited):
		return refusal.ExitLost.Because("too many exits were measured for the require of this session; wait a minute")
	case errors.Is(de, exit.ErrNotMet):
		return refusal.ExitLost.Because("no exit meets the require of this session; ask for less with a rotation of it")
	}
	return g.noRoute(c, err)
}

// noWorkers refuses every worker.
type noWorkers struct{}

func (noWorkers) Worker(context.Context, string, worker.Parameters) (traffic.WorkerRoute, error) {
	return traffic.WorkerRoute{}, worker.ErrParameter.Msgf("this gateway supports no workers")
}

func (noWorkers) ReportLost(context.Context, worker.Worker) error { return nil }

func (noWorkers) Removed(context.Context, string, []int64) ([]int64, error) { return nil, nil }
