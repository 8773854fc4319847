package quota

import (
	"hash/maphash"
	"sync"
	"time"

	"agentproxy/domain/ratelimit"
)

// The bounds of Starts, which limit its memory to some tens of megabytes. Beyond them the agent
// that was active least lately is forgotten, of a few that are looked at.
const (
	maxStarting = 1 << 14 // agents
	maxSeen     = 1 << 20 // targets of all agents together
)

// How many seconds' new connections an agent may make at once. A paying agent may open all that
// it may have open, 1,000, as its workers do after a restart. On trial it is what a browser opens
// at once through a proxy, about 30: accounts cost a stranger nothing.
const (
	burst, trialBurst = 10, 3
)

// window is for how long a target counts after its last use.
const window = int64(time.Minute / time.Second)

// StartLimits are what one agent may begin; 0 is unlimited.
type StartLimits struct {
	PerSecond int // new connections
	Targets   int // distinct ones a minute
	Trial     bool
}

// Starts counts the new connections of each agent and their distinct targets, also those that are
// refused or fail afterwards: attempts are what a scan is made of.
type Starts struct {
	maxAgents, maxSeen int
	seed               maphash.Seed

	mu     sync.Mutex
	agents map[string]*starting
	seen   int // targets of all agents
}

// starting is an agent that made new connections lately. Times are Unix seconds.
type starting struct {
	rate   ratelimit.State
	seen   map[uint32]int64 // when a target was used last
	pruned int64            // when outdated targets were removed last
	oldest int64            // of those that were left then
	last   int64            // use
	tried  tried
}

// size returns the number of targets that are stored.
func (a *starting) size() int { return len(a.seen) + len(a.tried.targets) }

// NewStarts returns an empty counter.
func NewStarts() *Starts {
	return &Starts{maxAgents: maxStarting, maxSeen: maxSeen, seed: maphash.MakeSeed(), agents: map[string]*starting{}}
}

// Refused is which limit of Starts a new connection exceeds.
type Refused uint8

// The limits.
const (
	NotRefused Refused = iota
	TooOften           // too many new connections a second
	TooWide            // too many distinct targets a minute
)

// Take counts a new connection of an agent to a target. If it exceeds a limit it returns which one
// and how long to wait.
func (s *Starts) Take(agent string, t Target, l StartLimits, now time.Time) (Refused, time.Duration) {
	if l.PerSecond <= 0 && l.Targets <= 0 {
		return NotRefused, 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.agent(agent, now)
	if l.PerSecond > 0 {
		limit := ratelimit.Limit{PerMinute: 60 * l.PerSecond, Burst: burst * l.PerSecond}
		if l.Trial {
			limit.Burst = trialBurst * l.PerSecond
		}
		after, d := limit.Take(a.rate, now, 1)
		a.rate = after
		if !d.Allowed {
			return TooOften, d.RetryAfter
		}
	}
	if wait := s.countTarget(a, uint32(t), l.Targets); wait > 0 {
		return TooWide, wait
	}
	return NotRefused, 0
}

// agent returns what is counted of an agent that is active now.
func (s *Starts) agent(id string, now time.Time) *starting {
	a := s.agents[id]
	if a == nil {
		if len(s.agents) >= s.maxAgents {
			s.forgetOne(nil)
		}
		a = &starting{}
		s.agents[id] = a
	}
	a.last = now.Unix()
	return a
}

// countTarget counts a target of an agent. If the agent had that many others in the last minute it returns
// how long to wait.
func (s *Starts) countTarget(a *starting, t uint32, most int) time.Duration {
	if most <= 0 {
		return 0
	}
	now := a.last
	if _, known := a.seen[t]; known {
		a.seen[t] = now
		return 0
	}
	if len(a.seen) >= most && a.pruned != now {
		s.prune(a, now) // once a second at most: it looks at all of them
	}
	if len(a.seen) >= most {
		return max(time.Duration(a.oldest+window-now), 1) * time.Second
	}
	if s.seen >= s.maxSeen {
		s.forgetOne(a)
	}
	if a.seen == nil {
		a.seen = map[uint32]int64{}
	}
	a.seen[t] = now
	s.seen++
	return 0
}

// prune removes the targets of an agent that do not count any more.
func (s *Starts) prune(a *starting, now int64) {
	a.pruned, a.oldest = now, now
	before := len(a.seen)
	for t, at := range a.seen {
		if now-at >= window || at > now { // or the clock was set back
			delete(a.seen, t)
		} else {
			a.oldest = min(a.oldest, at)
		}
	}
	s.seen -= before - len(a.seen)
}

// forgetOne removes one agent other than keep: of some, the one that was active least lately, and
// of those of one second the one with fewest targets.
func (s *Starts) forgetOne(keep *starting) {
	var id string
	var found *starting
	n := 0
	for key, a := range s.agents {
		if a == keep || keep != nil && a.size() == 0 {
			continue
		}
		if found == nil || a.last < found.last || a.last == found.last && a.size() < found.size() {
			id, found = key, a
		}
		if n++; n == evictionSample {
			break
		}
	}
	if found != nil {
		s.seen -= found.size()
		delete(s.agents, id)
	}
}

// Trim forgets agents that made no connection for as long as what they tried is watched.
func (s *Starts) Trim(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, a := range s.agents {
		if idle := now.Unix() - a.last; idle >= int64(ScanWindow/time.Second) || idle < 0 {
			s.seen -= a.size()
			delete(s.agents, id)
		}
	}
}
