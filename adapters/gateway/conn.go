package gateway

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// cause says why a connection was interrupted.
type cause uint32

const (
	none      cause = iota
	timedOut        // quiet for too long
	ended           // the session is over
	exhausted       // its traffic is used up
	stopped         // the gateway stops
	clientGone
	targetGone
	aborted // the exchange is over before its request was sent
)

// conn is one client's connection. Other goroutines may interrupt it: they never
// close its sockets, they let the reads and writes on them fail.
type conn struct {
	client *net.TCPConn
	slot   int // in the registry
	seat   int // among the pool's members

	entry   atomic.Pointer[entry]
	target  atomic.Pointer[net.TCPConn]
	dialing atomic.Pointer[dialing]
	cause   atomic.Uint32
	moved   atomic.Int64 // when something moved last, by mono
	quiet   atomic.Int64 // how long nothing may move; 0: for ever
	idle    atomic.Bool  // before or between requests: nobody minds an interruption
}

// past is a deadline that makes every read and write fail at once.
var past = time.Unix(1, 0)

// allow starts a phase in which nothing may move for so long.
func (c *conn) allow(quiet time.Duration) {
	c.moved.Store(int64(mono()))
	c.quiet.Store(int64(quiet))
}

func (c *conn) interrupted() bool { return c.cause.Load() != uint32(none) }

// interrupt makes whoever serves the connection give up, wherever it waits. The
// first cause is the one that counts.
func (c *conn) interrupt(why cause) {
	if !c.cause.CompareAndSwap(uint32(none), uint32(why)) {
		return
	}
	_ = c.client.SetDeadline(past)
	if t := c.target.Load(); t != nil {
		_ = t.SetDeadline(past)
	}
	if d := c.dialing.Load(); d != nil {
		d.cancel()
	}
	if e := c.entry.Load(); e != nil {
		e.pool.nudge()
	}
}

// attach makes the target's connection part of the conn; false if the conn was
// interrupted meanwhile.
func (c *conn) attach(target *net.TCPConn) bool {
	c.target.Store(target)
	if c.interrupted() {
		_ = target.SetDeadline(past)
		return false
	}
	return true
}

// members are the connections that a session has open. A swap keeps removal
// cheap; each conn knows its seat.
type members struct {
	list  []*conn
	count int
}

func (m *members) add(c *conn) {
	c.seat = m.count
	m.list = append(m.list, c)
	m.count++
}

func (m *members) remove(c *conn) {
	m.count--
	last := m.list[m.count]
	m.list[c.seat], last.seat = last, c.seat
	m.list[m.count] = nil
	m.list = m.list[:m.count]
}

// registry knows every client connection.
type registry struct {
	mu   sync.Mutex
	list []*conn
}

func (r *registry) add(c *conn) {
	r.mu.Lock()
	c.slot = len(r.list)
	r.list = append(r.list, c)
	r.mu.Unlock()
}

func (r *registry) remove(c *conn) {
	r.mu.Lock()
	n := len(r.list) - 1
	last := r.list[n]
	r.list[c.slot], last.slot = last, c.slot
	r.list[n] = nil
	r.list = r.list[:n]
	r.mu.Unlock()
}

func (r *registry) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.list)
}

// pick lists the connections that match.
func (r *registry) pick(match func(*conn) bool) []*conn {
	r.mu.Lock()
	defer r.mu.Unlock()
	var cs []*conn
	for _, c := range r.list {
		if match(c) {
			cs = append(cs, c)
		}
	}
	return cs
}

func (r *registry) interruptAll(why cause) {
	for _, c := range r.pick(func(c *conn) bool { return !c.interrupted() }) {
		c.interrupt(why)
	}
}

func (r *registry) interruptIdle() {
	for _, c := range r.pick(func(c *conn) bool { return c.idle.Load() }) {
		c.interrupt(stopped)
	}
}

// sweep interrupts what was quiet for too long, and what belongs to a session
// whose time is over. One pass over all connections costs less than a timer for
// each, which every read would have to move.
func (g *Gateway) sweep(ctx context.Context) {
	t := g.cfg.Timing
	ticker := time.NewTicker(max(min(t.Header, t.Idle, t.HalfClosed, t.Keep, t.Linger, t.Connect, 8*time.Second)/8, time.Millisecond))
	defer ticker.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now, wall := mono(), g.cfg.Now()
		for _, c := range g.conns.pick(func(c *conn) bool { return c.late(now) }) {
			c.interrupt(timedOut)
		}
		for _, c := range g.conns.pick(func(c *conn) bool { return c.expired(wall) }) {
			c.interrupt(ended)
		}
		for _, c := range g.conns.pick(func(c *conn) bool { return c.dialing.Load() != nil }) {
			if d := c.dialing.Load(); d != nil && now > d.until {
				d.cancel()
			}
		}
		if n%10 == 0 {
			g.pipes.trim()
			g.upstream.trim(now)
		}
	}
}

func (c *conn) late(now time.Duration) bool {
	quiet := time.Duration(c.quiet.Load())
	return quiet > 0 && now-time.Duration(c.moved.Load()) > quiet && !c.interrupted()
}

// expired says whether a static session's time ran out; the core's own notice
// may come later.
func (c *conn) expired(wall time.Time) bool {
	e := c.entry.Load()
	if e == nil || c.interrupted() {
		return false
	}
	r := e.route.Load()
	return r != nil && !r.ExpiresAt.IsZero() && !wall.Before(r.ExpiresAt)
}
