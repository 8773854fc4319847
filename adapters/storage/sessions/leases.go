package sessions

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"agentproxy/adapters/storage/codec"
	"agentproxy/adapters/storage/engine"
	"agentproxy/domain/traffic"
)

// leaseColumns are those that the gateways write. The database stamps renewed_at, later by what a lease lasts
// longer than usual.
const leaseColumns = "session_id, id, replica, granted, up, down, connections, workers"

// NewLeaseSQL returns the statements. now returns the expression for the time in microseconds; where
// the database has no clock of its own, it is the parameter with the given number, and timed adds the argument.
func NewLeaseSQL(now func(parameter int) string, timed func(args ...any) []any) LeaseSQL {
	columns := func(parameter int) string {
		return "SELECT " + leaseColumns + ", " + now(parameter) + " - renewed_at FROM leases WHERE "
	}
	return LeaseSQL{
		timed: timed,
		get:   columns(3) + "session_id = ?1 AND id = ?2",
		put: "INSERT INTO leases (" + leaseColumns + ", renewed_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, " +
			now(10) + ` + ?9)
			ON CONFLICT (session_id, id) DO UPDATE SET replica = excluded.replica, granted = excluded.granted,
			up = excluded.up, down = excluded.down, connections = excluded.connections,
			workers = excluded.workers, renewed_at = excluded.renewed_at`,
		of: func(list string, n int) string { return columns(n+1) + "session_id IN " + list },
		// It reads the whole table, which holds only what is leased right now.
		stale: columns(3) + "renewed_at < " + now(3) + " - ?1 ORDER BY renewed_at LIMIT ?2",
	}
}

func (r usages) Lease(_ context.Context, sessionID, lease string) (traffic.Lease, bool, error) {
	query := r.leases.get + r.ForUpdate("leases")
	l, err := scanLease(r.Row(query, r.leases.timed(sessionID, lease)...))
	if errors.Is(err, sql.ErrNoRows) {
		return traffic.Lease{}, false, nil
	}
	if err != nil {
		return traffic.Lease{}, false, fmt.Errorf("read lease %s of %s: %w", lease, sessionID, err)
	}
	return l, true, nil
}

func (r usages) PutLease(_ context.Context, l traffic.Lease) error {
	return r.Beside("write lease "+l.ID+" of "+l.SessionID, r.leases.put,
		r.leases.timed(l.SessionID, l.ID, l.Replica, l.Granted, l.Up, l.Down, l.Connections,
			codec.AppendWorkers([]byte{}, l.Workers), l.Extra().Microseconds())...)
}

func (r usages) BookLease(_ context.Context, l traffic.Lease) error {
	return r.Beside("book lease "+l.ID+" of "+l.SessionID,
		"UPDATE leases SET up = ?3, down = ?4, connections = ?5 WHERE session_id = ?1 AND id = ?2",
		l.SessionID, l.ID, l.Up, l.Down, l.Connections)
}

func (r usages) DropLease(_ context.Context, sessionID, lease string) error {
	return r.Beside("drop lease "+lease+" of "+sessionID, "DELETE FROM leases WHERE session_id = ?1 AND id = ?2",
		sessionID, lease)
}

func (r usages) Stale(ctx context.Context, idle time.Duration, limit int) ([]traffic.Lease, error) {
	var stale []traffic.Lease
	err := r.Rows(ctx, r.leases.stale, r.leases.timed(idle.Microseconds(), limit), func(rows engine.Row) error {
		l, err := scanLease(rows)
		stale = append(stale, l)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list stale leases: %w", err)
	}
	return stale, nil
}

func (r usages) PutReports(_ context.Context, replica string, p traffic.ReportPart) error {
	if len(p.Reports) == 0 {
		return r.Beside("drop reports of "+replica, "DELETE FROM lease_reports WHERE replica = ?1 AND part = ?2",
			replica, p.No)
	}
	return r.Beside("write reports of "+replica, `INSERT INTO lease_reports (replica, part, ids, counts)
		VALUES (?1, ?2, ?3, ?4) ON CONFLICT (replica, part) DO UPDATE SET ids = excluded.ids, counts = excluded.counts`,
		replica, p.No, codec.AppendReportIDs([]byte{}, p.Reports), codec.AppendReportCounts([]byte{}, p.Reports))
}

func (r usages) Reports(ctx context.Context) (reports []traffic.Report, err error) {
	err = r.Rows(ctx, "SELECT ids, counts FROM lease_reports", nil, func(rows engine.Row) error {
		var ids, counts []byte
		if err := rows.Scan(&ids, &counts); err != nil {
			return err
		}
		part, err := codec.DecodeReports(ids, counts)
		reports = append(reports, part...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the reports of leases: %w", err)
	}
	return reports, nil
}

func (r usages) DropReports(context.Context) error {
	return r.Beside("drop reports", "DELETE FROM lease_reports WHERE replica NOT IN (SELECT replica FROM leases)")
}
