package gateway

import (
	"context"
	"crypto/subtle"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"agentproxy/adapters/gateway/client"
	"agentproxy/adapters/gateway/dial"
	"agentproxy/adapters/gateway/lease"
	"agentproxy/adapters/gateway/monotime"
	"agentproxy/adapters/gateway/refusal"
	"agentproxy/adapters/gateway/route"
	"agentproxy/domain"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/domain/worker"
)

// authenticate checks a credential by computation alone: a wrong one causes neither
// a lookup nor a cache entry. A right one pins the session's entry to the
// connection.
func (g *Gateway) authenticate(c *client.Conn, user, password []byte) (credential, *refusal.Refusal) {
	u, ok := parseUser(string(user))
	if !ok {
		return u, g.authFailed(c)
	}
	c.PasswordNo, ok = traffic.PasswordNumber(string(password))
	if !ok {
		return u, g.wrongPassword(c, u.SessionID)
	}
	if e := c.Entry(); e != nil { // of an earlier request on this connection
		if e.ID == u.SessionID && matches(e, password) {
			return u, nil
		}
		e.Pool.Leave(&c.Member)
		setWorker(c, nil)
		c.SetEntry(nil)
		e.Unpin()
	}
	e := g.routes.Pin(u.SessionID)
	switch {
	case e != nil && (matches(e, password) || g.derived(g.cfg.OlderKeys, u, password) || g.replaced(c, u, password)):
	case e != nil:
		e.Unpin()
		return u, g.wrongPassword(c, u.SessionID)
	case g.derived(g.cfg.OlderKeys, u, password) || len(g.cfg.Key) > 0 && g.derived([][]byte{g.cfg.Key}, u, password):
		// The entry keeps the password of the current key, whichever came.
		e = g.routes.Add(u.SessionID, traffic.Password(g.cfg.Key, u.SessionID))
	default:
		return u, g.wrongPassword(c, u.SessionID)
	}
	c.SetEntry(e)
	return u, nil
}

// credential is a user name taken apart.
type credential struct {
	traffic.User
	words string // behind the base, with the hyphen in front; empty: the session itself
}

// parseUser takes a user name apart. It is false for one whose base cannot have been issued.
func parseUser(name string) (credential, bool) {
	u, ok := traffic.ParseUser(name)
	if ok {
		return credential{User: u}, true
	}
	base, words := worker.SplitUserName(name)
	if words == "" {
		return credential{}, false
	}
	u, ok = traffic.ParseUser(base)
	return credential{u, words}, ok
}

// replaced reports whether a password is one of the current key that is not the session's first.
func (g *Gateway) replaced(c *client.Conn, u credential, password []byte) bool {
	return c.PasswordNo > 0 && g.derived([][]byte{g.cfg.Key}, u, password)
}

// derived reports whether a password was derived from one of the keys.
func (g *Gateway) derived(keys [][]byte, u credential, password []byte) bool {
	for _, key := range keys {
		if traffic.CheckPassword(key, u.SessionID, string(password)) {
			return true
		}
	}
	return false
}

// matches compares a password in constant time.
func matches(e *route.Entry, password []byte) bool {
	return subtle.ConstantTimeCompare([]byte(e.Password), password) == 1
}

// authFailed counts a wrong credential of the client's address.
func (g *Gateway) authFailed(c *client.Conn) *refusal.Refusal {
	if a, ok := c.RemoteAddr().(*net.TCPAddr); ok && g.failures.Record(a.AddrPort().Addr()) {
		return refusal.TooManyAuthFailures
	}
	return refusal.NoCredential
}

// wrongPassword counts a wrong password of a session, which its agent reads in the events.
func (g *Gateway) wrongPassword(c *client.Conn, sessionID string) *refusal.Refusal {
	ref := g.authFailed(c)
	g.observer.Observe(traffic.Observation{SessionID: sessionID, At: g.now(), Type: traffic.AuthFailed,
		StatusCode: ref.Status, Code: ref.Code.String(), HowToFix: fixPassword, Client: clientAddr(c)})
	return ref
}

// fixPassword is what an agent is to do about wrong passwords in the events of its session.
const fixPassword = "programs use a wrong password of this session: give them proxy.full_url as it is now"

// path is how one connection reaches its target.
type path struct {
	route *traffic.Route
	exit  session.Exit
	proxy *procurement.Endpoint // the upstream proxy of the exit; nil if the exit is an address of this host
	// worker is whose connection it is; nil for the session itself.
	worker *route.Worker
	found  *traffic.WorkerRoute // of a worker that has a name; nil else
	token  string               // what names the exit of a worker to its seller
	once   bool                 // the exit is for one connection or request
}

