package metering

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"agentproxy/domain/traffic"
	"agentproxy/ports"
)

// reportsFor is how old the reports of other replicas may be, and maxFold how many of an agent are booked in one unit.
const (
	reportsFor = 500 * time.Millisecond
	maxFold    = 1000
)

// reported is what the leases of all replicas have used since they were renewed, as it was read last.
type reported struct {
	mu     sync.Mutex
	at     time.Time // when it was read; zero: it is to be read
	of     map[string][]traffic.Report
	booked map[string]traffic.Report // by lease: what this process has booked

	reads    singleflight.Group // of all reports
	bookings singleflight.Group // by agent
}

// Report stores what calm leases have used since they were renewed, so that the usage is known without a renewal, and
// booked should the replica die. A part replaces what the replica reported in the part of that number.
func (t *Service) Report(ctx context.Context, replica string, parts []traffic.ReportPart) error {
	err := t.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx Repos) error {
		for _, p := range parts {
			if err := tx.Traffic().PutReports(ctx, replica, p); err != nil {
				return err
			}
		}
		return nil
	})
	t.reported.mu.Lock()
	t.reported.at = time.Time{}
	t.reported.mu.Unlock()
	return err
}

// bookWithin is how long Book waits: a database that hangs holds an answer up for no longer than that before it is
// read.
const bookWithin = 2 * time.Second

// Book books what leases of an agent's sessions have used and reported, before the agent's usage is read. It writes at
// most what the gateways reported since the last time, and nothing for an agent without traffic. When ctx ends it
// returns, or after bookWithin, and the booking goes on for those who wait for it too.
func (t *Service) Book(ctx context.Context, agentID string) error {
	if reports, fresh := t.unbooked(agentID); fresh && len(reports) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, bookWithin)
	defer cancel()
	done := t.reported.bookings.DoChan(agentID, func() (any, error) {
		ctx := context.WithoutCancel(ctx)
		if err := t.readReports(ctx); err != nil {
			return nil, err
		}
		reports, _ := t.unbooked(agentID)
		for chunk := range slices.Chunk(reports, maxFold) {
			if err := t.book(ctx, chunk); err != nil {
				return nil, err
			}
		}
		return nil, nil
	})
	select {
	case r := <-done:
		return r.Err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// readReports reads what all replicas report, unless that was read just before. All agents wait for one read: it takes
// nothing of the share of one.
func (t *Service) readReports(ctx context.Context) error {
	_, err, _ := t.reported.reads.Do("", func() (any, error) {
		if _, fresh := t.unbooked(""); fresh {
			return nil, nil
		}
		now := t.clock.Now()
		var list []traffic.Report
		err := t.store.Read(ports.WithAgent(ctx, ""), func(ctx context.Context, tx Repos) (err error) {
			list, err = tx.Traffic().Reports(ctx)
			return err
		})
		if err == nil {
			t.reported.set(list, now)
		}
		return nil, err
	})
	return err
}

// unbooked returns the reports of an agent that this process has not booked, and whether they are fresh.
func (t *Service) unbooked(agentID string) (left []traffic.Report, fresh bool) {
	r := &t.reported
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, report := range r.of[agentID] {
		if report != r.booked[report.Lease] {
			left = append(left, report)
		}
	}
	return left, !r.at.IsZero() && t.clock.Now().Sub(r.at).Abs() < reportsFor
}

// set replaces what was read.
func (r *reported) set(list []traffic.Report, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	booked := r.booked
	r.at, r.of, r.booked = now, map[string][]traffic.Report{}, map[string]traffic.Report{}
	for _, report := range list {
		r.of[report.AgentID] = append(r.of[report.AgentID], report)
		if b, ok := booked[report.Lease]; ok {
			r.booked[report.Lease] = b
		}
	}
}

// book books reports in one unit.
func (t *Service) book(ctx context.Context, reports []traffic.Report) error {
	requests := t.failing.filter(folds(reports), t.clock.Now())
	if len(requests) == 0 {
		return nil
	}
	if _, err := t.renewApart(ctx, "", requests); err != nil {
		return err
	}
	t.reported.mu.Lock()
	defer t.reported.mu.Unlock()
	for _, report := range reports {
		t.reported.booked[report.Lease] = report
	}
	return nil
}

// BookIn books what one lease has reported, in a unit that is about to reclaim it. It returns the sessions that ended
// by it.
func (t *Service) BookIn(ctx context.Context, tx Repos, report traffic.Report) (ended []string, err error) {
	_, ended, err = t.renewIn(ctx, tx, "", folds([]traffic.Report{report}))
	return ended, err
}

// folds returns the sorted requests that book reports.
func folds(reports []traffic.Report) []traffic.LeaseRequest {
	requests := make([]traffic.LeaseRequest, len(reports))
	for i, r := range reports {
		requests[i] = traffic.LeaseRequest{SessionID: r.SessionID, Lease: r.Lease, Up: r.Up, Down: r.Down,
			Connections: r.Connections, Fold: true}
	}
	slices.SortFunc(requests, func(a, b traffic.LeaseRequest) int {
		return cmp.Or(cmp.Compare(a.SessionID, b.SessionID), cmp.Compare(a.Lease, b.Lease))
	})
	return requests
}
