package gateway

import (
	"errors"
	"io"
	"net/netip"

	"agentproxy/adapters/gateway/client"
	"agentproxy/adapters/gateway/http1"
	"agentproxy/adapters/gateway/monotime"
	"agentproxy/adapters/gateway/refusal"
	"agentproxy/adapters/gateway/relay"
	"agentproxy/domain/exitlog"
)

// nextRequest waits for another request on a kept connection. It returns false if
// none comes.
func (g *Gateway) nextRequest(c *client.Conn, h *handshake) bool {
	c.Allow(g.cfg.Timing.Keep)
	g.table.Wait(&c.Slot)
	c.SetIdle(true)
	if g.stopping.Load() {
		return false
	}
	_, err := h.in.Peek(1)
	c.SetIdle(false)
	c.Allow(g.cfg.Timing.Header)
	return err == nil && !c.Interrupted()
}

// forward serves one plain request. It returns a tunnel if the target switched
// protocols, else whether the connection can serve another request.
func (g *Gateway) forward(c *client.Conn, h *handshake) (t *relay.Tunnel, again bool) {
	x := &exchange{g: g, c: c, h: h, ex: h.request.Exchange(), body: h.request.Body}
	ref := x.admit()
	if ref != nil {
		g.answer(c, h, viaHTTP, ref, x.ex.Head)
		return nil, false
	}
	t, again, ref = x.run()
	x.up.done()
	x.down.done()
	if t != nil {
		return t, false
	}
	if ref == nil && again {
		x.entry.Pool.Park(&c.Member) // a kept connection counts as a tunnel
	} else {
		x.entry.Pool.Leave(&c.Member)
	}
	if ref != nil {
		g.observeRefusal(c, x.key.exit, x.key.target.Host, ref, x.latency)
		g.answer(c, h, viaHTTP, ref, x.ex.Head)
		return nil, false
	}
	if !again {
		g.linger(c)
	}
	return nil, again
}

// admit checks the credential and the session, and takes a place in its pool.
func (x *exchange) admit() *refusal.Refusal {
	g, c, req := x.g, x.c, &x.h.request
	user, password, ok := req.Credentials()
	if !ok {
		return refusal.NoCredential
	}
	before, worker := c.Entry(), c.Worker
	u, ref := g.authenticate(c, user, password)
	if ref != nil {
		return ref
	}
	x.entry = c.Entry()
	x.key = targetKey{session: x.entry.ID, target: req.Target()}
	p, ref := g.findPath(g.ctx, c, u)
	if ref == nil {
		x.path = p
		x.key.exit, x.key.session = p.exit.IP, ownerOf(p)
		x.route = p.route
		if x.proxy = p.proxy; p.proxy != nil {
			x.key.proxy = proxyKey(p.proxy, p.route.Rotation)
		}
		ref = g.enter(c, p.route)
	}
	if ref == nil {
		x.check = &targetCheck{}
		ref = x.check.begin(g, c, p, x.key.target)
		x.key.shared, x.key.own = x.check.Shared, x.check.Own
		if ref != nil { // dial does not come to count it
			counted, slow := g.start(p.route, x.key.target)
			if slow != nil {
				ref = slow
			}
			g.tried(p.route, counted, ref)
		}
	}
	if ref == nil {
		c.Allow(0)
		ref = g.admit(c, p)
	}
	if ref != nil {
		g.observeRefusal(c, x.key.exit, x.key.target.Host, ref, 0)
		return ref
	}
	account := x.entry.Pool.Account(&c.Member)
	if before != x.entry || worker != c.Worker {
		account.Opened()
	}
	x.up = meter{c: c, pool: account}
	x.down = meter{c: c, pool: account, down: true}
	return nil
}

// run performs the exchange. It returns a refusal only if nothing was written to the
// client.
func (x *exchange) run() (t *relay.Tunnel, again bool, ref *refusal.Refusal) {
	g, h := x.g, x.h
	head := h.request.Append(h.out[:0])
	h.out = head
	x.retry = x.body.Kind == http1.NoBody && idempotent(h.request.Method())
	metered := h.request.Metered()
	x.c.Allow(g.cfg.Timing.Answer)
	var tc *targetConn
	if !x.path.once {
		tc = g.targets.get(x.key, x.reuses())
	}
	for kept := tc != nil; ; kept = false {
		began := monotime.Now()
		if tc == nil {
			if tc, ref = x.dial(); ref != nil {
				return nil, false, ref
			}
			x.c.Allow(g.cfg.Timing.Answer)
		} else {
			x.check.Addrs = tc.addrs
			x.taken(tc)
			x.c.CheckedTarget.Store(&x.check.CheckedTarget)
			if !x.c.Attach(tc.tcp) {
				tc.close()
				return nil, false, interruption(x.c)
			}
		}
		// The head is charged once, and only if it is sent.
		if err := http1.TakeAll(&x.up, metered); err != nil {
			x.abort(tc)
			return nil, false, refusal.From(err)
		}
		metered = 0
		err := x.send(tc, head)
		if err == nil {
			err = x.receive(tc)
		}
		x.latency = monotime.Now() - began
		if err == nil {
			break
		}
		ref = x.refusalFor(err)
		closed := kept && x.unanswered(err)
		x.abort(tc)
		if closed && !x.retry {
			ref = ref.WithoutEvidence() // targets close kept connections at any time
		}
		if !closed || !x.retry {
			return nil, false, ref
		}
		tc = nil
	}
	return x.finish(tc)
}

