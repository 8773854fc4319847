package telemetry

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"agentproxy/domain/eventlog"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/domain/worker"
	"agentproxy/ports"
)

// Observer buffers what the gateway of this process observes and stores it in
// batches: entries for the event log, and evidence that waits up to two seconds
// for the agent's report of the same request.
type Observer struct {
	store ports.Unit[repos]
	clock ports.Clock
	ids   ports.IDs

	mu       sync.Mutex
	sessions map[subject]*observations
	workers  int // of the keys of sessions
	budgets  freeBudgets
	guesses  guesses
	peers    peers
}

// NewObserver returns an empty Observer.
func NewObserver(store ports.Store, clock ports.Clock, ids ports.IDs) *Observer {
	return &Observer{store: narrow(store), clock: clock, ids: ids, sessions: map[subject]*observations{},
		budgets: freeBudgets{}, guesses: guesses{}, peers: newPeers(clock.Now())}
}

// subject is what observations are about: a session, or one of its workers.
type subject struct{ session, worker string }

func (a subject) compare(b subject) int {
	return cmp.Or(cmp.Compare(a.session, b.session), cmp.Compare(a.worker, b.worker))
}

// observations are those of one session or worker. The event log keeps the last events only, so
// that a busy session costs a bounded row each flush.
type observations struct {
	agent  string
	events []eventlog.Event
	free   free
	ring   health.Ring
	ready  []health.Event // evidence that no report claimed in time
	// failed is the last failure of a worker that is not stored yet.
	failed worker.Failure
}

const (
	eventLimit      = 256    // events a session keeps between two flushes
	readyLimit      = 4096   // evidence a session keeps between two flushes
	observedWorkers = 50_000 // of observedSessions, so that fleets leave room for every session
)

// add buffers one observation. It drops the oldest if no flush keeps up.
func (o *Observer) add(id, agent string, e eventlog.Event, evidence health.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.observationsOf(subject{id, e.Worker})
	if s == nil {
		return
	}
	s.agent = agent
	if e.Worker != "" && e.Code != "" {
		s.failed = worker.Failure{At: e.At, Code: e.Code}
	}
	if e.Bytes == 0 {
		s.free.add(e, func() bool { return o.budgets.allow(id, agent, e.At) })
	} else {
		if len(s.events) >= 2*eventLimit {
			s.events = append(s.events[:0], s.events[len(s.events)-eventLimit:]...)
		}
		s.events = append(s.events, e)
	}
	if evidence.Type == "" {
		return
	}
	if oldest, full := s.ring.Add(evidence); full && len(s.ready) < readyLimit {
		s.ready = append(s.ready, oldest)
	}
}

// observationsOf returns the observations of a session or worker, or nil if there are too many. The caller
// holds mu.
func (o *Observer) observationsOf(id subject) *observations {
	s := o.sessions[id]
	if s != nil || len(o.sessions) >= observedSessions || id.worker != "" && o.workers >= observedWorkers {
		return s
	}
	s = &observations{}
	o.sessions[id] = s
	if id.worker != "" {
		o.workers++
	}
	return s
}

// claim gives a reported event the evidence that waits for it, if it has none.
func (o *Observer) claim(e *queuedEvent, now time.Time) {
	event := e.event(now)
	if e.Claim != nil || !event.Scored() {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if s := o.sessions[e.on()]; s != nil {
		if c, ok := s.ring.Take(event.Host, event.At); ok {
			e.Claim = &queuedClaim{Type: string(c.Type), Status: c.StatusCode, Host: c.Host, At: c.At.UnixMicro()}
		}
	}
}

// unclaim puts back the evidence of an event that was not stored after all.
func (o *Observer) unclaim(e *queuedEvent) {
	if e.Claim == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if s := o.observationsOf(e.on()); s != nil {
		if oldest, full := s.ring.Add(e.Claim.event()); full && len(s.ready) < readyLimit {
			s.ready = append(s.ready, oldest)
		}
	}
}

// batch is what one session has ready for the store.
type batch struct {
	id     subject
	events []eventlog.Event
	ready  []health.Event
	failed worker.Failure
}

// drain removes and returns what is ready to be stored.
func (o *Observer) drain(now time.Time) []batch {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []batch
	for id, s := range o.sessions {
		s.ready = s.ring.Expire(now, s.ready)
		s.events = append(s.events, s.free.takeDue(now, func() bool { return o.budgets.allow(id.session, s.agent, now) })...)
		if len(s.events) == 0 && len(s.ready) == 0 {
			if s.ring.Len() == 0 && s.free.idle(now) {
				delete(o.sessions, id)
				if id.worker != "" {
					o.workers--
				}
			}
			continue
		}
		b := batch{id: id, events: s.events, ready: s.ready, failed: s.failed}
		out = append(out, b)
		s.events, s.ready, s.failed = nil, nil, worker.Failure{}
	}
	return joined(out)
}

// joined sorts batches by session, and makes one log of those of a session and its workers: a fleet
// does not write more of it than one identity does.
func joined(batches []batch) []batch {
	slices.SortFunc(batches, func(a, b batch) int { return a.id.compare(b.id) })
	first := 0
	for i := 1; i < len(batches); i++ {
		if batches[i].id.session != batches[first].id.session {
			first = i
			continue
		}
		batches[first].events, batches[i].events = append(batches[first].events, batches[i].events...), nil
	}
	for i, b := range batches {
		inOrder(b.events)
		batches[i].events = b.events[max(0, len(b.events)-eventLimit):]
	}
	return batches
}

// restore puts back what could not be stored.
func (o *Observer) restore(b batch) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.observationsOf(b.id)
	if s == nil {
		return
	}
	s.events = append(b.events, s.events...)
	s.events = s.events[max(0, len(s.events)-eventLimit):]
	s.ready = append(b.ready, s.ready...)
	s.ready = s.ready[:min(len(s.ready), readyLimit)]
	if s.failed.At.IsZero() {
		s.failed = b.failed
	}
}

