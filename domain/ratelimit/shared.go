package ratelimit

import "time"

// A limit that several processes share has one State in a store that all of them
// use. To save calls of the store, a process prefetches tokens for limits from
// sharedFrom calls a minute on and keeps the unused ones in its Share. Each token
// is one interval of the state's time, and no two overlap. A token may be used
// until its interval begins; afterwards the state no longer accounts for it, so
// its use would exceed the limit.

// sharedFrom is the smallest limit whose tokens are prefetched. For a smaller
// one each call is counted in the store, and exactly the limit is admitted.
const sharedFrom = 60

// replicas is the number of processes that may hold spare tokens while every
// agent still gets its limit.
const replicas = 4

// farthest is the largest lead of a state over the clock that is accepted, unless
// the burst is longer. A whole burst of a limit of calls is a little over a minute;
// a larger lead was written before the clock was set back.
const farthest = 2 * time.Minute

// Overdraft returns by how many calls a burst of a shared limit may exceed it:
// one in twenty, at least five. It compensates for tokens that processes hold
// without using them.
func (l Limit) Overdraft() int {
	if l.PerMinute < sharedFrom {
		return 0
	}
	return max(l.known()/20, 5)
}

// Spare returns the number of tokens that a process requests beyond those for
// its waiting callers.
func (l Limit) Spare() int { return l.Overdraft() / replicas }

// known returns the limit as far as the clock can resolve it.
func (l Limit) known() int { return min(l.PerMinute, perMinuteMax) }

// Request is a request of a process for tokens of a shared State.
type Request struct {
	Interval time.Duration // of one token
	Burst    time.Duration // the largest lead of the state
	Tokens   int
}

// Grant is the response to a Request.
type Grant struct {
	Tokens int       // granted, 0 to those requested
	TAT    time.Time // of the state, after them
	Now    time.Time // by the clock of the store
}

// NewRequest returns a request for the tokens of a number of callers and the spare
// ones.
func (l Limit) NewRequest(callers int) Request {
	interval := intervalOf(l.known())
	burst := time.Duration(l.known()+l.Overdraft()) * interval
	return Request{Interval: interval, Burst: burst, Tokens: callers + l.Spare()}
}

// TakeFrom takes the available tokens out of a state.
func (a Request) TakeFrom(s State, now time.Time) (State, Grant) {
	ahead := min(max(s.TAT.Sub(now), 0), max(farthest, a.Burst))
	n := max(min(a.Tokens, int((a.Burst-ahead)/a.Interval)), 0)
	s.TAT = now.Add(ahead + time.Duration(n)*a.Interval)
	return s, Grant{Tokens: n, TAT: s.TAT, Now: now}
}

// Share is one process's part of a shared limit, by its own clock. The zero
// Share has no tokens.
type Share struct {
	perMinute   int       // that it was asked for
	requestedAt time.Time // when
	tat         time.Time // of the state, as last reported
	due         int       // tokens for callers that waited for the answer
	from, to    time.Time // the intervals of the spare tokens
	until       time.Time // before then the state has no tokens
}

// Take requests one call. It returns known false if the state must be asked
// first.
func (s Share) Take(l Limit, now time.Time) (_ Share, d Decision, known bool) {
	if l.PerMinute <= 0 {
		return s, Decision{Allowed: true}, true
	}
	if s.perMinute != l.PerMinute || now.Before(s.requestedAt) { // or the clock was set back
		return Share{tat: s.tat}, Decision{}, false
	}
	interval := intervalOf(l.known())
	from := later(s.from, now)
	switch {
	case s.due > 0:
		s.due--
		d.Allowed = true
	case !from.Add(interval).After(s.to):
		s.from = from.Add(interval)
		d.Allowed = true
	case now.Before(s.until):
		d.RetryAfter = wholeSeconds(s.until.Sub(now))
	default:
		return s, Decision{}, false
	}
	unused := time.Duration(s.due)*interval + max(s.to.Sub(later(s.from, now)), 0)
	used := max(s.tat.Sub(now)-unused, 0)
	d.Limit, d.ResetAt = l.known(), now.Add(used)
	if d.Allowed {
		d.Remaining = max(int((time.Duration(l.known())*interval-used)/interval), 0)
	}
	return s, d, true
}

// NewShare returns the share after the response to a Request for a number of
// callers. The state was read between sent, when the process sent the Request, and
// got, when it received the Grant, both by its own clock. Tokens are counted
// from sent, so they expire too early rather than too late; a refusal is
// counted from got, so the state is not asked again too early.
func (l Limit) NewShare(a Request, g Grant, callers int, sent, got time.Time) Share {
	ahead := g.TAT.Sub(g.Now)
	s := Share{perMinute: l.PerMinute, requestedAt: sent, tat: sent.Add(ahead)}
	s.due = min(g.Tokens, callers)
	s.to = s.tat
	s.from = s.to.Add(-time.Duration(g.Tokens-s.due) * a.Interval)
	if g.Tokens < a.Tokens {
		// wait until more than a single token is available
		s.until = got.Add(ahead + time.Duration(1+l.Spare())*a.Interval - a.Burst)
	}
	return s
}

// Return gives tokens back that were taken for a call that is refused; the next calls have them.
func (s Share) Return(tokens int) Share {
	s.due += tokens
	return s
}

// Wait returns how long it takes until a number of tokens is available again, in whole seconds.
func (l Limit) Wait(tokens int) time.Duration {
	if tokens <= 0 || l.PerMinute <= 0 {
		return 0
	}
	return wholeSeconds(time.Duration(tokens) * intervalOf(l.known()))
}

// TakeLocal counts n calls without the state, which cannot be reached: the
// limit then holds for each process alone, on top of what the state last
// reported.
func (s Share) TakeLocal(l Limit, now time.Time, n int) (Share, Decision) {
	own, d := l.Take(State{TAT: s.tat}, now, n)
	s.tat = own.TAT
	return s, d
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
