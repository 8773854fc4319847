package ports

import (
	"context"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/webhook"
)

// Webhooks keeps what came of sending to agents: the state of their endpoints,
// the deliveries, and marks of what was notified once.
type Webhooks interface {
	// Endpoint returns the endpoint of an agent, or account.ErrNotFound. The URL and the
	// version of the secret are the account's.
	Endpoint(ctx context.Context, agentID string) (webhook.Endpoint, error)
	// PeekEndpoint is like Endpoint without a lock, for units that only append an
	// event: they hold other rows already, in any order.
	PeekEndpoint(ctx context.Context, agentID string) (webhook.Endpoint, error)
	// PutEndpoint writes all but the URL and the version of the secret.
	PutEndpoint(ctx context.Context, e webhook.Endpoint) error

	// InsertDelivery stores a delivery. It returns ErrDuplicate for a second one of an event.
	InsertDelivery(ctx context.Context, d webhook.Delivery) error
	// Delivery returns a delivery of the agent, or webhook.ErrNotFound.
	Delivery(ctx context.Context, agentID, id string) (webhook.Delivery, error)
	// LoadDelivery is like Delivery for the service itself, for a delivery of any agent.
	LoadDelivery(ctx context.Context, id string) (webhook.Delivery, error)
	// PutDelivery writes status, attempts and what came of the last one.
	PutDelivery(ctx context.Context, d webhook.Delivery) error
	// Deliveries lists an agent's deliveries, newest first; an empty status
	// lists all.
	Deliveries(
		ctx context.Context, agentID string, of webhook.Status, page domain.Page,
	) (domain.List[webhook.Delivery], error)
	// Pending counts an agent's pending deliveries, up to a limit.
	Pending(ctx context.Context, agentID string, limit int) (int, error)
	// Overdue lists pending deliveries that were due before the time, the
	// longest overdue first.
	Overdue(ctx context.Context, before time.Time, limit int) ([]webhook.Delivery, error)

	// MarkNotified sets a mark and reports whether it differs from what it was; a mark
	// that was never set is 0. An empty agent id is the service's own.
	MarkNotified(ctx context.Context, agentID, what string, to int64) (changed bool, err error)
	// NotifiedUpTo returns a mark as it was set last.
	NotifiedUpTo(ctx context.Context, agentID, what string) (int64, error)
}
