package ports

import (
	"context"
	"time"

	"agentproxy/domain/webhook"
)

// Outbox keeps the events for webhooks, in the unit of work of the change.
type Outbox interface {
	Append(ctx context.Context, e webhook.Event) error
	// Event returns an event, or webhook.ErrNotFound.
	Event(ctx context.Context, id string) (webhook.Event, error)
	// Purge removes events from before the time, and their deliveries.
	Purge(ctx context.Context, before time.Time, limit int) (int, error)
	// PurgeRefused removes deliveries from before the time that failed without an attempt, and their events.
	PurgeRefused(ctx context.Context, before time.Time, limit int) (int, error)
}
