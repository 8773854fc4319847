package ports

import (
	"context"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/eventlog"
)

// Events keeps the event log.
type Events interface {
	// Append adds events of one session, oldest first.
	Append(ctx context.Context, sessionID string, events []eventlog.Event) error
	// Page lists events of a session, newest first.
	Page(ctx context.Context, sessionID string, page domain.Page) (domain.List[eventlog.Event], error)
	// Newest returns the newest events of sessions, newest first: of each at least a number, unless it has
	// fewer, and the rest of the call that added the oldest of them.
	Newest(ctx context.Context, sessionIDs []string, atLeast int) (map[string][]eventlog.Event, error)
	// KeepNewest removes the calls of Append of a session that are all older than its newest events, of which
	// at least a number stay.
	KeepNewest(ctx context.Context, sessionID string, atLeast int) error
	// Trim removes up to limit of the calls of Append whose events are all from
	// before the time, the oldest first, and returns how many. It stops at the first
	// that has a younger event.
	Trim(ctx context.Context, before time.Time, limit int) (int, error)
}
