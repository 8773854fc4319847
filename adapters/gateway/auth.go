package gateway

import (
	"context"
	"crypto/subtle"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"agentproxy/adapters/gateway/refusal"
	"agentproxy/domain"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
)

// authenticate checks a credential by computation alone: a wrong one costs
// neither a look-up nor a place in the cache. A right one pins the session's
// entry to the connection.
func (g *Gateway) authenticate(c *conn, user, password []byte) (traffic.User, *refusal.Refusal) {
	u, ok := traffic.ParseUser(string(user))
	if !ok {
		return u, g.wrong(c)
	}
	if e := c.entry.Load(); e != nil { // an earlier request on this connection
		if e.id == u.SessionID && subtle.ConstantTimeCompare([]byte(e.password), password) == 1 {
			return u, nil
		}
		c.entry.Store(nil)
		e.unpin()
	}
	e := g.routes.pin(u.SessionID)
	switch {
	case e != nil && subtle.ConstantTimeCompare([]byte(e.password), password) == 1:
	case e != nil:
		e.unpin()
		return u, g.wrong(c)
	case len(g.cfg.Key) > 0 && traffic.CheckPassword(g.cfg.Key, u.SessionID, string(password)):
		e = g.routes.add(u.SessionID, string(password))
	default:
		return u, g.wrong(c)
	}
	c.entry.Store(e)
	return u, nil
}

// wrong counts a wrong credential of the client's address.
func (g *Gateway) wrong(c *conn) *refusal.Refusal {
	if a, ok := c.client.RemoteAddr().(*net.TCPAddr); ok && g.guesses.wrong(a.AddrPort().Addr()) {
		return refusal.TooManyAuthFailures
	}
	return refusal.NoCredential
}

// way is a session's route as one connection takes it.
type way struct {
	route *traffic.Route
	exit  session.Exit
	hop   *procurement.Endpoint // the upstream proxy that the exit is behind; nil: none
}

// find decides by the session's state whether a user may connect now, and from
// which exit. A timed rotation that is due happens here.
func (g *Gateway) find(ctx context.Context, c *conn, u traffic.User) (way, *refusal.Refusal) {
	e := c.entry.Load()
	r, err := g.route(ctx, e)
	if err == nil && !u.Static && u.Number > r.Rotation && r.Type == session.Dynamic {
		// It may be newer than what is known here. Asking for that is a guess.
		if ref := g.wrong(c); ref == refusal.TooManyAuthFailures {
			return way{}, ref
		}
		e.version.Add(1)
		r, err = g.route(ctx, e)
	}
	if err != nil {
		return way{}, g.noRoute(c, err)
	}
	if r.Status == session.Active && due(r, g.cfg.Now()) {
		if r, err = g.rotated(ctx, e); err != nil {
			return way{}, g.noRoute(c, err)
		}
	}
	if ref := standing(r, g); ref != nil {
		return way{}, ref
	}
	w := way{route: r}
	switch {
	case u.Static != (r.Type == session.Static),
		!u.Static && u.Number > r.Rotation,
		u.Static && u.Number >= len(r.Exits):
		return way{}, g.wrong(c)
	case u.Static:
		w.exit, w.hop = r.Exits[u.Number], hopOf(r, u.Number)
	default:
		w.hop = hopOf(r, 0)
		if len(r.Exits) > 0 {
			w.exit = r.Exits[0]
		}
	}
	return w, nil
}

// standing is what the session's state has against a new connection.
func standing(r *traffic.Route, g *Gateway) *refusal.Refusal {
	switch {
	case r.Status == session.Creating:
		return refusal.SessionNotReady
	case r.Status != session.Active && r.Reason == session.TrafficExhausted:
		return refusal.TrafficExhausted
	case r.Status != session.Active,
		!r.ExpiresAt.IsZero() && !g.cfg.Now().Before(r.ExpiresAt):
		return refusal.SessionOver
	}
	return nil
}

// warnEvery keeps an outage of the core or of a provider from filling the log.
const warnEvery = 10 * time.Second

// warn logs if the same was not logged lately; last is when, 0 for never.
func (g *Gateway) warn(last *atomic.Int64, msg string, args ...any) {
	now, before := int64(mono()), last.Load()
	if (before == 0 || now-before > int64(warnEvery)) && last.CompareAndSwap(before, now) {
		g.log.Warn(msg, args...)
	}
}

// noRoute sorts what the core answered instead of a route. A session it does not
// know is a wrong credential, even though the password fits.
func (g *Gateway) noRoute(c *conn, err error) *refusal.Refusal {
	var e *domain.Error
	if errors.As(err, &e) {
		switch e.Kind {
		case domain.NotFound:
			return g.wrong(c)
		case domain.Gone:
			return refusal.SessionOver
		}
	}
	g.warn(&g.warned, "the core does not answer about a session", "session_id", c.entry.Load().id, "err", err)
	return refusal.NoCapacity.Because("the session's state cannot be read right now")
}

// admitted turns a pool's verdict into an answer; nil lets the connection in.
func admitted(v verdict) *refusal.Refusal {
	switch v {
	case flows:
		return nil
	case spent:
		return refusal.TrafficExhausted
	case over:
		return refusal.SessionOver
	case crowded:
		return refusal.TooManyTunnels
	}
	return refusal.NoCapacity
}
