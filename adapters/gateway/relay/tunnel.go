package relay

import (
	"bytes"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"agentproxy/adapters/gateway/client"
	"agentproxy/adapters/gateway/lease"
	"agentproxy/adapters/gateway/socket"
)

// buffer is what a direction copies through in user space. It is held only while
// there are bytes in it.
type buffer [16 << 10]byte

var buffers = sync.Pool{New: func() any { return new(buffer) }}

// Config holds what all tunnels share.
type Config struct {
	Pipes      int           // how many pipes may be open at once; negative for none
	Idle       time.Duration // both directions may be quiet so long
	HalfClosed time.Duration // one direction may be quiet so long after the other ended
	// Goroutines counts the goroutines of tunnels.
	Goroutines *sync.WaitGroup
	// Ended is called when both directions of a tunnel have ended; it takes over
	// the client's connection.
	Ended func(*Tunnel)
	// Loops reports whether what a client sends first leads back to this gateway. Such a
	// tunnel ends, and nothing of it is sent on.
	Loops func(sent []byte) bool
	// Panicked is called with what a direction panicked with. Its tunnel ends.
	Panicked func(cause any)
}

// Relay opens tunnels.
type Relay struct {
	cfg   Config
	pipes *pipes
	open  atomic.Int64
}

// New returns a Relay without tunnels.
func New(cfg Config) *Relay { return &Relay{cfg: cfg, pipes: newPipes(cfg.Pipes)} }

// Open returns the number of open tunnels.
func (r *Relay) Open() int64 { return r.open.Load() }

// Pipes returns the number of pipes, in use or free.
func (r *Relay) Pipes() int { return r.pipes.count() }

// Trim closes the pipes that were not needed since the last Trim.
func (r *Relay) Trim() { r.pipes.trim() }

// Close closes the pipes. All tunnels must have ended.
func (r *Relay) Close() { r.pipes.close() }

// Opening describes how a tunnel was opened. Host, Exit and Latency are for its event.
type Opening struct {
	Host    string
	Exit    netip.Addr
	Latency time.Duration
	// Number is that of the connection in the exit log; 0 for none.
	Number uint64
	// ChargeRead makes a tunnel through an upstream proxy charge what was read of the
	// target and not written to the client, because the provider counts it.
	ChargeRead bool
}

// ending is why a direction stopped.
type ending uint8

const (
	finished     ending = iota // the source sent its end
	sourceFailed               // reading failed
	sinkFailed                 // writing failed
	exhausted                  // the pool grants nothing more
	interrupted                // the connection was interrupted
)

// Tunnel relays between a client and a target.
type Tunnel struct {
	Conn    *client.Conn
	Opening Opening

	relay    *Relay
	pool     lease.Account
	target   *net.TCPConn
	up, down direction
	left     atomic.Int32 // directions that still run
	unread   atomic.Bool  // the client may still be sending
}

// Tunnel returns a tunnel that does not run yet, for a client that was admitted to
// its session's pool. downEarly is what the target sent already.
func (r *Relay) Tunnel(c *client.Conn, target *net.TCPConn, o Opening, downEarly []byte) *Tunnel {
	t := &Tunnel{Conn: c, Opening: o, relay: r, pool: c.Entry().Pool.Account(&c.Member), target: target}
	t.up.init(t, c.Stream, target, false)
	t.down.init(t, target, c.Stream, true)
	t.down.early = downEarly
	r.open.Add(1)
	return t
}

// Begin prepares the tunnel to run. early is what the client sent behind its
// handshake; it is copied.
func (t *Tunnel) Begin(early []byte) {
	t.up.early = bytes.Clone(early)
	t.Conn.Allow(t.relay.cfg.Idle)
}

// Abandon releases a tunnel that does not run.
func (t *Tunnel) Abandon() {
	_ = t.target.Close()
	t.pool.Leave(&t.Conn.Member)
	t.relay.open.Add(-1)
}

// Bytes returns how many bytes were metered, once the tunnel has ended.
func (t *Tunnel) Bytes() (up, down int64) { return t.up.total, t.down.total }

// Unread reports whether the client may still be sending after the tunnel ended.
func (t *Tunnel) Unread() bool { return t.unread.Load() }

// Run relays until both directions have ended. It returns when the direction from
// the client has; the other may still run.
func (t *Tunnel) Run() {
	t.left.Store(2)
	t.relay.cfg.Goroutines.Add(1)
	go func() {
		defer t.relay.cfg.Goroutines.Done()
		t.half(&t.down)
	}()
	t.half(&t.up)
}

