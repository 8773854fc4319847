package direct

import (
	"context"
	"time"

	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/ports"
)

// BookUsage books that a direct session used that many bytes in all, at most what was bought,
// and returns its usage before and how many bytes are new, which CountUsage counts.
func BookUsage(
	ctx context.Context, tx Repos, s session.Session, bytes int64, now time.Time,
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
func CountUsage(ctx context.Context, tx Repos, s session.Session, more int64) error {
	if more == 0 {
		return nil
	}
	return tx.Counters().Add(ctx, s.AgentID, ports.Tally{Bytes: more})
}
