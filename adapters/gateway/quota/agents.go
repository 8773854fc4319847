// Package quota bounds what one agent may do through this replica: how many places of the
// gateway its connections take, how many new ones it makes, and to how many targets.
package quota

import (
	"fmt"
	"sync"
	"time"
)

// Owner is a connection that has a Place.
type Owner interface {
	// Evict ends the connection soon. It does not block.
	Evict()
	// Quiet returns for how long nothing was moved. now is by monotime.
	Quiet(now time.Duration) time.Duration
}

// Place is the place of a connection among those of its agent. It is part of the connection,
// so that entering allocates nothing.
type Place struct {
	owner   Owner
	agent   *agent // nil: none is taken
	index   int    // in agent.places
	evicted bool   // was taken for another agent; the connection is about to end
}

// agent is an agent with connections.
type agent struct {
	id         string
	trial      bool
	places     []*Place
	next       int    // where the next search for a quiet place begins
	prev, link *agent // the others of the class that have as many
}

// MinShare is how many places an agent keeps however many agents there are: what a browser
// opens at once through a proxy.
const MinShare = 32

// quietSample is how many places of an agent are looked at for the quietest. The next search
// looks at others.
const quietSample = 64

// Verdict is what Enter decided.
type Verdict uint8

// The verdicts.
const (
	Entered Verdict = iota
	TooMany         // the agent has as many connections as it may have
	Full            // all places are taken, and the agent has its share of them
)

// Entry is a connection that is to take a place.
type Entry struct {
	Agent string
	Trial bool // the agent's account is a trial
	Limit int  // how many connections the agent may have; 0 is unlimited
	Owner Owner
	Spare time.Duration // places of the agent itself that are quiet for so long may be replaced
	Now   time.Duration // by monotime
}

// Agents divides the places of a gateway among agents. While there are free ones each agent
// takes what it needs. When all are taken, an agent below its share gets a place of the one that has
// most, which keeps its own share. Trial accounts together have a part of the places;
// beyond it each has MinShare while plenty are free, and what is beyond it goes first when
// others need places.
//
// Agents without connections take no memory. Every method takes the same time however many
// connections and agents there are.
type Agents struct {
	places, trialPlaces int // 0 is unlimited

	mu      sync.Mutex
	byID    map[string]*agent
	funded  class
	trial   class
	closing int // connections that lost their place and have not ended
	closed  int64
	refused int64
}

// class ranks agents by the number of their places.
type class struct {
	agents, conns int
	byCount       []*agent // the first agent with that number of places
	most          int      // the last of byCount that is not empty
}

// NewAgents returns a counter without connections for a number of places, and for that of trial
// accounts together; 0 is unlimited.
func NewAgents(places, trialPlaces int) *Agents {
	return &Agents{places: places, trialPlaces: trialPlaces, byID: map[string]*agent{}}
}

// Enter takes a place, which Leave frees. A connection that has a place of the agent already
// keeps it. What it evicts for the place is evicted when it returns.
func (as *Agents) Enter(p *Place, e Entry) Verdict {
	as.mu.Lock()
	switch {
	case p.evicted:
		as.mu.Unlock()
		return Full
	case p.agent != nil && p.agent.id == e.Agent:
		as.mu.Unlock()
		return Entered
	}
	as.leave(p)
	a := as.byID[e.Agent]
	if a == nil {
		a = &agent{id: e.Agent, trial: e.Trial}
	}
	as.classify(a, e.Trial)
	victim, v := as.placeFor(a, e)
	if v == Entered {
		if victim != nil { // before a is counted: it may be a's own
			as.remove(victim)
			victim.evicted = true
			as.closing++
			as.closed++
		}
		as.add(a, p, e.Owner)
	} else if v == Full {
		as.refused++
	}
	as.mu.Unlock()
	if victim != nil {
		victim.owner.Evict()
	}
	return v
}

// placeFor decides whether an agent may have one more place, and which one is taken for it, if
// any.
func (as *Agents) placeFor(a *agent, e Entry) (victim *Place, v Verdict) {
	n := len(a.places)
	if e.Limit > 0 && n >= e.Limit {
		return nil, TooMany
	}
	var from *agent
	switch {
	case e.Trial && as.trialPlaces > 0 && as.trial.conns >= as.trialPlaces:
		if n < MinShare && !as.scarce() {
			return nil, Entered
		}
		share := share(as.trialPlaces, as.trial.agents, n)
		from = as.trial.over(n, share)
	case as.places <= 0 || as.conns() < as.places:
		return nil, Entered
	case as.trialPlaces > 0 && as.trial.conns > as.trialPlaces:
		from = as.trial.largest()
	default:
		share := share(as.places, as.funded.agents+as.trial.agents, n)
		from = as.larger().over(n, share)
	}
	if from != nil {
		victim = from.quietest(e.Now, 0)
	} else {
		victim = a.quietest(e.Now, e.Spare)
	}
	if victim == nil {
		return nil, Full
	}
	return victim, Entered
}

// share returns how many places are an agent's own if that many agents have connections. n is
// how many it has: without any it is not counted yet.
func share(places, agents, n int) int {
	if n == 0 {
		agents++
	}
	return max(places/agents, MinShare)
}

// quietest returns the quietest place, of some, that moved nothing for at least a time; nil if
// there is none.
func (a *agent) quietest(now, least time.Duration) (found *Place) {
	n := len(a.places)
	longest := least
	for range min(n, quietSample) {
		a.next = (a.next + 1) % n
		p := a.places[a.next]
		if q := p.owner.Quiet(now); q >= longest || found == nil && least == 0 {
			found, longest = p, q
		}
	}
	return found
}

