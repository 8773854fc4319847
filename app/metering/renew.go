package metering

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/ports"
)

// Renew books what gateways report and grants what they ask for, all requests in one
// transaction. Repeating it after an error counts nothing twice. A request that fails by
// itself has no grant in the answer and does not delay the others.
func (t *Service) Renew(ctx context.Context, replica string, requests []traffic.LeaseRequest) ([]traffic.Grant, error) {
	requests = slices.SortedFunc(slices.Values(requests), func(a, b traffic.LeaseRequest) int {
		return cmp.Or(cmp.Compare(a.SessionID, b.SessionID), cmp.Compare(a.Lease, b.Lease))
	})
	requests = t.failing.filter(requests, t.clock.Now())
	if len(requests) == 0 {
		return nil, nil
	}
	return t.renewApart(ctx, replica, requests)
}

// renewApart renews in one transaction. Should one of the requests make that fail, they are halved
// until it is alone, so that it fails alone.
func (t *Service) renewApart(
	ctx context.Context, replica string, requests []traffic.LeaseRequest,
) ([]traffic.Grant, error) {
	grants, err := t.renewAll(ctx, replica, requests)
	if err == nil || errors.Is(err, domain.ErrUnavailable) || ctx.Err() != nil {
		return grants, err
	}
	if len(requests) == 1 {
		if t.failing.add(requests[0].SessionID, t.clock.Now()) {
			t.log.Error("the traffic of a session cannot be booked; it stops until this is fixed",
				"session_id", requests[0].SessionID, "err", err)
		}
		return nil, nil
	}
	half := len(requests) / 2
	first, err := t.renewApart(ctx, replica, requests[:half])
	if err != nil {
		return nil, err
	}
	second, err := t.renewApart(ctx, replica, requests[half:])
	return append(first, second...), err
}

// renewAll renews sorted requests in one transaction.
func (t *Service) renewAll(
	ctx context.Context, replica string, requests []traffic.LeaseRequest,
) ([]traffic.Grant, error) {
	var grants []traffic.Grant
	var ended []string
	err := t.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx Repos) (err error) {
		grants, ended, err = t.renewIn(ctx, tx, replica, requests)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, id := range ended {
		t.hub.SessionChanged(id)
	}
	return grants, nil
}

// renewIn renews sorted requests in a unit. It returns the sessions that ended by it too.
func (t *Service) renewIn(
	ctx context.Context, tx Repos, replica string, requests []traffic.LeaseRequest,
) (grants []traffic.Grant, ended []string, err error) {
	ids := make([]string, len(requests))
	for i, request := range requests {
		ids[i] = request.SessionID
	}
	metered, err := tx.Traffic().Metered(ctx, slices.Compact(ids))
	if err != nil {
		return nil, nil, err
	}
	// Other replicas renew sessions of the same agents, and agents end theirs meanwhile. All lock
	// the sessions first and then the wallets, in one order, so none of them deadlocks.
	now := t.clock.Now()
	if err := tx.Ledger().Lock(ctx, payers(requests, metered, now)); err != nil {
		return nil, nil, err
	}
	b := batch{Service: t, tx: tx, replica: replica, now: now, metered: metered, moved: map[string]int64{}}
	grants = make([]traffic.Grant, 0, len(requests))
	for _, request := range requests {
		g, over, err := b.renew(ctx, request)
		if err != nil {
			return nil, nil, err
		}
		grants = append(grants, g)
		if over {
			ended = append(ended, request.SessionID)
		}
	}
	for _, agentID := range slices.Sorted(maps.Keys(b.moved)) {
		if err := tx.Counters().Add(ctx, agentID, ports.Tally{Bytes: b.moved[agentID]}); err != nil {
			return nil, nil, err
		}
	}
	return grants, ended, nil
}

// payers lists the agents whose money the requests may move, sorted: those of sessions that are settled
// because they ended, because an hour began, or because the requests use them up, and of those that buy
// more.
func payers(requests []traffic.LeaseRequest, metered map[string]*ports.Metered, now time.Time) []string {
	used := map[string]int64{}
	for _, request := range requests {
		if m := metered[request.SessionID]; m != nil {
			l := m.Leases[request.Lease]
			used[request.SessionID] += max(request.Up-l.Up, 0) + max(request.Down-l.Down, 0)
		}
	}
	agents := map[string]bool{}
	for id, more := range used {
		s, u := metered[id].Session, metered[id].Usage
		if s.Type == session.Dynamic && (s.Status.Over() || u.Used()+more >= u.Limit ||
			s.AutoTopUpDue(u.Used()+more, now) ||
			u.UpdatedAt.Before(now.Truncate(time.Hour)) && s.ChargeDue(u.Used()) > 0) {
			agents[s.AgentID] = true
		}
	}
	return slices.Sorted(maps.Keys(agents))
}

// batch is the requests of one transaction.
type batch struct {
	*Service
	tx      Repos
	replica string
	now     time.Time
	metered map[string]*ports.Metered
	moved   map[string]int64 // bytes, by agent
}

