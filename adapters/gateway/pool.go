package gateway

import (
	"crypto/rand"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"agentproxy/domain/traffic"
)

// verdict is a pool's answer to somebody who wants to relay.
type verdict uint8

const (
	flows   verdict = iota // go ahead
	waits                  // nothing can be relayed now; the next answer of the core may change it
	spent                  // the traffic is used up: half-close
	over                   // the session has ended: cut
	crowded                // too many tunnels
)

// pool is the traffic that this gateway may relay for one session: at most one
// open lease, and what was used of it. Bytes are reserved before they are read
// and settled when they have moved, so what is delivered is never more than what
// was granted, by however many tunnels.
type pool struct {
	renewer *renewer
	session string

	// Written under mu, read without it on the way of every write.
	epoch   atomic.Uint32 // counts leases; a reservation of an older one is void
	renewed atomic.Int64  // start of the last successful renewal, by mono

	mu       sync.Mutex
	lease    string // empty while none is open
	granted  int64  // like all counters below: cumulative, of this lease
	up, down int64
	conns    int64
	held     int64 // reserved and not settled
	reported int64 // up + down as the core knows them
	counted  int64 // conns as the core knows them
	end      verdict
	members  members

	size    int64         // what to hold: about a second of recent traffic
	low     int64         // ask again when less than this is left
	urgent  bool          // somebody waits, or soon will
	asking  bool          // in the renewal that is under way
	open    bool          // the last answer had something to give
	answers uint64        // successful renewals
	touched time.Duration // last time something moved or somebody came
	asked   time.Duration
	retry   time.Duration // not before this, after an answer that gave nothing
	sizedAt time.Duration
	sized   int64         // up + down at sizedAt
	change  chan struct{} // closed when waiting may be over; nil: nobody waits
}

func (p *pool) unused() int64 { return p.granted - p.up - p.down }

// alive says whether the fence is open: a gateway that has not been heard by the
// core for StopAfter relays nothing, because its lease may be taken back.
func (p *pool) alive(now time.Duration) bool {
	return now-time.Duration(p.renewed.Load()) < p.renewer.timing.StopAfter
}

// covers says whether a reservation still allows writing.
func (p *pool) covers(epoch uint32) bool { return p.epoch.Load() == epoch && p.alive(mono()) }

// state is what can be said under mu without waiting.
func (p *pool) state(now time.Duration) verdict {
	switch {
	case p.end != flows:
		return p.end
	case p.unused() > p.held && p.alive(now):
		return flows
	}
	return waits
}

// reserve takes at most want bytes out of the pool for a direction that is about
// to read. It never blocks.
func (p *pool) reserve(want int64) (n int64, epoch uint32, v verdict) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if v = p.state(mono()); v != flows {
		return 0, 0, v
	}
	n = min(want, p.unused()-p.held)
	p.held += n
	return n, p.epoch.Load(), flows
}

// settle gives back a reservation and counts what of it was used.
func (p *pool) settle(epoch uint32, reserved, up, down int64) {
	p.renewer.metrics.moved(up, down)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.epoch.Load() != epoch {
		return // the lease is lost, and with it the account of its use
	}
	p.held -= reserved
	p.up += up
	p.down += down
	if p.retry != 0 { // what was reserved is not any more, so the core's answer may be another
		p.retry = 0
		if p.urgent {
			p.renewer.kick(p)
		}
	}
	if up+down > 0 {
		p.touched = mono()
		if p.unused() < p.low && !p.urgent {
			p.need()
		}
	}
	if reserved > up+down {
		p.wake()
	}
}

// await blocks a direction that has bytes to relay and found the pool empty. It
// returns waits only when the tunnel was interrupted.
func (p *pool) await(interrupted func() bool) verdict {
	for {
		p.mu.Lock()
		v := p.state(mono())
		if v != waits {
			p.mu.Unlock()
			return v
		}
		p.need()
		change := p.changed()
		p.mu.Unlock()
		if interrupted() {
			return waits
		}
		p.renewer.starved.Add(1)
		<-change
	}
}

// refenced blocks a direction whose reservation stands behind a closed fence,
// until the fence opens or the lease is lost.
func (p *pool) refenced(epoch uint32, interrupted func() bool) verdict {
	for {
		p.mu.Lock()
		if p.end != flows || p.epoch.Load() != epoch || p.alive(mono()) {
			v := p.end
			p.mu.Unlock()
			return v
		}
		change := p.changed()
		p.mu.Unlock()
		if interrupted() {
			return waits
		}
		<-change
	}
}

// admit lets one more connection in: at once when there is something to relay,
// else after the core's next answer, at most limit later.
func (p *pool) admit(c *conn, most int, limit time.Duration) verdict {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.end != flows {
		return p.end
	}
	if p.members.count >= most {
		return crowded
	}
	p.touched = mono()
	p.members.add(c)
	v := p.state(p.touched)
	if v != waits {
		return v
	}
	answers := p.answers
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for expired := false; v == waits && !expired; {
		p.need()
		change := p.changed()
		p.renewer.starved.Add(1)
		p.mu.Unlock()
		select {
		case <-change:
		case <-timer.C:
			expired = true
		}
		p.mu.Lock()
		// A saturated pool is empty whenever one looks; that the core gave
		// something since is enough.
		if v = p.state(mono()); v == waits && p.answers != answers && p.open {
			v = flows
		}
	}
	if v != flows {
		p.members.remove(c)
	}
	return v
}

// opened counts a connection as one that the target answered.
func (p *pool) opened() {
	p.mu.Lock()
	p.conns++
	p.mu.Unlock()
}

// leave takes a connection out.
func (p *pool) leave(c *conn) {
	p.mu.Lock()
	p.members.remove(c)
	p.touched = mono()
	p.mu.Unlock()
}

// finish makes the pool's end known: the session is over, or its traffic is.
func (p *pool) finish(v verdict) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.end == flows {
		p.end = v
	}
	p.wake()
}

// need asks for a renewal at once, opening a lease if there is none.
func (p *pool) need() {
	if p.lease == "" {
		p.lease = strings.ToLower(rand.Text())
		p.size = traffic.MinLease
		p.sizedAt = mono()
		p.renewer.add(p)
	}
	p.urgent, p.touched = true, mono()
	p.renewer.kick(p)
}

// changed is closed by the next wake.
func (p *pool) changed() <-chan struct{} {
	if p.change == nil {
		p.change = make(chan struct{})
	}
	return p.change
}

func (p *pool) wake() {
	if p.change != nil {
		close(p.change)
		p.change = nil
	}
}

// nudge wakes whoever waits, to see that it was interrupted.
func (p *pool) nudge() {
	p.mu.Lock()
	p.wake()
	p.mu.Unlock()
}
