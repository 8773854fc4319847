package list

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
)

// pool is the list as it was loaded last, with what the probes found.
type pool struct {
	mu     sync.RWMutex
	loaded bool
	lines  []*entry // by key
	byKey  map[string]*entry
}

// entry is a line of the list. Its fields but Line change under the pool's mutex.
type entry struct {
	Line
	key string

	probed   time.Time // last probe; zero: never
	worked   time.Time // last probe that worked; zero: never
	failures int       // in a row
	exit     netip.Addr
	country  string // that the echo named
}

// copy returns what a line is now, for use without the mutex.
func (e *entry) copy() *entry {
	c := *e
	return &c
}

// deadAfter is how many probes in a row must fail before a line is not used any more.
const deadAfter = 3

// works reports whether a line may carry traffic: its exit is known, and it did not fail
// again and again since.
func (e *entry) works() bool { return e.exit.IsValid() && e.failures < deadAfter }

// place returns the country that the list states, else the one that the echo named.
func (e *entry) place() session.Location {
	return session.Location{Country: cmp.Or(e.Country, e.country), City: e.City}
}

// fits reports whether a line is what an intent asks for, at a time until which it must
// last. A place is never widened: a line of unknown country is in none.
func (e *entry) fits(in procurement.Intent, until time.Time) bool {
	at := e.place()
	return (e.Ends.IsZero() || e.Ends.After(until) || e.Ends.Equal(until)) &&
		(in.SKU == "" || e.Network == in.SKU) &&
		(in.Location.Country == "" || strings.EqualFold(at.Country, in.Location.Country)) &&
		(in.Location.City == "" || strings.EqualFold(at.City, in.Location.City))
}

// replace takes over a list. Lines that stay keep what their probes found.
func (p *pool) replace(lines []Line) (added, removed int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	next := make(map[string]*entry, len(lines))
	for _, l := range lines {
		key := l.Key()
		e := &entry{Line: l, key: key}
		if before := p.byKey[key]; before == nil {
			added++
		} else if before.Password == l.Password && before.Protocol == l.Protocol {
			e.probed, e.worked, e.failures, e.exit, e.country = before.probed, before.worked, before.failures, before.exit,
				before.country
		}
		next[key] = e
	}
	for key := range p.byKey {
		if next[key] == nil {
			removed++
		}
	}
	p.loaded, p.byKey, p.lines = true, next, make([]*entry, 0, len(next))
	for _, e := range next {
		p.lines = append(p.lines, e)
	}
	slices.SortFunc(p.lines, func(a, b *entry) int { return cmp.Compare(a.key, b.key) })
	return added, removed
}

// view calls f while no line changes.
func (p *pool) view(f func(lines []*entry, byKey map[string]*entry)) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	f(p.lines, p.byKey)
}

// entry returns a copy of a line; nil if it is not in the list.
func (p *pool) entry(key string) *entry {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if e := p.byKey[key]; e != nil {
		return e.copy()
	}
	return nil
}

func (p *pool) isLoaded() bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.loaded
}

// retryAfter is the wait after the first probe that failed; each further one doubles it, up
// to the period of the probes.
const retryAfter = 5 * time.Second

// due returns the lines whose probe is due, those that wait longest first.
func (p *pool) due(now time.Time, every time.Duration) []*entry {
	var list []*entry
	p.view(func(lines []*entry, _ map[string]*entry) {
		for _, e := range lines {
			wait := every
			if e.failures > 0 {
				wait = min(every, retryAfter<<min(e.failures-1, 10))
			}
			if e.probed.IsZero() || now.Sub(e.probed) >= wait {
				list = append(list, e)
			}
		}
		slices.SortFunc(list, func(a, b *entry) int { return a.probed.Compare(b.probed) })
	})
	return list
}

// record stores the result of a probe.
func (p *pool) record(e *entry, at time.Time, r Probe, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.probed = at; err != nil {
		e.failures++
		return
	}
	e.failures, e.worked, e.exit, e.country = 0, at, r.Exit, r.Country
}

// probeAll probes lines, at most probesAtOnce at a time, until the context ends.
func (p *pool) probeAll(ctx context.Context, list []*entry, probe func(context.Context, Line) (Probe, error),
	now func() time.Time) {
	slots := make(chan struct{}, probesAtOnce)
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, e := range list {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		wg.Go(func() {
			defer func() { <-slots }()
			r, err := probe(ctx, e.Line)
			if ctx.Err() == nil || err == nil {
				p.record(e, now(), r, err)
			}
		})
	}
}

// probesAtOnce bounds the connections of probes of one list.
const probesAtOnce = 32
