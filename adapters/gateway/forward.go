package gateway

import (
	"errors"
	"io"

	"agentproxy/adapters/gateway/http1"
	"agentproxy/adapters/gateway/refusal"
)

// nextRequest waits for another request on a kept connection.
func (g *Gateway) nextRequest(c *conn, h *handshake) bool {
	c.allow(g.cfg.Timing.Keep)
	c.idle.Store(true)
	if g.stopping.Load() {
		return false
	}
	_, err := h.in.Peek(1)
	c.idle.Store(false)
	c.allow(g.cfg.Timing.Header)
	return err == nil && !c.interrupted()
}

// forward serves one plain request. It returns a tunnel if the target switched
// protocols, or whether the connection can serve another request.
func (g *Gateway) forward(c *conn, h *handshake) (t *tunnel, again bool) {
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
	x.entry.pool.leave(c)
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

// admit checks credential and session, and takes a place in the pool.
func (x *exchange) admit() *refusal.Refusal {
	g, c, req := x.g, x.c, &x.h.request
	user, password, ok := req.Credentials()
	if !ok {
		return refusal.NoCredential
	}
	before := c.entry.Load()
	u, ref := g.authenticate(c, user, password)
	if ref != nil {
		return ref
	}
	x.entry = c.entry.Load()
	x.key = upstreamKey{session: x.entry.id, target: req.Target()}
	w, ref := g.find(g.ctx, c, u)
	if ref == nil {
		x.key.exit = w.exit.IP
		if x.hop = w.hop; w.hop != nil {
			x.key.hop = hopName(w.hop, w.route.Rotation)
		}
		c.quiet.Store(0)
		ref = admitted(x.entry.pool.admit(c, g.cfg.Tunnels, g.cfg.Timing.Admit))
	}
	if ref != nil {
		g.observeRefusal(c, x.key.exit, x.key.target.Host, ref, 0)
		return ref
	}
	if before != x.entry {
		x.entry.pool.opened()
	}
	x.up = meter{c: c, pool: &x.entry.pool}
	x.down = meter{c: c, pool: &x.entry.pool, down: true}
	return nil
}

// run carries the exchange. A refusal is for a client that has not been written
// to yet.
func (x *exchange) run() (t *tunnel, again bool, ref *refusal.Refusal) {
	g, h := x.g, x.h
	head := h.request.Append(h.out[:0])
	h.out = head
	x.retry = x.body.Kind == http1.NoBody && idempotent(h.request.Method())
	metered := h.request.Metered()
	x.c.allow(g.cfg.Timing.Answer)
	u := g.upstream.get(x.key)
	for kept := u != nil; ; kept = false {
		began := mono()
		if u == nil {
			if u, ref = x.dial(); ref != nil {
				return nil, false, ref
			}
			x.c.allow(g.cfg.Timing.Answer)
		} else if !x.c.attach(u.tcp) {
			u.close()
			return nil, false, interruption(cause(x.c.cause.Load()))
		}
		// Only what is really sent is charged, and once.
		if err := http1.TakeAll(&x.up, metered); err != nil {
			x.abort(u)
			return nil, false, refusal.From(err)
		}
		metered = 0
		err := x.send(u, head)
		if err == nil {
			err = x.receive(u)
		}
		x.latency = mono() - began
		if err == nil {
			break
		}
		ref = x.sort(err)
		again := kept && x.retry && x.unanswered(err)
		x.abort(u)
		if !again {
			return nil, false, ref
		}
		u = nil
	}
	return x.finish(u)
}

func (x *exchange) dial() (*upstreamConn, *refusal.Refusal) {
	x.c.quiet.Store(0) // resolving and connecting have limits of their own
	u := &upstreamConn{key: x.key}
	var ref *refusal.Refusal
	if x.hop == nil {
		u.tcp, x.latency, ref = x.g.reach(x.c, x.key.target, x.key.exit)
	} else {
		u.tcp, x.latency, ref = x.g.chain(x.c, x.key.target, x.hop, &u.in)
	}
	if ref != nil {
		return nil, ref
	}
	if !x.c.attach(u.tcp) {
		u.close()
		return nil, interruption(cause(x.c.cause.Load()))
	}
	return u, nil
}

// sort turns what went wrong before the answer began into our own.
func (x *exchange) sort(err error) *refusal.Refusal {
	var bad *http1.Error
	var own *refusal.Refusal
	switch {
	case errors.As(err, &own):
		return own
	case cause(x.c.cause.Load()) == timedOut:
		return refusal.ResponseTimeout
	case x.c.interrupted():
		return interruption(cause(x.c.cause.Load()))
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

// unanswered says whether it was the target that ended the connection, and
// without a byte.
func (x *exchange) unanswered(err error) bool {
	var bad *http1.Error
	var own *refusal.Refusal
	x.down.done()
	return x.down.total == 0 && !x.c.interrupted() &&
		!errors.As(err, &bad) && !errors.As(err, &own) && !errors.Is(err, io.ErrUnexpectedEOF)
}

// idempotent says whether a method may be sent twice (RFC 9110 section 9.2.2).
func idempotent(method []byte) bool {
	switch string(method) {
	case "GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE":
		return true
	}
	return false
}
