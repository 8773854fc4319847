package telemetry

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"agentproxy/domain/billing"
	"agentproxy/domain/traffic"
	"agentproxy/ports"
)

// storePeersEvery is how often clients and hosts are stored: it is a write for each of them, and they
// are read by people.
const storePeersEvery = 2 * time.Second

const (
	observedSessions = 100_000 // sessions and workers that are kept between two flushes
	flushLimit       = 200     // sessions that one transaction stores
)

// peers counts the clients and hosts of sessions until they are stored. A process that is killed
// loses what it counted since.
type peers struct {
	mu       sync.Mutex
	sessions map[string]*traffic.Peers
	stored   time.Time
}

func newPeers(now time.Time) peers { return peers{sessions: map[string]*traffic.Peers{}, stored: now} }

// add counts an observation. It drops that of another session if there are too many.
func (p *peers) add(o traffic.Observation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.countsOf(o.SessionID); s != nil {
		s.Add(o)
	}
}

// countsOf returns what is counted of a session, or nil if there are too many. The caller holds mu.
func (p *peers) countsOf(sessionID string) *traffic.Peers {
	if p.sessions[sessionID] == nil && len(p.sessions) < observedSessions {
		p.sessions[sessionID] = &traffic.Peers{}
	}
	return p.sessions[sessionID]
}

// takeCounts removes and returns what was counted, if it is to be stored.
func (p *peers) takeCounts(now time.Time, all bool) map[string]*traffic.Peers {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.sessions) == 0 || !all && now.Sub(p.stored) < storePeersEvery {
		return nil
	}
	taken := p.sessions
	p.sessions, p.stored = map[string]*traffic.Peers{}, now
	return taken
}

// restore puts back what could not be stored.
func (p *peers) restore(id string, before *traffic.Peers) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.countsOf(id); s != nil {
		before.Merge(*s)
		p.sessions[id] = before
	}
}

// flush stores what was counted, in the order of the sessions so that replicas do not deadlock.
func (p *peers) flush(ctx context.Context, store ports.Unit[repos], now time.Time, all bool) error {
	taken := p.takeCounts(now, all)
	ids := slices.Sorted(maps.Keys(taken))
	for len(ids) > 0 {
		part := ids[:min(flushLimit, len(ids))]
		err := store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
			for _, id := range part {
				if err := tx.Peers().Add(ctx, id, billing.Day(now), taken[id]); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			for _, id := range ids {
				p.restore(id, taken[id])
			}
			return err
		}
		ids = ids[len(part):]
	}
	return nil
}
