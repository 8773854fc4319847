package gateway

import (
	"time"

	"agentproxy/domain/traffic"
)

// ask writes the pool's part of the next renewal; false when none is due. A
// lease that nobody needs any more is closed: the pool forgets it here, and the
// renewer repeats its last ask until the core has answered.
func (p *pool) ask(now time.Duration, stopping bool) (traffic.Ask, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := &p.renewer.timing
	if p.lease == "" || p.asking {
		return traffic.Ask{}, false
	}
	quiet := now-p.touched >= t.IdleGive
	ask := traffic.Ask{SessionID: p.session, Lease: p.lease, Up: p.up, Down: p.down, Connections: p.conns}
	if p.members.count == 0 && p.held == 0 && (quiet || stopping || p.end != flows) {
		ask.Close = true
		p.report(ask)
		p.forget()
		return ask, true
	}
	since := now - p.asked
	moved := p.up+p.down != p.reported || p.conns != p.counted
	due := p.urgent && now >= p.retry ||
		moved && since >= t.Report ||
		quiet && p.unused() > p.held && since >= t.IdleGive ||
		since >= t.Heartbeat
	if !due {
		return traffic.Ask{}, false
	}
	p.resize(now)
	if !quiet {
		ask.Want = p.size
	}
	// What another replica may be given must be out of reach here before the
	// core hears of it; what is reserved cannot be taken back.
	ask.Want = max(ask.Want, p.held)
	p.granted = min(p.granted, p.up+p.down+ask.Want)
	p.asked, p.asking, p.urgent = now, true, false
	return ask, true
}

// resize follows the rate of recent traffic: up fast, because a bulk transfer
// should not wait, and down by halves.
func (p *pool) resize(now time.Duration) {
	used := p.up + p.down
	elapsed := max(now-p.sizedAt, time.Millisecond)
	rate := int64(float64(used-p.sized) / elapsed.Seconds())
	target := min(max(rate, traffic.MinLease), traffic.MaxLease)
	if target > p.size {
		p.size = min(target, 4*p.size)
	} else {
		p.size = max(target, p.size/2)
	}
	p.sizedAt, p.sized = now, used
}

// apply takes the core's answer to an ask that was sent at a moment.
func (p *pool) apply(ask traffic.Ask, grant traffic.Grant, sent time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lease != ask.Lease {
		return
	}
	p.asking = false
	switch grant.Outcome {
	case traffic.Lost:
		p.forget()
	case traffic.Exhausted, traffic.Over:
		// Why a session is over is in its route; see Gateway.ended.
		if p.end == flows && grant.Outcome == traffic.Exhausted {
			p.end = spent
		}
		p.retry = mono() + p.renewer.tick
		p.report(ask)
	default:
		p.granted = grant.Granted
		p.report(ask)
		p.renewed.Store(int64(sent))
		p.answers++
		// All of it may be reserved, by a tunnel whose client does not read: then
		// there is nothing for those that wait, and the next answer is no other.
		free := p.unused() > p.held
		p.open = grant.Outcome == traffic.Open && ask.Want > 0 && free
		p.low = min(p.size, p.unused()) / 2
		if grant.Outcome == traffic.Waiting || !free {
			p.retry = mono() + p.renewer.tick
		}
	}
	p.wake()
}

// report notes what the core knows now.
func (p *pool) report(ask traffic.Ask) {
	p.renewer.bytes.Add(ask.Up + ask.Down - p.reported)
	p.reported, p.counted = ask.Up+ask.Down, ask.Connections
}

// failed notes that an ask was not answered. What was granted stays, as far as
// the ask did not give it back; whether the core heard it does not matter.
func (p *pool) failed(ask traffic.Ask) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lease == ask.Lease {
		p.asking = false
		p.urgent = true
	}
}

// forget drops the lease. Reservations that were made of it are void.
func (p *pool) forget() {
	p.epoch.Add(1)
	p.lease, p.asking, p.urgent, p.open = "", false, false, false
	p.granted, p.up, p.down, p.conns, p.held = 0, 0, 0, 0, 0
	p.reported, p.counted = 0, 0
	p.sized, p.low, p.retry = 0, 0, 0
	p.renewer.remove(p)
}