// reuses returns the client whose kept connections alone the request may use, or the zero value for any. A target
// may close a kept connection while a request is on its way. If that cannot be sent again, it fails, which a client
// has to expect of a connection that it used before, as without a gateway, and not of its first request.
func (x *exchange) reuses() netip.AddrPort {
	if x.retry {
		return netip.AddrPort{}
	}
	return addrPort(x.c.RemoteAddr())
}

// dial connects to the target.
func (x *exchange) dial() (*targetConn, *refusal.Refusal) {
	x.c.Allow(0) // resolving and connecting have their own limits
	tc := &targetConn{key: x.key, ended: x.g.closed}
	if x.c.CheckedTarget.Load() == &x.check.CheckedTarget { // of a kept connection that was closed
		x.check = x.check.renewed(x.key)
	}
	counted, ref := x.g.start(x.route, x.key.target)
	if ref == nil {
		ref = x.g.paced(x.route, counted)
	}
	if ref != nil {
		return nil, ref
	}
	if x.proxy == nil {
		tc.tcp, x.latency, ref = x.g.direct(x.c, x.key.target, x.key.exit, x.check)
		x.g.tried(x.route, counted, ref)
		ref = x.g.exitOf(x.path, ref)
	} else {
		tc.tcp, x.latency, ref = x.g.viaUpstream(x.c, x.route, x.key.target, x.proxy, x.check, &tc.in)
		x.g.tried(x.route, counted, ref)
		ref = x.g.sellersExitOf(x.path, ref)
	}
	if ref != nil {
		return nil, ref
	}
	tc.addrs, tc.use = x.check.Addrs, x.g.opened(x.c, x.path, x.check, tc.tcp)
	x.c.CheckedTarget.Store(&x.check.CheckedTarget)
	if !x.c.Attach(tc.tcp) {
		tc.close()
		return nil, interruption(x.c)
	}
	return tc, nil
}

// taken records that a kept connection has another client now.
func (x *exchange) taken(tc *targetConn) {
	if addrPort(x.c.RemoteAddr()) != tc.use.client {
		x.g.closed(tc.use, exitlog.Finished)
		tc.use = x.g.opened(x.c, x.path, x.check, tc.tcp)
	}
}

// refusalFor returns the refusal for a failure before the response began.
func (x *exchange) refusalFor(err error) *refusal.Refusal {
	var bad *http1.Error
	var own *refusal.Refusal
	if fault := x.fault.Load(); fault != nil && !x.received { // the client's, not the target's
		if x.sending != nil {
			<-x.sending //nolint:errcheck // the fault is its result
		}
		x.sending, x.unsent = nil, true
		return refusal.MalformedBody(fault)
	}
	switch {
	case errors.As(err, &own):
		return own
	case x.c.Cause() == client.TimedOut:
		return refusal.ResponseTimeout
	case x.c.Interrupted():
		return interruption(x.c)
	case errors.As(err, &bad):
		return refusal.MalformedResponse(bad)
	}
	return refusal.ConnectionReset
}

// codeOf returns the code of the refusal in err, the zero Code if there is none.
func codeOf(err error) refusal.Code {
	if ref, ok := errors.AsType[*refusal.Refusal](err); ok {
		return ref.Code
	}
	return 0
}

// unanswered reports whether the target ended the connection without a byte.
func (x *exchange) unanswered(err error) bool {
	var bad *http1.Error
	var own *refusal.Refusal
	x.down.done()
	return x.down.total == 0 && !x.c.Interrupted() &&
		!errors.As(err, &bad) && !errors.As(err, &own) && !errors.Is(err, io.ErrUnexpectedEOF)
}

// idempotent reports whether a method may be sent twice (RFC 9110 section 9.2.2).
func idempotent(method []byte) bool {
	switch string(method) {
	case "GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE":
		return true
	}
	return false
}
