package sessions

import (
	"context"
	"fmt"
	"time"

	"agentproxy/adapters/storage/codec"
	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/usage"
	"agentproxy/adapters/storage/work"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/ports"
)

// LeaseSQL holds the statements of leases. They read the database's clock themselves, so that a
// replica whose own clock is wrong neither keeps a lease too long nor loses it too early.
type LeaseSQL struct {
	timed           func(args ...any) []any // appends the time to the arguments, if it is one
	get, put, stale string
	of              func(list string, n int) string // of the sessions in a list of n parameters
}

func scanLease(found engine.Row) (l traffic.Lease, err error) {
	var idle int64
	var workers []byte
	err = found.Scan(&l.SessionID, &l.ID, &l.Replica, &l.Granted, &l.Up, &l.Down, &l.Connections, &workers, &idle)
	if err == nil {
		l.Workers, err = codec.DecodeWorkers(workers)
	}
	l.Idle = time.Duration(idle) * time.Microsecond
	return l, err
}

// usages keeps the usage and the leases of sessions.
type usages struct {
	*work.Unit
	leases *LeaseSQL
}

// Traffic returns the usage and the leases of sessions in a unit.
func Traffic(u *work.Unit, leases *LeaseSQL) ports.Traffic { return usages{u, leases} }

func (r usages) Usage(_ context.Context, sessionID string) (traffic.Usage, error) {
	f, found, err := Table.Get(r.Set, sessionID)
	if err == nil && !found {
		err = session.ErrNotFound
	}
	if err != nil {
		return traffic.Usage{}, err
	}
	return fromUsageRow(f.usage), nil
}

func (r usages) Metered(ctx context.Context, sessionIDs []string) (map[string]*ports.Metered, error) {
	found := make(map[string]*ports.Metered, len(sessionIDs))
	if len(sessionIDs) == 0 {
		return found, nil
	}
	list, args := work.InTexts(sessionIDs)
	query := selectStored + "IN " + list + " ORDER BY s.id" + r.ForUpdate("s")
	err := r.Rows(ctx, query, args, func(row engine.Row) error {
		f, err := scanStored(row)
		if err != nil {
			return err
		}
		Table.Load(r.Set, f.ID, f)
		s, err := FromRow(&f.Row)
		found[s.ID] = &ports.Metered{Session: s, Usage: fromUsageRow(f.usage), Leases: map[string]traffic.Lease{}}
		return err
	})
	if err == nil {
		err = r.Rows(ctx, r.leases.of(list, len(args)), r.leases.timed(args...), func(rows engine.Row) error {
			l, err := scanLease(rows)
			if m := found[l.SessionID]; err == nil && m != nil {
				m.Leases[l.ID] = l
			}
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("read %d sessions with their usage: %w", len(sessionIDs), r.Failed(err))
	}
	return found, nil
}

func (r usages) PutUsage(_ context.Context, sessionID string, d traffic.Delta) error {
	f, err := stored(r.Unit, sessionID)
	if err != nil {
		return err
	}
	moved, ok := fromUsageRow(f.usage).Moved(d)
	if !ok {
		return ports.ErrOverspent
	}
	r.Touch(sessionID)
	f.usage = toUsageRow(moved)
	return store(r.Unit, f, usageChanged)
}

func (r usages) AddTopUp(_ context.Context, t ports.TopUp) error {
	return r.Beside("add traffic to "+t.SessionID,
		`INSERT INTO session_topups (agent_id, session_id, no, run, start, bytes, price, at)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)`,
		t.AgentID, t.SessionID, t.No, t.Run, t.Start, t.Bytes, int64(t.Price), column.Micros(t.At))
}

func (r usages) Record(_ context.Context, agentID, sessionID string, hour time.Time, t ports.Totals) error {
	return usage.AddHour(r.Set, agentID, sessionID, hour.Truncate(time.Hour), t)
}

func (r usages) SettleAt(_ context.Context, sessionID string) (time.Time, error) {
	f, err := stored(r.Unit, sessionID)
	if err != nil {
		return time.Time{}, err
	}
	return column.Time(f.settleAt), nil
}

func (r usages) SetSettleAt(_ context.Context, sessionID string, at time.Time) error {
	f, err := stored(r.Unit, sessionID)
	if err != nil {
		return err
	}
	f.settleAt = column.Micros(at)
	return store(r.Unit, f, planChanged)
}
