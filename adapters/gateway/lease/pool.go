package lease

import (
	"crypto/rand"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"agentproxy/adapters/gateway/monotime"
	"agentproxy/domain/traffic"
)

// Verdict is a pool's answer to a request to relay.
type Verdict uint8

// The verdicts.
const (
	Granted   Verdict = iota // relay
	Blocked                  // nothing can be relayed now; the next answer of the core may change it
	Exhausted                // the traffic is used up: half-close the connections
	Closed                   // the session has ended: cut the connections
	Limited                  // too many connections are open
	Removed                  // the worker was removed: cut its connections
)

// Pool is the traffic that this process may relay for one session. It is set up by
// Renewer.Init. All methods are safe for concurrent use.
type Pool struct {
	renewer *Renewer
	session string

	// Written under mu, read without it before every write.
	epoch   atomic.Uint32 // counts leases; a reservation of an older one is void
	renewed atomic.Int64  // start of the last successful renewal, by monotime

	mu            sync.Mutex
	lease         string // empty while none is open
	granted       int64  // like all counters below: cumulative, of this lease
	up, down      int64
	conns         int64
	held          int64 // reserved and not settled
	reported      int64 // up + down as last reported to the core
	connsReported int64 // conns as last reported to the core
	end           Verdict
	members       members
	parked        int      // kept connections between two requests
	shares        []*Share // workers with connections, or with counters of this lease
	inUse         int      // workers with connections
	gone          []int64  // removed workers that the core still counts for this lease

	size        int64         // target size of the lease: about a second of recent traffic
	low         int64         // renew when less than this is left
	urgent      bool          // a direction waits, or soon will
	inFlight    bool          // part of the renewal that is under way
	open        bool          // the last answer granted something
	calm        bool          // the last answer allows to report between renewals that are farther apart
	agent       string        // whose session it is; known if calm
	answers     uint64        // successful renewals
	ended       uint64        // renewals that succeeded or failed
	touched     time.Duration // when bytes moved or a connection came last
	requestedAt time.Duration
	retry       time.Duration // earliest next renewal after an answer that granted nothing
	sizedAt     time.Duration
	sized       int64         // up + down at sizedAt
	change      chan struct{} // closed when waiting may be over; nil if nothing waits
}

func (p *Pool) unused() int64 { return p.granted - p.up - p.down }

// expired reports whether the lease may no longer be used: the core may have
// reclaimed it, as no renewal succeeded for as long as it lasts.
func (p *Pool) expired(now time.Duration) bool {
	return now-time.Duration(p.renewed.Load()) >= p.renewer.cfg.lasts()
}

// Covers reports whether a reservation made in an epoch still allows writing.
func (p *Pool) Covers(epoch uint32) bool {
	return p.epoch.Load() == epoch && !p.expired(monotime.Now())
}

// Current reports whether epoch is that of the open lease.
func (p *Pool) Current(epoch uint32) bool { return p.epoch.Load() == epoch }

// state returns the verdict of this moment. It is called under mu.
func (p *Pool) state(now time.Duration) Verdict {
	switch {
	case p.end != Granted:
		return p.end
	case p.unused() > p.held && !p.expired(now):
		return Granted
	}
	return Blocked
}

// settle counts what was used of a reservation of this lease. It is called under mu.
func (p *Pool) settle(reserved, up, down int64) {
	p.held -= reserved
	p.up += up
	p.down += down
	if p.retry != 0 { // less is reserved, so the core may grant something now
		p.retry = 0
		if p.urgent {
			p.renewer.signal(p)
		}
	}
	if up+down > 0 {
		p.touched = monotime.Now()
		if p.unused() < p.low && !p.urgent {
			p.need()
		}
	}
	if reserved > up+down {
		p.signal()
	}
}

// Await blocks a direction that has bytes to relay until the pool grants some or
// has ended. It returns Blocked only if interrupted returns true after a Signal.
func (a Account) Await(interrupted func() bool) Verdict {
	p := a.Pool
	for {
		p.mu.Lock()
		v := p.stateOf(a.share)
		if v != Blocked {
			p.mu.Unlock()
			return v
		}
		p.need()
		change := p.changed()
		p.mu.Unlock()
		if interrupted() {
			return Blocked
		}
		p.renewer.waits.Add(1)
		<-change
	}
}

// AwaitRenewal blocks a direction that holds a reservation of an expired lease
// until the lease is renewed or lost. It returns Blocked only if interrupted
// returns true after a Signal.
func (p *Pool) AwaitRenewal(epoch uint32, interrupted func() bool) Verdict {
	for {
		p.mu.Lock()
		if p.end != Granted || p.epoch.Load() != epoch || !p.expired(monotime.Now()) {
			v := p.end
			p.mu.Unlock()
			return v
		}
		change := p.changed()
		p.mu.Unlock()
		if interrupted() {
			return Blocked
		}
		<-change
	}
}

