package lease

import (
	"context"
	"slices"
	"time"

	"agentproxy/adapters/gateway/monotime"
	"agentproxy/domain/traffic"
)

// reports are what calm leases have used since their last renewal, each at a place of a part. A report keeps its
// place as long as its pool has a lease, so that a part that is stored again differs in its counters alone. The loop
// of the Renewer uses it.
type reports struct {
	at    time.Duration
	slots map[*Pool]*slot
	parts []*part
	room  int // no part before this one has a free place
}

// part is what is stored together.
type part struct {
	slots   [traffic.PartSize]*slot
	changed bool
}

// slot is a report and its place.
type slot struct {
	part, at int
	report   traffic.Report
}

// report stores what calm leases have used, every Config.Report.
func (r *Renewer) report(ctx context.Context) {
	now := monotime.Now()
	if r.cfg.Fold == 0 || now < r.retry || now-r.reports.at < r.cfg.Report {
		return
	}
	r.reports.at = now
	r.mu.Lock()
	open := make(map[*Pool]struct{}, len(r.pools))
	for p := range r.pools {
		open[p] = struct{}{}
	}
	r.mu.Unlock()
	parts, n := r.reports.collect(open)
	if len(parts) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Call)
	defer cancel()
	err := r.core.Report(ctx, r.cfg.Replica, parts)
	r.adjustBackoff(err, n)
	if err == nil {
		for _, p := range parts {
			r.reports.parts[p.No].changed = false
		}
	}
}

// dropReports removes what was stored, when no lease is open. Should that fail, the core removes it later.
func (r *Renewer) dropReports(ctx context.Context) {
	if len(r.reports.parts) == 0 {
		return
	}
	parts := make([]traffic.ReportPart, len(r.reports.parts))
	for no := range parts {
		parts[no].No = no
	}
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Call)
	defer cancel()
	r.adjustBackoff(r.core.Report(ctx, r.cfg.Replica, parts), 0)
}

// collect returns the parts that have changed, and how many reports are in them.
func (s *reports) collect(open map[*Pool]struct{}) (changed []traffic.ReportPart, n int) {
	for p, at := range s.slots {
		if _, ok := open[p]; !ok {
			s.parts[at.part].slots[at.at] = nil
			s.room = min(s.room, at.part)
			delete(s.slots, p)
		}
	}
	for p := range open {
		report, ok := p.unbooked()
		if !ok {
			continue
		}
		at := s.slots[p]
		if at == nil {
			at = s.add(p)
		}
		if at.report != report {
			at.report, s.parts[at.part].changed = report, true
		}
	}
	for no, p := range s.parts {
		if !p.changed {
			continue
		}
		of := traffic.ReportPart{No: no}
		for _, at := range p.slots {
			if at != nil {
				of.Reports = append(of.Reports, at.report)
			}
		}
		n += len(of.Reports)
		changed = append(changed, of)
	}
	return changed, n
}

// add gives a pool the first free place, so that few leases are in few parts again after a time with many.
func (s *reports) add(p *Pool) *slot {
	if s.slots == nil {
		s.slots = map[*Pool]*slot{}
	}
	for ; ; s.room++ {
		if s.room == len(s.parts) {
			s.parts = append(s.parts, &part{})
		}
		if at := slices.Index(s.parts[s.room].slots[:], nil); at >= 0 {
			added := &slot{part: s.room, at: at}
			s.parts[s.room].slots[at], s.slots[p] = added, added
			return added
		}
	}
}

// calmNow reports whether the lease is renewed every Config.Fold. One that workers use is not, as their limits
// hold on all replicas. It is called under mu.
func (p *Pool) calmNow() bool { return p.calm && len(p.shares) == 0 }

// unbooked returns what the lease has used, if it is calm and used something since it was renewed.
func (p *Pool) unbooked() (traffic.Report, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	report := traffic.Report{AgentID: p.agent, SessionID: p.session, Lease: p.lease, Up: p.up, Down: p.down,
		Connections: p.conns}
	return report, p.lease != "" && p.calmNow() && p.moved()
}

// moved reports whether something moved since the lease was renewed. It is called under mu.
func (p *Pool) moved() bool { return p.up+p.down != p.reported || p.conns != p.connsReported }
