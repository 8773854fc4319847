// Package exitfacts has the facts about addresses of exits that files and lists of the operator have: MaxMind
// databases, ranges, and DNS lists (RFC 5782).
package exitfacts

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"agentproxy/domain/exit"
	"agentproxy/ports"
)

// Source is one source of facts: a file, or a list that is asked by DNS.
type Source struct {
	// File returns what a file has about an address; nil for a list.
	File func(netip.Addr) exit.Known
	List List
	Has  exit.Fields // that a file can have
}

// Facts asks sources in their order. It is safe for use by several goroutines.
type Facts struct {
	sources atomic.Pointer[[]Source]
	lists   lists
}

var _ ports.ExitFacts = (*Facts)(nil)

// New returns Facts of sources; the first that has a fact decides.
func New(sources []Source) *Facts {
	f := &Facts{lists: newLists()}
	f.Replace(sources)
	return f
}

// Replace takes other sources in place of those before. Look-ups under way end with the former ones.
func (f *Facts) Replace(sources []Source) { f.sources.Store(&sources) }

// Any reports whether there are sources.
func (f *Facts) Any() bool { return len(*f.sources.Load()) > 0 }

// Can returns the facts that the sources can have.
func (f *Facts) Can() (can exit.Fields) {
	for _, s := range *f.sources.Load() {
		if s.isList() {
			s.Has = exit.Fields{Listed: true}
		}
		can = can.And(s.Has)
	}
	return can
}

// Facts returns what the sources have about an address. Files are in memory; lists are asked side by side, for
// listTimeout at most, unless they answered within the hour. A list that does not answer is as none: the address may
// be on it.
func (f *Facts) Facts(ctx context.Context, addr netip.Addr) (k exit.Known) {
	addr = addr.Unmap().WithZone("")
	sources := *f.sources.Load()
	if !slices.ContainsFunc(sources, Source.isList) { // needs no room for answers
		for _, s := range sources {
			k.Add(s.File(addr))
		}
		return k
	}
	answers, silent := make([]exit.Known, len(sources)), make([]bool, len(sources))
	var wg sync.WaitGroup
	for i, s := range sources {
		if s.isList() {
			wg.Go(func() { answers[i], silent[i] = f.lists.facts(ctx, s.List, addr) })
		} else {
			answers[i] = s.File(addr)
		}
	}
	wg.Wait()
	for _, a := range answers {
		k.Add(a)
	}
	if len(k.Listed) == 0 && slices.Contains(silent, true) {
		k.Listed = nil // on no list that answered, and perhaps on one that did not
	}
	return k
}

func (s Source) isList() bool { return s.File == nil }