// Leave undoes Enter. It does nothing for a Place that is not taken.
func (as *Agents) Leave(p *Place) {
	as.mu.Lock()
	as.leave(p)
	as.mu.Unlock()
}

func (as *Agents) leave(p *Place) {
	if p.evicted {
		p.evicted = false
		as.closing--
	}
	if p.agent != nil {
		as.remove(p)
	}
}

// add gives an agent a place.
func (as *Agents) add(a *agent, p *Place, o Owner) {
	c := as.class(a)
	if len(a.places) == 0 {
		as.byID[a.id] = a
		c.agents++
	} else {
		c.unlink(a)
	}
	p.owner, p.agent, p.index = o, a, len(a.places)
	a.places = append(a.places, p)
	c.conns++
	c.insert(a)
}

// remove takes a place from its agent.
func (as *Agents) remove(p *Place) {
	a := p.agent
	c := as.class(a)
	c.unlink(a)
	n := len(a.places) - 1
	last := a.places[n]
	a.places[p.index], last.index = last, p.index
	a.places[n] = nil
	a.places = a.places[:n]
	p.agent = nil
	c.conns--
	if n == 0 {
		c.agents--
		delete(as.byID, a.id)
		return
	}
	c.insert(a)
}

// classify moves an agent whose account was a trial, or is one now.
func (as *Agents) classify(a *agent, trial bool) {
	if a.trial == trial {
		return
	}
	n := len(a.places)
	if n > 0 {
		c := as.class(a)
		c.unlink(a)
		c.agents, c.conns = c.agents-1, c.conns-n
	}
	a.trial = trial
	if n > 0 {
		c := as.class(a)
		c.agents, c.conns = c.agents+1, c.conns+n
		c.insert(a)
	}
}

func (as *Agents) class(a *agent) *class {
	if a.trial {
		return &as.trial
	}
	return &as.funded
}

// conns returns how many places are taken.
func (as *Agents) conns() int { return as.funded.conns + as.trial.conns }

// scarce reports whether three quarters of the places are taken.
func (as *Agents) scarce() bool { return as.places > 0 && 4*as.conns() >= 3*as.places }

// larger returns the class of the agent that has most places.
func (as *Agents) larger() *class {
	if as.trial.largest().count() > as.funded.largest().count() {
		return &as.trial
	}
	return &as.funded
}

// largest returns the agent of a class that has most places, nil if there is none.
func (c *class) largest() *agent {
	for c.most > 0 && c.byCount[c.most] == nil {
		c.most-- // each insert raises it by one at most
	}
	if c.most == 0 {
		return nil
	}
	return c.byCount[c.most]
}

// over returns the agent with most places if it has more than a share of which another one with
// n places has less; nil else.
func (c *class) over(n, share int) *agent {
	if a := c.largest(); n < share && a.count() > share {
		return a
	}
	return nil
}

// count returns how many places an agent has; nil has none.
func (a *agent) count() int {
	if a == nil {
		return 0
	}
	return len(a.places)
}

// insert ranks an agent by the places that it has now.
func (c *class) insert(a *agent) {
	n := len(a.places)
	for n >= len(c.byCount) {
		c.byCount = append(c.byCount, nil)
	}
	a.prev, a.link = nil, c.byCount[n]
	if a.link != nil {
		a.link.prev = a
	}
	c.byCount[n] = a
	c.most = max(c.most, n)
}

// unlink takes an agent out of the ranking.
func (c *class) unlink(a *agent) {
	if a.prev != nil {
		a.prev.link = a.link
	} else {
		c.byCount[len(a.places)] = a.link
	}
	if a.link != nil {
		a.link.prev = a.prev
	}
	a.prev, a.link = nil, nil
}

// Usage is who has places now.
type Usage struct {
	Places  int // 0 is unlimited
	Taken   int // places
	Agents  int // with places
	Trial   int // places of trial accounts together
	Largest []Holder
	Closed  int64 // connections that lost their place to another one, since the start
	Refused int64 // connections for which there was no place, since the start
}

// Holder is an agent and the number of its places.
type Holder struct {
	Agent  string
	Places int
}

// String returns the agent with the number of its places.
func (h Holder) String() string { return fmt.Sprintf("%s=%d", h.Agent, h.Places) }

// Usage returns who has places now, with a number of those who have most.
func (as *Agents) Usage(largest int) Usage {
	as.mu.Lock()
	defer as.mu.Unlock()
	u := Usage{Places: as.places, Taken: as.conns(), Agents: len(as.byID), Trial: as.trial.conns, Closed: as.closed,
		Refused: as.refused}
	for n := as.larger().largest().count(); n > 0 && len(u.Largest) < largest; n-- {
		for _, c := range []*class{&as.funded, &as.trial} {
			for a := c.at(n); a != nil && len(u.Largest) < largest; a = a.link {
				u.Largest = append(u.Largest, Holder{a.id, n})
			}
		}
	}
	return u
}

// Largest returns how many places the agent has that has most.
func (as *Agents) Largest() int {
	as.mu.Lock()
	defer as.mu.Unlock()
	return as.larger().largest().count()
}

// at returns the first agent with a number of places.
func (c *class) at(n int) *agent {
	if n >= len(c.byCount) {
		return nil
	}
	return c.byCount[n]
}

// Scarce reports whether three quarters of the places are taken.
func (as *Agents) Scarce() bool {
	as.mu.Lock()
	defer as.mu.Unlock()
	return as.scarce()
}

// Closing reports whether connections that lost their place have not ended yet.
func (as *Agents) Closing() bool {
	as.mu.Lock()
	defer as.mu.Unlock()
	return as.closing > 0
}
