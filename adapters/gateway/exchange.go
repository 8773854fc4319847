package gateway

import (
	"errors"
	"sync/atomic"
	"time"

	"agentproxy/adapters/gateway/client"
	"agentproxy/adapters/gateway/http1"
	"agentproxy/adapters/gateway/refusal"
	"agentproxy/adapters/gateway/relay"
	"agentproxy/adapters/gateway/route"
	"agentproxy/adapters/gateway/socket"
	"agentproxy/domain/procurement"
	"agentproxy/domain/traffic"
)

// exchange is one plain request and its response.
type exchange struct {
	g        *Gateway
	c        *client.Conn
	h        *handshake
	entry    *route.Entry
	key      targetKey
	route    *traffic.Route
	proxy    *procurement.Endpoint // nil if the target is dialled directly
	check    *targetCheck
	path     path
	logged   int64 // bytes of the exchange that are in a use
	ex       http1.Exchange
	body     http1.Body
	retry    bool // may be sent again if an idle connection turns out to be closed
	up, down meter
	read     int64 // bytes read of the target since the request was sent
	received bool  // a final response head was read
	latency  time.Duration
	sending  chan error // result of the goroutine that sends the body; nil if none runs
	unsent   bool       // that goroutine failed
	// fault is what is wrong with the client's body; nil for nothing. That goroutine sets it.
	fault    atomic.Pointer[http1.Error]
	answered atomic.Bool // like received, for that goroutine
}

// errPanicked is the result of a goroutine that panicked.
var errPanicked = errors.New("gateway: panic while sending a request")

// send writes the request. A body that is not buffered in full is sent by another
// goroutine, because the target may respond before it has read it.
func (x *exchange) send(tc *targetConn, head []byte) error {
	in := &x.h.in
	dst := toucher{tc.tcp, x.c}
	whole := x.body.Kind == http1.NoBody ||
		x.body.Kind == http1.Sized && x.body.Length <= int64(len(in.Buffered()))
	if whole {
		_, err := http1.CopyRequest(dst, head, in, x.body, &x.up)
		return err
	}
	sending := make(chan error, 1)
	x.sending = sending
	x.g.serving.Add(1)
	go func() {
		defer x.g.serving.Done()
		err := errPanicked
		defer func() {
			if cause := recover(); cause != nil {
				x.g.panicked(cause)
			}
			sending <- err
		}()
		_, err = http1.CopyRequest(dst, head, in, x.body, &x.up)
		if bad, ok := errors.AsType[*http1.Error](err); ok {
			x.fault.Store(bad)
			if x.answered.Load() {
				return
			}
			_ = tc.tcp.SetReadDeadline(time.Unix(1, 0)) // the target waits for the rest of it, and is not waited for
		}
	}()
	return nil
}

// receive reads response heads up to the final one and forwards the others.
func (x *exchange) receive(tc *targetConn) error {
	src := source{toucher{tc.tcp, x.c}, &x.read}
	if early := len(tc.in.Buffered()); early > 0 { // the target sent bytes together with the upstream's answer
		x.read = int64(early)
		tc.in.Switch(src)
	} else {
		x.read = 0
		tc.in.Reset(src)
	}
	err := http1.ReadFinal(&tc.in, &x.h.answer, x.ex, func(interim *http1.ResponseHead) error {
		x.h.reply = interim.Append(x.h.reply[:0], false)
		_, err := http1.CopyResponse(toucher{x.c.Stream, x.c}, x.h.reply, &tc.in, http1.Body{}, &x.down)
		return err
	})
	x.received = err == nil
	x.answered.Store(x.received)
	return err
}