// Admit adds a connection to the pool: at once if there is traffic to relay, else
// after the core's next answer, at most limit later, or three times as long while a call of
// the core neither succeeds nor fails, as when its database is slow. It returns Blocked if there
// is none by then, and Limited if most connections are open already. The
// connection is a member only if the verdict is Granted. One that was parked has its
// place already. It is counted for a worker, nil for the session itself.
func (p *Pool) Admit(m *Member, s *Share, most Limits, limit time.Duration) Verdict {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remove(m)
	m.share = s
	if p.end != Granted {
		return p.end
	}
	if !p.mayOpen(s, most) {
		return Limited
	}
	p.touched = monotime.Now()
	p.add(m)
	v := p.stateOf(s)
	if v != Blocked {
		if v != Granted {
			p.remove(m)
		}
		return v
	}
	answers, ended := p.answers, p.ended
	timer, limits := time.NewTimer(limit), 0
	defer timer.Stop()
	for expired := false; v == Blocked && !expired; {
		p.need()
		change := p.changed()
		p.renewer.waits.Add(1)
		p.mu.Unlock()
		select {
		case <-change:
		case <-timer.C:
			limits++
			expired = true
		}
		p.mu.Lock()
		if expired && p.ended == ended && limits < 3 {
			expired = false
			timer.Reset(limit)
		}
		// The other connections may have used up the grant already. It is enough
		// that the core granted something since.
		if v = p.stateOf(s); v == Blocked && p.answers != answers && p.open {
			v = Granted
		}
	}
	if v != Granted {
		p.remove(m)
	}
	return v
}

// Park keeps the place of a connection between two requests. Meanwhile it holds no
// lease, and End does not interrupt it.
func (p *Pool) Park(m *Member) {
	p.mu.Lock()
	if m.state == open {
		p.members.remove(m)
		m.state = parked
		p.parked++
	}
	p.touched = monotime.Now()
	p.mu.Unlock()
}

// Leave removes a connection that was admitted. It does nothing if it has left.
func (p *Pool) Leave(m *Member) {
	p.mu.Lock()
	if m.state != outside {
		p.remove(m)
		p.touched = monotime.Now()
	}
	p.mu.Unlock()
}

// remove takes a connection's place away. It is called under mu.
func (p *Pool) remove(m *Member) {
	switch m.state {
	case outside:
		return
	case open:
		p.members.remove(m)
	case parked:
		p.parked--
	}
	m.state = outside
	if s := m.share; s != nil {
		if s.places--; s.places == 0 {
			p.inUse--
			if p.lease == "" {
				p.forgetShares(false)
			}
		}
	}
}

// Limits is how many connections may be open.
type Limits struct {
	Session int // of a session whose workers are not in use
	Worker  int // of each worker, whose places come on top where they are more than Session
	Ceiling int // of a session, whatever is in use
}

// mayOpen reports whether another connection may be open. It is called under mu.
func (p *Pool) mayOpen(s *Share, most Limits) bool {
	workers := p.inUse
	if s != nil {
		if s.places >= most.Worker {
			return false
		}
		if s.places == 0 {
			workers++
		}
	}
	limit := most.Session
	if workers > 0 {
		limit = min(max(limit, workers*most.Worker), most.Ceiling)
	}
	return len(p.members)+p.parked < limit
}

// add gives a connection its place. It is called under mu.
func (p *Pool) add(m *Member) {
	p.members.add(m)
	m.state = open
	if s := m.share; s != nil {
		if s.places++; s.places == 1 {
			p.inUse++
		}
		p.list(s)
	}
}

// Busy reports whether connections are open.
func (p *Pool) Busy() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.members) > 0
}

// Unused reports whether no connection is open and no lease is held.
func (p *Pool) Unused() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.members) == 0 && p.lease == ""
}

// End ends the pool with Exhausted or Closed and interrupts its connections. The
// first verdict stays the pool's.
func (p *Pool) End(v Verdict) {
	p.mu.Lock()
	if p.end == Granted {
		p.end = v
	}
	p.signal()
	open := append(members(nil), p.members...)
	p.mu.Unlock()
	for _, m := range open {
		m.conn.SessionEnded(v)
	}
}

// Resume lets an exhausted pool ask for traffic again: its session may use more than when the core
// refused. Should that be wrong, the core refuses again.
func (p *Pool) Resume() {
	p.mu.Lock()
	if p.end == Exhausted {
		p.end = Granted
	}
	p.mu.Unlock()
}

// need requests a renewal at once, opening a lease if there is none.
func (p *Pool) need() {
	if p.lease == "" {
		p.lease = strings.ToLower(rand.Text())
		p.size = traffic.MinLease
		p.sizedAt = monotime.Now()
		p.renewer.add(p)
	}
	p.urgent, p.touched = true, monotime.Now()
	p.renewer.signal(p)
}

// changed returns a channel that the next signal closes.
func (p *Pool) changed() <-chan struct{} {
	if p.change == nil {
		p.change = make(chan struct{})
	}
	return p.change
}

// signal makes waiting directions check the pool again. It is called under mu.
func (p *Pool) signal() {
	if p.change != nil {
		close(p.change)
		p.change = nil
	}
}

// Signal makes waiting directions check whether they were interrupted.
func (p *Pool) Signal() {
	p.mu.Lock()
	p.signal()
	p.mu.Unlock()
}
