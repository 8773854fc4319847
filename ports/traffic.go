package ports

import (
	"context"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
)

// Metered is a session with its usage and its leases, by id.
type Metered struct {
	Session session.Session
	Usage   traffic.Usage
	Leases  map[string]traffic.Lease
}

// TopUp is one addition to the traffic of a session.
type TopUp struct {
	AgentID   string
	SessionID string
	No        int   // of the additions to the session, from 1
	Run       int   // which run it is of, 0 is that of the traffic that the session was created with
	Start     int64 // bytes of the session before its run, 0 for run 0
	Bytes     int64
	Price     domain.Money
	At        time.Time
}

// Traffic keeps the usage and the leases of sessions.
type Traffic interface {
	// Metered reads sessions of any agent, by id, and locks them as Sessions.Lock does.
	// Unknown ones are left out.
	Metered(ctx context.Context, sessionIDs []string) (map[string]*Metered, error)
	// Usage returns the usage of a session, or session.ErrNotFound.
	Usage(ctx context.Context, sessionID string) (traffic.Usage, error)
	// Lease returns a lease, or false if there is none.
	Lease(ctx context.Context, sessionID, lease string) (traffic.Lease, bool, error)
	// PutUsage moves the usage of a session by a delta. It refuses with
	// ErrOverspent, whatever was read before, when used and leased together
	// would exceed a limit.
	PutUsage(ctx context.Context, sessionID string, d traffic.Delta) error
	// AddTopUp keeps what was added to the traffic of a session, for the proof of the ledger.
	AddTopUp(ctx context.Context, t TopUp) error
	// Record adds to the hourly totals of a session.
	Record(ctx context.Context, agentID, sessionID string, hour time.Time, t Totals) error
	// PutLease stores a lease as renewed at this moment of the database's clock.
	PutLease(ctx context.Context, l traffic.Lease) error
	// BookLease stores the counters of a lease, if it is there, and leaves when it was renewed.
	BookLease(ctx context.Context, l traffic.Lease) error
	DropLease(ctx context.Context, sessionID, lease string) error
	// PutReports replaces a part of what a replica reports between renewals, and removes an empty one.
	PutReports(ctx context.Context, replica string, p traffic.ReportPart) error
	// Reports returns what all replicas report. What a renewal has booked may still be among it.
	Reports(ctx context.Context) ([]traffic.Report, error)
	// DropReports removes the reports of replicas without a lease.
	DropReports(ctx context.Context) error
	// Stale lists leases that were idle for longer than the time, by the same clock.
	Stale(ctx context.Context, idle time.Duration, limit int) ([]traffic.Lease, error)
	// SetSettleAt sets when SettleDue lists the session. The zero time means never: Unbooked has no such session.
	SetSettleAt(ctx context.Context, sessionID string, at time.Time) error
	// SettleAt returns what SetSettleAt set last.
	SettleAt(ctx context.Context, sessionID string) (time.Time, error)
}

// ErrOverspent reports that a session's traffic does not allow it.
var ErrOverspent = &domain.Error{Kind: domain.Conflict, Code: "OVERSPENT", Message: "the traffic does not allow it"}
