// Package client represents the connections of the gateway's clients and lets other
// goroutines interrupt them.
//
// An interruption never closes a socket: it sets deadlines in the past, so that the
// reads and writes on the connection and its target fail and the goroutines that
// serve it clean up. The first cause is kept.
package client

import (
	"context"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"agentproxy/adapters/conns"
	"agentproxy/adapters/gateway/lease"
	"agentproxy/adapters/gateway/monotime"
	"agentproxy/adapters/gateway/quota"
	"agentproxy/adapters/gateway/route"
	"agentproxy/adapters/gateway/socket"
	"agentproxy/domain/policy"
)

// Cause is why a connection was interrupted.
type Cause uint32

// The causes.
const (
	None       Cause = iota
	TimedOut         // nothing was moved for too long
	Ended            // the session is over
	Exhausted        // its traffic is used up
	Stopped          // the gateway stops
	ClientGone       // the client's connection failed
	TargetGone       // the target's connection failed
	Aborted          // the exchange ended before its request was sent
	Looped           // its target is this gateway
	Denied           // a policy denies its target
	Removed          // the worker was removed
	Cut              // its agent closes the session's connections
)

// Stream is what the protocols of a proxy run on: a socket, TLS on one, or a stream of HTTP/2.
type Stream interface {
	net.Conn
	CloseWrite() error
}

// Conn is one client's connection.
type Conn struct {
	// Stream is read and written by the goroutines that serve the connection. It is the socket until TLS begins.
	Stream
	// Socket is that of the connection; nil for a stream of HTTP/2, which has a part of another connection's.
	Socket *net.TCPConn
	base   Stream // the socket, or the stream of HTTP/2
	// Carrier is the connection that a stream of HTTP/2 is on; nil for a connection of its own.
	Carrier *Conn
	// Named is the client's address as a balancer named it; nil: that of the peer. The goroutine that serves the
	// connection sets it before anything else reads it.
	Named  *net.TCPAddr
	Member lease.Member
	Slot   conns.Slot
	Place  quota.Place // among those of its agent
	index  int         // in the Registry
	// Worker is that of the last request; nil for the session itself. The goroutine that serves the
	// connection uses it.
	Worker *route.Worker

	PasswordNo int // of the password that the client gave. The goroutine that serves it uses it

	// CheckedTarget is the target and what it was checked by; nil before a target is connected.
	CheckedTarget atomic.Pointer[CheckedTarget]

	entry  atomic.Pointer[route.Entry]
	target atomic.Pointer[net.TCPConn]
	dial   atomic.Pointer[dial]
	cause  atomic.Uint32
	moved  atomic.Int64 // when bytes were moved last, by monotime
	quiet  atomic.Int64 // how long nothing may be moved; 0 is unlimited
	idle   atomic.Bool  // before or between requests
}

// CheckedTarget is a target and the rules that let it pass.
type CheckedTarget struct {
	Host  string // canonical name; empty if the target is an address
	Port  uint16
	Addrs []netip.Addr // that it was checked by
	// Shared, Own and Reports are what was checked. After the connection to the target they
	// belong to the goroutine that checks open connections again.
	Shared  *policy.Shared
	Own     *policy.Rules
	Reports bool
	Cuts    int        // of the session when the connection was made
	Exit    netip.Addr // that it leaves from; invalid if that is not known
}

// dial is a connection attempt under way.
type dial struct {
	until  time.Duration // by monotime
	cancel context.CancelFunc
}

// past is a deadline that makes every read and write fail at once.
var past = time.Unix(1, 0)

// New returns the connection of a client.
func New(tcp *net.TCPConn) *Conn {
	c := &Conn{Stream: tcp, Socket: tcp, base: tcp}
	c.Member = lease.MemberOf(c)
	return c
}

// NewStream returns a connection that is a stream of HTTP/2 on carrier, of the same client. Deadlines may be set while
// it is used and after it is closed.
func NewStream(s Stream, carrier *Conn) *Conn {
	c := &Conn{Stream: s, base: s, Carrier: carrier}
	c.Named, _ = carrier.RemoteAddr().(*net.TCPAddr)
	c.Member = lease.MemberOf(c)
	return c
}

// SetDeadline sets the deadlines of the socket, or of the stream of HTTP/2.
func (c *Conn) SetDeadline(t time.Time) error { return c.base.SetDeadline(t) }

