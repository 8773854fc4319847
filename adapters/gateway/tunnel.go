package gateway

import (
	"bytes"
	"net"
	"sync"
	"sync/atomic"
)

// buffer is what a direction copies through in user space. It is held only while
// there are bytes in it, so a quiet tunnel has none.
type buffer [16 << 10]byte

var buffers = sync.Pool{New: func() any { return new(buffer) }}

// ending says why a direction stopped.
type ending uint8

const (
	finished    ending = iota // the source sent its end
	sourceGone                // reading failed
	sinkGone                  // writing failed
	dry                       // the pool will give nothing more
	interrupted               // by somebody else
)

// tunnel relays between a client and a target, one goroutine a direction. Whoever
// ends last cleans up, so nobody waits for anybody.
type tunnel struct {
	g        *Gateway
	c        *conn
	entry    *entry
	target   *net.TCPConn
	opening  opening
	up, down direction
	left     atomic.Int32 // directions that still run
	unread   atomic.Bool  // the client may still be sending to nobody
}

func newTunnel(g *Gateway, c *conn, e *entry, target *net.TCPConn, o opening) *tunnel {
	t := &tunnel{g: g, c: c, entry: e, target: target, opening: o}
	t.up.init(t, c.client, target, false)
	t.down.init(t, target, c.client, true)
	return t
}

// begin hands the tunnel what the client sent behind its handshake.
func (t *tunnel) begin(early []byte) {
	t.up.early = bytes.Clone(early)
	t.c.allow(t.g.cfg.Timing.Idle)
}

// abandon undoes a tunnel whose client could not be told that it is open.
func (t *tunnel) abandon() {
	_ = t.target.Close()
	t.entry.pool.leave(t.c)
	t.g.tunnels.Add(-1)
}

// run relays until both directions have ended, and releases the connection. It
// returns as soon as the caller's direction is through.
func (t *tunnel) run() {
	t.left.Store(2)
	t.g.serving.Add(1)
	go func() {
		defer t.g.serving.Done()
		t.half(&t.down)
	}()
	t.half(&t.up)
}

func (t *tunnel) half(d *direction) {
	e := d.run()
	d.drop()
	t.after(d, e)
	if t.left.Add(-1) == 0 {
		t.finish()
	}
}

// after decides what the end of one direction means for the other.
func (t *tunnel) after(d *direction, e ending) {
	last := t.left.Load() == 1
	switch e {
	case finished:
		if !last {
			t.c.allow(t.g.cfg.Timing.HalfClosed)
			_ = d.dst.CloseWrite()
		}
	case sinkGone:
		if d.down {
			t.c.interrupt(clientGone)
			return
		}
		// The target takes no more, but may still have something to say.
		t.unread.Store(true)
		t.c.allow(t.g.cfg.Timing.HalfClosed)
	case sourceGone:
		if !d.down {
			t.c.interrupt(clientGone)
			return
		}
		t.unread.Store(!last)
		t.c.interrupt(targetGone)
	case dry:
		t.c.interrupt(exhausted)
	}
}

// finish runs when both directions have ended.
func (t *tunnel) finish() {
	why := cause(t.c.cause.Load())
	_ = t.target.Close()
	t.entry.pool.leave(t.c)
	t.g.tunnels.Add(-1)
	t.g.observeTunnel(t, why)
	if why == exhausted || t.unread.Load() && why != stopped && why != ended {
		t.g.linger(t.c)
	}
	t.g.release(t.c)
}

// direction moves bytes one way, client to target or back. Only its goroutine
// touches it.
type direction struct {
	t        *tunnel
	src, dst *net.TCPConn
	down     bool
	early    []byte // read with the handshake, the client's or the upstream's
	total    int64  // metered
	system
}

// sendEarly writes what came with the handshake, as far as the pool allows.
func (d *direction) sendEarly() (ending, bool) {
	if d.down {
		return d.deliverEarly()
	}
	p := &d.t.entry.pool
	for rest := d.early; len(rest) > 0; {
		n, epoch, v := p.reserve(int64(len(rest)))
		if v == waits {
			v = p.await(d.t.c.interrupted)
			if v == flows {
				continue
			}
		}
		if v != flows {
			return d.verdict(v), false
		}
		p.settle(epoch, n, n, 0)
		d.total += n
		if _, err := d.dst.Write(rest[:n]); err != nil {
			return d.broken(sinkGone), false
		}
		rest = rest[n:]
	}
	d.early = nil
	return 0, true
}

// verdict is the ending that a pool's refusal means.
func (d *direction) verdict(v verdict) ending {
	if v == spent {
		return dry
	}
	return interrupted // whoever knows the reason interrupts the tunnel
}

// broken is e, unless the failure was made by an interruption.
func (d *direction) broken(e ending) ending {
	if d.t.c.interrupted() {
		return interrupted
	}
	return e
}
