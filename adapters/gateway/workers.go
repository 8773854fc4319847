package gateway

import (
	"context"
	"errors"

	"agentproxy/adapters/gateway/client"
	"agentproxy/adapters/gateway/lease"
	"agentproxy/adapters/gateway/refusal"
	"agentproxy/adapters/gateway/route"
	"agentproxy/domain"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/domain/worker"
)

// findWorker decides from which exit the connection of a worker leaves.
func (g *Gateway) findWorker(ctx context.Context, c *client.Conn, u credential, p path) (path, *refusal.Refusal) {
	words, err := worker.Parse(u.words)
	if bad, ok := errors.AsType[*worker.WordError](err); ok {
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
	p.exit, p.proxy, p.token = r.Worker.Exit, r.Hop, r.Token
	if r.Worker.Exhausted() || c.Entry().Pool.Spent(w.Account()) {
		return p, refusal.WorkerExhausted
	}
	return p, nil
}

// outdated reports whether a route that was just read is not for these words: another connection with
// other words read it.
func (g *Gateway) outdated(r *traffic.WorkerRoute, words worker.Words) bool {
	return words.Name != "" && r.Worker.Differs(words) != ""
}

// another gives a connection the exit after that of the last connection.
func (g *Gateway) another(w *route.Worker, r *traffic.WorkerRoute, p path) (path, *refusal.Refusal) {
	p.once = true
	if r.Fresh == nil {
		if len(r.Exits) == 0 {
			return p, refusal.NoCapacity.Because("there is no exit in this place right now")
		}
		p.exit, p.proxy = r.Exits[w.Next()%uint64(len(r.Exits))], nil
		return p, nil
	}
	e, token, err := r.Fresh(w.Next())
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
	most := lease.Most{Session: g.cfg.Tunnels, Worker: worker.Tunnels, Ceiling: g.cfg.SessionTunnels}
	return admitted(c, c.Entry().Pool.Admit(&c.Member, p.worker.Account(), most, g.cfg.Timing.Admit))
}

// exhausted returns the refusal for a connection whose traffic is used up: the worker's, or the
// session's.
func exhausted(c *client.Conn) *refusal.Refusal {
	if e := c.Entry(); e != nil && c.Worker != nil && e.Pool.Spent(c.Worker.Account()) {
		return refusal.WorkerExhausted
	}
	return refusal.TrafficExhausted
}

// exitOf looks at the refusal of a connection from an exit of this host. If the worker's exit is gone,
// it is reported to the core, and the worker gets another exit with its next connection.
func (g *Gateway) exitOf(p path, ref *refusal.Refusal) *refusal.Refusal {
	if ref != refusal.OutOfSockets || p.worker.Account() == nil {
		return ref
	}
	err := g.routes.LostExit(g.ctx, p.worker)
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
		return wrongWords(de.Message)
	case errors.Is(de, worker.ErrDiffers):
		return refusal.WorkerDiffers.Because(de.Message)
	case errors.Is(de, worker.ErrLimit):
		return refusal.WorkerLimit
	case errors.Is(de, worker.ErrExitLost):
		return refusal.ExitLost
	}
	return g.noRoute(c, err)
}

// noWorkers refuses every worker.
type noWorkers struct{}

func (noWorkers) Worker(context.Context, string, worker.Words) (traffic.WorkerRoute, error) {
	return traffic.WorkerRoute{}, worker.ErrParameter.Msgf("this gateway carries no workers")
}

func (noWorkers) Lost(context.Context, string, string) error { return nil }

func (noWorkers) Gone(context.Context, string, []int64) ([]int64, error) { return nil, nil }
