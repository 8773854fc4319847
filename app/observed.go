package app

import (
	"context"
	"errors"
	"sync"
	"time"

	"agentproxy/domain/eventlog"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/ports"
)

// observed is what the gateway of this process saw and nobody has stored yet:
// entries for the event feed, and evidence that waits up to two seconds for the
// report that tells the same.
type observed struct {
	mu       sync.Mutex
	sessions map[string]*seenOf
}

// seenOf is the part of one session. The feed keeps the last things only, so a
// busy session costs a bounded row each flush.
type seenOf struct {
	feed  []eventlog.Event
	ring  health.Ring
	ready []health.Event // evidence that no report claimed in time
}

const (
	feedAtOnce   = 256     // events a session keeps between two flushes
	readyAtOnce  = 4096    // evidence a session keeps between two flushes
	seenSessions = 100_000 // sessions between two flushes
	keepEvents   = eventlog.Retention
)

func newObserved() *observed { return &observed{sessions: map[string]*seenOf{}} }

// add takes one observation. It drops what no flush could keep up with.
func (o *observed) add(id string, e eventlog.Event, evidence health.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.of(id)
	if s == nil {
		return
	}
	if len(s.feed) >= 2*feedAtOnce {
		s.feed = append(s.feed[:0], s.feed[len(s.feed)-feedAtOnce:]...)
	}
	s.feed = append(s.feed, e)
	if evidence.Type == "" {
		return
	}
	if oldest, full := s.ring.Add(evidence); full && len(s.ready) < readyAtOnce {
		s.ready = append(s.ready, oldest)
	}
}

// of is the part of a session, made when it is new; nil when there are too many.
// The caller holds mu.
func (o *observed) of(id string) *seenOf {
	s := o.sessions[id]
	if s == nil && len(o.sessions) < seenSessions {
		s = &seenOf{}
		o.sessions[id] = s
	}
	return s
}

// claim takes the evidence that a report matches, if any waits.
func (o *observed) claim(id string, e health.Event) (health.Event, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.sessions[id]
	if s == nil {
		return health.Event{}, false
	}
	return s.ring.Take(e.Host, e.At)
}

// giveBack returns evidence whose report was not stored after all.
func (o *observed) giveBack(id string, e health.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if s := o.of(id); s != nil {
		if oldest, full := s.ring.Add(e); full && len(s.ready) < readyAtOnce {
			s.ready = append(s.ready, oldest)
		}
	}
}

// batch is what one session has ready for the store.
type batch struct {
	id    string
	feed  []eventlog.Event
	ready []health.Event
}

// take removes what is ready to be stored.
func (o *observed) take(now time.Time) []batch {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []batch
	for id, s := range o.sessions {
		s.ready = s.ring.Expire(now, s.ready)
		if len(s.feed) == 0 && len(s.ready) == 0 {
			if s.ring.Len() == 0 {
				delete(o.sessions, id)
			}
			continue
		}
		b := batch{id: id, feed: s.feed, ready: s.ready}
		if len(b.feed) > feedAtOnce {
			b.feed = b.feed[len(b.feed)-feedAtOnce:]
		}
		out = append(out, b)
		s.feed, s.ready = nil, nil
	}
	return out
}

// restore puts back what could not be stored.
func (o *observed) restore(b batch) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.of(b.id)
	if s == nil {
		return
	}
	s.feed = append(b.feed, s.feed...)
	s.feed = s.feed[max(0, len(s.feed)-feedAtOnce):]
	s.ready = append(b.ready, s.ready...)
	s.ready = s.ready[:min(len(s.ready), readyAtOnce)]
}

// Observe takes what the gateway saw. It does not block on the store.
func (t *Traffic) Observe(ob traffic.Observation) {
	e := eventlog.Event{ID: t.ids.New(eventlog.IDPrefix), At: ob.At, Source: eventlog.Gateway, Type: ob.Type, TargetHost: ob.Host,
		StatusCode: ob.StatusCode, Code: ob.Code, Bytes: ob.Bytes, LatencyMS: int(ob.Latency.Milliseconds()),
		ExitIP: ob.ExitIP, Retryable: ob.Retryable, HowToFix: ob.HowToFix}
	t.seen.add(ob.SessionID, e, health.Event{Type: ob.Evidence, StatusCode: ob.StatusCode,
		Host: health.CanonicalHost(ob.Host), At: ob.At})
}

// FlushEvery is how often Flush is to be called: what the gateway saw can be
// read within two seconds.
const FlushEvery = 500 * time.Millisecond

// Flush stores what the gateway saw: the feed at once, evidence when it has
// waited for its report.
func (t *Traffic) Flush(ctx context.Context) error {
	return t.flush(ctx, t.clock.Now())
}

// FlushAll stores everything, evidence that still waits included: the process
// is going to stop.
func (t *Traffic) FlushAll(ctx context.Context) error {
	return t.flush(ctx, t.clock.Now().Add(time.Hour))
}

// flushAtOnce is how many sessions one unit stores.
const flushAtOnce = 200

func (t *Traffic) flush(ctx context.Context, upTo time.Time) error {
	batches := t.seen.take(upTo)
	for len(batches) > 0 {
		part := batches[:min(flushAtOnce, len(batches))]
		err := t.store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
			for _, b := range part {
				// What was seen of a session that is not known is nobody's.
				err := t.storeSeen(ctx, tx, b)
				if err != nil && !errors.Is(err, session.ErrNotFound) {
					return err
				}
			}
			return nil
		})
		if err != nil {
			for _, b := range batches {
				t.seen.restore(b)
			}
			return err
		}
		batches = batches[len(part):]
	}
	return nil
}

func (t *Traffic) storeSeen(ctx context.Context, tx ports.Tx, b batch) error {
	if len(b.feed) > 0 {
		if err := tx.Events().Append(ctx, b.id, b.feed); err != nil {
			return err
		}
	}
	if len(b.ready) == 0 {
		return nil
	}
	found, err := tx.Health().Get(ctx, "", []string{b.id})
	if err != nil {
		return err
	}
	read, ok := found[b.id]
	if !ok {
		return nil
	}
	var tally ports.Tally
	for _, e := range b.ready {
		read.State.Observe(e)
		countEvidence(&tally, e)
	}
	if err := tx.Counters().Add(ctx, read.AgentID, tally); err != nil {
		return err
	}
	if !read.Status.Over() {
		if err := tellHealth(ctx, tx, t.ids, t.clock.Now(), read.AgentID, b.id, &read.State); err != nil {
			return err
		}
	}
	return tx.Health().Put(ctx, b.id, read.State)
}

// countEvidence counts one event that may say something about an exit.
func countEvidence(t *ports.Tally, e health.Event) {
	if e.Scored() {
		t.Scored++
		if e.Good() {
			t.Good++
		}
	}
}