func (t *Tunnel) half(d *direction) {
	t.after(d, t.guard(d))
	if t.left.Add(-1) == 0 {
		t.finish()
	}
}

// guard runs a direction. A panic in it interrupts the connection.
func (t *Tunnel) guard(d *direction) (e ending) {
	defer func() {
		if cause := recover(); cause != nil {
			t.relay.cfg.Panicked(cause)
			t.Conn.Interrupt(client.Aborted)
			e = interrupted
		}
	}()
	e = d.run()
	d.drop()
	return e
}

// after applies the consequences that the end of one direction has for the other.
func (t *Tunnel) after(d *direction, e ending) {
	last := t.left.Load() == 1
	switch e {
	case finished:
		if !last {
			t.Conn.Allow(t.relay.cfg.HalfClosed)
			_ = d.dst.CloseWrite()
		}
	case sinkFailed:
		if d.down {
			t.Conn.Interrupt(client.ClientGone)
			return
		}
		// The target reads no more, but may still send.
		t.unread.Store(true)
		t.Conn.Allow(t.relay.cfg.HalfClosed)
	case sourceFailed:
		if !d.down {
			t.Conn.Interrupt(client.ClientGone)
			return
		}
		t.unread.Store(!last)
		t.Conn.Interrupt(client.TargetGone)
	case exhausted:
		t.Conn.Interrupt(client.Exhausted)
	}
}

// finish runs when both directions have ended.
func (t *Tunnel) finish() {
	if t.Opening.ChargeRead {
		t.chargePending()
	}
	_ = t.target.Close()
	t.pool.Leave(&t.Conn.Member)
	t.relay.open.Add(-1)
	t.relay.cfg.Ended(t)
}

// chargePending charges what arrived from the target and was not read, as far as the
// pool grants it at once.
func (t *Tunnel) chargePending() {
	want := socket.Pending(t.target)
	if want == 0 {
		return
	}
	if n, epoch, v := t.pool.Reserve(want); v == lease.Granted {
		t.pool.Settle(epoch, n, 0, n)
		t.down.total += n
	}
}

// direction moves bytes one way, client to target or back. Only its goroutine uses
// it.
type direction struct {
	t        *Tunnel
	src, dst client.Stream
	down     bool
	early    []byte // read with the handshake, the client's or the upstream's
	total    int64  // metered
	pieces   int    // of the source that were looked at
	res      int64  // reserved, of what was read and not yet written
	epoch    uint32 // of the reservation
	system
}

// sendEarly writes what came with the handshake, as far as the pool grants it.
func (d *direction) sendEarly() (ending, bool) {
	if d.down {
		return d.deliverEarly()
	}
	if d.loops(d.early) {
		return interrupted, false
	}
	p := d.t.pool
	for rest := d.early; len(rest) > 0; {
		n, epoch, v := p.Reserve(int64(len(rest)))
		if v == lease.Blocked {
			v = p.Await(d.t.Conn.Interrupted)
			if v == lease.Granted {
				continue
			}
		}
		if v != lease.Granted {
			return endingOf(v), false
		}
		p.Settle(epoch, n, n, 0)
		d.total += n
		if _, err := d.dst.Write(rest[:n]); err != nil {
			return d.failed(sinkFailed), false
		}
		rest = rest[n:]
	}
	d.early = nil
	return 0, true
}

// endingOf returns the ending that a verdict other than lease.Granted means.
func endingOf(v lease.Verdict) ending {
	if v == lease.Exhausted {
		return exhausted
	}
	return interrupted // lease.Pool.End interrupts the connection
}

// inspected is how many of the first pieces that a client sends are looked at: a SOCKS5
// client sends its credential in the second.
const inspected = 2

// loops looks at a piece that the client sent, and interrupts a tunnel that leads back to
// this gateway.
func (d *direction) loops(sent []byte) bool {
	if d.down || d.pieces >= inspected {
		return false
	}
	d.pieces++
	if !d.t.relay.cfg.Loops(sent) {
		return false
	}
	d.t.Conn.Interrupt(client.Looped)
	return true
}

// failed returns e, or interrupted if an interruption caused the failure.
func (d *direction) failed(e ending) ending {
	if d.t.Conn.Interrupted() {
		return interrupted
	}
	return e
}
