package lease

import (
	"slices"

	"agentproxy/adapters/gateway/monotime"
	"agentproxy/domain/traffic"
)

// Share is the part of a pool that one worker of the session uses. Its counters move under the
// pool's lock, together with the pool's own, so that both are reported in one request.
type Share struct {
	ID int64 // of the worker

	limit  int64             // bytes that the worker may move ever, on all replicas; 0: no limit
	use    traffic.WorkerUse // cumulative, of this lease
	acked  traffic.WorkerUse // as the core has counted
	base   int64             // bytes of the worker, of all leases and replicas, when use was baseAt
	baseAt int64
	held   int64 // reserved and not settled
	places int   // members, parked ones included
	listed bool  // in Pool.shares
	gone   bool  // the worker was removed: what it still moves is the session's alone
}

// left returns how many bytes the worker may still move. It is called under the pool's lock, for a
// share with a limit.
func (s *Share) left() int64 { return s.limit - s.base - (s.use.Up + s.use.Down - s.baseAt) }

// Account is a pool and the worker that its bytes are counted for. The zero share is the session
// itself.
type Account struct {
	*Pool
	share *Share
}

// Account returns the account of a member.
func (p *Pool) Account(m *Member) Account { return Account{p, m.share} }

// UpdateShare sets the core's values of a worker: its limit, 0 for none, and the bytes that it
// moved. The bytes count only if no lease has uses of the worker that the core may have counted or
// not.
func (p *Pool) UpdateShare(s *Share, limit, bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.limit = limit
	if !s.listed && bytes > s.base {
		s.base, s.baseAt = bytes, 0
	}
}

// ShareExhausted reports whether a worker has moved all that it may.
func (p *Pool) ShareExhausted(s *Share) bool {
	if s == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return s.limit > 0 && s.left() <= 0
}

// Idle reports whether nothing of a worker is open or reported later.
func (p *Pool) Idle(s *Share) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return s.places == 0 && !s.listed
}

// CountedShares lists the workers that have connections, and those that had some in this lease as
// soon as they are more than most: then some of them were removed.
func (p *Pool) CountedShares(most int) (ids []int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := len(p.shares) > most
	for _, s := range p.shares {
		if all || s.places > 0 {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

// EndShare interrupts the connections of a worker that was removed, and counts nothing for it any
// more: a lease does not grow with every worker that there ever was.
func (p *Pool) EndShare(id int64) {
	p.mu.Lock()
	for i, s := range p.shares {
		if s.ID == id {
			s.gone, s.listed = true, false
			p.shares = slices.Delete(p.shares, i, i+1)
			p.gone = append(p.gone, id)
			break
		}
	}
	var open members
	for _, m := range p.members {
		if m.share != nil && m.share.ID == id {
			open = append(open, m)
		}
	}
	p.mu.Unlock()
	for _, m := range open {
		m.conn.SessionEnded(Removed)
	}
}

// list makes the next requests have the worker's counters. It is called under mu.
func (p *Pool) list(s *Share) {
	if !s.listed && !s.gone {
		s.listed = true
		p.shares = append(p.shares, s)
	}
}

// stateOf returns the verdict of this moment for a worker; nil is the session itself. It is called
// under mu.
func (p *Pool) stateOf(s *Share) Verdict {
	v := p.state(monotime.Now())
	if s == nil || s.limit == 0 || v != Granted {
		return v
	}
	switch left := s.left(); {
	case left <= 0:
		return Exhausted
	case left <= s.held:
		return Blocked
	}
	return Granted
}

// Reserve takes at most want bytes out of the pool for a direction that is about to read. It never
// blocks. n is 0 unless v is Granted.
func (a Account) Reserve(want int64) (n int64, epoch uint32, v Verdict) {
	p, s := a.Pool, a.share
	p.mu.Lock()
	defer p.mu.Unlock()
	if v = p.stateOf(s); v != Granted {
		return 0, 0, v
	}
	n = min(want, p.unused()-p.held)
	if s != nil {
		if s.limit > 0 {
			n = min(n, s.left()-s.held)
		}
		s.held += n
	}
	p.held += n
	return n, p.epoch.Load(), Granted
}

// Settle ends a reservation and counts the part of it that was used.
func (a Account) Settle(epoch uint32, reserved, up, down int64) {
	p, s := a.Pool, a.share
	p.renewer.counters.add(up, down)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.epoch.Load() != epoch {
		return // the lease is lost, and with it the account of its use
	}
	p.settle(reserved, up, down)
	if s == nil {
		return
	}
	s.held -= reserved
	s.use.Up += up
	s.use.Down += down
	p.list(s)
	if s.limit > 0 {
		p.signal() // others of the worker may wait for what was reserved
	}
}

// Opened counts a connection whose target answered.
func (a Account) Opened() {
	a.mu.Lock()
	a.conns++
	if a.share != nil {
		a.share.use.Connections++
		a.list(a.share)
	}
	a.mu.Unlock()
}

// uses adds to a request what workers used since the last answer, and whose bytes the answer is to have.
// It is called under mu.
func (p *Pool) uses(request *traffic.LeaseRequest) {
	request.Forget = slices.Clone(p.gone)
	for _, s := range p.shares {
		use := s.use
		use.ID, use.Open = s.ID, int64(s.places)
		if use != s.acked {
			request.Workers = append(request.Workers, use)
		}
		if s.limit > 0 && s.places > 0 {
			request.Report = append(request.Report, s.ID)
		}
	}
}

// counted records that the core has counted a request, and its values of the workers. It is called
// under mu.
func (p *Pool) counted(request traffic.LeaseRequest, bytes map[int64]int64) {
	p.gone = slices.Delete(p.gone, 0, len(request.Forget))
	if len(p.shares) == 0 {
		return
	}
	reported := make(map[int64]traffic.WorkerUse, len(request.Workers))
	for _, w := range request.Workers {
		reported[w.ID] = w
	}
	for _, s := range p.shares {
		if w, ok := reported[s.ID]; ok {
			s.acked = w
		}
		if known, ok := bytes[s.ID]; ok {
			s.base, s.baseAt = known, s.acked.Up+s.acked.Down
		}
	}
}

// forgetShares begins the counters of workers anew, with the lease. lost is set if what was not
// reported is not counted. It is called under mu.
func (p *Pool) forgetShares(lost bool) {
	kept := p.shares[:0]
	for _, s := range p.shares {
		used := s.use
		if lost {
			used = s.acked
		}
		s.base += used.Up + used.Down - s.baseAt
		s.use, s.acked, s.baseAt, s.held = traffic.WorkerUse{}, traffic.WorkerUse{}, 0, 0
		if s.listed = s.places > 0; s.listed {
			kept = append(kept, s)
		}
	}
	clear(p.shares[len(kept):])
	p.shares, p.gone = kept, nil
}