// chargeRead charges what was read of the target and does not reach the client: interim
// responses withheld from it and a head that is refused. Behind an upstream proxy,
// whose provider counts them, it charges all bytes by which reading exceeds writing.
// closing is set if the connection does not serve another request; then bytes that
// arrived and were not read count too.
func (x *exchange) chargeRead(tc *targetConn, closing bool) {
	x.down.done()
	if x.received && x.proxy == nil {
		x.down.charge(int64(x.h.answer.Withheld))
		return
	}
	read := x.read
	if closing {
		read += socket.Pending(tc.tcp)
	}
	x.down.charge(read - x.down.total)
}

// finish forwards the final response.
func (x *exchange) finish(tc *targetConn) (t *relay.Tunnel, again bool, ref *refusal.Refusal) {
	g, c, h := x.g, x.c, x.h
	answer := &h.answer
	if answer.Status == 101 {
		t, ok := x.upgrade(tc)
		if !ok {
			g.metrics.done(viaHTTP, truncated)
			x.abort(tc)
		}
		return t, false, nil
	}
	sent := x.sent(sentGrace)
	closing := g.stopping.Load() || !sent
	h.reply = answer.Append(h.reply[:0], closing)
	moved, err := http1.CopyResponse(toucher{c.Stream, c}, h.reply, &tc.in, answer.Body, &x.down)
	if err != nil {
		ref = x.refusalFor(err)
		x.down.done()
		unanswered := moved.Out == 0 && x.down.total == 0
		x.abort(tc)
		if unanswered {
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
		x.abort(tc)
	} else {
		x.release(tc, answer.KeepUpstream && len(tc.in.Buffered()) == 0)
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
	x.g.observeRequest(x.entry, traffic.Observation{Worker: x.path.worker.Name(), Client: clientAddr(x.c),
		Host:       x.key.target.Host,
		StatusCode: status, Code: code.String(),
		Bytes: x.up.total + x.down.total, Latency: x.latency, ExitIP: text(x.key.exit)})
}

// upgrade opens a tunnel for an exchange whose target switched protocols.
func (x *exchange) upgrade(tc *targetConn) (*relay.Tunnel, bool) {
	h := x.h
	h.reply = append(h.answer.Append(h.reply[:0], false), tc.in.Buffered()...)
	if _, err := http1.CopyResponse(x.c.Stream, h.reply, &tc.in, http1.Body{}, &x.down); err != nil {
		return nil, false
	}
	x.chargeRead(tc, false)
	x.observe(h.answer.Status, 0, completed)
	tc.in.Free()
	t := x.g.relay.Tunnel(x.c, tc.tcp, relay.Opening{Host: x.key.target.Host, Exit: x.key.exit,
		Latency: x.latency, ChargeRead: x.proxy != nil, Number: tc.use.number}, nil)
	t.Begin(h.in.Buffered())
	return t, true
}

// sentGrace is how long a response waits for its request's body. Usually the body has
// been sent and only the goroutine's result is missing.
const sentGrace = 10 * time.Millisecond

// sent reports whether the request was sent in full.
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

// abort closes the target's connection and ends the sending of a body.
func (x *exchange) abort(tc *targetConn) {
	if x.sending != nil {
		x.c.Interrupt(client.Aborted) // the sender stops wherever it waits
		<-x.sending                   //nolint:errcheck // of a body that is aborted
		x.sending = nil
	}
	x.release(tc, false)
}

// count adds the bytes of the exchange to the use of a target's connection.
func (x *exchange) count(tc *targetConn) {
	x.up.done()
	x.down.done()
	total := x.up.total + x.down.total
	tc.use.bytes += total - x.logged
	x.logged = total
}

// release keeps or closes the target's connection. It is not kept after an
// interruption, which may have set its deadline.
func (x *exchange) release(tc *targetConn, keep bool) {
	keep = keep && !x.path.once && !x.c.Interrupted()
	x.chargeRead(tc, !keep)
	x.count(tc)
	x.c.Detach()
	if keep && !x.c.Interrupted() {
		x.g.targets.put(tc, x.g.table.NearlyFull())
		return
	}
	tc.close()
}
