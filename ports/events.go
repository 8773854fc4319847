package ports

import (
	"context"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/eventlog"
)

// Events keeps the event feed.
type Events interface {
	// Append adds events of one session, oldest first.
	Append(ctx context.Context, sessionID string, events []eventlog.Event) error
	// Page lists events of a session, newest first.
	Page(ctx context.Context, sessionID string, page domain.Page) (domain.List[eventlog.Event], error)
	// Recent lists those of the agent's sessions that have events, the one with the newest first.
	Recent(ctx context.Context, agentID string, limit int) ([]string, error)
	// Trim removes up to limit of the calls of Append whose events are all from
	// before the time, the oldest first, and returns how many. It stops at the first
	// that has a younger event.
	Trim(ctx context.Context, before time.Time, limit int) (int, error)
}
