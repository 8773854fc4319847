package storage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"agentproxy/adapters/storage/engine"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/ports"
)

// usages keeps the usage and the leases of sessions.
type usages struct{ *tx }

func (r usages) Usage(_ context.Context, sessionID string) (traffic.Usage, error) {
	var row usageRow
	err := r.row("SELECT "+usageColumns+" FROM sessions s WHERE s.id = ?1"+r.lock("s"),
		sessionID).Scan(scanTargets(&row)...)
	if errors.Is(err, sql.ErrNoRows) {
		return traffic.Usage{}, session.ErrNotFound
	}
	if err != nil {
		return traffic.Usage{}, fmt.Errorf("read usage of %s: %w", sessionID, err)
	}
	return fromUsageRow(row), nil
}

const putUsage = `UPDATE sessions SET up = up + ?2, down = down + ?3, connections = connections + ?4,
	leased = leased + ?5, usage_at = ?6
	WHERE id = ?1 AND leased + ?5 >= 0 AND up + ?2 >= 0 AND down + ?3 >= 0
	AND (bytes = 0 OR up + ?2 + down + ?3 + leased + ?5 <= bytes)`

func (r usages) PutUsage(_ context.Context, sessionID string, d traffic.Delta) error {
	n, err := r.exec(putUsage, sessionID, d.Up, d.Down, d.Connections, d.Leased, micros(d.At))
	if err != nil {
		return fmt.Errorf("write usage of %s: %w", sessionID, err)
	}
	if n == 0 {
		if _, err := r.seqOf(sessionID); err != nil {
			return err
		}
		return ports.ErrOverspent
	}
	return nil
}

func (r usages) Record(_ context.Context, agentID, sessionID string, hour time.Time, t ports.Totals) error {
	return r.addHour(agentID, sessionID, hour.Truncate(time.Hour), t)
}

const leaseColumns = "session_id, id, replica, granted, up, down, connections, renewed_at"

func scanLease(found interface{ Scan(...any) error }) (l traffic.Lease, err error) {
	var at int64
	err = found.Scan(&l.SessionID, &l.ID, &l.Replica, &l.Granted, &l.Up, &l.Down, &l.Connections, &at)
	l.RenewedAt = fromMicros(at)
	return l, err
}

func (r usages) Lease(_ context.Context, sessionID, lease string) (traffic.Lease, bool, error) {
	query := "SELECT " + leaseColumns + " FROM leases WHERE session_id = ?1 AND id = ?2" + r.lock("leases")
	l, err := scanLease(r.row(query, sessionID, lease))
	if errors.Is(err, sql.ErrNoRows) {
		return traffic.Lease{}, false, nil
	}
	if err != nil {
		return traffic.Lease{}, false, fmt.Errorf("read lease %s of %s: %w", lease, sessionID, err)
	}
	return l, true, nil
}

const putLease = `INSERT INTO leases (` + leaseColumns + `) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
	ON CONFLICT (session_id, id) DO UPDATE SET replica = excluded.replica, granted = excluded.granted,
	up = excluded.up, down = excluded.down, connections = excluded.connections, renewed_at = excluded.renewed_at`

func (r usages) PutLease(_ context.Context, l traffic.Lease) error {
	return r.later("write lease "+l.ID+" of "+l.SessionID, putLease,
		l.SessionID, l.ID, l.Replica, l.Granted, l.Up, l.Down, l.Connections, micros(l.RenewedAt))
}

func (r usages) DropLease(_ context.Context, sessionID, lease string) error {
	return r.later("drop lease "+lease+" of "+sessionID, "DELETE FROM leases WHERE session_id = ?1 AND id = ?2",
		sessionID, lease)
}

// Stale reads the whole table, which holds only what is leased right now.
func (r usages) Stale(ctx context.Context, before time.Time, limit int) ([]traffic.Lease, error) {
	var stale []traffic.Lease
	err := r.rows(ctx, "SELECT "+leaseColumns+" FROM leases WHERE renewed_at < ?1 ORDER BY renewed_at LIMIT ?2",
		[]any{micros(before), limit}, func(rows engine.Row) error {
			l, err := scanLease(rows)
			stale = append(stale, l)
			return err
		})
	if err != nil {
		return nil, fmt.Errorf("list stale leases: %w", err)
	}
	return stale, nil
}

func (r usages) SettleAt(_ context.Context, sessionID string) (time.Time, error) {
	var at int64
	err := r.row("SELECT settle_at FROM sessions WHERE id = ?1"+r.lock("sessions"), sessionID).Scan(&at)
	if errors.Is(err, sql.ErrNoRows) {
		return time.Time{}, session.ErrNotFound
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("read when %s is settled: %w", sessionID, r.failed(err))
	}
	return fromMicros(at), nil
}

func (r usages) SetSettleAt(_ context.Context, sessionID string, at time.Time) error {
	n, err := r.exec("UPDATE sessions SET settle_at = ?2 WHERE id = ?1", sessionID, micros(at))
	if err != nil {
		return fmt.Errorf("plan settlement of %s: %w", sessionID, err)
	}
	if n == 0 {
		return session.ErrNotFound
	}
	return nil
}
