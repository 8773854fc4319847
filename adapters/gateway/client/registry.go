package client

import (
	"sync"
	"time"
)

// Registry lists every client connection. The zero value is empty.
type Registry struct {
	mu   sync.Mutex
	list []*Conn
}

// Add adds a connection.
func (r *Registry) Add(c *Conn) {
	r.mu.Lock()
	c.index = len(r.list)
	r.list = append(r.list, c)
	r.mu.Unlock()
}

// Remove removes a connection that was added.
func (r *Registry) Remove(c *Conn) {
	r.mu.Lock()
	n := len(r.list) - 1
	last := r.list[n]
	r.list[c.index], last.index = last, c.index
	r.list[n] = nil
	r.list = r.list[:n]
	r.mu.Unlock()
}

// Len returns the number of connections.
func (r *Registry) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.list)
}

// match lists the connections for which f returns true.
func (r *Registry) match(f func(*Conn) bool) []*Conn {
	r.mu.Lock()
	defer r.mu.Unlock()
	var cs []*Conn
	for _, c := range r.list {
		if f(c) {
			cs = append(cs, c)
		}
	}
	return cs
}

// InterruptAll interrupts every connection.
func (r *Registry) InterruptAll(why Cause) {
	for _, c := range r.match(func(c *Conn) bool { return !c.Interrupted() }) {
		c.Interrupt(why)
	}
}

// InterruptIdle interrupts the connections that are between requests.
func (r *Registry) InterruptIdle() {
	for _, c := range r.match(func(c *Conn) bool { return c.idle.Load() }) {
		c.Interrupt(Stopped)
	}
}

// InterruptIf interrupts the connections for which f returns true. f does not block.
func (r *Registry) InterruptIf(why Cause, f func(*Conn) bool) {
	for _, c := range r.match(f) {
		c.Interrupt(why)
	}
}

// Sweep interrupts the connections that were quiet for too long and those of
// expired sessions, and cancels connection attempts that take too long. now is by
// monotime. One pass over all connections costs less than a timer for each, which
// every read would have to reset.
func (r *Registry) Sweep(now time.Duration, wall time.Time) {
	for _, c := range r.match(func(c *Conn) bool { return c.late(now) }) {
		c.Interrupt(TimedOut)
	}
	for _, c := range r.match(func(c *Conn) bool { return c.expired(wall) }) {
		c.Interrupt(Ended)
	}
	for _, c := range r.match(func(c *Conn) bool { return c.dial.Load() != nil }) {
		if d := c.dial.Load(); d != nil && now > d.until {
			d.cancel()
		}
	}
}
