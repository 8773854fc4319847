package lease

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"agentproxy/domain/traffic"
)

// counter counts as the core does, with one lease.
type counter struct {
	lease traffic.Lease
	usage traffic.Usage
	by    map[int64]int64 // bytes by worker
	fail  atomic.Bool     // the answer is lost
	calls atomic.Int64
	most  int64 // calls that are answered; 0 for any number
}

func (c *counter) Renew(_ context.Context, _ string, requests []traffic.LeaseRequest) (grants []traffic.Grant, err error) {
	if n := c.calls.Add(1); c.most > 0 && n > c.most {
		return nil, context.DeadlineExceeded
	}
	for _, request := range requests {
		d, l, g := traffic.Renew(c.usage, c.lease, request, time.Unix(1, 0))
		c.lease = l
		c.usage.Up, c.usage.Down, c.usage.Leased = c.usage.Up+d.Up, c.usage.Down+d.Down, c.usage.Leased+d.Leased
		for _, w := range d.Workers {
			c.by[w.ID] += w.Up + w.Down
		}
		grants = append(grants, g)
	}
	if c.fail.Load() {
		return nil, context.DeadlineExceeded
	}
	return grants, nil
}

func (c *counter) Report(context.Context, string, []traffic.ReportPart) error { return nil }

type idleConn struct{}

func (idleConn) SessionEnded(Verdict) {}

// A lease that never ends has the counters of the workers that there are, not of all that there were,
// and none of their bytes is counted twice or lost.
func TestALeaseForgetsRemovedWorkers(t *testing.T) {
	const most = 10
	core := &counter{by: map[int64]int64{}}
	r := NewRenewer(core, Config{Report: time.Second, Heartbeat: time.Second, IdleGive: time.Hour, StopAfter: time.Hour, Call: time.Second},
		counters(), func(string, Verdict) {}, slog.New(slog.DiscardHandler))
	var p Pool
	r.Init(&p, "s")
	renew := func() {
		p.mu.Lock()
		p.need()
		p.retry = 0
		p.mu.Unlock()
		r.retry = 0
		r.round(t.Context(), true, false)
	}
	renew()
	move := func(s *Share, bytes int64) {
		m := MemberOf(idleConn{})
		p.mu.Lock()
		m.share = s
		p.add(&m)
		p.mu.Unlock()
		account := p.Account(&m)
		n, epoch, v := account.Reserve(bytes)
		if n != bytes || v != Granted {
			t.Fatalf("%d bytes are granted, %v", n, v)
		}
		account.Settle(epoch, n, 0, n)
		p.Leave(&m)
	}
	stays := &Share{ID: 1}
	for id := int64(2); id < 50*most; id++ {
		removed := &Share{ID: id}
		move(removed, id)
		move(stays, 1)
		core.fail.Store(id%7 == 0)
		renew()
		if ids := p.CountedShares(most); len(ids) > most {
			for _, id := range ids {
				if id != stays.ID {
					p.EndShare(id)
				}
			}
		}
		move(removed, 1) // what still passes is the session's alone
	}
	core.fail.Store(false)
	renew()
	if n, kept := len(core.lease.Workers), len(p.shares); n > most+1 || kept > most+1 || len(p.gone) > 0 {
		t.Errorf("the lease has %d workers, the pool %d of which %d are removed", n, kept, len(p.gone))
	}
	var sum int64
	for id, bytes := range core.by {
		if sum += bytes; id != stays.ID && bytes != id && bytes != id+1 {
			t.Errorf("worker %d moved %d bytes", id, bytes)
		}
	}
	if core.by[stays.ID] != 50*most-2 || sum > core.usage.Used() || core.usage.Used() != p.up+p.down {
		t.Errorf("%d bytes of the worker that stays, %d of all, %d of the session, which moved %d", core.by[stays.ID], sum,
			core.usage.Used(), p.up+p.down)
	}
}