// findPath decides by the session's state whether a user may connect now, and from which
// exit. It performs a timed rotation that is due.
func (g *Gateway) findPath(ctx context.Context, c *client.Conn, u credential) (path, *refusal.Refusal) {
	e := c.Entry()
	r, err := g.routes.Route(ctx, e)
	if err == nil && (!u.Static && u.Number > r.Rotation && r.Type == session.Dynamic || c.PasswordNo > r.PasswordNo) {
		// The credential may be newer than the cached route. Reading the route again
		// counts as a failure, so that it cannot be caused without a limit.
		if ref := g.authFailed(c); ref == refusal.TooManyAuthFailures {
			return path{}, ref
		}
		e.Invalidate()
		r, err = g.routes.Route(ctx, e)
	}
	if err != nil {
		return path{}, g.noRoute(c, err)
	}
	if ref := g.admits(c, r); ref != nil {
		return path{}, ref
	}
	if r.Status == session.Active && route.Due(r, g.now()) {
		if r, err = g.routes.Rotate(ctx, e); err != nil {
			return path{}, g.noRoute(c, err)
		}
	}
	if ref := refuseState(r, g.now()); ref != nil {
		return path{}, ref
	}
	p := path{route: r}
	if c.Worker != nil && u.words == "" {
		setWorker(c, nil)
	}
	switch {
	case u.Static != (r.Type == session.Static),
		!u.Static && u.Number > r.Rotation,
		u.Static && u.Number >= len(r.Exits):
		return path{}, g.authFailed(c)
	case u.words != "":
		return g.findWorker(ctx, c, u, p)
	case u.Static && r.Exits[u.Number].Ended:
		return path{}, refusal.AddressEnded
	case u.Static:
		p.exit, p.proxy = r.Exits[u.Number], dial.Upstream(r, u.Number)
	default:
		p.proxy = dial.Upstream(r, 0)
		if len(r.Exits) > 0 {
			p.exit = r.Exits[0]
		}
	}
	return p, nil
}

// admits returns the refusal of a password that was replaced, and of a client from elsewhere than
// where the session may be used from.
func (g *Gateway) admits(c *client.Conn, r *traffic.Route) *refusal.Refusal {
	if c.PasswordNo != r.PasswordNo {
		return g.wrongPassword(c, r.SessionID)
	}
	if len(r.Allowed) == 0 {
		return nil
	}
	addr := clientAddr(c)
	if !slices.ContainsFunc(r.Allowed, func(p netip.Prefix) bool { return p.Contains(addr) }) {
		return refusal.ClientAddress
	}
	return nil
}

// clientAddr returns the address of a client; the zero value if it has none.
func clientAddr(c *client.Conn) netip.Addr {
	if a, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		return a.AddrPort().Addr().Unmap().WithZone("")
	}
	return netip.Addr{}
}

// refuseState returns the refusal if the session's state allows no new connection,
// else nil.
func refuseState(r *traffic.Route, now time.Time) *refusal.Refusal {
	switch {
	case r.Status == session.Creating:
		return refusal.SessionNotReady
	case r.Status != session.Active && r.Reason == session.TrafficExhausted:
		return refusal.TrafficExhausted
	case r.Status == session.Active && r.UsedUp:
		return refusal.FairUseReached
	case r.Status != session.Active,
		!r.ExpiresAt.IsZero() && !now.Before(r.ExpiresAt):
		return refusal.SessionOver
	}
	return nil
}

// warnEvery bounds how often an outage of the core or of a provider is logged.
const warnEvery = 10 * time.Second

// warn logs unless the same was logged within warnEvery; last is when, 0 for never.
func (g *Gateway) warn(last *atomic.Int64, msg string, args ...any) {
	now, before := int64(monotime.Now()), last.Load()
	if (before == 0 || now-before > int64(warnEvery)) && last.CompareAndSwap(before, now) {
		g.log.Warn(msg, args...)
	}
}

// noRoute returns the refusal for an error of the core. An unknown session is a wrong
// credential, even though the password matches.
func (g *Gateway) noRoute(c *client.Conn, err error) *refusal.Refusal {
	if e, ok := errors.AsType[*domain.Error](err); ok {
		switch e.Kind {
		case domain.NotFound:
			return g.authFailed(c)
		case domain.Gone:
			return refusal.SessionOver
		}
	}
	g.warn(&g.warnedCore, "the session's state cannot be read", "session_id", c.Entry().ID, "err", err)
	return refusal.NoCapacity.Because("the session's state cannot be read right now")
}

// admitted returns the refusal that a pool's verdict on a connection means; nil for lease.Granted.
func admitted(c *client.Conn, v lease.Verdict) *refusal.Refusal {
	switch v {
	case lease.Granted:
		return nil
	case lease.Exhausted:
		return exhausted(c)
	case lease.Closed:
		return refusal.SessionOver
	case lease.Limited:
		return refusal.TooManyTunnels
	}
	return refusal.NoCapacity
}
