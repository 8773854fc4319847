package gateway

import (
	"time"

	"agentproxy/adapters/gateway/http1"
	"agentproxy/adapters/gateway/refusal"
	"agentproxy/domain/procurement"
	"agentproxy/domain/traffic"
)

// exchange is one plain request and its answer.
type exchange struct {
	g        *Gateway
	c        *conn
	h        *handshake
	entry    *entry
	key      upstreamKey
	hop      *procurement.Endpoint // nil: the target is dialled
	ex       http1.Exchange
	body     http1.Body
	retry    bool // may be sent again if a kept connection turns out to be dead
	up, down meter
	latency  time.Duration
	sending  chan error // the body is sent by another goroutine; nil: it is not, or no more
	unsent   bool       // that goroutine failed
}

// send writes the request. A body that is not at hand goes its own way, because
// the target may answer before it has read it.
func (x *exchange) send(u *upstreamConn, head []byte) error {
	in := &x.h.in
	dst := mover{u.tcp, x.c}
	whole := x.body.Kind == http1.NoBody ||
		x.body.Kind == http1.Sized && x.body.Length <= int64(len(in.Buffered()))
	if whole {
		_, err := http1.CopyRequest(dst, head, in, x.body, &x.up)
		return err
	}
	x.sending = make(chan error, 1)
	x.g.serving.Add(1)
	go func() {
		defer x.g.serving.Done()
		_, err := http1.CopyRequest(dst, head, in, x.body, &x.up)
		x.sending <- err
	}()
	return nil
}

// receive reads heads up to the final one, and passes the others on.
func (x *exchange) receive(u *upstreamConn) error {
	if len(u.in.Buffered()) > 0 { // the target spoke as soon as the upstream had opened the way
		u.in.Switch(mover{u.tcp, x.c})
	} else {
		u.in.Reset(mover{u.tcp, x.c})
	}
	return http1.ReadFinal(&u.in, &x.h.answer, x.ex, func(interim *http1.ResponseHead) error {
		x.h.reply = interim.Append(x.h.reply[:0], false)
		_, err := http1.CopyResponse(mover{x.c.client, x.c}, x.h.reply, &u.in, http1.Body{}, &x.down)
		return err
	})
}

// finish passes the final answer on.
func (x *exchange) finish(u *upstreamConn) (t *tunnel, again bool, ref *refusal.Refusal) {
	g, c, h := x.g, x.c, x.h
	answer := &h.answer
	if answer.Status == 101 {
		t, ok := x.upgrade(u)
		if !ok {
			g.metrics.done(viaHTTP, truncated)
			x.abort(u)
		}
		return t, false, nil
	}
	sent := x.sent(sentGrace)
	closing := g.stopping.Load() || !sent
	h.reply = answer.Append(h.reply[:0], closing)
	moved, err := http1.CopyResponse(mover{c.client, c}, h.reply, &u.in, answer.Body, &x.down)
	if err != nil {
		ref = x.sort(err)
		x.abort(u)
		if moved.Out == 0 && x.down.total == 0 {
			return nil, false, ref
		}
		code, result := codeOf(err), truncated
		if code != 0 {
			result = refused(code)
		}
		x.observe(answer.Status, code, result)
		return nil, false, nil
	}
	if !sent {
		x.abort(u)
	} else {
		x.release(u, answer.KeepUpstream && len(u.in.Buffered()) == 0)
	}
	x.observe(answer.Status, 0, completed)
	return nil, answer.KeepClient && !closing && sent, nil
}

// observe counts the exchange and records its event.
func (x *exchange) observe(status int, code refusal.Code, result outcome) {
	x.up.done()
	x.down.done()
	x.g.requests.Add(1)
	x.g.metrics.done(viaHTTP, result)
	x.g.observeRequest(x.entry, traffic.Observation{Host: x.key.target.Host, StatusCode: status, Code: code.String(),
		Bytes: x.up.total + x.down.total, Latency: x.latency, ExitIP: text(x.key.exit)})
}

// upgrade makes a tunnel of an exchange whose target switched protocols.
func (x *exchange) upgrade(u *upstreamConn) (*tunnel, bool) {
	h := x.h
	h.reply = append(h.answer.Append(h.reply[:0], false), u.in.Buffered()...)
	if _, err := http1.CopyResponse(x.c.client, h.reply, &u.in, http1.Body{}, &x.down); err != nil {
		return nil, false
	}
	x.observe(h.answer.Status, 0, completed)
	u.in.Free()
	x.g.tunnels.Add(1)
	t := newTunnel(x.g, x.c, x.entry, u.tcp, opening{x.key.target.Host, x.key.exit, x.latency})
	t.begin(h.in.Buffered())
	return t, true
}

// sentGrace is how long an answer waits for its request to be through. Mostly it
// is, and only its sender has not come to say so.
const sentGrace = 10 * time.Millisecond

// sent says whether the request's body is through.
func (x *exchange) sent(grace time.Duration) bool {
	if x.sending == nil {
		return !x.unsent
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case err := <-x.sending:
		x.sending = nil
		x.unsent = err != nil
	case <-timer.C:
		return false
	}
	return !x.unsent
}

// abort gives the target's connection up, and ends the sending of a body.
func (x *exchange) abort(u *upstreamConn) {
	if x.sending != nil {
		x.c.interrupt(aborted) // wherever the sender waits, it gives up
		<-x.sending
		x.sending = nil
	}
	x.release(u, false)
}

// release keeps or closes the target's connection. One that an interruption may
// have touched is not kept.
func (x *exchange) release(u *upstreamConn, keep bool) {
	x.c.target.Store(nil)
	if keep && !x.c.interrupted() {
		x.g.upstream.put(u)
		return
	}
	u.close()
}
