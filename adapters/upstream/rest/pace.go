package rest

import (
	"context"
	"sync"
	"time"

	"agentproxy/domain/fair"
	"agentproxy/domain/procurement"
	"agentproxy/ports"
)

// Pace is a rate limit that keeps the starts of calls apart, and those of calls that
// spend money further apart. Calls that wait start in turns by party (ports.WithParty and
// fair.Queue), so that one with many of them delays another's by one call.
type Pace struct {
	every time.Duration // between starts; 0: no limit
	money time.Duration // between starts of calls that spend money, if it is longer

	mu        sync.Mutex
	line      fair.Queue[*start]
	serving   bool // serve runs
	next      time.Time
	nextMoney time.Time
}

// start is a call that waits for its start.
type start struct {
	ctx   context.Context
	money bool
	begun chan struct{}
}

// NewPace returns a Pace of that many calls a second.
func NewPace(perSecond float64) *Pace { return &Pace{every: seconds(1 / perSecond)} }

// Slower returns a Pace like p of which at most that many calls a second spend money.
func (p *Pace) Slower(perSecond float64) *Pace {
	return &Pace{every: p.every, money: seconds(1 / perSecond)}
}

// Unpaced has no limit.
var Unpaced = &Pace{}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// Wait blocks until the call may start. It fails with Temporary if the context ends
// before that, at once where that is known.
func (p *Pace) Wait(ctx context.Context, money bool) *procurement.Error {
	late := procurement.Refuse(procurement.Temporary, "the rate limit of the seller leaves no time for this call")
	if ctx.Err() != nil {
		return late
	}
	if p.every <= 0 {
		return nil
	}
	p.mu.Lock()
	begins := p.begins(ports.PartyOf(ctx), money)
	if !p.serving && !time.Now().Before(begins) {
		p.begin(time.Now(), money)
		p.mu.Unlock()
		return nil
	}
	if end, bounded := ctx.Deadline(); bounded && !begins.Before(end) { // it would start when it has to end
		p.mu.Unlock()
		return late
	}
	s := &start{ctx: ctx, money: money, begun: make(chan struct{})}
	p.line.Push(ports.PartyOf(ctx), s)
	if !p.serving {
		p.serving = true
		go p.serve()
	}
	p.mu.Unlock()
	select {
	case <-s.begun:
		return nil
	case <-ctx.Done():
		return late
	}
}

// begins returns when a call for an agent would start if no other came.
func (p *Pace) begins(who fair.Party, money bool) time.Time {
	then := Pace{every: p.every, money: p.money, next: p.next, nextMoney: p.nextMoney}
	for _, s := range p.line.Before(who) {
		if s.ctx.Err() == nil {
			then.begin(then.free(s.money), s.money)
		}
	}
	return then.free(money)
}

// free returns when the next call may start.
func (p *Pace) free(money bool) time.Time {
	if money && p.nextMoney.After(p.next) {
		return p.nextMoney
	}
	return p.next
}

func (p *Pace) begin(now time.Time, money bool) {
	p.next = now.Add(p.every)
	if money {
		p.nextMoney = now.Add(p.money)
	}
}

// serve starts the calls that wait, until none does. Whose turn it is is decided when a call may
// start, so that one that comes meanwhile is not behind a call that spends money and must wait longer.
func (p *Pace) serve() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.line.Len() > 0 {
		p.sleepUntil(p.next)
		s, _ := p.line.Peek()
		now := time.Now()
		if at := p.free(s.money); s.ctx.Err() == nil && now.Before(at) {
			p.sleepUntil(earlier(at, now.Add(p.every)))
			continue
		}
		p.line.Next()
		if s.ctx.Err() == nil {
			p.begin(time.Now(), s.money)
			close(s.begun)
		}
	}
	p.serving = false
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// sleepUntil releases the lock while it sleeps.
func (p *Pace) sleepUntil(at time.Time) {
	p.mu.Unlock()
	time.Sleep(time.Until(at))
	p.mu.Lock()
}
