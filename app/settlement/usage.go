package settlement

import (
	"context"
	"time"

	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/ports"
)

// Poll reads the counter of a direct session at its provider; false if there is none.
func (d *Direct) Poll(
	ctx context.Context, p ports.Provider, s session.Session, o procurement.Order,
) (u procurement.Usage, ok bool, err error) {
	counts, ok := p.(ports.Dynamic)
	if !ok || s.Type != session.Dynamic {
		return u, false, nil
	}
	bounded, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	u, err = counts.Usage(bounded, o.Ref)
	d.calls.Count(p, "usage", err)
	return u, true, err
}

// Total returns what a direct session used in all by a reading of its provider's counter. What it notes of that is
// stored with the order.
func Total(
	ctx context.Context, tx DirectRepos, o *procurement.Order, u procurement.Usage, lag time.Duration,
) (int64, error) {
	booked, err := tx.Traffic().Usage(ctx, o.SessionID)
	if err != nil {
		return 0, err
	}
	was := o.Counter
	var total int64
	if o.Counter, total = o.Counter.Read(u, booked.Used(), lag); o.Counter != was {
		err = tx.Orders().Put(ctx, *o)
	}
	return total, err
}

// ReportRestart reports that the counter of an order's provider began anew by a change of the order.
func (d *Direct) ReportRestart(before, after procurement.Order) {
	if after.Counter.Base <= before.Counter.Base {
		return
	}
	d.log.Warn("a provider's counter of a direct session began anew: what it counts is added to what was used before",
		"session_id", after.SessionID, "order_id", after.ID, "provider", after.Provider, "used", after.Counter.Base)
	if d.restarts != nil {
		d.restarts(after.Provider)
	}
}

// CountRestarts sets what counts the counters that began anew. It must be called before the Direct is used.
func (d *Direct) CountRestarts(count func(provider string)) { d.restarts = count }

// BookUsage books that a direct session used that many bytes in all, at most what was bought,
// and returns its usage before and how many bytes are new, which CountUsage counts.
func BookUsage(
	ctx context.Context, tx DirectRepos, s session.Session, bytes int64, now time.Time,
) (before traffic.Usage, more int64, err error) {
	if before, err = tx.Traffic().Usage(ctx, s.ID); err != nil {
		return before, 0, err
	}
	more = min(bytes, s.Bytes) - before.Used()
	if more <= 0 {
		return before, 0, nil
	}
	if err := tx.Traffic().PutUsage(ctx, s.ID, traffic.Delta{Down: more, At: now}); err != nil {
		return before, 0, err
	}
	if err := tx.Traffic().Record(ctx, s.AgentID, s.ID, now.Truncate(time.Hour), ports.Totals{Down: more}); err != nil {
		return before, 0, err
	}
	return before, more, nil
}

// CountUsage adds booked bytes to the counters of the agent. They are locked after the wallet,
// as in a renewal of leases, so that it is called last.
func CountUsage(ctx context.Context, tx DirectRepos, s session.Session, more int64) error {
	if more == 0 {
		return nil
	}
	return tx.Counters().Add(ctx, s.AgentID, ports.Tally{Bytes: more})
}
