package lease

import (
	"time"

	"agentproxy/adapters/gateway/monotime"
	"agentproxy/domain/traffic"
)

// request returns the pool's part of the next renewal; ok is false if none is due. A
// lease that is not needed any more is closed: the pool forgets it at once, and the
// renewer repeats the closing request until the core has answered.
func (p *Pool) request(now time.Duration, stopping bool) (_ traffic.LeaseRequest, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := &p.renewer.cfg
	if p.lease == "" || p.inFlight {
		return traffic.LeaseRequest{}, false
	}
	quiet := now-p.touched >= t.IdleGive
	request := traffic.LeaseRequest{SessionID: p.session, Lease: p.lease, Up: p.up, Down: p.down, Connections: p.conns,
		Lasts: t.lasts()}
	if len(p.members) == 0 && p.held == 0 && (quiet || stopping || p.end != Granted) {
		request.Close = true
		p.uses(&request)
		p.report(request)
		p.forget(false)
		return request, true
	}
	since := now - p.requestedAt
	report, heartbeat := t.Report, t.Heartbeat
	if p.calmNow() {
		report, heartbeat = max(report, t.Fold), max(heartbeat, t.Fold)
	}
	due := p.urgent && now >= p.retry ||
		p.moved() && since >= report ||
		quiet && p.unused() > p.held && since >= t.IdleGive ||
		since >= heartbeat
	if !due {
		return traffic.LeaseRequest{}, false
	}
	p.uses(&request)
	p.resize(now)
	// What is given up must be out of reach here before the core may grant it to
	// another replica. What is reserved cannot be given up. It comes on top of what is wanted:
	// connections whose clients do not read keep their reservations, and the others go on.
	request.Want = p.held
	if !quiet {
		request.Want += p.size
	}
	p.granted = min(p.granted, p.up+p.down+request.Want)
	p.requestedAt, p.inFlight, p.urgent = now, true, false
	return request, true
}

// resize adapts the lease to the rate of recent traffic: up to four times the size
// at once, so that a bulk transfer does not wait, and down to half of it. A calm one covers ten times as long.
func (p *Pool) resize(now time.Duration) {
	used := p.up + p.down
	elapsed := max(now-p.sizedAt, time.Millisecond)
	rate := int64(float64(used-p.sized) / elapsed.Seconds())
	if p.calmNow() {
		rate *= int64(traffic.CalmAhead / time.Second)
	}
	target := min(max(rate, traffic.MinLease), traffic.MaxLease)
	if target > p.size {
		p.size = min(target, 4*p.size)
	} else {
		p.size = max(target, p.size/2)
	}
	p.sizedAt, p.sized = now, used
}

// apply records the core's answer to a request; sent is when the renewal began.
func (p *Pool) apply(request traffic.LeaseRequest, grant traffic.Grant, sent time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lease != request.Lease {
		return
	}
	p.inFlight = false
	p.ended++
	switch grant.Outcome {
	case traffic.Lost:
		p.forget(true)
	case traffic.Exhausted, traffic.Over:
		// The reason for Over is part of the session's route, which the caller reads.
		if p.end == Granted && grant.Outcome == traffic.Exhausted {
			p.end = Exhausted
		}
		p.retry = monotime.Now() + p.renewer.tick
		p.report(request)
		p.counted(request, grant.Bytes)
	default:
		p.granted = grant.Granted
		p.report(request)
		p.counted(request, grant.Bytes)
		p.renewed.Store(int64(sent))
		p.answers++
		// A tunnel whose client does not read may have reserved everything. Then
		// nothing is left for the others, and an early retry would not help.
		free := p.unused() > p.held
		p.open = grant.Outcome == traffic.Open && request.Want > 0 && free
		p.low = min(p.size, p.unused()) / 2
		if p.calm, p.agent = grant.Calm && p.renewer.cfg.Fold > 0, grant.AgentID; p.calmNow() {
			p.low /= 2
		}
		if grant.Outcome == traffic.Waiting || !free {
			p.retry = monotime.Now() + p.renewer.tick
		}
	}
	p.signal()
}

// report records that the core has counted the request.
func (p *Pool) report(request traffic.LeaseRequest) {
	p.renewer.bytes.Add(request.Up + request.Down - p.reported)
	p.reported, p.connsReported = request.Up+request.Down, request.Connections
}

// failed records that a request was not answered. What was granted stays usable unless
// the request gave it up; it makes no difference whether the core received the request.
func (p *Pool) failed(request traffic.LeaseRequest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lease == request.Lease {
		p.inFlight = false
		p.ended++
		p.urgent = true
	}
}

// forget drops the lease. Reservations made from it become void. lost is set if the core does not
// count what was not reported.
func (p *Pool) forget(lost bool) {
	p.forgetShares(lost)
	p.epoch.Add(1)
	p.lease, p.inFlight, p.urgent, p.open, p.calm = "", false, false, false, false
	p.granted, p.up, p.down, p.conns, p.held = 0, 0, 0, 0, 0
	p.reported, p.connsReported = 0, 0
	p.sized, p.low, p.retry = 0, 0, 0
	p.renewer.remove(p)
}
