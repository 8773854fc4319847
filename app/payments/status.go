package payments

import (
	"context"
	"time"

	"agentproxy/domain"
	"agentproxy/ports"
)

// Status is the state of the watcher.
type Status struct {
	ReadAt   time.Time    // when a scan last read all it had to; zero: never
	Final    int64        // blocks are known completely up to here; 0: not read by blocks
	Latest   int64        // the newest block that was seen
	Seen     int          // transfers that wait to become final, at most a thousand are counted
	Drifting int          // addresses whose balance this process found wrong
	Drift    domain.Money // the sum of these differences, without their signs
	Aside    int          // final transfers that could not be booked
	OwnMoves int          // transfers between two of our addresses, ever; none is credited
}

// Status returns the state of the watcher without reading the chain.
func (p *Watcher) Status(ctx context.Context) (s Status, err error) {
	err = p.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		mark, _, err := tx.Transfers().ScanCursor(ctx, p.chain.Network())
		if err != nil {
			return err
		}
		seen, err := tx.Transfers().SeenUpTo(ctx, p.chain.Network(), 1<<62, 1000)
		s = Status{ReadAt: mark.ReadAt, Final: mark.Final.Number, Latest: mark.Latest, Seen: len(seen)}
		if err == nil {
			_, s.OwnMoves, err = tx.Transfers().OwnMoves(ctx, p.chain.Network(), 0)
		}
		if err == nil {
			_, s.Aside, err = tx.Transfers().Aside(ctx, p.chain.Network(), 0)
		}
		return err
	})
	auditor{p}.drifting(&s)
	return s, err
}

func (p auditor) drifting(s *Status) {
	p.found.Lock()
	defer p.found.Unlock()
	s.Drifting = len(p.drifts)
	for _, d := range p.drifts {
		s.Drift += max(d, -d)
	}
}