// Observe buffers an observation of the gateway. It does not block on the store.
func (o *Observer) Observe(ob traffic.Observation) {
	e := eventlog.Event{ID: o.ids.New(eventlog.IDPrefix), At: ob.At, Source: eventlog.Gateway, Type: ob.Type,
		TargetHost: ob.Host, StatusCode: ob.StatusCode, Code: ob.Code, Bytes: ob.Bytes,
		LatencyMS: int(ob.Latency.Milliseconds()), ExitIP: ob.ExitIP, Retryable: ob.Retryable, HowToFix: ob.HowToFix,
		Worker: ob.Worker}
	if ob.Type == traffic.AuthFailed {
		o.observeGuess(ob, e)
		return
	}
	o.peers.add(ob)
	o.add(ob.SessionID, ob.AgentID, e, health.Event{Type: ob.Evidence, StatusCode: ob.StatusCode,
		Host: health.CanonicalHost(ob.Host), At: ob.At})
}

// FlushEvery is how often Flush is to be called: an observation can be read within
// two seconds.
const FlushEvery = 500 * time.Millisecond

// Flush stores the events, and the evidence that has waited for its report.
func (o *Observer) Flush(ctx context.Context) error {
	now := o.clock.Now()
	return errors.Join(o.logGuesses(ctx, now), o.flush(ctx, now), o.peers.flush(ctx, o.store, now, false))
}

// FlushAll stores everything, evidence that still waits included. It is called
// before the process stops.
func (o *Observer) FlushAll(ctx context.Context) error {
	now := o.clock.Now()
	all := now.Add(time.Hour)
	return errors.Join(o.logGuesses(ctx, all), o.flush(ctx, all), o.peers.flush(ctx, o.store, now, true))
}

func (o *Observer) flush(ctx context.Context, upTo time.Time) error {
	batches := o.drain(upTo)
	for len(batches) > 0 {
		part := batches[:min(flushLimit, len(batches))]
		err := o.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
			for _, b := range part {
				// Observations of a session that does not exist are dropped.
				err := o.storeBatch(ctx, tx, b)
				if err != nil && !errors.Is(err, session.ErrNotFound) {
					return err
				}
			}
			return nil
		})
		if err != nil {
			for _, b := range batches {
				o.restore(b)
			}
			return err
		}
		batches = batches[len(part):]
	}
	return nil
}

func (o *Observer) storeBatch(ctx context.Context, tx repos, b batch) error {
	if len(b.events) > 0 {
		if err := tx.Events().Append(ctx, b.id.session, b.events); err != nil {
			return err
		}
	}
	if len(b.ready) == 0 && b.failed.At.IsZero() {
		return nil
	}
	found, err := readReported(ctx, tx, "", []subject{b.id})
	h := found[b.id] // observations of a worker that was removed are dropped
	if err != nil || h == nil {
		return err
	}
	var tally ports.Tally
	for _, e := range b.ready {
		h.State.Observe(e)
		if e.Scored() {
			tally.Scored++
		}
		if e.Good() {
			tally.Good++
		}
	}
	if err := tx.Counters().Add(ctx, h.AgentID, tally); err != nil {
		return err
	}
	if err := h.announce(ctx, tx, o.ids, o.clock.Now(), b.id); err != nil {
		return err
	}
	h.failed = b.failed
	return h.store(ctx, tx, b.id.session)
}
