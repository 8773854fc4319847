package storage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/work"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/ports"
)

// usages keeps the usage and the leases of sessions.
type usages struct{ *tx }

func (r usages) Usage(_ context.Context, sessionID string) (traffic.Usage, error) {
	if r.batch != nil {
		return r.batch.usage(sessionID)
	}
	var row usageRow
	err := r.Row("SELECT "+usageColumns+" FROM sessions s WHERE s.id = ?1"+r.ForUpdate("s"),
		sessionID).Scan(column.Targets(&row)...)
	if errors.Is(err, sql.ErrNoRows) {
		return traffic.Usage{}, session.ErrNotFound
	}
	if err != nil {
		return traffic.Usage{}, fmt.Errorf("read usage of %s: %w", sessionID, err)
	}
	return fromUsageRow(row), nil
}

func (r usages) Metered(ctx context.Context, sessionIDs []string) (map[string]*ports.Metered, error) {
	found := make(map[string]*ports.Metered, len(sessionIDs))
	if len(sessionIDs) == 0 {
		return found, nil
	}
	list, args := work.InTexts(sessionIDs)
	query := "SELECT " + sessionSelect + ", " + usageColumns + " FROM sessions s WHERE s.id IN " + list +
		" ORDER BY s.id" + r.ForUpdate("s")
	err := r.Rows(ctx, query, args, func(rows engine.Row) error {
		var row sessionRow
		var usage usageRow
		if err := rows.Scan(column.Targets(&row, column.Targets(&usage)...)...); err != nil {
			return err
		}
		s, err := fromSessionRow(&row)
		found[s.ID] = &ports.Metered{Session: s, Usage: fromUsageRow(usage), Leases: map[string]traffic.Lease{}}
		return err
	})
	if err == nil {
		err = r.Rows(ctx, r.store.leases.of(list, len(args)), r.store.timed(args...), func(rows engine.Row) error {
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

const putUsage = `UPDATE sessions SET up = up + ?2, down = down + ?3, connections = connections + ?4,
	leased = leased + ?5, usage_at = ?6
	WHERE id = ?1 AND leased + ?5 >= 0 AND up + ?2 >= 0 AND down + ?3 >= 0
	AND (bytes = 0 OR up + ?2 + down + ?3 + leased + ?5 <= bytes)`

func (r usages) PutUsage(_ context.Context, sessionID string, d traffic.Delta) error {
	r.Touch(sessionID)
	n, err := r.Exec(putUsage, sessionID, d.Up, d.Down, d.Connections, d.Leased, column.Micros(d.At))
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

func (r usages) AddTopUp(_ context.Context, t ports.TopUp) error {
	return r.Later("add traffic to "+t.SessionID,
		`INSERT INTO session_topups (agent_id, session_id, no, run, start, bytes, price, at)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)`,
		t.AgentID, t.SessionID, t.No, t.Run, t.Start, t.Bytes, int64(t.Price), column.Micros(t.At))
}

func (r usages) Record(_ context.Context, agentID, sessionID string, hour time.Time, t ports.Totals) error {
	return r.addHour(agentID, sessionID, hour.Truncate(time.Hour), t)
}

func (r usages) SettleAt(_ context.Context, sessionID string) (time.Time, error) {
	if r.batch != nil {
		s, err := r.batch.settled(sessionID)
		return column.Time(s.settleAt), err
	}
	var at int64
	err := r.Row("SELECT settle_at FROM sessions WHERE id = ?1"+r.ForUpdate("sessions"), sessionID).Scan(&at)
	if errors.Is(err, sql.ErrNoRows) {
		return time.Time{}, session.ErrNotFound
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("read when %s is settled: %w", sessionID, r.Failed(err))
	}
	return column.Time(at), nil
}

func (r usages) SetSettleAt(_ context.Context, sessionID string, at time.Time) error {
	if r.batch != nil {
		return r.batch.setSettleAt(sessionID, at)
	}
	n, err := r.Exec("UPDATE sessions SET settle_at = ?2 WHERE id = ?1", sessionID, column.Micros(at))
	if err != nil {
		return fmt.Errorf("plan settlement of %s: %w", sessionID, err)
	}
	if n == 0 {
		return session.ErrNotFound
	}
	return nil
}
