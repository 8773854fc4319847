package ratelimit

import "time"

// A limit that several processes share has one State in a place that all of them
// reach. So that not every call goes there, a process asks for tokens in advance
// from sharedFrom calls a minute up, and keeps those it has no caller for yet: its
// Share. Each token is one interval of the state's time, and no two are the same
// one. A token may be used until its interval begins; after that the state has
// forgotten it, so whoever used it then would be admitted in excess.

// sharedFrom is the smallest limit that is shared in advance; of a smaller one
// each call is counted where the state is, and exactly the limit is admitted.
const sharedFrom = 60

// replicas is how many processes may hold spare tokens without anybody getting
// less than the limit.
const replicas = 4

// farthest is how far ahead a state is believed to be. A whole burst is a little
// over a minute; what is beyond this was written before the clock was set back.
const farthest = 2 * time.Minute

// Overdraft is how many calls more than the limit a burst may hold when the
// limit is shared: one in twenty, at least five. It makes up for tokens that
// processes hold and nobody asks them for.
func (l Limit) Overdraft() int {
	if l.PerMinute < sharedFrom {
		return 0
	}
	return max(l.known()/20, 5)
}

// Spare is how many tokens a process asks for beyond those it has callers for.
func (l Limit) Spare() int { return l.Overdraft() / replicas }

// known is the limit as the clock can tell it.
func (l Limit) known() int { return min(l.PerMinute, perMinuteMax) }

// Ask is what a process wants of a shared State.
type Ask struct {
	Interval time.Duration // that one token takes up
	Burst    time.Duration // as far as the state may be ahead
	Tokens   int
}

// Grant is the answer to an Ask.
type Grant struct {
	Tokens int       // as many of those asked for as there were, perhaps none
	TAT    time.Time // of the state, after them
	Now    time.Time // by the clock that the state goes by
}

// Ask asks for the tokens of so many callers, and some to spare.
func (l Limit) Ask(callers int) Ask {
	interval := intervalOf(l.known())
	return Ask{Interval: interval, Burst: time.Duration(l.known()+l.Overdraft()) * interval, Tokens: callers + l.Spare()}
}

// Of takes what there is out of a state.
func (a Ask) TakeFrom(s State, now time.Time) (State, Grant) {
	ahead := min(max(s.TAT.Sub(now), 0), farthest)
	n := max(min(a.Tokens, int((a.Burst-ahead)/a.Interval)), 0)
	s.TAT = now.Add(ahead + time.Duration(n)*a.Interval)
	return s, Grant{Tokens: n, TAT: s.TAT, Now: now}
}

// Share is one process's part of a shared limit, in the time of its own clock.
// The zero Share has to ask.
type Share struct {
	perMinute int       // that it was asked for
	asked     time.Time // when
	tat       time.Time // of the state, as it was last heard of
	due       int       // tokens for callers that waited for the answer
	from, to  time.Time // the intervals of the spare tokens
	until     time.Time // before then the state has nothing to give
}

// Take asks for one call. It does not know when the state must be asked first.
func (s Share) Take(l Limit, now time.Time) (_ Share, d Decision, known bool) {
	if l.PerMinute <= 0 {
		return s, Decision{Allowed: true}, true
	}
	if s.perMinute != l.PerMinute || now.Before(s.asked) { // or the clock was set back
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

// Heard is the share after the answer to an Ask of so many callers. The state
// was asked between the times at which the process sent the Ask and got the Grant,
// by its own clock. Tokens count from the first, so they end too early and not too
// late; a refusal counts from the second, so nobody asks again too early.
func (l Limit) NewShare(a Ask, g Grant, callers int, sent, got time.Time) Share {
	ahead := g.TAT.Sub(g.Now)
	s := Share{perMinute: l.PerMinute, asked: sent, tat: sent.Add(ahead)}
	s.due = min(g.Tokens, callers)
	s.to = s.tat
	s.from = s.to.Add(-time.Duration(g.Tokens-s.due) * a.Interval)
	if g.Tokens < a.Tokens {
		// Not for one token at a time either.
		s.until = got.Add(ahead + time.Duration(1+l.Spare())*a.Interval - a.Burst)
	}
	return s
}

// Alone counts one call without the state, which cannot be reached: the limit
// then holds for each process by itself, on top of what was last heard.
func (s Share) TakeLocal(l Limit, now time.Time) (Share, Decision) {
	own, d := l.Take(State{TAT: s.tat}, now, 1)
	s.tat = own.TAT
	return s, d
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
