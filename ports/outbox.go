package ports

import (
	"context"
	"time"

	"agentproxy/domain/webhook"
)

// FeedQuery asks for events of an agent.
type FeedQuery struct {
	AgentID string
	Key     string         // only events of sessions that this key bought; empty: all
	After   int64          // a place; 0: from the oldest on
	Types   []webhook.Type // at least one
	Limit   int
}

// FeedPage is a part of an agent's feed.
type FeedPage struct {
	Events []webhook.Event
	// Next is the place behind all that was looked at: behind the last of Events if there are Limit of them, else
	// behind everything that is committed for good.
	Next int64
	// Later reports that events are committed that are not listed yet, since one that was begun before may
	// still be committed in front of them.
	Later bool
}

// Outbox keeps the events of agents, for their feeds and webhooks, in the unit of work of the change.
type Outbox interface {
	// Append stores an event. Once the unit is committed every process is notified that the feed of its agent has
	// grown, unless this one is killed first.
	Append(ctx context.Context, e webhook.Event) error
	// Feed lists the events of an agent behind a place, in an order in which none is ever put in front of one that was
	// listed. It is ErrMissed for a place that this database has not reached.
	Feed(ctx context.Context, q FeedQuery) (FeedPage, error)
	// Event returns an event that is sent to a webhook, or webhook.ErrNotFound.
	Event(ctx context.Context, id string) (webhook.Event, error)
	// Purge removes those of the first events, limit of them, that are from before the time, and their deliveries.
	Purge(ctx context.Context, before time.Time, limit int) (int, error)
	// PurgeRefused removes deliveries from before the time that failed without an attempt. Their events stay.
	PurgeRefused(ctx context.Context, before time.Time, limit int) (int, error)
}
