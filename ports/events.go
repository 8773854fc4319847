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
	// Trim removes events from before the time, in sessions whose id follows
	// after, and returns the last id it looked at; empty: it came to the end.
	Trim(ctx context.Context, before time.Time, after string, sessions int) (string, error)
}