// load returns a session as it is after the requests before.
func (b *batch) load(ctx context.Context, id string) (*ports.Metered, error) {
	if m := b.metered[id]; m != nil {
		return m, nil
	}
	again, err := b.tx.Traffic().Metered(ctx, []string{id})
	if err == nil && again[id] == nil {
		err = session.ErrNotFound
	}
	b.metered[id] = again[id]
	return again[id], err
}

// renew answers one request. It reports whether the session ended by it.
func (b *batch) renew(ctx context.Context, request traffic.LeaseRequest) (traffic.Grant, bool, error) {
	g := traffic.Grant{SessionID: request.SessionID, Lease: request.Lease}
	m, err := b.load(ctx, request.SessionID)
	if err != nil {
		return g, false, err
	}
	s, lease := m.Session, m.Leases[request.Lease]
	known := lease.ID != ""
	switch {
	case !known && request.Up+request.Down+request.Connections > 0:
		g.Outcome = traffic.Lost
		return g, false, nil
	case s.Status == session.Creating:
		g.Outcome = traffic.Waiting
		return g, false, nil
	case !known:
		lease = traffic.Lease{SessionID: s.ID, ID: request.Lease, Replica: b.replica}
	}
	over := s.Status.Over()
	if request.Fold && booked(request, lease) {
		return g, false, nil
	}
	if request.Fold || over {
		// The lease of a session that is over stays as it is until its gateway has closed the tunnels and then
		// the lease: what passes in between is charged too.
		request.Want = lease.Granted - max(request.Up, lease.Up) - max(request.Down, lease.Down)
		request.Close = request.Close || !known
	}
	if s, err = b.autoTopUp(ctx, m, lease, request); err != nil {
		return g, false, err
	}
	settleAt, err := b.tx.Traffic().SettleAt(ctx, s.ID)
	if err != nil {
		return g, false, err
	}
	at := m.Usage.BookAt(b.now, s.Type == session.Dynamic && settleAt.IsZero())
	delta, lease, g := traffic.Renew(m.Usage, lease, request, at)
	low := m.Usage.ThresholdsReached(delta)
	if s, err = b.record(ctx, s, m.Usage, delta, lease, request, at); err != nil {
		return g, false, err
	}
	if len(request.Report) > 0 {
		if g.Bytes, err = b.tx.Workers().Bytes(ctx, request.Report); err != nil {
			return g, false, err
		}
	}
	if bytes := delta.Up + delta.Down; bytes > 0 {
		b.moved[s.AgentID] += bytes
	}
	m.Session = s
	m.Usage.Up, m.Usage.Down, m.Usage.Leased = m.Usage.Up+delta.Up, m.Usage.Down+delta.Down, m.Usage.Leased+delta.Leased
	m.Usage.UpdatedAt = delta.At
	g.AgentID, g.Calm = s.AgentID, calm(s, m.Usage, b.now)
	if m.Leases[lease.ID] = lease; request.Close {
		delete(m.Leases, lease.ID)
	}
	if err := b.notifyLow(ctx, b.tx, s, low, b.now); err != nil {
		return g, false, err
	}
	return b.answerEnded(ctx, g, s, m.Usage)
}

// answerEnded answers a request whose session is over, or is so now.
func (b *batch) answerEnded(
	ctx context.Context, g traffic.Grant, s session.Session, u traffic.Usage,
) (_ traffic.Grant, ended bool, err error) {
	if s.Status.Over() {
		g.Outcome = traffic.Over
		if s.Reason == session.TrafficExhausted {
			g.Outcome = traffic.Exhausted
		}
		delete(b.metered, s.ID) // it may be settled now
		return g, false, b.SettleEnded(ctx, b.tx, s, u, b.now)
	}
	if s.Type == session.Dynamic && u.Exhausted() {
		g.Outcome = traffic.Exhausted
		delete(b.metered, s.ID) // it has ended now
		return g, true, b.transitions.Expire(ctx, b.tx, s, session.TrafficExhausted, b.now)
	}
	return g, false, nil
}

// booked reports whether a lease has the counters of a request already.
func booked(request traffic.LeaseRequest, l traffic.Lease) bool {
	return request.Up <= l.Up && request.Down <= l.Down && request.Connections <= l.Connections
}

// calm reports whether nothing becomes due before all that is leased of a session is used.
func calm(s session.Session, u traffic.Usage, now time.Time) bool {
	return s.Status == session.Active && u.Calm(now) && !s.AutoTopUpDue(u.Used()+u.Leased, now)
}

// autoTopUp adds the traffic that a session buys by itself if a request makes that due. What is added may
// be granted by the same request, and keeps the session from its end.
func (b *batch) autoTopUp(
	ctx context.Context, m *ports.Metered, l traffic.Lease, request traffic.LeaseRequest,
) (session.Session, error) {
	s := m.Session
	if s.TopUps.Auto.Bytes == 0 {
		return s, nil
	}
	delta, _, _ := traffic.Renew(m.Usage, l, request, b.now)
	if !s.AutoTopUpDue(m.Usage.Used()+delta.Up+delta.Down, b.now) {
		return s, nil
	}
	s, err := b.sessions.AutoTopUp(ctx, b.tx, s, b.now)
	m.Session, m.Usage.Limit = s, s.Bytes
	return s, err
}