// RemoteAddr returns the client's address, which is not the peer's behind a balancer.
func (c *Conn) RemoteAddr() net.Addr {
	if c.Named != nil {
		return c.Named
	}
	return c.base.RemoteAddr()
}

// Allow begins a phase in which nothing may be moved for a time; 0 is unlimited.
func (c *Conn) Allow(quiet time.Duration) {
	c.Touch()
	c.quiet.Store(int64(quiet))
}

// Touch records that bytes were moved.
func (c *Conn) Touch() { c.moved.Store(int64(monotime.Now())) }

// SetIdle sets whether the connection is between requests. Stopping interrupts
// idle connections at once.
func (c *Conn) SetIdle(idle bool) { c.idle.Store(idle) }

// Interrupted reports whether the connection was interrupted.
func (c *Conn) Interrupted() bool { return c.cause.Load() != uint32(None) }

// Cause returns why the connection was interrupted.
func (c *Conn) Cause() Cause { return Cause(c.cause.Load()) }

// Interrupt makes the goroutines that serve the connection stop, wherever they
// block. Only the first cause counts.
func (c *Conn) Interrupt(why Cause) {
	if !c.cause.CompareAndSwap(uint32(None), uint32(why)) {
		return
	}
	_ = c.SetDeadline(past)
	if t := c.target.Load(); t != nil {
		_ = t.SetDeadline(past)
	}
	if d := c.dial.Load(); d != nil {
		d.cancel()
	}
	if e := c.entry.Load(); e != nil {
		e.Pool.Signal()
	}
}

// Evict implements conns.Owner and quota.Owner.
func (c *Conn) Evict() { c.Interrupt(TimedOut) }

// Unread implements conns.Owner. A stream of HTTP/2 begins with its request, so it waits for the service.
func (c *Conn) Unread() bool { return c.Socket == nil || socket.Pending(c.Socket) > 0 }

// Quiet implements quota.Owner.
func (c *Conn) Quiet(now time.Duration) time.Duration { return now - time.Duration(c.moved.Load()) }

// SessionEnded implements lease.Conn.
func (c *Conn) SessionEnded(v lease.Verdict) {
	switch v {
	case lease.Exhausted:
		c.Interrupt(Exhausted)
	case lease.Removed:
		c.Interrupt(Removed)
	default:
		c.Interrupt(Ended)
	}
}

// Attach makes the target's connection part of c, so that an interruption reaches
// it. It returns false if c was interrupted meanwhile.
func (c *Conn) Attach(target *net.TCPConn) bool {
	c.target.Store(target)
	if c.Interrupted() {
		_ = target.SetDeadline(past)
		return false
	}
	return true
}

// Attached reports whether a target's connection is attached.
func (c *Conn) Attached() bool { return c.target.Load() != nil }

// Detach undoes Attach.
func (c *Conn) Detach() { c.target.Store(nil) }

// CloseTarget closes the attached connection, if any.
func (c *Conn) CloseTarget() {
	if t := c.target.Swap(nil); t != nil {
		_ = t.Close()
	}
}

// BeginDial registers a connection attempt, which an interruption cancels. The
// Registry cancels it after until, by monotime: its periodic check of all
// connections costs less than a timer for each attempt.
func (c *Conn) BeginDial(until time.Duration, cancel context.CancelFunc) {
	c.dial.Store(&dial{until, cancel})
}

// EndDial undoes BeginDial.
func (c *Conn) EndDial() { c.dial.Store(nil) }

// Entry returns the session that the client authenticated for, or nil.
func (c *Conn) Entry() *route.Entry { return c.entry.Load() }

// SetEntry sets the session that the client authenticated for; nil for none.
func (c *Conn) SetEntry(e *route.Entry) { c.entry.Store(e) }

// late reports whether nothing was moved for longer than allowed.
func (c *Conn) late(now time.Duration) bool {
	quiet := time.Duration(c.quiet.Load())
	return quiet > 0 && now-time.Duration(c.moved.Load()) > quiet && !c.Interrupted()
}

// expired reports whether the session's time has run out. The core's notification
// may come later.
func (c *Conn) expired(wall time.Time) bool {
	e := c.entry.Load()
	if e == nil || c.Interrupted() {
		return false
	}
	r := e.Latest()
	return r != nil && !r.ExpiresAt.IsZero() && !wall.Before(r.ExpiresAt)
}
